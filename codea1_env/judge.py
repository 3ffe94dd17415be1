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

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from codea1_env import values
from codea1_env.golden import golden_jobs, golden_pass_rate, golden_results
from codea1_env.outcomes import Outcome, OutcomeKind
from codea1_env.problems.problem import Problem
from codea1_env.rules.replies import is_direct_call
from codea1_env.rules.ruleset import Reading, RewardScheme, Ruleset
from codea1_env.rules.validation import SolutionEvidence, validate, values_equal
from codea1_env.sandbox.interface import Call, Harness, Job, JobReport, Limits, Place, Sandbox
from codea1_env.submissions import Candidate, Suite, TestCase
from codea1_env.verdicts import (
    CandidateReport,
    CaseReport,
    ProblemReport,
    SuiteReport,
    ValidCase,
    ValidSuite,
    Verdict,
)

__all__ = ["CandidateCheck", "Duel", "Judge", "invalid_report"]

_CACHE_ENTRIES = 65_536


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


class _Question(NamedTuple):
    """One distinct thing to evaluate; equal questions are asked once. A tuple, since each is hashed many times."""

    expression: str
    imports: tuple[str, ...]
    direct: bool

    @classmethod
    def of_case(cls, case: TestCase) -> _Question:
        return cls(case.expression, case.imports, case.direct)

    @classmethod
    def of_prediction(cls, case: TestCase) -> _Question:
        prediction = case.prediction or "None"
        # A literal harms nobody, so it may be evaluated beside the solution and needs no second process.
        return cls(prediction, case.imports, _is_literal(prediction))

    def to_call(self) -> Call:
        place = Place.PROGRAM if self.direct else Place.HARNESS
        return Call(self.expression, () if self.direct else self.imports, place)


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
        self._solutions = _SolutionValues(sandbox, self.limits)

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
        wanted = {
            id(duel): list(dict.fromkeys(q for suites in duel.suites for suite in suites for q in _questions(suite)))
            for duel in duels
        }
        self._solutions.learn([(duel.problem, wanted[id(duel)]) for duel in duels])
        return [
            [tuple(self._validate_suite(duel.problem, suite) for suite in suites) for suites in duel.suites]
            for duel in duels
        ]

    def _validate_suite(self, problem: Problem, suite: Suite) -> ValidSuite:
        evidence = []
        for case in suite.cases:
            runs = self._solutions.get(problem, _Question.of_case(case))
            prediction = None
            if case.prediction is not None:
                prediction = self._solutions.get(problem, _Question.of_prediction(case)).first
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
        outcomes: dict[_Question, Outcome] = {}
        if report is not None:
            outcomes = dict(zip(entry.questions, self._outcomes(report), strict=True))

        def judged(cases: Iterable[ValidCase]) -> tuple[CaseReport, ...]:
            if check.verdict is not Verdict.PASSED:
                return tuple(CaseReport(case, Verdict.NOT_RUN) for case in cases)
            return tuple(self._case_report(case, outcomes[_Question.of_case(case.case)]) for case in cases)

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
        load = report.load
        if load.kind is OutcomeKind.ERROR and load.error_type == "NoEntryPoint":
            # The release calls a program valid if its module body runs (R:585-600); its calls then fail one by one.
            lenient = self.rules.reading is Reading.RELEASE
            return CandidateCheck(Verdict.PASSED if lenient else Verdict.NO_ENTRY_POINT, load.message)
        if load.kind is OutcomeKind.ERROR and load.error_type == "SyntaxError":
            return CandidateCheck(Verdict.SYNTAX_ERROR, load.message)
        return CandidateCheck(_verdict_of(load), _said(load))

    def _outcomes(self, report: JobReport) -> tuple[Outcome, ...]:
        if report.load.kind is OutcomeKind.ERROR and report.load.error_type == "NoEntryPoint":
            return (Outcome(OutcomeKind.ERROR, error_type="NameError", message=report.load.message),) * len(
                report.outcomes
            )
        return report.outcomes

    def _case_report(self, case: ValidCase, outcome: Outcome) -> CaseReport:
        if outcome.value is None:
            return CaseReport(case, _verdict_of(outcome), _said(outcome))
        same = values_equal(case.expected, outcome.value, self.rules.comparison)
        if same:
            return CaseReport(case, Verdict.PASSED)
        return CaseReport(case, Verdict.WRONG_ANSWER, values.describe(outcome.value))

    # -- jobs --

    def _job(self, problem: Problem, program: str, questions: Sequence[_Question]) -> Job:
        return _job(problem, program, questions, self.limits)

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
        self.questions = tuple(dict.fromkeys(_Question.of_case(case.case) for case in cases))


