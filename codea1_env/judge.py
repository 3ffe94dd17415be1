"""Problem, candidates and suites in; the whole matrix of verdicts out. Needs no environment.

Theory of operation. For each problem, every distinct case of every suite runs on the *solution* twice, in two
processes, the second time in reverse order; `rules.validation` keeps what agrees. Then each *candidate* runs, in a
process of its own, the replayed cases and the valid cases of the suites written for it, each distinct one once. Only
encoded values come back, and they are compared here. All problems of a batch share two calls of the sandbox, so that
it is never idle while there is work.

What runs where: an entry-point call with literal arguments runs in the program's process; any other expression runs
in a harness process with a stand-in for the entry point. So tests, solution and candidate never share a process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from codea1_env import values
from codea1_env.golden import golden_jobs, golden_pass_rate, golden_results
from codea1_env.outcomes import Outcome, OutcomeKind
from codea1_env.problems.problem import Problem
from codea1_env.rules.ruleset import Reading, RewardScheme, Ruleset
from codea1_env.rules.validation import SolutionEvidence, validate, values_equal
from codea1_env.sandbox.interface import Job, JobReport, Limits, Sandbox
from codea1_env.solution_values import Question, SolutionValues, TwoRuns, program_job, questions_of
from codea1_env.submissions import Candidate, Suite
from codea1_env.verdicts import (
    CandidateReport,
    CaseReport,
    ProblemReport,
    SuiteReport,
    ValidCase,
    ValidSuite,
    Verdict,
    verdict_of,
)

__all__ = ["CandidateCheck", "Duel", "Judge", "invalid_report"]


@dataclass(frozen=True, slots=True)
class Duel:
    """What the agents handed in for one problem: M candidates, N suites for each, and what is replayed to all."""

    problem: Problem
    candidates: tuple[Candidate, ...]
    """(M,)"""
    suites: tuple[tuple[Suite, ...], ...]
    """(M, N): `suites[m]` were written for `candidates[m]`."""
    replayed: tuple[ValidCase, ...] = ()
    """Cases of the Mistake Book."""

    def __post_init__(self) -> None:
        if len(self.candidates) != len(self.suites):
            raise ValueError(f"{len(self.candidates)} candidates, but suites for {len(self.suites)}")


@dataclass(frozen=True, slots=True)
class CandidateCheck:
    """Whether a candidate is valid: it parses, its module body runs, it defines the entry point."""

    verdict: Verdict
    detail: str = ""


class Judge:
    """Judges duels under one ruleset through one sandbox. Thread-safe where the sandbox is."""

    def __init__(
        self, sandbox: Sandbox, rules: Ruleset, *, limits: Limits | None = None, golden: bool | None = None
    ) -> None:
        """Make a judge.

        Args:
            sandbox: where programs run.
            rules: how suites are validated and values compared.
            limits: bounds per call, for solutions and candidates alike.
            golden: whether to run golden tests; None: iff the reward scheme needs them.
        """
        self.sandbox = sandbox
        self.rules = rules
        self.limits = limits or Limits()
        self.golden = rules.reward.scheme is RewardScheme.GOLDEN if golden is None else golden
        self._solutions = SolutionValues(sandbox, self.limits)

    def check(self, problem: Problem, candidates: Sequence[Candidate]) -> list[CandidateCheck]:
        """Load each candidate and call nothing."""
        jobs = [self._job(problem, candidate.program, ()) for candidate in candidates if candidate.program]
        reports = iter(self.sandbox.run(jobs))
        return [self._checked(next(reports) if candidate.program else None, candidate) for candidate in candidates]

    def judge(self, duels: Sequence[Duel]) -> list[ProblemReport]:
        """Return one report per duel, in order."""
        validated = self._validate(duels)
        entries = [
            _Entry(duel, duel.candidates[m], validated[d][m])
            for d, duel in enumerate(duels)
            for m in range(len(duel.candidates))
        ]
        reports = iter(self._judge_candidates(entries))
        return [ProblemReport(duel.problem.id, tuple(next(reports) for _ in duel.candidates)) for duel in duels]

    # -- suites against the solution --

    def _validate(self, duels: Sequence[Duel]) -> list[list[tuple[ValidSuite, ...]]]:
        """Return (D, M, N) validated suites."""
        asked = [
            (duel.problem, [q for suites in duel.suites for suite in suites for q in questions_of(suite)])
            for duel in duels
        ]
        return [
            [tuple(self._validate_suite(suite, known) for suite in suites) for suites in duel.suites]
            for duel, known in zip(duels, self._solutions.answers(asked), strict=True)
        ]

    def _validate_suite(self, suite: Suite, known: Mapping[Question, TwoRuns]) -> ValidSuite:
        evidence = []
        for case in suite.cases:
            runs = known[Question.of_case(case)]
            prediction = None if case.prediction is None else known[Question.of_prediction(case)].first
            evidence.append(SolutionEvidence(runs.first, runs.second, prediction))
        return validate(suite, evidence, validation=self.rules.validation, comparison=self.rules.comparison)

    # -- candidates --

    def _judge_candidates(self, entries: Sequence[_Entry]) -> list[CandidateReport]:
        run = [entry for entry in entries if entry.candidate.program]
        jobs = [self._job(entry.duel.problem, entry.candidate.program, entry.questions) for entry in run]
        goldens = [self._golden_jobs(entry) for entry in run]
        reports = self.sandbox.run([*jobs, *(job for golden in goldens for job in golden)])
        position = len(jobs)
        found: dict[int, CandidateReport] = {}
        for entry, golden, report in zip(run, goldens, reports, strict=False):
            rate = self._golden_rate(entry.duel.problem, reports[position : position + len(golden)])
            position += len(golden)
            found[id(entry)] = self._report(entry, report, rate)
        return [found.get(id(entry)) or self._report(entry, None, None) for entry in entries]

    def _report(self, entry: _Entry, report: JobReport | None, golden_pass_rate: float | None) -> CandidateReport:
        check = self._checked(report, entry.candidate)
        outcomes: dict[Question, Outcome] = {}
        if report is not None:
            outcomes = dict(zip(entry.questions, self._outcomes(report), strict=True))

        def judged(cases: Iterable[ValidCase]) -> tuple[CaseReport, ...]:
            if check.verdict is not Verdict.PASSED:
                return tuple(CaseReport(case, Verdict.NOT_RUN) for case in cases)
            return tuple(self._case_report(case, outcomes[Question.of_case(case.case)]) for case in cases)

        return CandidateReport(
            candidate=entry.candidate,
            verdict=check.verdict,
            detail=check.detail,
            replayed=judged(entry.duel.replayed),
            suites=tuple(SuiteReport(suite, judged(suite.cases)) for suite in entry.suites),
            golden_pass_rate=golden_pass_rate,
        )

    def _checked(self, report: JobReport | None, candidate: Candidate) -> CandidateCheck:
        if report is None:
            return CandidateCheck(Verdict.NO_CODE, candidate.rejection.detail if candidate.rejection else "")
        verdict = verdict_of(report.load, loading=True)
        # The release calls a program valid if its module body runs (R:585-600); its calls then fail one by one.
        if verdict is Verdict.NO_ENTRY_POINT and self.rules.reading is Reading.RELEASE:
            verdict = Verdict.PASSED
        return CandidateCheck(verdict, report.load.said)

    def _outcomes(self, report: JobReport) -> tuple[Outcome, ...]:
        if verdict_of(report.load, loading=True) is not Verdict.NO_ENTRY_POINT:
            return report.outcomes
        missing = Outcome(OutcomeKind.ERROR, error_type="NameError", message=report.load.message)
        return (missing,) * len(report.outcomes)

    def _case_report(self, case: ValidCase, outcome: Outcome) -> CaseReport:
        if outcome.value is None:
            return CaseReport(case, verdict_of(outcome), outcome.said)
        same = values_equal(case.expected, outcome.value, self.rules.comparison)
        if same:
            return CaseReport(case, Verdict.PASSED)
        return CaseReport(case, Verdict.WRONG_ANSWER, values.describe(outcome.value))

    # -- jobs --

    def _job(self, problem: Problem, program: str, questions: Sequence[Question]) -> Job:
        return program_job(problem, program, questions, self.limits)

    def _golden_jobs(self, entry: _Entry) -> tuple[Job, ...]:
        return golden_jobs(entry.duel.problem, entry.candidate.program) if self.golden else ()

    def _golden_rate(self, problem: Problem, reports: Sequence[JobReport]) -> float | None:
        if not self.golden:
            return None
        return golden_pass_rate(golden_results(problem, reports, self.rules.comparison))


def invalid_report(duel: Duel, check: CandidateCheck) -> ProblemReport:
    """Report a duel whose only candidate `check` has found invalid, without running anything again."""
    reading_only = tuple(ValidSuite((), suite.rejections, 0, suite.nonprintable_share) for suite in duel.suites[0])
    candidate = CandidateReport(
        candidate=duel.candidates[0],
        verdict=check.verdict,
        detail=check.detail,
        replayed=tuple(CaseReport(case, Verdict.NOT_RUN) for case in duel.replayed),
        suites=tuple(SuiteReport(suite, ()) for suite in reading_only),
        golden_pass_rate=0.0,
    )
    return ProblemReport(duel.problem.id, (candidate,))


class _Entry:
    """One candidate of one duel with its validated suites, and the distinct questions to ask it."""

    __slots__ = ("candidate", "duel", "questions", "suites")

    def __init__(self, duel: Duel, candidate: Candidate, suites: tuple[ValidSuite, ...]) -> None:
        self.duel = duel
        self.candidate = candidate
        self.suites = suites
        cases = (*duel.replayed, *(case for suite in suites for case in suite.cases))
        self.questions = tuple(dict.fromkeys(Question.of_case(case.case) for case in cases))
