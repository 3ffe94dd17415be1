"""Testers without a model.

`BoundaryTester` and `FuzzTester` generate inputs and need predictions for them. By default these are the solution's
values, which a real tester cannot see: such a tester is a privileged baseline, an upper bound for validity.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from codea1_agents.scripted.fences import fenced_reply
from codea1_agents.scripted.literals import call_text, effect_text
from codea1_agents.scripted.oracle import Oracle, subject_of
from codea1_agents.scripted.randomness import SeededAgent
from codea1_agents.scripted.signatures import (
    Arguments,
    Interface,
    example_statements,
    interface_of,
    interface_of_problem,
)
from codea1_agents.scripted.typed_inputs import boundary_calls
from codea1_env import values
from codea1_env.agent import AgentContext, Info, Observation
from codea1_env.facts.answers import AnswerRules
from codea1_env.facts.verdicts import Outcome, OutcomeKind

if TYPE_CHECKING:
    from codea1_agents.scripted.fuzz_inputs import InputSource


_MAX_PREDICTION = 400  # characters; a longer value makes no readable test
_MAX_CHUNKS = 4  # rounds of inputs before the suite stays short
_TRIED_PER_TEST = 3  # inputs with a prediction for each chosen one
_HUNTED = 64  # inputs per suite that run on both program and solution, with `hunt`
_MAX_SOURCES = 256  # problems whose strategies a fuzz tester keeps
_SHUFFLE = 10  # the first so many edges of the list are about equally likely to come first
_SENTENCE = "Here are the tests."


class ExamplesTester:
    """Replies with the statement's own examples: always right, known to every coder, worth nothing under `fixed`."""

    plays = "tester"

    def act(self, observation: Observation, info: Info) -> str:
        """Return the first examples in a block; prose if there are none."""
        statements = list(example_statements(observation["examples"]))
        imports = [ast.unparse(node) for node in statements if isinstance(node, ast.Import | ast.ImportFrom)]
        others = [node for node in statements if not isinstance(node, ast.Import | ast.ImportFrom)]
        ends = [position + 1 for position, node in enumerate(others) if isinstance(node, ast.Assert)]
        if not ends:
            return "The statement gives no examples to test."
        kept = others[: ends[: info["tests_per_suite"]][-1]]  # with the assignments and calls that asserts need
        return fenced_reply("\n".join([*imports, *map(ast.unparse, kept)]), _SENTENCE)


class Prediction(StrEnum):
    """The source of a tester's predicted values."""

    SOLUTION = "solution"
    """The problem's solution: privileged, always right."""
    PROGRAM = "program"
    """The program under test: a white-box guess without privileges, right where the program is right. Such a suite can
    beat a program only if validation fills in the solution's values. Without a program in the observation: as NONE."""
    NONE = "none"
    """The placeholder None; nothing is executed."""


@dataclass(frozen=True, slots=True)
class _Case:
    call: str
    prediction: str
    imports: tuple[str, ...] = ()
    beats: bool = False
    """Whether program and solution are known to differ on it."""


