"""What was found: verdicts per case, reports per suite, per candidate and per problem.

Order of nesting: `ProblemReport` > `CandidateReport` (axis M) > `SuiteReport` (axis N) > `CaseReport`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from codea1_env.facts.outcomes import Outcome, OutcomeKind
from codea1_env.facts.submissions import Candidate, Rejection, TestCase


class Verdict(StrEnum):
    """What one test case says about one candidate, or what loading says about a candidate."""

    PASSED = "passed"
    """Returned within the limits a value equal to the expected one; for a candidate: it loads."""
    WRONG_ANSWER = "wrong_answer"
    """Returned another value, or one that is not plain data."""
    RUNTIME_ERROR = "runtime_error"
    """Raised, crashed, or ended its process."""
    TIME_LIMIT = "time_limit"
    """Used more processor time than allowed."""
    MEMORY_LIMIT = "memory_limit"
    """Asked for more memory than allowed."""
    OUTPUT_LIMIT = "output_limit"
    """Returned more than may travel."""
    NO_CODE = "no_code"
    """Candidate only: the reply holds no program."""
    SYNTAX_ERROR = "syntax_error"
    """Candidate only: not Python."""
    NO_ENTRY_POINT = "no_entry_point"
    """Candidate only: loads, but does not define the entry point."""
    NOT_RUN = "not_run"
    """Not tried (the candidate is invalid, or its process was restarted too often): no evidence either way."""
    INTERNAL_ERROR = "internal_error"
    """We failed. Never evidence, never part of a reward."""

    @property
    def is_failure(self) -> bool:
        """True iff this is evidence against the candidate."""
        return self not in _NO_FAILURES


_NO_FAILURES = frozenset({Verdict.PASSED, Verdict.NOT_RUN, Verdict.INTERNAL_ERROR})

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
_LOAD_ERRORS = {"SyntaxError": Verdict.SYNTAX_ERROR, "NoEntryPoint": Verdict.NO_ENTRY_POINT}


def verdict_of(outcome: Outcome, *, loading: bool = False) -> Verdict:
    """Return what an outcome says by itself; a value is PASSED until it has been compared.

    Args:
        outcome: of a call, or of loading a program.
        loading: the latter, where two errors have verdicts of their own.
    """
    if loading and outcome.kind is OutcomeKind.ERROR and outcome.error_type in _LOAD_ERRORS:
        return _LOAD_ERRORS[outcome.error_type]
    return _VERDICTS[outcome.kind]


@dataclass(frozen=True, slots=True)
class CandidateCheck:
    """Whether a candidate is valid: it parses, its module body runs, it defines the entry point."""

    verdict: Verdict
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ValidCase:
    """A test case that the solution has confirmed."""

    case: TestCase
    expected: bytes
    """The solution's value, canonical encoding (`codea1_env.values`)."""
    prediction_right: bool | None
    """Whether the tester's own value was equal; None where none was asked for."""
    is_example: bool = False
    """Whether the statement's own examples give all that it asks (`rules.stated_examples`)."""


@dataclass(frozen=True, slots=True)
class ValidSuite:
    """A suite after validation against the solution."""

    cases: tuple[ValidCase, ...]
    """In the order of the reply."""
    rejections: tuple[Rejection, ...]
    """Dropped while reading or validating. A case kept with a corrected value also stands here once, as
    WRONG_PREDICTION."""
    n_invalid: int
    """How many faults the validation rule counts (method.md 1.4); the `invalid` of the reward formulas."""
    nonprintable_share: float
    """In [0, 1], copied from the suite."""
    internal_error: bool = False
    """The solution could not be run; nothing here is evidence."""


@dataclass(frozen=True, slots=True)
class CaseReport:
    """One valid case against one candidate."""

    case: ValidCase
    verdict: Verdict
    actual: str = ""
    """What the candidate did instead, for people: a literal, or `Type: message`; at most 300 characters; empty for
    PASSED and NOT_RUN."""


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """One suite against the candidate it was written for."""

    suite: ValidSuite
    cases: tuple[CaseReport, ...]
    """One per `suite.cases`, same order; all NOT_RUN if the candidate is invalid."""

    @property
    def beats(self) -> bool:
        """Whether the candidate fails one of the cases."""
        return any(case.verdict.is_failure for case in self.cases)


@dataclass(frozen=True, slots=True)
class Rechecks:
    """How often something else than a first comparison of values has decided about one candidate's cases."""

    equal_answers: int = 0
    """Cases passed because the candidate answers every call as the solution does."""
    doubted: int = 0
    """Cases that say nothing about anyone."""
    rerun: int = 0
    """Calls that ran again: for memory, time, or because others had used up the job."""

    def plus(self, *, equal_answers: int = 0, doubted: int = 0, rerun: int = 0) -> Rechecks:
        """Return these counts and more."""
        return Rechecks(self.equal_answers + equal_answers, self.doubted + doubted, self.rerun + rerun)


@dataclass(frozen=True, slots=True)
class CandidateReport:
    """Everything that is known about one candidate."""

    candidate: Candidate
    verdict: Verdict
    """PASSED iff it is valid: it parses, its module body runs, the entry point is there."""
    detail: str = ""
    """Why it is invalid, for people."""
    replayed: tuple[CaseReport, ...] = ()
    """The Mistake Book's cases, in the order of retrieval."""
    suites: tuple[SuiteReport, ...] = ()
    """(N,) the suites written for this candidate."""
    golden_pass_rate: float | None = None
    """Share of golden tests passed, in [0, 1]; None where they were not run."""
    rechecks: Rechecks = field(default_factory=Rechecks, compare=False)
    """Of the live judging; records do not keep it."""

    @property
    def is_valid(self) -> bool:
        """True iff the candidate loads."""
        return self.verdict is Verdict.PASSED

    @property
    def has_internal_error(self) -> bool:
        """True iff anything that a reward would use could not be found out: mask it."""
        return (
            self.verdict is Verdict.INTERNAL_ERROR
            or any(report.verdict is Verdict.INTERNAL_ERROR for report in self.replayed)
            or any(
                report.suite.internal_error or any(case.verdict is Verdict.INTERNAL_ERROR for case in report.cases)
                for report in self.suites
            )
        )


@dataclass(frozen=True, slots=True)
class ProblemReport:
    """One problem's candidates and suites, judged."""

    problem_id: str
    candidates: tuple[CandidateReport, ...]
    """(M,)"""
    shares_suites: bool = False
    """Whether every candidate met the same N suites, in the same order."""


@dataclass(frozen=True, slots=True)
class GoldenFinding:
    """All golden tests of a problem against one program."""

    passed: bool | None
    """Whether all are passed; one failure settles it. None: it could not be found out, for the reason in `masked`."""
    pass_rate: float | None
    """Share passed, in [0, 1]; what stands behind a call that hangs or dies counts as failed. None where any could not
    be found out."""
    verdict: Verdict
    """Of the first test that is not passed; PASSED if there is none."""
    detail: str = ""
    masked: str = ""
    """`sandbox` (our failure), `test` (a golden test is broken) or `agent` (no reply) where `passed` is None."""
    program: str = ""
    """As it was read from a reply (`Referee.golden`); empty if there is none."""
