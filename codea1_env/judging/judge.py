"""The judge: from problems, candidates and suites to all verdicts. It needs no environment.

How it works. For each problem, every distinct case of every suite and every replayed case runs on the *solution* twice,
in two processes, the second time in reverse order; `rules.validation` keeps the cases on which both runs agree, and the
replayed cases that still have their value. Then each *candidate* runs, in a process of its own, the replayed cases and
the valid cases of its suites, each distinct one once. The sandbox
returns only encoded values, and this module compares them. All problems of a batch share two calls of the sandbox, so
that the sandbox always has work.

Where expressions run: an entry-point call with literal arguments runs in the program's process; any other expression
runs in a harness process with a stand-in for the entry point. So tests, solution and candidate never share a process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, repeat
from typing import TypeAlias

from codea1_env import values
from codea1_env.facts.answers import ValueBudget
from codea1_env.facts.submissions import Candidate, Suite
from codea1_env.facts.verdicts import (
    CandidateCheck,
    CandidateReport,
    CaseReport,
    Outcome,
    OutcomeKind,
    ProblemReport,
    Rechecks,
    SuiteReport,
    ValidCase,
    ValidSuite,
    Verdict,
    verdict_of,
)
from codea1_env.judging.candidate_runs import (
    CandidateOutcomes,
    Undecided,
    drawn_order,
    recheck_failures,
    reload_without_calls,
)
from codea1_env.judging.golden import SHORT, GoldenTests, golden_jobs, golden_pass_rate, golden_runs
from codea1_env.judging.jobs import Terms, call_of_case, program_job
from codea1_env.judging.right_answers import (
    AnsweredCalls,
    SuiteEvidence,
    accept_right_answers,
    accept_right_predictions,
)
from codea1_env.judging.solution_values import (
    SolutionValues,
    calls_of_suite,
    canonical_calls_of,
    evidence_of_suite,
    limits_of_solutions,
)
from codea1_env.problems.problem import Problem
from codea1_env.rules.replies import is_readable
from codea1_env.rules.ruleset import Isolation, Reading, Ruleset
from codea1_env.rules.validation import (
    SuiteRules,
    replayed_case,
    stated_answers,
    validate,
    without_undecided,
)
from codea1_env.sandbox.interface import Call, Job, JobReport, Limits, Sandbox


@dataclass(frozen=True, slots=True)
class Duel:
    """One problem with N candidates, M suites for each of them, and the cases that all of them replay."""

    problem: Problem
    candidates: tuple[Candidate, ...]
    """(N,)"""
    suites: tuple[tuple[Suite, ...], ...]
    """(N, M): `suites[n]` were written for `candidates[n]`."""
    replayed: tuple[ValidCase, ...] = ()
    """Cases of the Mistake Book; the candidates run those that the problem's solution confirms."""
    shares_suites: bool = False
    """Whether every candidate runs the same M suites: then all N items of `suites` are equal."""
    early_checks: tuple[CandidateCheck | None, ...] = ()
    """(N,) the results of candidates that must not run, None for the others; () if all run."""

    def __post_init__(self) -> None:
        if len(self.candidates) != len(self.suites):
            raise ValueError(f"expected suites for {len(self.candidates)} candidates, got them for {len(self.suites)}")
        if self.shares_suites and any(suites != self.suites[0] for suites in self.suites):
            raise ValueError("the candidates share their suites, but these differ")

    @classmethod
    def crossed(
        cls,
        problem: Problem,
        candidates: Sequence[Candidate],
        suites: Sequence[Suite],
        replayed: Sequence[ValidCase] = (),
    ) -> Duel:
        """Return the duel of every candidate with every suite."""
        return cls(problem, tuple(candidates), (tuple(suites),) * len(candidates), tuple(replayed), shares_suites=True)


