"""Coders without a model."""

from __future__ import annotations

import math
import re

import numpy as np

from codea1_agents.scripted.fences import fenced_reply
from codea1_agents.scripted.input_texts import TEXT_INPUTS
from codea1_agents.scripted.literals import literal
from codea1_agents.scripted.mutation import mutants_of, without_docstrings
from codea1_agents.scripted.randomness import SeededAgent
from codea1_agents.scripted.signatures import Signature, read_signature
from codea1_agents.scripted.typed_inputs import edges
from codea1_agents.scripted.value_types import Kind, ValueType
from codea1_env.agent import AgentContext, Info, Observation
from codea1_env.facts.entry_points import definition
from codea1_env.problems.problem import Problem

_MAX_SUBTLETY = 4


class ReferenceCoder:
    """Replies with the problem's solution, which no coder can surpass. Privileged, since solutions are secret."""

    plays = "coder"

    def __init__(self, context: AgentContext) -> None:
        self._problems = context.problems

    def act(self, observation: Observation, info: Info) -> str:
        """Return the solution in a block."""
        return fenced_reply(self._problems.by_id(info["problem_id"]).solution, "Here is the function.")


class MutantCoder(SeededAgent):
    """Replies with the solution, or with a wrong variant with probability `strength`. Privileged: knows the solution.

    Wrong variants are the problem's known wrong programs (half of the time, if it has any) and mutants of its
    solution with one fault. Both have a subtlety from 1 (fails on most inputs) to 4 (fails only on rare ones).
    `strength` also sets how obvious the faults are: a variant of subtlety s has weight exp(-|s - t|) with
    t = 4 - 3 * strength, so strength 0.1 gives rare and subtle mistakes, strength 1 frequent and obvious ones.
    Within one subtlety every kind of fault is equally likely. A few mutants are equivalent to the solution, so the
    share of wrong programs is slightly below `strength`.

    In a repair round whose feedback reports failures, it draws again with strength / 2 ** round; if nothing failed, it
    repeats its program. All replies have the same style (no comments, no docstrings, uniform layout), so the style does
    not distinguish right from wrong programs.
    """

    plays = "coder"

    def __init__(self, context: AgentContext, *, strength: float = 0.5) -> None:
        """Make a coder.

        Raises:
            ValueError: strength is not a number within [0, 1].
        """
        self._strength = float(strength)  # an option from the command line may be text
        if not 0 <= self._strength <= 1:
            raise ValueError(f"strength must be in [0, 1], got {strength!r}")
        self._problems = context.problems
        self.reset(context.seed)

    def act(self, observation: Observation, info: Info) -> str:
        """Return the solution or a wrong variant of it in a block."""
        round_ = int(observation["round"])
        if round_ > 0 and observation["program"] and not reports_failure(observation["feedback"]):
            return fenced_reply(observation["program"], "Nothing failed, so the function stays as it is.")
        problem = self._problems.by_id(info["problem_id"])
        return fenced_reply(self._program(problem, math.ldexp(self._strength, -round_)), "Here is the function.")

    def _program(self, problem: Problem, strength: float) -> str:
        if self._rng.random() >= strength:
            return without_docstrings(problem.solution)
        known = [(wrong.subtlety, "known", wrong.program) for wrong in problem.wrong_programs]
        made = [(mutant.operator.subtlety, mutant.operator.value, mutant.program) for mutant in mutants_of(problem)]
        variants = known if known and (not made or self._rng.random() < 0.5) else made
        if not variants:
            return without_docstrings(problem.solution)
        weights = _weights([(subtlety, kind) for subtlety, kind, _ in variants], 4 - 3 * strength)
        return without_docstrings(variants[self._rng.choice(len(variants), p=weights)][2])


