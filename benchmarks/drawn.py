"""What the differential fuzzing compares: problems with programs and tests, drawn by one module for each kind."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from plain_python import Copies, Ended, Mode, PlainPython, Question

from codea1_env.problems.problem import Problem
from codea1_env.sandbox.interface import Limits

LIMITS = Limits(cpu_s=0.5, wall_s=5.0)
"""Short limits, because some mutants never end."""


@dataclass(frozen=True)
class Program:
    """One candidate."""

    what: str
    """Name of the variant, or the mutation."""
    source: str


@dataclass(frozen=True)
class Test:
    """One test. A tester's test holds for the solution in plain Python."""

    form: str
    """Which figure counts it, for example `plain` or `property`."""
    text: str
    """The condition."""
    call: str = ""
    """For a plain test, the only call."""
    expected: str = ""
    """For a plain test, the source of the call's value."""
    lines: str = ""
    """The test as a tester writes it; an assert of the condition, if empty."""
    harness: str = ""
    """For a golden test, the source that defines `check`, which the condition calls."""

    @property
    def predicts_the_solution(self) -> bool:
        """Whether the tester's test states the solution's value."""
        return not (self.call and self.lines) or self.lines.endswith(self.expected)


@dataclass(frozen=True)
class Subject:
    """The programs and tests of one problem."""

    problem: Problem
    programs: tuple[Program, ...]
    tests: tuple[Test, ...] = ()
    is_golden: bool = False
    """Whether the tests are the golden tests of the problem, and not a tester's."""

    def with_solution(self) -> Subject:
        """Return the subject with the solution as the first program."""
        return replace(self, programs=(Program("the solution", self.problem.solution), *self.programs))

    def question(self, test: Test, program: str, mode: Mode = Mode.ASSERT, copies: Copies = Copies.NONE) -> Question:
        """Return a question to plain Python about a program and a test."""
        is_call, problem = bool(test.call) and mode is Mode.ASSERT, self.problem
        return Question(
            mode,
            f"{problem.imports}\n{program}",
            problem.entry_point,
            test.call if is_call else test.text,
            test.expected if is_call else None,
            solution=f"{problem.imports}\n{problem.solution}",
            cpu_s=LIMITS.cpu_s,
            harness=test.harness,
            script=problem.printed or "",
            checker=problem.answers.checker,
            copies=copies,
        )


Draw: TypeAlias = Callable[[int, int, PlainPython], list[Subject]]
"""Draws about so many programs with a seed; plain Python says which tests hold for a solution."""


def generator(seed: int, name: str) -> random.Random:
    """Return the random numbers of one problem."""
    return random.Random(f"{seed} {name}")


def shares(n_programs: int, n_problems: int) -> list[int]:
    """Return how many of the programs each problem gets."""
    return [b - a for a, b in pairwise(n_programs * place // n_problems for place in range(n_problems + 1))]


def drawn_subjects(
    kind: str,
    n_per_problem: int,
    draw: Callable[[PlainPython, str, int, random.Random], Subject],
    n_programs: int,
    seed: int,
    plain: PlainPython,
) -> list[Subject]:
    """Return problems of a kind with so many programs in all; `draw` makes one from its name and its share of them."""
    n_problems = max(1, n_programs // n_per_problem)
    names = [f"{kind}/{n}" for n in range(n_problems)]
    drawn = zip(names, shares(n_programs, n_problems), strict=True)
    return [draw(plain, name, number, generator(seed, name)) for name, number in drawn]


def holding(subject: Subject, tests: Sequence[Test], plain: PlainPython) -> list[Test]:
    """Return the tests that the solution passes in plain Python."""
    answers = plain.answers([subject.question(test, subject.problem.solution) for test in tests])
    return [test for test, answer in zip(tests, answers, strict=True) if answer.ended is Ended.PASSED]