class Judge:
    """Judges duels under one ruleset through one sandbox. Thread-safe where the sandbox is."""

    def __init__(
        self, sandbox: Sandbox, rules: Ruleset, *, limits: Limits | None = None, golden: bool | None = None
    ) -> None:
        """Make a judge.

        Args:
            sandbox: where programs run.
            rules: how suites are validated and values compared.
            limits: bounds per call for candidates; solutions get half of them.
            golden: whether to run golden tests; None: iff the reward scheme needs them.
        """
        self.sandbox = sandbox
        self.rules = rules
        self.limits = limits or Limits()
        self._terms = Terms(sandbox, self.limits, rules.comparison)
        self.golden = rules.reward.needs_golden if golden is None else golden
        solution_limits = limits_of_solutions(self.limits)
        self._solutions = SolutionValues(sandbox, solution_limits, finds_vacuous=rules.drop_vacuous)
        self._golden = GoldenTests(sandbox, rules.comparison) if self.golden else None

    def check(self, candidates: Sequence[tuple[Problem, Candidate]]) -> list[CandidateCheck]:
        """Load each problem's candidate without calling it; return one check per candidate, in order."""
        jobs = [program_job(problem, it.program, (), self.limits) for problem, it in candidates if it.program]
        reports = iter(self.sandbox.run(jobs) if jobs else ())
        return [
            self._check_load(next(reports) if candidate.program else None, candidate) for _, candidate in candidates
        ]

    def judge(self, duels: Sequence[Duel]) -> list[ProblemReport]:
        """Return one report per duel, in order."""
        validated, unconfirmed = self._validate(duels)
        tasks = [
            _CandidateTask(duel, candidate, suites, cases, self.rules.draws_order, check)
            for duel, of_duel, cases in zip(duels, validated, unconfirmed, strict=True)
            for candidate, suites, check in zip(
                duel.candidates, of_duel, duel.early_checks or (None,) * len(duel.candidates), strict=True
            )
        ]
        to_run = [task for task in tasks if task.runs]
        ran = iter(self._run(to_run) if to_run else ())
        reports = []
        for task in tasks:
            if task.runs:
                reports.append(next(ran))
            else:  # it has failed all golden tests, or is masked
                check = task.check or self._check_load(None, task.candidate)
                is_known = self.golden and check.verdict is not Verdict.INTERNAL_ERROR
                reports.append(self._report(task, check, None, 0.0 if is_known else None))
        rest = iter(reports)
        return [
            ProblemReport(duel.problem.id, tuple(islice(rest, len(duel.candidates))), duel.shares_suites)
            for duel in duels
        ]

    # -- suites against the solution --

    def _validate(self, duels: Sequence[Duel]) -> tuple[list[list[tuple[ValidSuite, ...]]], list[_Unconfirmed]]:
        """Return (D, N, M) validated suites, and the (D,) replayed cases that the solutions do not confirm."""
        max_bytes = self.limits.value_bytes
        groups_of = [duel.suites[:1] if duel.shares_suites else duel.suites for duel in duels]
        calls: list[tuple[Problem, list[Call]]] = []
        readable = []  # a book may be anybody's, so it may hold cases that must not run
        for duel, groups in zip(duels, groups_of, strict=True):
            forms = self.rules.reading, duel.problem.entry_point, duel.problem.calls
            readable.append([is_readable(case.case, *forms) for case in duel.replayed])
            replayed = zip(duel.replayed, readable[-1], strict=True)
            of_duel = [call_of_case(case.case) for case, may_run in replayed if may_run]
            calls.append((duel.problem, of_duel))
            for suite in chain(*groups):
                of_duel += calls_of_suite(suite, max_bytes)
        answers = self._solutions.answers(calls)
        of_suites = [
            SuiteEvidence(duel.problem, suite, evidence_of_suite(suite, known, max_bytes))
            for duel, groups, known in zip(duels, groups_of, answers, strict=True)
            for suite in chain(*groups)
        ]
        evidence = iter(accept_right_predictions(of_suites, self._terms))
        validated, unconfirmed = [], list[_Unconfirmed]()
        for duel, groups, known, may_run in zip(duels, groups_of, answers, readable, strict=True):
            rules = self._suite_rules(duel.problem)
            valid = [tuple([validate(suite, next(evidence), rules) for suite in group]) for group in groups]
            validated.append(valid * len(duel.candidates) if duel.shares_suites else valid)
            reports = [
                replayed_case(case, known[call_of_case(case.case)], self.rules.comparison)
                if is_allowed
                else CaseReport(case, Verdict.DENIED, "no test that the rules accept")
                for case, is_allowed in zip(duel.replayed, may_run, strict=True)
            ]
            unconfirmed.append({report.case: report for report in reports if report is not None})
        return validated, unconfirmed

    def _suite_rules(self, problem: Problem) -> SuiteRules:
        canonical = canonical_calls_of(problem) if self.rules.drop_rewritten else None
        stated = stated_answers(problem.examples, problem.entry_point, canonical, problem.printed, problem.calls)
        return SuiteRules(
            self.rules.validation,
            self.rules.comparison,
            keeps_unpassable=self.rules.reading is Reading.RELEASE,
            canonical=canonical,
            stated=dict.fromkeys(stated) if problem.answers.accepts_others else stated,
            output=problem.printed,
            in_place=problem.calls.in_place,
        )

    # -- candidates --

    def _run(self, tasks: Sequence[_CandidateTask]) -> list[CandidateReport]:
        problems, isolates = [task.duel.problem for task in tasks], self.rules.isolation == Isolation.CALL
        jobs, jobs_of_golden = list[Job](), list[tuple[Job, ...]]()
        for task in tasks:
            program = task.candidate.program
            job = program_job(task.duel.problem, program, task.expected, self.limits)
            jobs.append(replace(job, isolates_calls=isolates))
            of_golden = golden_jobs(task.duel.problem, program, SHORT) if self.golden else ()
            jobs_of_golden.append(tuple(replace(job, isolates_calls=isolates) for job in of_golden))
        reports = self.sandbox.run([*jobs, *chain(*jobs_of_golden)])
        loaded = reload_without_calls(jobs, reports[: len(jobs)], self.sandbox)
        answered = [
            AnsweredCalls(task.duel.problem, tuple(task.expected), tuple(task.expected.values()), report)
            for task, report in zip(tasks, loaded, strict=True)
        ]
        accepted = accept_right_answers(answered, self._terms)
        outcomes = recheck_failures(
            [task.outcomes(report, isolates) for task, report in zip(tasks, accepted, strict=True)], self._terms
        )
        rates: Iterable[float | None] = repeat(None)
        if self._golden is not None:
            runs = golden_runs(zip(problems, jobs_of_golden, strict=True), reports[len(jobs) :])
            rates = map(golden_pass_rate, self._golden.results(runs))
        return [
            self._report(task, self._check_load(report, task.candidate), answers, rate)
            for task, report, answers, rate in zip(tasks, accepted, outcomes, rates, strict=False)
        ]

    def _report(
        self,
        task: _CandidateTask,
        check: CandidateCheck,
        answers: CandidateOutcomes | None,
        golden_pass_rate: float | None,
    ) -> CandidateReport:
        reports = [CaseReport(case, Verdict.NOT_RUN) for case in task.cases]
        undecided: Undecided = {}
        if answers is not None and check.verdict is Verdict.PASSED:
            undecided = answers.undecided
            reports = [
                self._judge_case(case, answers.outcomes[call])
                for case, call in zip(task.cases, task.calls, strict=True)
            ]
        rest = iter([(report, undecided.get(call)) for report, call in zip(reports, task.calls, strict=True)])
        replayed = iter(
            [
                report if reason is None else CaseReport(report.case, Verdict.UNDECIDED)
                for report, reason in islice(rest, len(task.replayed))
            ]
        )
        suites = []
        for suite in task.suites:
            of_suite = list(islice(rest, len(suite.cases)))
            lost = [(report.case, reason) for report, reason in of_suite if reason is not None]
            kept = tuple(report for report, reason in of_suite if reason is None)
            suites.append(SuiteReport(without_undecided(suite, lost) if lost else suite, kept))
        return CandidateReport(
            candidate=task.candidate,
            verdict=check.verdict,
            detail=check.detail,
            replayed=tuple([task.unconfirmed.get(case) or next(replayed) for case in task.duel.replayed]),
            suites=tuple(suites),
            golden_pass_rate=golden_pass_rate,
            rechecks=answers.rechecks if answers is not None else Rechecks(),
        )

    def _check_load(self, report: JobReport | None, candidate: Candidate) -> CandidateCheck:
        if report is None:
            return CandidateCheck(Verdict.NO_CODE, candidate.rejection.detail if candidate.rejection else "")
        verdict = verdict_of(report.load, loading=True)
        # In the release a program is valid if its module body runs (reward.py:585-600); its calls then fail one by one.
        if verdict is Verdict.NO_ENTRY_POINT and self.rules.reading is Reading.RELEASE:
            verdict = Verdict.PASSED
        return CandidateCheck(verdict, report.load.summary)

    def _judge_case(self, case: ValidCase, outcome: Outcome) -> CaseReport:
        if outcome.value is None:
            return CaseReport(case, verdict_of(outcome), outcome.summary)
        if self.rules.comparison.equal(case.expected, outcome.value):
            return CaseReport(case, Verdict.PASSED)
        return CaseReport(case, Verdict.WRONG_ANSWER, values.describe(outcome.value))


