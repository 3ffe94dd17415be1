"""Evaluates a tester: it writes tests for known solutions, measured as in UnLeakedTestBench.

The loop (method.md 3): the tester sees the problem and its *right* program and writes one test; then it sees its former
tests too and writes another that reaches other statements and branches; K times in all. With `Mode.SUITE` it writes all
K at once, as in the game.

Besides the wording, this differs from the original in what is run: single asserts under our own limits instead of
pytest files, mutants of our own operators instead of cosmic-ray's, and any problem set instead of ULT's functions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain, islice
from math import isnan, nan
from typing import ClassVar

from codea1_agents.evaluation.answers import Question, answer_differences, questions_of
from codea1_agents.evaluation.records import TesterRecord, TestRecord
from codea1_agents.evaluation.solution_runs import (
    CheckedTest,
    MutantRuns,
    check_tests,
    drawn_mutants,
    run_mutants,
)
from codea1_agents.evaluation.turns import sample_turn
from codea1_agents.play.named_agent import NamedAgent, Reply
from codea1_agents.statistics import known_mean
from codea1_env.facts.submissions import RejectionReason, Suite, TestCase
from codea1_env.facts.verdicts import ValidSuite
from codea1_env.problems.problem import Problem
from codea1_env.rounds.rounds import Turn, suite_of
from codea1_env.rules.ruleset import Reading, preset
from codea1_env.sandbox.interface import Limits, Sandbox

_CHUNK = 16
"""Problems at a time."""


class Mode(StrEnum):
    """The way in which K tests are requested."""

    QUERIES = "queries"
    """One per reply, with the former tests in the prompt, as in UnLeakedTestBench."""
    SUITE = "suite"
    """All in one reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TesterTask:
    """Settings of a tester's evaluation."""

    __test__: ClassVar[bool] = False  # pytest would collect the class otherwise

    tests: int = 5
    """K, per problem."""
    mode: Mode = Mode.QUERIES
    max_mutants: int = 40
    """Most mutants per problem, sampled from all; 0: no mutants are run."""
    seed: int = 0
    """Seeds the sampling of mutants."""


@dataclass(slots=True)
class _ProblemTests:
    """One problem and the tests collected for it so far."""

    problem: Problem
    replies: list[str] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    """One per reply."""
    sources: list[int] = field(default_factory=list)
    """The number of the reply in which each test stands."""
    tests: list[CheckedTest | TestCase] = field(default_factory=list)
    unavailable: bool = False

    @property
    def cases(self) -> tuple[TestCase, ...]:
        return tuple(test for test in self.tests if isinstance(test, TestCase))

    def questions(self, tests: Sequence[CheckedTest]) -> list[Question]:
        """Return its tests, checked, up to their answers."""
        questions = []
        for test, source in zip(tests, self.sources, strict=True):
            if test.filled is not None:
                questions += questions_of(self.turns[source], self.replies[source], [test.filled])
        return questions

    def add_reply(self, turn: Turn, reply: Reply, n_tests: int) -> None:
        """Read the first `n_tests` tests of a reply; each missing test counts as a wrong one."""
        if not isinstance(reply, str):
            self.unavailable = True
            return
        suite = suite_of(reply, self.problem, Reading.STRICT)
        cases = suite.cases[:n_tests]
        fault = suite.rejections[0].reason if suite.rejections else RejectionReason.NO_CODE
        self.sources += [len(self.replies)] * n_tests
        self.replies.append(reply)
        self.turns.append(turn)
        self.tests += [*cases, *[CheckedTest(None, fault=fault)] * (n_tests - len(cases))]


def evaluate_tester(
    problems: Iterable[Problem],
    tester: NamedAgent,
    sandbox: Sandbox,
    task: TesterTask,
    *,
    known: Collection[str] = (),
    base: NamedAgent | None = None,
) -> Iterator[list[TesterRecord]]:
    """Yield records in batches. After 16 problems in a row for which the tester is unavailable, it is asked no more.

    Args:
        problems: the tester tests their solutions.
        tester: writes the tests.
        sandbox: where everything runs.
        task: settings of the evaluation.
        known: ids of problems that have a record already.
        base: another model, whose answers to the tester's inputs are compared with the tester's.

    Raises:
        UserError: an agent failed, or does not tell the probabilities that `base` needs.
        SandboxError: the sandbox cannot be used at all.
    """
    n_missing = 0
    for items in _write_tests([problem for problem in problems if problem.id not in known], tester, task):
        records = _judge_tests([item for item in items if not item.unavailable], sandbox, task, tester, base)
        unavailable = [TesterRecord(problem_id=item.problem.id, masked="agent") for item in items if item.unavailable]
        yield [*records, *unavailable]
        n_missing = n_missing + len(items) if len(unavailable) == len(items) else 0
        if n_missing >= _CHUNK:
            return


