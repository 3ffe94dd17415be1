"""Problems, programs and tests of the tabular game, and their reports as the judge would write them.

A problem has some places, each of one kind of bug. A program is right or has a bug at each place. Bugs of a common kind
are found by any input. Bugs of a rare kind are found by one value of many, the trigger, at their place; each program
draws its triggers anew. A test is naive, or it aims at a value at a place. Its answer is written with care or without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codea1_env.facts.submissions import Candidate, Rejection, RejectionReason, Span, TestCase, Written
from codea1_env.facts.verdicts import (
    CandidateReport,
    CaseReport,
    SuiteReport,
    ValidCase,
    ValidSuite,
    Verdict,
)

_VALUE = b"0"  # of every case; nothing reads it
_INPUTS = 1_000_000


@dataclass(frozen=True, slots=True)
class World:
    """The nature of problems and testers."""

    n_places: int = 4
    n_kinds: int = 24
    n_rare: int = 12
    """Kinds, from the first, whose bugs only a trigger finds."""
    n_triggers: int = 10
    """Values of which one is the trigger of a rare bug (V)."""
    reading: float = 0.8
    """Probability that a tester that sees the program reads a bug of it (rho)."""
    right_naive: float = 0.8
    """Probability that the answer of a naive test is right (v)."""
    right_aimed: float = 0.6
    """The same of an aimed test (va)."""
    aims_vary: bool = False
    """Whether aimed tests of one value differ elsewhere in their inputs; otherwise they are duplicates."""
    right_careless: float | None = None
    """The same of a test whose answer is written without care; None: all are written with care."""
    distraction: float = 0.0
    """Probability that an aimed test with a careful answer misses the trigger that was read."""

    def right(self, *, aims: bool, is_careful: bool) -> float:
        """Return the probability that an answer is right."""
        if not is_careful and self.right_careless is not None:
            return self.right_careless
        return self.right_aimed if aims else self.right_naive


@dataclass(frozen=True, slots=True)
class Program:
    """A program: where it has a bug, and which input triggers it."""

    kinds: tuple[int, ...]
    """The kinds of the problem's places."""
    has_bug: tuple[bool, ...]
    triggers: tuple[int, ...]

    def is_right(self) -> bool:
        """Whether the program is free of bugs."""
        return not any(self.has_bug)

    def rare_bugs(self, world: World) -> list[int]:
        """Return the places of bugs that only their trigger finds."""
        return [place for place, kind in enumerate(self.kinds) if self.has_bug[place] and kind < world.n_rare]

    def passes(self, aim: Aim | None, world: World) -> bool:
        """Return whether the program passes an input; None: a naive one."""
        if not any(self.has_bug):
            return True
        if any(bug and kind >= world.n_rare for bug, kind in zip(self.has_bug, self.kinds, strict=True)):
            return False
        return aim is None or not (aim.place in self.rare_bugs(world) and self.triggers[aim.place] == aim.value)


@dataclass(frozen=True, slots=True)
class Aim:
    """A value at a place."""

    place: int
    value: int


@dataclass(frozen=True, slots=True)
class DrawnTest:
    """A test case of a suite."""

    aim: Aim | None
    """None: a naive input."""
    is_right: bool
    """Whether the predicted answer is right."""
    rest: int = 0
    """The part of the input that finds no rare bug."""
    is_careful: bool = True

    @property
    def expression(self) -> str:
        """The call."""
        return f"f({self.rest})" if self.aim is None else f"f({self.aim.place}, {self.aim.value}, {self.rest})"


def drawn_program(kinds: Sequence[int], p_right: np.ndarray, world: World, rng: np.random.Generator) -> Program:
    """Return a program that is right at each place with the given probability.

    Args:
        kinds: (L,) of the places.
        p_right: (L,) probabilities.
        world: the game's parameters.
        rng: source of the draws.
    """
    bugs = rng.random(world.n_places) >= p_right
    triggers = rng.integers(0, world.n_triggers, world.n_places)
    return Program(tuple(kinds), tuple(bugs.tolist()), tuple(triggers.tolist()))


def drawn_test(aim: Aim | None, world: World, rng: np.random.Generator, *, is_careful: bool = True) -> DrawnTest:
    """Return a test with or without an aim, whose answer is right as often as the world says."""
    is_right = bool(rng.random() < world.right(aims=aim is not None, is_careful=is_careful))
    rest = int(rng.integers(_INPUTS)) if aim is None or world.aims_vary else 0
    return DrawnTest(aim, is_right, rest, is_careful)


def aim_of(case: ValidCase) -> Aim | None:
    """Return the aim of a case, which may come from the Mistake Book."""
    *aimed, _ = case.case.expression.removeprefix("f(").removesuffix(")").split(", ")
    return Aim(*map(int, aimed)) if aimed else None


def suite_report(tests: Sequence[DrawnTest], program: Program, world: World, *, drops_wrong: bool) -> SuiteReport:
    """Return the judge's report on a suite, run by a program.

    Args:
        tests: the suite's tests; of equal inputs only the first counts.
        program: that runs them.
        world: the game's parameters.
        drops_wrong: whether a case with a wrong answer is dropped instead of corrected.
    """
    cases: dict[str, ValidCase] = {}
    rejections: list[Rejection] = []
    for line, test in enumerate(tests, 1):
        expression, place = test.expression, Span(line, line + 1)
        statement = Written(place, (place,), (place,))
        if expression in cases:
            rejections.append(Rejection(RejectionReason.DUPLICATE, expression, line, written=statement))
            continue
        if not test.is_right:
            rejections.append(Rejection(RejectionReason.WRONG_PREDICTION, expression, line, written=statement))
            if drops_wrong:
                continue
        case = TestCase(expression, "0", direct=True, line=line, written=statement)
        cases[expression] = ValidCase(case, _VALUE, test.is_right)
    suite = ValidSuite(tuple(cases.values()), tuple(rejections), len(rejections), 0.0)
    return SuiteReport(suite, tuple(case_report(case, program, world) for case in suite.cases))


def case_report(case: ValidCase, program: Program, world: World) -> CaseReport:
    """Return the verdict of a case on a program."""
    is_passed = program.passes(aim_of(case), world)
    return CaseReport(case, Verdict.PASSED if is_passed else Verdict.WRONG_ANSWER)


def candidate_report(
    program: Program,
    suites: Sequence[Sequence[DrawnTest]],
    replayed: Sequence[ValidCase],
    golden: Sequence[Aim | None],
    world: World,
    *,
    drops_wrong: bool,
) -> CandidateReport:
    """Return the judge's report on a program.

    Args:
        program: the candidate.
        suites: written for it.
        replayed: cases of the Mistake Book.
        golden: inputs of the golden tests; none: they are not run.
        world: the game's parameters.
        drops_wrong: as in `suite_report`.
    """
    passed = [program.passes(aim, world) for aim in golden]
    return CandidateReport(
        Candidate(repr(program)),
        Verdict.PASSED,
        replayed=tuple(case_report(case, program, world) for case in replayed),
        suites=tuple(suite_report(tests, program, world, drops_wrong=drops_wrong) for tests in suites),
        golden_pass_rate=sum(passed) / len(passed) if passed else None,
    )