class InputTester(SeededAgent, ABC):
    """A tester that generates inputs and predicts their values. Subclasses generate the inputs."""

    plays = "tester"

    def __init__(self, context: AgentContext, *, predict: str = "solution", hunt: bool = False) -> None:
        """Make a tester.

        Args:
            context: problems, sandbox and first seed.
            predict: a `Prediction`.
            hunt: prefer inputs on which the observed program and the solution differ, among 64 per suite. This is an
                upper bound for adversaries; without a program it has no effect.

        Raises:
            ValueError: unknown prediction, or hunting without the solution's predictions.
        """
        self._predict = Prediction(predict)
        self._hunt = hunt
        if hunt and self._predict is not Prediction.SOLUTION:
            raise ValueError(f"hunt compares programs with the solution: it needs predict=solution, got {predict}")
        self._problems = context.problems
        self._oracle = Oracle(context.sandbox, limits=context.limits)
        self.reset(context.seed)

    def act(self, observation: Observation, info: Info) -> str:
        """Return at most `info["tests_per_suite"]` asserts `f(literals) == value`, no call twice, in a block.

        Raises:
            SandboxError: the sandbox cannot be used at all.
        """
        if self._predict is Prediction.SOLUTION and not observation["program"]:
            interface = interface_of_problem(self._problems.by_id(info["problem_id"]))
        else:
            interface = interface_of(observation, info)
        if interface is None:
            return f"I cannot tell how {observation['entry_point']} is called."
        cases: dict[str, _Case] = {}
        for guess in interface.guesses():
            cases |= self._cases(guess, observation, info)
            if len(cases) >= info["tests_per_suite"]:
                break
        cases_to_write = _rank_cases(cases.values())[: info["tests_per_suite"]]
        return _suite(cases_to_write) if cases_to_write else "I found no input for which a result can be predicted."

    @abstractmethod
    def _chunks(self, interface: Interface, size: int) -> Iterator[Sequence[Arguments]]:
        """Yield batches of about `size` new inputs until they run out."""

    def _cases(self, interface: Interface, observation: Observation, info: Info) -> dict[str, _Case]:
        """Return cases by call: usually more than requested, fewer if there are not enough inputs."""
        n_tests = info["tests_per_suite"]
        hunting = self._hunt and bool(observation["program"])
        cases: dict[str, _Case] = {}
        chunks = self._chunks(interface, _HUNTED if hunting else _TRIED_PER_TEST * n_tests)
        for _, chunk in zip(range(_MAX_CHUNKS), chunks, strict=False):
            write = effect_text if self._problems.by_id(info["problem_id"]).calls.in_place else call_text
            texts = [write(interface.entry_point, arguments, interface.keywords) for arguments in chunk]
            new = [text for text in dict.fromkeys(texts) if text not in cases]
            cases.update((case.call, case) for case in self._predict_cases(new, observation, info, hunting=hunting))
            if len(cases) >= n_tests:
                break
        return cases

    def _predict_cases(
        self, calls: Sequence[str], observation: Observation, info: Info, *, hunting: bool
    ) -> Iterator[_Case]:
        """Yield a case for each call whose value is known and can be written as source, in order."""
        if self._predict is Prediction.NONE or (self._predict is Prediction.PROGRAM and not observation["program"]):
            yield from (_Case(call, "None") for call in calls)
            return
        problem = self._problems.by_id(info["problem_id"])
        program, solution = (subject_of(problem, text) for text in (observation["program"], problem.solution))
        if hunting:
            expected, actual = self._oracle.outcomes_of_each([solution, program], calls)
            for call, right, other in zip(calls, expected, actual, strict=True):
                yield from _write_case(call, right, beats=_differ(right, other, problem.answers))
        else:
            subject = solution if self._predict is Prediction.SOLUTION else program
            for call, outcome in zip(calls, self._oracle.outcomes(subject, calls), strict=True):
                yield from _write_case(call, outcome)


class BoundaryTester(InputTester):
    """Tests edge inputs of the types and small edits of the examples: empty, single, equal, negative, long, reversed.

    The classical edges come first; the seed shuffles the order slightly. Privileged unless `predict` has another value
    than `solution` (see `Prediction`).
    """

    def _chunks(self, interface: Interface, size: int) -> Iterator[Sequence[Arguments]]:
        calls = boundary_calls(interface)
        ranks = self._rng.random(len(calls)) * (_SHUFFLE + np.arange(len(calls)))
        order = np.argsort(ranks, kind="stable")
        for start in range(0, len(calls), size):
            yield [calls[i] for i in order[start : start + size]]


class FuzzTester(InputTester):
    """Tests random inputs, drawn with hypothesis from the signature's types and close to the examples.

    Privileged unless `predict` has another value than `solution` (see `Prediction`).
    """

    def __init__(self, context: AgentContext, *, predict: str = "solution", hunt: bool = False) -> None:
        """Make a tester; the arguments are those of `InputTester`."""
        super().__init__(context, predict=predict, hunt=hunt)
        self._sources: OrderedDict[str, InputSource] = OrderedDict()

    def _chunks(self, interface: Interface, size: int) -> Iterator[Sequence[Arguments]]:
        if interface.inputs:
            for _ in range(_MAX_CHUNKS):
                yield interface.inputs.random(interface.examples, self._rng, size)
            return
        source = self._source(interface)
        while chunk := source.draw(self._rng, size):
            yield chunk

    def _source(self, interface: Interface) -> InputSource:
        from codea1_agents.scripted.fuzz_inputs import InputSource  # noqa: PLC0415  -- heavy: imports hypothesis

        key = repr(interface)
        if key not in self._sources:
            self._sources[key] = InputSource(interface)
        self._sources.move_to_end(key)
        while len(self._sources) > _MAX_SOURCES:
            self._sources.popitem(last=False)
        return self._sources[key]


class InvalidKind(StrEnum):
    """The fault of an `InvalidTester`'s suite."""

    DUPLICATES = "duplicates"
    """The same wrong assert repeated."""
    EMPTY = "empty"
    """An empty reply."""
    FORBIDDEN = "forbidden"
    """Asserts that inspect the function instead of calling it."""
    NO_CALL = "no_call"
    """True asserts that never call the entry point."""
    NON_PRINTABLE = "non_printable"
    """Non-ASCII letters in wrong predictions, and a control character outside of the block."""
    NOT_ASSERTS = "not_asserts"
    """A block of statements that assert nothing."""
    PROSE = "prose"
    """No code at all."""
    RAISING = "raising"
    """Calls with more arguments than any solution takes."""
    SYNTAX_ERROR = "syntax_error"
    """Asserts with a bracket missing."""
    UNCLOSED = "unclosed"
    """A block that is cut in the middle of a line, as by a token limit."""
    UNDEFINED_NAME = "undefined_name"
    """Calls with an undefined name."""
    WRONG_PREDICTION = "wrong_prediction"
    """Good calls with a value that no solution returns."""


