"""Examples for fine-tuning a tester: a program that fails golden tests, and golden tests as the reply (paper, 4.1).

The tester sees what it sees in the game: the problem and a program. A coder sampled this program, and it fails at least
one golden test. The reply is golden tests of the problem, as asserts. The paper does not state which tests or how many.
Here each example has as many tests as a suite, drawn for this example, so failing programs of one problem have
different tests.
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
class SftExample:
    """One example: the messages to the tester, and the reply to learn."""

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
        coder: writes the programs.
        sandbox: runs them.
        samples: programs per problem.

    Raises:
        UserError: the coder failed.
        SandboxError: the sandbox cannot be used at all.
    """
    tested = [problem for problem in problems if problem.golden]
    turns = [sample_turn(problem, "coder", sample) for problem in tested for sample in range(samples)]
    sampled = [problem for problem in tested for _ in range(samples)]
    findings = Referee(problems, sandbox=sandbox).golden([problem.id for problem in sampled], coder.replies(turns))
    found = {
        (problem.id, finding.program): FailingProgram(problem, finding.program)
        for problem, finding in zip(sampled, findings, strict=True)
        if finding.program and finding.passed is False
    }
    return list(found.values())


def sft_examples(
    failing: Sequence[FailingProgram], prompts: Prompts, *, tests: int = 8, seed: int = 0
) -> list[SftExample]:
    """Return one example per failing program, in their order.

    Args:
        failing: failing programs; those of problems without golden tests of the form expression and value are left out.
        prompts: the wording of the tester's prompts.
        tests: golden tests per example; all of them if the problem has fewer.
        seed: decides which tests.
    """
    found = []
    for number, each in enumerate(failing):
        cases = [case for case in each.problem.golden if isinstance(case, GoldenCase)]
        if not cases:
            continue
        turn = sample_turn(each.problem, "tester", 0, program=each.program, tests=tests, view="white_box")
        drawn = Random(f"{seed}/{each.problem.id}/{number}").sample(cases, min(tests, len(cases)))
        messages = prompts.messages(turn.observation, turn.info)
        found.append(SftExample(each.problem.id, messages, "\n".join(_text(drawn))))
    return found


def _text(cases: Sequence[GoldenCase]) -> Iterator[str]:
    yield from dict.fromkeys(line for case in cases for line in case.imports)
    yield from (f"assert {case.expression} == {case.expected}" for case in cases)
