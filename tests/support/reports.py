"""Reports as a judge makes them, without running anything: what programs made of tests of `f`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from codea1_env.facts.submissions import Candidate, Rejection, TestCase
from codea1_env.facts.verdicts import (
    CandidateReport,
    CaseReport,
    ProblemReport,
    SuiteReport,
    ValidCase,
    ValidSuite,
    Verdict,
)
from codea1_env.judging.judged_round import JudgedRound
from codea1_env.problems.problem import Problem
from codea1_env.rules.rewards import score
from codea1_env.rules.ruleset import Ruleset

PASSED, FAILED, SLOW, UNRUN = Verdict.PASSED, Verdict.WRONG_ANSWER, Verdict.TIME_LIMIT, Verdict.NOT_RUN
INVALID, OURS = Verdict.SYNTAX_ERROR, Verdict.INTERNAL_ERROR


def met(
    verdict: Verdict, *, n: int = 0, predicted: str = "0", right: bool = True, example: bool = False, actual: str = ""
) -> CaseReport:
    case = ValidCase(TestCase(f"f({n})", predicted, direct=True), b"0", right, is_example=example)
    return CaseReport(case, verdict, actual)


def met_all(verdicts: Iterable[Verdict], *, n_wrong: int = 0, first: int = 0) -> tuple[CaseReport, ...]:
    """What a program made of as many cases, of which the last `n_wrong` had wrong predictions."""
    found = tuple(verdicts)
    return tuple(met(verdict, n=first + n, right=n < len(found) - n_wrong) for n, verdict in enumerate(found))


def suite_of(
    *cases: CaseReport, n_dropped: int = 0, nonprintable: float = 0.0, rejections: tuple[Rejection, ...] = ()
) -> SuiteReport:
    """A judged suite: its cases, and how many tests more were dropped and count as invalid."""
    n_invalid = n_dropped + sum(case.case.prediction_right is False for case in cases)
    return SuiteReport(ValidSuite(tuple(case.case for case in cases), rejections, n_invalid, nonprintable), cases)


def candidate(
    *suites: SuiteReport, replayed: Iterable[Verdict] = (), golden: float | None = None, verdict: Verdict = PASSED
) -> CandidateReport:
    """The report of a program under these suites and as many replayed cases."""
    return CandidateReport(Candidate("def f(n): ..."), verdict, "", met_all(replayed, first=1000), suites, golden)


def judged_round(report: CandidateReport, rules: Ruleset, problem: Problem, /, **changes: Any) -> JudgedRound:
    """A round without a Mistake Book, in which a program got this report."""
    whole = ProblemReport(problem.id, (report,))
    return replace(JudgedRound(problem, "0a", 0, "", "", whole, score(report, rules), None), **changes)