class RandomCoder(SeededAgent):
    """Replies with programs that load and mostly fail: the right signature around a random expression.

    Expressions are arguments, constants of the annotated result type, and small combinations of them; without an
    annotation, the type is random.
    """

    plays = "coder"

    def __init__(self, context: AgentContext) -> None:
        self.reset(context.seed)

    def act(self, observation: Observation, info: Info) -> str:
        """Return a random program in a block."""
        if inputs := TEXT_INPUTS.get(info.get("kind", "")):
            shown = f"print({self._expression(ValueType(Kind.UNKNOWN), [inputs.everything])})"
            return fenced_reply(shown, "Here is the program.")
        entry_point = observation["entry_point"]
        signature = read_signature(observation["problem"], entry_point)
        returns = signature.returns if signature else ValueType(Kind.UNKNOWN)
        names = [parameter.name for parameter in signature.parameters] if signature else []
        body = f"    return {self._expression(returns, names)}"
        if names and self._rng.random() < 0.3:
            body = f"    if {self._one_of(names)}:\n        return {self._expression(returns, names)}\n{body}"
        return fenced_reply(definition(entry_point, _header(signature), body), "Here is the function.")

    def _expression(self, kind: ValueType, names: list[str]) -> str:
        if kind.kind is Kind.UNKNOWN:
            kind = ValueType(_RESULTS[self._rng.integers(len(_RESULTS))])
        constant = self._one_of([literal(value) for value in edges(kind)])
        templates = _TEMPLATES.get(kind.kind, ())
        if not names or not templates or self._rng.random() < 0.3:
            return constant
        return self._one_of(list(templates)).format(self._one_of(names), constant)

    def _one_of(self, options: list[str]) -> str:
        return options[self._rng.integers(len(options))]


_RESULTS = (Kind.INT, Kind.BOOL, Kind.STR, Kind.NONE, Kind.FLOAT)
_TEMPLATES = {
    Kind.INT: ("{0}", "len({0})", "{0} + {1}", "{0} * {1}", "sum({0})", "max({0})"),
    Kind.FLOAT: ("{0}", "{0} / 2", "float({0})", "{0} + {1}"),
    Kind.BOOL: ("bool({0})", "{0} == {1}", "not {0}", "{0} is None"),
    Kind.STR: ("{0}", "str({0})", "{0}[::-1]", "str({0}) + {1}"),
    Kind.LIST: ("{0}", "list({0})", "sorted({0})", "[{0}]", "{0}[::-1]"),
    Kind.TUPLE: ("{0}", "tuple({0})", "({0}, {0})"),
    Kind.DICT: ("{0}", "dict.fromkeys({0})", "{{{0}: {0}}}"),
    Kind.SET: ("{0}", "set({0})"),
}


def reports_failure(feedback: str) -> bool:
    """Return whether the text reports a failed test or an invalid program; "0 of 8 tests failed" does not."""
    text = re.sub(r"\b(0|no|none)\b[\w ]* failed", "", feedback.lower())
    return re.search(r"fail|invalid|wrong|error|should be", text) is not None


def _weights(kinds: list[tuple[int, str]], target: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return each variant's probability.

    Each subtlety that occurs has the weight exp(-|subtlety - target|), divided equally among its kinds of faults; each
    kind's weight is divided equally among its variants.
    """
    of_kind = {kind: kinds.count(kind) for kind in set(kinds)}
    n_kinds = {s: len({kind for kind in of_kind if kind[0] == s}) for s in range(1, _MAX_SUBTLETY + 1)}
    raw = [math.exp(-abs(kind[0] - target)) / (of_kind[kind] * n_kinds[kind[0]]) for kind in kinds]
    return np.array(raw) / sum(raw)


def _header(signature: Signature | None) -> str:
    if signature is None:
        return "*arguments"
    parts = []
    for parameter in signature.parameters:
        if parameter.keyword_only and "*" not in parts:
            parts.append("*")
        parts.append(f"{parameter.name}=None" if parameter.has_default else parameter.name)
    return ", ".join(parts)