def _write_tests(problems: Sequence[Problem], tester: NamedAgent, task: TesterTask) -> Iterator[list[_ProblemTests]]:
    """Yield problems whose tests are written: as replies end, or together where a test needs those before it."""
    if task.mode is Mode.SUITE:
        items = {problem.id: _ProblemTests(problem) for problem in problems}
        for replied in tester.stream([_turn(item, 0, task.tests) for item in items.values()], _CHUNK):
            ended = [items[reply.turn.info["problem_id"]] for reply in replied]
            for item, each in zip(ended, replied, strict=True):
                item.add_reply(each.turn, each.reply, task.tests)
            yield ended
        return
    for start in range(0, len(problems), _CHUNK):
        chunk = [_ProblemTests(problem) for problem in problems[start : start + _CHUNK]]
        for round_ in range(task.tests):
            ready = {item.problem.id: item for item in chunk if not item.unavailable}
            for replied in tester.stream([_turn(item, round_, 1) for item in ready.values()], _CHUNK):
                for reply in replied:
                    ready[reply.turn.info["problem_id"]].add_reply(reply.turn, reply.reply, 1)
        yield chunk


def _turn(item: _ProblemTests, round_: int, n_tests: int) -> Turn:
    return sample_turn(
        item.problem,
        "tester",
        round_,
        round_=round_,
        program=item.problem.solution,
        feedback=_former_tests(item) if round_ else "",
        tests=n_tests,
        view="white_box",
    )


def _former_tests(item: _ProblemTests) -> str:
    written = [test.to_assert() for test in item.tests if isinstance(test, TestCase)]
    if not written:
        return "No test could be read from your former replies."
    listed = "\n".join(written)
    return f"You have written these tests:\n{listed}\nThe next one must reach other statements or branches."


def _judge_tests(
    items: Sequence[_ProblemTests], sandbox: Sandbox, task: TesterTask, tester: NamedAgent, base: NamedAgent | None
) -> list[TesterRecord]:
    rules = preset("fixed")
    checked = check_tests([(item.problem, Suite(item.cases), item.tests) for item in items], sandbox, rules, Limits())
    usable = [(item, checks) for item, checks in zip(items, checked, strict=True) if checks is not None]
    tests = [(item.problem, tests_of_item) for item, (_, tests_of_item) in usable]
    n = task.max_mutants
    drawn = [(problem, of_item, drawn_mutants(problem, n, task.seed) if n else ()) for problem, of_item in tests]
    mutants = run_mutants(drawn, sandbox, rules.comparison)
    masked = [
        TesterRecord(problem_id=item.problem.id, masked="sandbox")
        for item, checks in zip(items, checked, strict=True)
        if checks is None
    ]
    questions = [item.questions(of_item) for item, (_, of_item) in usable] if base is not None else []
    of_all = iter(answer_differences(list(chain(*questions)), tester, base) if base is not None else ())
    answers = [known_mean(islice(of_all, len(of_problem))) for of_problem in questions] or [nan] * len(usable)
    return [*map(_record, usable, mutants, answers), *masked]


def _record(
    usable: tuple[_ProblemTests, tuple[ValidSuite, tuple[CheckedTest, ...]]],
    mutants: MutantRuns,
    answers: float,
) -> TesterRecord:
    item, (whole, tests) = usable
    return TesterRecord(
        problem_id=item.problem.id,
        replies=tuple(item.replies),
        tests=tuple(
            TestRecord(source=test.case.to_assert() if test.case else "", right=test.right, fault=test.fault or "")
            for test in tests
        ),
        n_valid=len(whole.cases),
        killed_by=mutants.killed_by,
        n_masked_mutants=mutants.n_masked,
        answers=None if isnan(answers) else answers,
    )