_Unconfirmed: TypeAlias = Mapping[ValidCase, CaseReport]
"""The replayed cases of a duel that the solution does not confirm now."""


class _CandidateTask:
    """One candidate of one duel with its validated suites, and the calls that it has to answer."""

    __slots__ = (
        "calls",
        "candidate",
        "cases",
        "check",
        "duel",
        "expected",
        "replayed",
        "runs",
        "suites",
        "unconfirmed",
    )

    def __init__(
        self,
        duel: Duel,
        candidate: Candidate,
        suites: tuple[ValidSuite, ...],
        unconfirmed: _Unconfirmed,
        draws_order: bool,
        check: CandidateCheck | None,
    ) -> None:
        self.duel = duel
        self.candidate = candidate
        self.suites = suites
        self.unconfirmed = unconfirmed
        self.check = check
        """The result of a candidate that must not run; None for all others."""
        self.runs = check is None and bool(candidate.program)
        self.replayed = tuple([case for case in duel.replayed if case not in unconfirmed])
        """The confirmed ones, which the candidate runs."""
        self.cases = (*self.replayed, *chain.from_iterable([suite.cases for suite in suites]))
        """Replayed ones first, then those of each suite."""
        self.calls = [call_of_case(case.case) for case in self.cases]
        """One per case."""
        self.expected = dict(zip(self.calls, [case.expected for case in self.cases], strict=True))
        """The solution's value for each distinct one, in the order in which the candidate answers them."""
        if draws_order:
            items = [*self.expected.items()]
            order = drawn_order(candidate.program, [call.expression for call in self.expected])
            self.expected = dict(map(items.__getitem__, order))

    def outcomes(self, report: JobReport, isolates_calls: bool) -> CandidateOutcomes:
        """Return the outcomes of a report by call."""
        answers = report.outcomes
        if verdict_of(report.load, loading=True) is Verdict.NO_ENTRY_POINT:
            answers = (Outcome(OutcomeKind.ERROR, error_type="NameError", message=report.load.message),) * len(answers)
        budget = ValueBudget()
        outcomes = dict(zip(self.expected, budget.take_values(answers, self.expected.values()), strict=True))
        are_recorded = any(report.entry_point_calls)
        records = dict(zip(self.expected, report.entry_point_calls, strict=False)) if are_recorded else {}
        rest = iter(self.calls)
        sizes = (len(self.replayed), *[len(suite.cases) for suite in self.suites])
        groups = tuple([tuple(islice(rest, size)) for size in sizes])
        return CandidateOutcomes(
            self.duel.problem, self.candidate.program, groups, self.expected, outcomes, budget, records, isolates_calls
        )
