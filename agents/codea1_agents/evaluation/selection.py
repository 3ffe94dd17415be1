"""Chooses one of N candidates by M suites that were written without seeing the candidates.

Method: method.md 3 (table 5) and 5. The tester sees only the problem. Tests are not corrected: a test counts as it was
written, right or wrong, since the solution is unknown at inference. Every distinct test counts once, even if several
suites contain it; the candidate that passes most tests is chosen. The same numbers give UTRL's best-of-N gain and
fidelity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan

from codea1_agents.evaluation.metrics import best_positions, pass_at_k, selected_score, spearman
from codea1_agents.evaluation.records import SelectionRecord
from codea1_agents.evaluation.turns import sample_turn
from codea1_agents.play.named_agent import NamedAgent, Reply
from codea1_agents.statistics import Estimate, difference_interval, mean_interval
from codea1_env.facts.answers import Comparison
from codea1_env.facts.entry_points import placeholder_program
from codea1_env.facts.submissions import Suite, TestCase
from codea1_env.facts.verdicts import GoldenFinding, Outcome, OutcomeKind
from codea1_env.judging.jobs import Terms, call_of_case, call_of_prediction, program_job
from codea1_env.judging.right_answers import AnsweredCalls, accept_right_answers
from codea1_env.problems.problem import Problem
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.rounds import suite_of
from codea1_env.rules.ruleset import Reading, preset
from codea1_env.sandbox.interface import Limits, Sandbox

_CHUNK = 8
"""Problems at a time."""
_LIMITS = Limits(cpu_s=1.0)
"""For tests, which are short calls. A program that hangs on four of them fails the rest without running them."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Candidates for one problem, and the suites that choose among them."""

    problem: Problem
    candidates: tuple[GoldenFinding, ...]
    """(N,) programs, empty if a reply had none, and their results on the golden tests."""
    suites: tuple[Suite, ...]
    """(M,)"""


def select_candidates(
    problems: Iterable[Problem],
    coder: NamedAgent,
    tester: NamedAgent,
    sandbox: Sandbox,
    *,
    candidates: int,
    suites: int,
    tests: int,
    known: frozenset[str] = frozenset(),
) -> Iterator[list[SelectionRecord]]:
    """Yield records in batches. If an agent is unavailable for a whole batch, that batch is the last one.

    Args:
        problems: problems without golden tests, which judge the choice, are left out.
        coder: writes the candidates.
        tester: writes the suites without seeing the candidates.
        sandbox: where everything runs.
        candidates: N.
        suites: M.
        tests: requested per suite.
        known: ids of problems that have a record already.

    Raises:
        UserError: an agent failed.
        SandboxError: the sandbox cannot be used at all.
    """
    todo = [problem for problem in problems if problem.golden and problem.id not in known]
    for start in range(0, len(todo), _CHUNK):
        chunk = todo[start : start + _CHUNK]
        candidates_of_chunk = _candidates(chunk, coder, candidates, sandbox)
        turns = [
            sample_turn(problem, "tester", sample, tests=tests, view="blind")
            for problem in chunk
            for sample in range(suites)
        ]
        replies = tester.replies(turns)
        selections = []
        for number, problem in enumerate(chunk):
            own_replies = replies[number * suites : (number + 1) * suites]
            selections.append(Selection(problem, candidates_of_chunk[number], _suites(problem, own_replies, tests)))
        records = list(map(_record, selections, _scores(selections, sandbox, preset("fixed").comparison)))
        yield records
        if all(record.masked == "agent" for record in records):
            return


def _candidates(
    problems: Sequence[Problem], coder: NamedAgent, n: int, sandbox: Sandbox
) -> list[tuple[GoldenFinding, ...]]:
    """Return n judged programs per problem; fewer if the coder was unavailable."""
    replies = coder.replies([sample_turn(problem, "coder", sample) for problem in problems for sample in range(n)])
    ids = [problem.id for problem in problems for _ in range(n)]
    findings = Referee(problems, sandbox=sandbox).golden(ids, replies)
    return [
        tuple(finding for finding in findings[start : start + n] if finding.masked != "agent")
        for start in range(0, len(findings), n)
    ]


def _suites(problem: Problem, replies: Sequence[Reply], tests: int) -> tuple[Suite, ...]:
    return tuple(suite_of(reply, problem, Reading.STRICT, tests) for reply in replies if isinstance(reply, str))


def unique_tests(suites: Iterable[Suite]) -> tuple[TestCase, ...]:
    """Return the distinct tests of all suites in order of first occurrence; tests without a prediction are left out."""
    distinct = {(case.expression, case.prediction, case.imports): case for suite in suites for case in suite.cases}
    return tuple(case for case in distinct.values() if case.prediction is not None)


