"""What a tester is taught with: programs that fail golden tests in, golden tests out (paper 4.1; method.md 5).

What the tester is shown is what it will be shown in the game: the problem and a program, here one that a coder has
sampled and that fails at least one golden test. What it should reply are golden tests of the problem, as asserts. The
paper says neither which of them nor how many; here each lesson holds as many as a suite asks for, drawn anew, so that
every failing program of a problem comes with other tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from codea1_agents.measure.turns import sample_turn
from codea1_agents.play.named_agent import NamedAgent
from codea1_agents.prompts import Message, Prompts
from codea1_env.problems.problem import GoldenCase, Problem
from codea1_env.rounds.referee import Referee
from codea1_env.sandbox.interface import Sandbox


@dataclass(frozen=True, slots=True)
class FailingProgram:
    """A sampled program that does not pass all golden tests of its problem."""

    problem: Problem
    program: str


@dataclass(frozen=True, slots=True)
class Lesson:
    """One example: what the tester is told, and what it should reply."""

    problem_id: str
    messages: tuple[Message, ...]
    reply: str
    """Asserts, one per line."""


def failing_programs(
    problems: Sequence[Problem], coder: NamedAgent, sandbox: Sandbox, *, samples: int = 8
) -> list[FailingProgram]:
    """Return the distinct programs among a coder's samples that fail at least one golden test.

    Args:
        problems: those without golden tests are left out.
        coder: who writes the programs.
        sandbox: where they run.
        samples: asked for per problem.

    Raises:
        UserError: the coder failed.
        SandboxError: the sandbox cannot be used at all.
    """
    tested = [problem for problem in problems if problem.golden]
    turns = [sample_turn(problem, "coder", sample) for problem in tested for sample in range(samples)]
    asked = [problem for problem in tested for _ in range(samples)]
    findings = Referee(problems, sandbox=sandbox).golden([problem.id for problem in asked], coder.replies(turns))
    found = {
        (problem.id, finding.program): FailingProgram(problem, finding.program)
        for problem, finding in zip(asked, findings, strict=True)
        if finding.program and finding.passed is False
    }
    return list(found.values())


def lessons(failing: Sequence[FailingProgram], prompts: Prompts, *, tests: int = 8, seed: int = 0) -> list[Lesson]:
    """Return one lesson per failing program, in their order.

    Args:
        failing: of problems whose golden tests are values of expressions; others are left out.
        prompts: the wording that the tester will be asked in.
        tests: per lesson; all that a problem has, where it has fewer.
        seed: of which tests.
    """
    found = []
    for number, each in enumerate(failing):
        cases = [case for case in each.problem.golden if isinstance(case, GoldenCase)]
        if not cases:
            continue
        turn = sample_turn(each.problem, "tester", 0, program=each.program, tests=tests, view="white_box")
        drawn = Random(f"{seed}/{each.problem.id}/{number}").sample(cases, min(tests, len(cases)))
        messages = prompts.messages(turn.observation, turn.info)
        found.append(Lesson(each.problem.id, messages, "\n".join(_text(drawn))))
    return found


def _text(cases: Sequence[GoldenCase]) -> Iterator[str]:
    yield from dict.fromkeys(line for case in cases for line in case.imports)
    yield from (f"assert {case.expression} == {case.expected}" for case in cases)