@dataclass(frozen=True, slots=True)
class _TwoRuns:
    first: Outcome
    second: Outcome


class _SolutionValues:
    """What solutions return, remembered per (problem, question), so that candidates and rounds share it."""

    def __init__(self, sandbox: Sandbox, limits: Limits) -> None:
        self._sandbox = sandbox
        self._limits = limits
        self._known: OrderedDict[tuple[Problem, _Question], _TwoRuns] = OrderedDict()

    def get(self, problem: Problem, question: _Question) -> _TwoRuns:
        return self._known[problem, question]

    def learn(self, wanted: Sequence[tuple[Problem, list[_Question]]]) -> None:
        """Ask what is not known yet, each question in two processes, the second time in reverse order."""
        self._forget_oldest(sum(len(questions) for _, questions in wanted))
        unknown: dict[Problem, dict[_Question, None]] = {}
        for problem, questions in wanted:
            for question in questions:
                if (problem, question) in self._known:
                    self._known.move_to_end((problem, question))
                else:
                    unknown.setdefault(problem, {})[question] = None
        asked = [(problem, list(questions)) for problem, questions in unknown.items()]
        jobs = [
            _job(problem, problem.solution, order, self._limits)
            for problem, questions in asked
            for order in (questions, questions[::-1])
        ]
        reports = self._sandbox.run(jobs) if jobs else []
        for i, (problem, questions) in enumerate(asked):
            forward, backward = _answers(reports[2 * i]), _answers(reports[2 * i + 1])[::-1]
            for question, first, second in zip(questions, forward, backward, strict=True):
                self._remember(problem, question, _TwoRuns(first, second))

    def _remember(self, problem: Problem, question: _Question, runs: _TwoRuns) -> None:
        self._known[problem, question] = runs

    def _forget_oldest(self, n_new: int) -> None:
        while self._known and len(self._known) + n_new > _CACHE_ENTRIES:
            self._known.popitem(last=False)


def _job(problem: Problem, program: str, questions: Sequence[_Question], limits: Limits) -> Job:
    """The statement's imports are everyone's: the program's, and those of tests that use them unasked."""
    calls = tuple(question.to_call() for question in questions)
    return Job(program, problem.entry_point, calls, problem.imports, Harness(problem.imports), limits)


@lru_cache(maxsize=4096)
def _is_literal(source: str) -> bool:
    return is_direct_call(f"f({source})", "f")


def _answers(report: JobReport) -> tuple[Outcome, ...]:
    """A solution that does not load answers every question with why."""
    return report.outcomes if report.loaded else (report.load,) * len(report.outcomes)


def _questions(suite: Suite) -> Iterable[_Question]:
    for case in suite.cases:
        yield _Question.of_case(case)
        if case.prediction is not None:
            yield _Question.of_prediction(case)


def _said(outcome: Outcome) -> str:
    """What happened, for people."""
    if outcome.kind is OutcomeKind.VALUE:
        return ""
    said = f"{outcome.error_type}: {outcome.message}" if outcome.error_type else outcome.kind.value.replace("_", " ")
    return said[:300]


_VERDICTS = {
    OutcomeKind.VALUE: Verdict.PASSED,
    OutcomeKind.OPAQUE: Verdict.WRONG_ANSWER,
    OutcomeKind.ERROR: Verdict.RUNTIME_ERROR,
    OutcomeKind.CRASHED: Verdict.RUNTIME_ERROR,
    OutcomeKind.EXITED: Verdict.RUNTIME_ERROR,
    OutcomeKind.TIME_LIMIT: Verdict.TIME_LIMIT,
    OutcomeKind.MEMORY_LIMIT: Verdict.MEMORY_LIMIT,
    OutcomeKind.OUTPUT_LIMIT: Verdict.OUTPUT_LIMIT,
    OutcomeKind.NOT_RUN: Verdict.NOT_RUN,
    OutcomeKind.INTERNAL_ERROR: Verdict.INTERNAL_ERROR,
}


def _verdict_of(outcome: Outcome) -> Verdict:
    return _VERDICTS[outcome.kind]
