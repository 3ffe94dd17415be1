"""Tests that a tester writes for known solutions, and what they are worth: UnLeakedTestBench's loop and measures.

The loop (method.md 3): the tester sees the problem and its *right* program, and is asked for one test; then, with its
former tests before it, for another one that reaches other statements and branches; K times in all. Or it is asked for
all K at once (`Mode.SUITE`), which is what the game asks of it.

Wording aside, this differs from the original in what is run: single asserts under our own limits rather than pytest
files, mutants of our own operators rather than cosmic-ray's, and any problem set rather than ULT's functions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from codea1_agents.measure.records import CoverageRecord, SelectionRecord, TesterRecord, TestRecord
from codea1_agents.measure.selection import Contest, ask_candidates, run_contests
from codea1_agents.measure.solution_runs import (
    CheckedTest,
    MutantRuns,
    check_tests,
    drawn_mutants,
    run_coverage,
    run_mutants,
)
from codea1_agents.measure.turns import sample_turn
from codea1_agents.play.asking import Asker, Reply
from codea1_env.facts.submissions import RejectionReason, Suite, TestCase
from codea1_env.facts.verdicts import ValidSuite
from codea1_env.problems.problem import Problem
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Reading, preset
from codea1_env.sandbox.interface import Limits, Sandbox

_CHUNK = 16
"""Problems at a time."""


class Mode(StrEnum):
    """How K tests are asked for."""

    QUERIES = "queries"
    """One at a time, each with those before it in view: UnLeakedTestBench."""
    SUITE = "suite"
    """All in one reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TesterTask:
    """What is asked of a tester."""

    __test__: ClassVar[bool] = False  # pytest would collect the class otherwise

    tests: int = 5
    """K, per problem."""
    mode: Mode = Mode.QUERIES
    max_mutants: int = 40
    """Per problem, drawn from all; 0: no mutants are run."""
    candidates: int = 0
    """Programs per problem that its tests have to choose from; 0: none."""
    seed: int = 0
    """Of the draw of mutants."""


@dataclass(slots=True)
class _Work:
    """One problem while its tests are collected."""

    problem: Problem
    replies: list[str] = field(default_factory=list)
    tests: list[CheckedTest | TestCase] = field(default_factory=list)
    unavailable: bool = False

    @property
    def cases(self) -> tuple[TestCase, ...]:
        return tuple(test for test in self.tests if isinstance(test, TestCase))

    def take(self, reply: Reply, wanted: int) -> None:
        """Read the first `wanted` tests of a reply; what is missing counts as a wrong test each."""
        if not isinstance(reply, str):
            self.unavailable = True
            return
        suite = read_suite(reply, Reading.STRICT, entry_point=self.problem.entry_point)
        cases = suite.cases[:wanted]
        fault = suite.rejections[0].reason if suite.rejections else RejectionReason.NO_CODE
        self.replies.append(reply)
        self.tests += [*cases, *[CheckedTest(None, fault=fault)] * (wanted - len(cases))]


def evaluate_tester(
    problems: Iterable[Problem],
    tester: Asker,
    sandbox: Sandbox,
    task: TesterTask,
    *,
    coder: Asker | None = None,
    known: Collection[str] = (),
) -> Iterator[list[TesterRecord]]:
    """Yield records, some problems at a time; the last list comes early where the tester was unavailable for all of it.

    Args:
        problems: whose solutions are tested.
        tester: who writes the tests.
        sandbox: where everything runs.
        task: what is asked.
        coder: who writes the candidates, if the task asks for some.
        known: problems that there are records for already.

    Raises:
        UserError: an agent failed.
        SandboxError: the sandbox cannot be used at all.
    """
    todo = [problem for problem in problems if problem.id not in known]
    for start in range(0, len(todo), _CHUNK):
        works = [_Work(problem) for problem in todo[start : start + _CHUNK]]
        _collect(works, tester, task)
        records = _judged([work for work in works if not work.unavailable], sandbox, task, coder)
        unavailable = [TesterRecord(problem_id=work.problem.id, masked="agent") for work in works if work.unavailable]
        yield [*records, *unavailable]
        if len(unavailable) == len(works):
            return


def _collect(works: Sequence[_Work], tester: Asker, task: TesterTask) -> None:
    n_rounds, wanted = (task.tests, 1) if task.mode is Mode.QUERIES else (1, task.tests)
    for round_ in range(n_rounds):
        asked = [work for work in works if not work.unavailable]
        turns = [
            sample_turn(
                work.problem,
                "tester",
                round_,
                round_=round_,
                program=work.problem.solution,
                feedback=_former_tests(work) if round_ else "",
                tests=wanted,
                view="white_box",
            )
            for work in asked
        ]
        for work, reply in zip(asked, tester.ask(turns), strict=True):
            work.take(reply, wanted)


def _former_tests(work: _Work) -> str:
    written = [test.to_assert() for test in work.tests if isinstance(test, TestCase)]
    if not written:
        return "No test could be read from your former replies."
    listed = "\n".join(written)
    return f"You have written these tests:\n{listed}\nThe next one must reach other statements or branches."


def _judged(works: Sequence[_Work], sandbox: Sandbox, task: TesterTask, coder: Asker | None) -> list[TesterRecord]:
    rules = preset("fixed")
    checked = check_tests([(w.problem, Suite(w.cases), w.tests) for w in works], sandbox, rules, Limits())
    usable = [(work, found) for work, found in zip(works, checked, strict=True) if found is not None]
    tests = [(work.problem, of_work) for work, (_, of_work) in usable]
    mutants = run_mutants(
        [
            (problem, of_work, drawn_mutants(problem, task.max_mutants, task.seed) if task.max_mutants else ())
            for problem, of_work in tests
        ],
        sandbox,
        rules.comparison,
    )
    coverage = run_coverage(tests, sandbox)
    selections = _selections([work for work, _ in usable], sandbox, task, coder)
    masked = [
        TesterRecord(problem_id=work.problem.id, masked="sandbox")
        for work, found in zip(works, checked, strict=True)
        if found is None
    ]
    return [*map(_record, usable, mutants, coverage, selections), *masked]


def _selections(
    works: Sequence[_Work], sandbox: Sandbox, task: TesterTask, coder: Asker | None
) -> list[SelectionRecord | None]:
    if coder is None or task.candidates < 1:
        return [None] * len(works)
    chosen = [work for work in works if work.problem.golden]
    written = ask_candidates([work.problem for work in chosen], coder, task.candidates, sandbox)
    contests = [
        Contest(work.problem, of_work, (Suite(work.cases),)) for work, of_work in zip(chosen, written, strict=True)
    ]
    found = {record.problem_id: record for record in run_contests(contests, sandbox)}
    return [found.get(work.problem.id) for work in works]


def _record(
    usable: tuple[_Work, tuple[ValidSuite, tuple[CheckedTest, ...]]],
    mutants: MutantRuns,
    coverage: CoverageRecord | None,
    selection: SelectionRecord | None,
) -> TesterRecord:
    work, (whole, tests) = usable
    return TesterRecord(
        problem_id=work.problem.id,
        replies=tuple(work.replies),
        tests=tuple(
            TestRecord(source=test.case.to_assert() if test.case else "", right=test.right, fault=test.fault or "")
            for test in tests
        ),
        n_valid=len(whole.cases),
        killed_by=mutants.killed_by,
        n_masked_mutants=mutants.n_masked,
        coverage=coverage,
        selection=selection,
    )
