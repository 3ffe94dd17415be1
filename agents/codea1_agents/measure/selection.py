"""Choosing one of N candidates by M suites that were written without seeing them.

Method: method.md 3 (table 5) and 5. Tests come from the problem alone and nobody corrects them: a test counts as it was
written, right or wrong, since at inference there is no solution to ask. Every distinct test counts once, however many
suites hold it; the candidate that passes most is chosen. The same numbers give UTRL's best-of-N gain and fidelity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan

from codea1_agents.measure.metrics import best_positions, pass_at_k, selected_score, spearman
from codea1_agents.measure.records import SelectionRecord
from codea1_agents.measure.turns import sample_turn
from codea1_agents.play.asking import Asker, Reply
from codea1_agents.statistics import Estimate, difference_interval, mean_interval
from codea1_env.facts.outcomes import Outcome, OutcomeKind
from codea1_env.facts.submissions import Suite, TestCase
from codea1_env.facts.verdicts import GoldenFinding
from codea1_env.judging.solution_values import call_of_case, call_of_prediction, program_job
from codea1_env.problems.problem import Problem
from codea1_env.rounds.referee import Referee
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Comparison, Reading, preset
from codea1_env.rules.validation import values_agree
from codea1_env.sandbox.interface import Limits, Sandbox

_CHUNK = 8
"""Problems at a time."""
_LIMITS = Limits(cpu_s=1.0)
"""For tests, which are short calls; a program that hangs on four of them is not asked for the rest, and fails them."""
_STAND_IN = "def {entry_point}(*arguments, **named):\n    return None\n"
"""The program beside which predictions are evaluated; they never call it."""


@dataclass(frozen=True, slots=True)
class Contest:
    """Candidates for one problem, and the suites that are to choose among them."""

    problem: Problem
    candidates: tuple[GoldenFinding, ...]
    """(N,) programs, empty where a reply held none, and how they fare with the golden tests."""
    suites: tuple[Suite, ...]
    """(M,)"""


def select_candidates(
    problems: Iterable[Problem],
    coder: Asker,
    tester: Asker,
    sandbox: Sandbox,
    *,
    candidates: int = 16,
    suites: int = 16,
    tests: int = 8,
    known: frozenset[str] = frozenset(),
) -> Iterator[list[SelectionRecord]]:
    """Yield records, some problems at a time.

    Args:
        problems: each with golden tests, by which the choice is judged; others are left out.
        coder: writes the candidates.
        tester: writes the suites, blind to them.
        sandbox: where everything runs.
        candidates: N.
        suites: M.
        tests: asked for per suite.
        known: problems that there are records for already.

    Raises:
        UserError: an agent failed.
        SandboxError: the sandbox cannot be used at all.
    """
    todo = [problem for problem in problems if problem.golden and problem.id not in known]
    for start in range(0, len(todo), _CHUNK):
        chunk = todo[start : start + _CHUNK]
        written = ask_candidates(chunk, coder, candidates, sandbox)
        turns = [
            sample_turn(problem, "tester", sample, tests=tests, view="blind")
            for problem in chunk
            for sample in range(suites)
        ]
        replies = tester.ask(turns)
        contests = []
        for number, problem in enumerate(chunk):
            given = replies[number * suites : (number + 1) * suites]
            contests.append(Contest(problem, written[number], _suites(problem, given, tests)))
        records = run_contests(contests, sandbox)
        yield records
        if all(record.masked == "agent" for record in records):
            return


def ask_candidates(
    problems: Sequence[Problem], coder: Asker, n: int, sandbox: Sandbox
) -> list[tuple[GoldenFinding, ...]]:
    """Return n judged programs per problem; fewer where the coder was unavailable."""
    if not problems:
        return []
    replies = coder.ask([sample_turn(problem, "coder", sample) for problem in problems for sample in range(n)])
    asked = [problem.id for problem in problems for _ in range(n)]
    found = Referee(problems, sandbox=sandbox).golden(asked, replies)
    return [
        tuple(each for each in found[start : start + n] if each.masked != "agent") for start in range(0, len(found), n)
    ]


def _suites(problem: Problem, replies: Sequence[Reply], tests: int) -> tuple[Suite, ...]:
    return tuple(
        read_suite(reply, Reading.STRICT, entry_point=problem.entry_point, tests_per_suite=tests)
        for reply in replies
        if isinstance(reply, str)
    )


def unique_tests(suites: Iterable[Suite]) -> tuple[TestCase, ...]:
    """Return the distinct tests of all suites, in the order in which they occur first; predictions belong to them."""
    distinct = {(case.expression, case.prediction, case.imports): case for suite in suites for case in suite.cases}
    return tuple(case for case in distinct.values() if case.prediction is not None)


def run_contests(contests: Sequence[Contest], sandbox: Sandbox) -> list[SelectionRecord]:
    """Return how every candidate fares, with the golden tests and with the suites' unique tests."""
    return list(map(_record, contests, _scores(contests, sandbox, preset("fixed").comparison)))


def _record(contest: Contest, scores: tuple[int | None, ...]) -> SelectionRecord:
    unusable = any(each.passed is None for each in contest.candidates) or None in scores
    masked = "agent" if not contest.candidates or not contest.suites else "sandbox" if unusable else ""
    return SelectionRecord(
        problem_id=contest.problem.id,
        passed=tuple(each.passed for each in contest.candidates),
        pass_rate=tuple(each.pass_rate for each in contest.candidates),
        scores=scores,
        n_tests=len(unique_tests(contest.suites)),
        n_suites=len(contest.suites),
        masked=masked,
    )