def _record(selection: Selection, scores: tuple[int | None, ...]) -> SelectionRecord:
    unusable = any(candidate.passed is None for candidate in selection.candidates) or None in scores
    masked = "agent" if not selection.candidates or not selection.suites else "sandbox" if unusable else ""
    return SelectionRecord(
        problem_id=selection.problem.id,
        passed=tuple(candidate.passed for candidate in selection.candidates),
        pass_rate=tuple(candidate.pass_rate for candidate in selection.candidates),
        scores=scores,
        n_tests=len(unique_tests(selection.suites)),
        n_suites=len(selection.suites),
        masked=masked,
    )


def _scores(selections: Sequence[Selection], sandbox: Sandbox, comparison: Comparison) -> list[tuple[int | None, ...]]:
    tests = [unique_tests(selection.suites) for selection in selections]
    expected = _predictions(selections, tests, sandbox, _LIMITS)
    tasks = [
        (selection.problem, right, program_job(selection.problem, candidate.program, map(call_of_case, cases), _LIMITS))
        for selection, cases, right in zip(selections, tests, expected, strict=True)
        for candidate in selection.candidates
        if candidate.program
    ]
    reported = sandbox.run([job for *_, job in tasks]) if tasks else []
    answered = [
        AnsweredCalls(problem, job.calls, tuple(right), report)
        for (problem, right, job), report in zip(tasks, reported, strict=True)
    ]
    reports = iter(accept_right_answers(answered, Terms(sandbox, _LIMITS, comparison)))
    return [
        tuple(
            _score(next(reports).outcomes, right, comparison) if candidate.program else 0
            for candidate in selection.candidates
        )
        for selection, right in zip(selections, expected, strict=True)
    ]


def _score(outcomes: Sequence[Outcome], expected: Sequence[bytes | None], comparison: Comparison) -> int | None:
    """Return the number of tests passed; no candidate passes a test whose prediction cannot be evaluated."""
    if any(outcome.kind is OutcomeKind.INTERNAL_ERROR for outcome in outcomes):
        return None
    return sum(
        value is not None and outcome.value is not None and comparison.equal(value, outcome.value, mutual=True)
        for outcome, value in zip(outcomes, expected, strict=True)
    )


def _predictions(
    selections: Sequence[Selection], tests: Sequence[Sequence[TestCase]], sandbox: Sandbox, limits: Limits
) -> list[list[bytes | None]]:
    """Return each test's predicted value. A prediction that is not a literal is evaluated apart from all candidates."""
    calls = [[call_of_prediction(case, limits.value_bytes) for case in cases] for cases in tests]
    jobs = [
        program_job(
            selection.problem,
            placeholder_program(selection.problem.entry_point),  # predictions never call it
            [call for call in calls_of_suite if call is not None],
            limits,
        )
        for selection, calls_of_suite in zip(selections, calls, strict=True)
    ]
    reports = sandbox.run(jobs) if jobs else []
    predictions = []
    for cases, calls_of_suite, report in zip(tests, calls, reports, strict=True):
        outcomes, pairs = iter(report.outcomes), zip(cases, calls_of_suite, strict=True)
        predictions.append([case.predicted if call is None else next(outcomes).value for case, call in pairs])
    return predictions


@dataclass(frozen=True, slots=True)
class SelectionFigures:
    """Figures of the choice; estimates are means over unmasked problems with 95 % intervals."""

    n_problems: int
    n_masked: int
    average: Estimate
    """avg@N: share of right candidates, the expectation of a random choice."""
    chosen: Estimate
    """Share of problems for which the chosen candidate is right; with ties, the expectation under a random choice."""
    first: Estimate
    """The same if the first of tied candidates is chosen."""
    best: Estimate
    """pass@N: share of problems with at least one right candidate, the bound for any choice."""
    gain: Estimate
    """`chosen` - `average`, problem by problem."""
    fidelity: Estimate
    """Spearman's correlation of scores and golden pass rates, over the problems where both vary."""
    ties: Estimate
    """Share of problems with several candidates of the highest score."""
    open_ties: Estimate
    """Share of problems where some of the tied candidates are right and some are wrong: there the tie-break decides."""
    tests: Estimate
    """Unique tests per problem."""


def selection_figures(records: Iterable[SelectionRecord], *, seed: int = 0) -> SelectionFigures:
    """Return the figures of some records."""
    known = list(records)
    used = [_ProblemFigures(record) for record in known if not record.masked]
    values = {
        name: {each.problem_id: [value] for each in used if not isnan(value := getattr(each, name))}
        for name in ("average", "chosen", "first", "best", "fidelity", "ties", "open_ties", "tests")
    }
    return SelectionFigures(
        n_problems=len(used),
        n_masked=len(known) - len(used),
        gain=difference_interval(values["average"], values["chosen"], seed=seed),
        **{name: mean_interval(each, seed=seed) for name, each in values.items()},
    )


class _ProblemFigures:
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
        self.ties, self.open_ties = float(len(self.in_front) > 1), float(len(set(self.in_front)) > 1)
        self.tests = float(record.n_tests)
