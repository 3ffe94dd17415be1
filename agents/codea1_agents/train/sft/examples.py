"""Examples for supervised fine-tuning: the prompt of a turn of the game, and the reply to learn.

A coder learns the solution of a problem. A tester sees what it sees in the game, the problem and a program, and learns
tests of the problem: its golden tests of the form expression and value, or the examples of its statement if it has no
such golden test. Each example has as many tests as a suite, drawn for this example, so programs of one problem come
with different tests. The paper (4.1) shows programs that fail a golden test. It does not state which tests or how many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from codea1_agents.evaluation.turns import sample_turn
from codea1_agents.play.named_agent import NamedAgent, Reply
from codea1_agents.prompts import Message, Prompts
from codea1_agents.scripted.fences import fenced_reply
from codea1_env.agent import Role
from codea1_env.problems.problem import GoldenCase, Problem
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.rounds import Turn, candidate_of
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox.interface import Sandbox

Programs: TypeAlias = Mapping[str, Sequence[str]]
"""Distinct programs by the id of their problem."""


@dataclass(frozen=True, slots=True)
class SftExample:
    """A prompt, and the reply to learn."""

    role: Role
    messages: tuple[Message, ...]
    reply: str
    """As the wording requests it: a fenced block, or bare code."""
    problem_id: str


def sampled_programs(problems: Sequence[Problem], coder: NamedAgent, *, samples: int = 4) -> Programs:
    """Return the distinct programs among a coder's replies, in their order.

    Args:
        problems: to write programs for.
        coder: writes them.
        samples: replies per problem.

    Raises:
        UserError: the coder failed.
    """
    sampled, replies = _replies(problems, coder, samples)
    rules = preset("fixed")
    read = [candidate_of(reply, problem, rules).program for problem, reply in zip(sampled, replies, strict=True)]
    return _distinct(sampled, read)


def failing_programs(problems: Sequence[Problem], coder: NamedAgent, sandbox: Sandbox, *, samples: int = 8) -> Programs:
    """Return the distinct programs among a coder's replies that fail at least one golden test.

    Args:
        problems: those without golden tests are left out.
        coder: writes the programs.
        sandbox: runs them.
        samples: replies per problem.

    Raises:
        UserError: the coder failed.
        SandboxError: the sandbox cannot be used at all.
    """
    sampled, replies = _replies([problem for problem in problems if problem.golden], coder, samples)
    findings = Referee(problems, sandbox=sandbox).golden([problem.id for problem in sampled], replies)
    return _distinct(sampled, ["" if finding.passed is not False else finding.program for finding in findings])


def examples_for_coder(problems: Sequence[Problem], prompts: Prompts) -> list[SftExample]:
    """Return one example per problem: its solution."""
    return [_example(problem, sample_turn(problem, "coder", 0), problem.solution, prompts) for problem in problems]


def examples_for_tester(
    problems: Sequence[Problem],
    programs: Programs,
    prompts: Prompts,
    *,
    tests: int = 8,
    shortest: int | None = None,
    seed: int = 0,
) -> list[SftExample]:
    """Return one example per program, in their order, without those of problems that have no test to learn.

    Args:
        problems: what the programs solve.
        programs: that the tester sees.
        prompts: the wording of the tester's prompts.
        tests: tests per example; all of them if the problem has fewer.
        shortest: keep this many tests per problem, those with the shortest texts; None keeps all.
        seed: decides which tests.
    """
    found = []
    for problem in problems:
        known = _tests(problem, shortest)
        for number, program in enumerate(programs.get(problem.id, ()) if known else ()):
            drawn = Random(f"{seed}/{problem.id}/{number}").sample(known, min(tests, len(known)))
            turn = sample_turn(problem, "tester", 0, program=program, tests=tests, view="white_box")
            found.append(_example(problem, turn, "\n".join(dict.fromkeys(_lines(drawn))), prompts))
    return found


def _replies(problems: Sequence[Problem], coder: NamedAgent, samples: int) -> tuple[list[Problem], list[Reply]]:
    """Return the problem of each reply, and the replies."""
    sampled = [problem for problem in problems for _ in range(samples)]
    turns = [sample_turn(problem, "coder", sample) for problem in problems for sample in range(samples)]
    return sampled, coder.replies(turns)


def _distinct(problems: Sequence[Problem], programs: Sequence[str]) -> Programs:
    """Return the programs that are not empty, by problem, in their order."""
    found: dict[str, dict[str, None]] = {}
    for problem, program in zip(problems, programs, strict=True):
        if program:
            found.setdefault(problem.id, {})[program] = None
    return {problem_id: tuple(each) for problem_id, each in found.items()}


def _tests(problem: Problem, shortest: int | None) -> list[GoldenCase | str]:
    golden: list[GoldenCase | str] = [case for case in problem.golden if isinstance(case, GoldenCase)]
    found = golden or [*problem.examples]
    return found if shortest is None else sorted(found, key=lambda test: len("".join(_lines([test]))))[:shortest]


def _lines(tests: Sequence[GoldenCase | str]) -> Iterator[str]:
    yield from (line for test in tests if isinstance(test, GoldenCase) for line in test.imports)
    for test in tests:
        yield test if isinstance(test, str) else f"assert {test.expression} == {test.expected}"


def _example(problem: Problem, turn: Turn, code: str, prompts: Prompts) -> SftExample:
    reply = fenced_reply(code) if prompts.wants_block(turn.observation, turn.info) else code.strip()
    messages = prompts.messages(turn.observation, turn.info)
    return SftExample(turn.info["role"], messages, reply, problem.id)