def _scores(contests: Sequence[Contest], sandbox: Sandbox, comparison: Comparison) -> list[tuple[int | None, ...]]:
    tests = [unique_tests(contest.suites) for contest in contests]
    expected = _predictions(contests, tests, sandbox, _LIMITS)
    jobs = [
        program_job(contest.problem, candidate.program, map(call_of_case, of_contest), _LIMITS)
        for contest, of_contest in zip(contests, tests, strict=True)
        for candidate in contest.candidates
        if candidate.program
    ]
    reports = iter(sandbox.run(jobs) if jobs else ())
    return [
        tuple(
            _score(next(reports).outcomes, right, comparison) if candidate.program else 0
            for candidate in contest.candidates
        )
        for contest, right in zip(contests, expected, strict=True)
    ]


def _score(outcomes: Sequence[Outcome], expected: Sequence[bytes | None], comparison: Comparison) -> int | None:
    """Return how many tests are passed; a test whose prediction has no value is passed by nobody."""
    if any(outcome.kind is OutcomeKind.INTERNAL_ERROR for outcome in outcomes):
        return None
    return sum(
        value is not None and outcome.value is not None and values_agree(value, outcome.value, comparison)
        for outcome, value in zip(outcomes, expected, strict=True)
    )


def _predictions(
    contests: Sequence[Contest], tests: Sequence[Sequence[TestCase]], sandbox: Sandbox, limits: Limits
) -> list[list[bytes | None]]:
    """Return each test's predicted value; what is no literal is evaluated apart from every candidate."""
    asked = [[call_of_prediction(case, limits.value_bytes) for case in of_contest] for of_contest in tests]
    jobs = [
        program_job(
            contest.problem,
            _STAND_IN.format(entry_point=contest.problem.entry_point),
            [question for question in questions if question is not None],
            limits,
        )
        for contest, questions in zip(contests, asked, strict=True)
    ]
    reports = sandbox.run(jobs) if jobs else []
    found = []
    for of_contest, questions, report in zip(tests, asked, reports, strict=True):
        outcomes = iter(report.outcomes)
        found.append(
            [
                case.predicted if question is None else next(outcomes).value
                for case, question in zip(of_contest, questions, strict=True)
            ]
        )
    return found


@dataclass(frozen=True, slots=True)
class SelectionFigures:
    """What choosing is worth; estimates are means over problems with 95 % intervals, masked problems left out."""

    n_problems: int
    n_masked: int
    average: Estimate
    """avg@N: a candidate drawn by lot."""
    chosen: Estimate
    """The candidate that passes most unique tests; among equals one drawn by lot, as expected."""
    first: Estimate
    """The same with the first among equals."""
    best: Estimate
    """pass@N: as if the right one were always found."""
    gain: Estimate
    """`chosen` - `average`, problem by problem."""
    fidelity: Estimate
    """Spearman's correlation of scores and golden pass rates; problems where either is constant do not enter."""
    n_without_fidelity: int
    ties: Estimate
    """Share of problems with several candidates in front."""
    open_ties: Estimate
    """Share of problems where some of those in front are right and some are wrong: there the tie-break decides."""
    tests: Estimate
    """Unique tests per problem."""


def selection_figures(records: Iterable[SelectionRecord], *, seed: int = 0) -> SelectionFigures:
    """Return the figures of some records."""
    known = list(records)
    used = [_Chosen(record) for record in known if not record.masked]

    def mean(values: dict[str, float]) -> Estimate:
        return mean_interval({problem: [value] for problem, value in values.items()}, seed=seed)

    average = {each.problem_id: each.average for each in used}
    chosen = {each.problem_id: each.chosen for each in used}
    fidelity = {each.problem_id: each.fidelity for each in used}
    return SelectionFigures(
        n_problems=len(used),
        n_masked=len(known) - len(used),
        average=mean(average),
        chosen=mean(chosen),
        first=mean({each.problem_id: each.first for each in used}),
        best=mean({each.problem_id: each.best for each in used}),
        gain=difference_interval(
            {problem: [value] for problem, value in average.items()},
            {problem: [value] for problem, value in chosen.items()},
            seed=seed,
        ),
        fidelity=mean({problem: value for problem, value in fidelity.items() if not isnan(value)}),
        n_without_fidelity=sum(map(isnan, fidelity.values())),
        ties=mean({each.problem_id: float(len(each.in_front) > 1) for each in used}),
        open_ties=mean({each.problem_id: float(len(set(each.in_front)) > 1) for each in used}),
        tests=mean({record.problem_id: float(record.n_tests) for record in known if not record.masked}),
    )


class _Chosen:
    """One problem's figures."""

    def __init__(self, record: SelectionRecord) -> None:
        scores = [float(score or 0) for score in record.scores]
        right = [float(bool(flag)) for flag in record.passed]
        rates = [nan if rate is None else rate for rate in record.pass_rate]
        self.problem_id = record.problem_id
        self.in_front = [right[position] for position in best_positions(scores)]
        self.average = sum(right) / len(right)
        self.chosen = selected_score(scores, right)
        self.first = self.in_front[0]
        self.best = pass_at_k(len(right), int(sum(right)), len(right))
        self.fidelity = nan if any(map(isnan, rates)) else spearman(scores, rates)