class InvalidTester(SeededAgent):
    """Replies with malformed and wrong suites, to test rejections. Needs no secrets and executes nothing."""

    plays = "tester"

    def __init__(self, context: AgentContext, *, kind: str = "") -> None:
        """Make a tester.

        Args:
            context: only the first seed is used.
            kind: the `InvalidKind` of every reply; empty: a random one for each reply.

        Raises:
            ValueError: unknown kind.
        """
        self._kinds = [InvalidKind(kind)] if kind else list(InvalidKind)
        self.reset(context.seed)

    def act(self, observation: Observation, info: Info) -> str:
        """Return a reply from which no valid, correctly predicted test can be read."""
        kind = self._kinds[self._rng.integers(len(self._kinds))]
        name = observation["entry_point"]
        interface = interface_of(observation, info)
        inputs = boundary_calls(interface) if interface else [()]
        keywords = interface.keywords if interface else ()
        calls = [call_text(name, arguments, keywords) for arguments in inputs[: info["tests_per_suite"]]]
        if kind in _INVALID_REPLIES:
            return _INVALID_REPLIES[kind].format(call=calls[0])
        lines = (_INVALID_LINES[kind].format(name=name, call=call, first=calls[0], opened=call[:-1]) for call in calls)
        return fenced_reply("\n".join(lines), _SENTENCE if kind is not InvalidKind.NON_PRINTABLE else _ACCENTED)


_IMPOSSIBLE = "'no solution returns this'"
_ACCENTED = "Voil\u00e0 des tests\x07 tr\u00e8s s\u00e9v\u00e8res :"
_INVALID_REPLIES = {
    InvalidKind.EMPTY: "",
    InvalidKind.PROSE: "I would test the empty input, a very long one, and negative numbers.",
    InvalidKind.UNCLOSED: "Here are the tests.\n\n```python\nassert {call} == [",
}
_INVALID_LINES = {
    InvalidKind.DUPLICATES: "assert {first} == " + _IMPOSSIBLE,
    InvalidKind.FORBIDDEN: "assert {name}.__globals__ == {{}}",
    InvalidKind.NO_CALL: "assert len({call!r}) > 0",
    InvalidKind.NON_PRINTABLE: "assert {call} == '\u00e9\u00e8\u4e16\u754c'",
    InvalidKind.NOT_ASSERTS: "print({call})",
    InvalidKind.RAISING: "assert {name}(" + ", ".join("0" * 100) + ") == 0",
    InvalidKind.SYNTAX_ERROR: "assert {opened} == 0",
    InvalidKind.UNDEFINED_NAME: "assert {name}(undefined_input) == 0",
    InvalidKind.WRONG_PREDICTION: "assert {call} == " + _IMPOSSIBLE,
}


def _rank_cases(cases: Collection[_Case]) -> list[_Case]:
    """Return the cases: first those that beat the program, then those whose value has not occurred yet.

    Many inputs have the same result (`False`, `[]`); one such test is nearly as useful as eight.
    """
    occurred: Counter[tuple[bool, str]] = Counter()
    ranks: list[tuple[bool, int, int]] = []
    for case in cases:
        ranks.append((not case.beats, occurred[case.beats, case.prediction], len(ranks)))
        occurred[case.beats, case.prediction] += 1
    ordered = list(cases)
    return [ordered[position] for *_, position in sorted(ranks)]


def _suite(cases: Sequence[_Case]) -> str:
    imports = sorted({statement for case in cases for statement in case.imports})
    asserts = [f"assert {case.call} == {case.prediction}" for case in cases]
    return fenced_reply("\n".join([*imports, *asserts]), _SENTENCE)


def _write_case(call: str, outcome: Outcome, *, beats: bool = False) -> Iterator[_Case]:
    """Yield the case if the outcome's value can be written as short source and equals itself (no nan)."""
    if outcome.value is None or not values.equal(outcome.value, outcome.value):
        return
    source = values.to_source(outcome.value)
    if source is not None and len(source.expression) <= _MAX_PREDICTION:
        yield _Case(call, source.expression.encode("ascii", "backslashreplace").decode("ascii"), source.imports, beats)


def _differ(right: Outcome, other: Outcome, answers: AnswerRules) -> bool:
    """Return whether the program is known to fail where the solution has a value; a checker's answer is not known."""
    if right.value is None or other.kind in (OutcomeKind.INTERNAL_ERROR, OutcomeKind.NOT_RUN):
        return False
    if other.value is None or answers.checker:
        return other.value is None
    tolerance = max(1e-9, answers.tolerance)
    return not values.equal(
        right.value,
        other.value,
        rel_tol=tolerance,
        abs_tol=tolerance,
        nan_equal=True,
        unordered_levels=answers.unordered_levels,
    )
