"""Outcomes, verdicts and reports.

An outcome is how the evaluation of one expression ended: the only information that a sandbox returns. The judge makes
of it a verdict per case, and reports per suite, per candidate and per problem.

Nesting: `ProblemReport` > `CandidateReport` (axis N) > `SuiteReport` (axis M) > `CaseReport`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from codea1_env.facts.submissions import Candidate, Rejection, TestCase


class OutcomeKind(StrEnum):
    """How an evaluation ended. Only VALUE carries a value; a missing report is never VALUE."""

    VALUE = "value"
    """Returned plain data within the limits."""
    OPAQUE = "opaque"
    """Returned a value that is not plain data, which equals no value; or, in a harness, used a value that cannot cross
    between the harness and the program (`error_type` says which kind)."""
    ERROR = "error"
    """Raised an exception (`error_type`, `message`)."""
    TIME_LIMIT = "time_limit"
    """Used up its processor time, or reached the much larger wall-clock limit while it used the processor."""
    MEMORY_LIMIT = "memory_limit"
    """Needed more memory than allowed (MemoryError, or the process was killed for it)."""
    OUTPUT_LIMIT = "output_limit"
    """Returned a value larger than the limit."""
    CRASHED = "crashed"
    """A signal that the sandbox did not send ended the process."""
    EXITED = "exited"
    """The process exited before it returned an answer."""
    NOT_RUN = "not_run"
    """Never tried: the program did not load, or its process had to be restarted too often. No evidence."""
    INTERNAL_ERROR = "internal_error"
    """The sandbox itself failed. Never evidence."""

    @property
    def is_evidence(self) -> bool:
        """True iff it says something about the program."""
        return self not in (OutcomeKind.NOT_RUN, OutcomeKind.INTERNAL_ERROR)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one evaluation."""

    kind: OutcomeKind
    value: bytes | None = None
    """Canonical encoding (`codea1_env.values`) iff kind is VALUE."""
    error_type: str = ""
    """Name of the exception's class, or of the signal; with `items`, of the exception that follows them."""
    message: str = ""
    """At most 300 characters, printable."""
    items: bytes | None = None
    """OPAQUE only, and only for a call with encoded arguments: the encoded list of the items of the result, if it can
    be iterated. Only the first items of a long or endless one."""
    arguments: bytes | None = None
    """The encoded arguments after the call, if it changed them and the job records that; each that is no longer plain
    data is replaced by its length. The bytes are not checked."""

    def __post_init__(self) -> None:
        if (self.value is not None) != (self.kind is OutcomeKind.VALUE):
            raise ValueError(f"an outcome of kind {self.kind} with value {self.value!r}")

    @property
    def n_bytes(self) -> int:
        """How many bytes it holds, about."""
        return sum(map(len, filter(None, (self.value, self.message, self.items, self.arguments))))

    @property
    def summary(self) -> str:
        """One line for people; empty for a value."""
        if self.kind is OutcomeKind.VALUE:
            return ""
        if self.error_type:
            return f"{self.error_type}: {self.message}".removesuffix(": ")[:300]
        return (self.message or self.kind.value.replace("_", " "))[:300]


class EntryPointCall(NamedTuple):
    """One call of the entry point by a harness expression. The bytes are not checked."""

    arguments: bytes
    """Encoded pair of positional and keyword arguments."""
    answer: Outcome | None = None
    """The program's outcome; None if it gave none (it hung, or its process ended)."""


TOO_MANY = EntryPointCall(b"")
"""Replaces the calls that one expression makes after its record has reached the limit."""


class Verdict(StrEnum):
    """The result of one test case on one candidate, or of loading a candidate."""

    PASSED = "passed"
    """Returned a value equal to the expected one within the limits; for a candidate: it loads."""
    WRONG_ANSWER = "wrong_answer"
    """Returned another value, or one that is not plain data."""
    RUNTIME_ERROR = "runtime_error"
    """Raised, crashed, or ended its process."""
    TIME_LIMIT = "time_limit"
    """Used more processor time than allowed."""
    MEMORY_LIMIT = "memory_limit"
    """Needed more memory than allowed."""
    OUTPUT_LIMIT = "output_limit"
    """Returned a value larger than the limit."""
    NO_CODE = "no_code"
    """Candidate only: the reply does not contain a program."""
    SYNTAX_ERROR = "syntax_error"
    """Candidate only: not Python."""
    NO_ENTRY_POINT = "no_entry_point"
    """Candidate only: loads, but does not define the entry point."""
    NOT_RUN = "not_run"
    """Not tried (the candidate is invalid, or its process was restarted too often): no evidence for or against it."""
    DENIED = "denied"
    """Replayed case only: the present solution has another value, or none. No evidence; the case leaves the book."""
    UNDECIDED = "undecided"
    """Replayed case or golden test: the judge cannot decide it. No evidence; the case stays in the book."""
    INTERNAL_ERROR = "internal_error"
    """The sandbox itself failed. Never evidence, never part of a reward."""

    @cached_property  # of a few members, asked for every case
    def is_evidence(self) -> bool:
        """True iff this is evidence for or against the candidate."""
        return self not in _NO_EVIDENCE

    @cached_property
    def is_failure(self) -> bool:
        """True iff this is evidence against the candidate."""
        return self.is_evidence and self is not Verdict.PASSED


_NO_EVIDENCE = frozenset({Verdict.NOT_RUN, Verdict.DENIED, Verdict.UNDECIDED, Verdict.INTERNAL_ERROR})

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
    """Return the verdict that follows from an outcome alone; a value is PASSED until it is compared.

    Args:
        outcome: what happened when a call ran, or when a program was loaded.
        loading: whether it is of loading a program: two of its errors have verdicts of their own.
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
    """Whether the tester's prediction was equal; None where there is none, or the rules ignore it."""
    is_example: bool = False
    """Whether the statement's examples answer it (`rules.validation.stated_answers`)."""


@dataclass(frozen=True, slots=True)
class ValidSuite:
    """A suite after validation against the solution."""

    cases: tuple[ValidCase, ...]
    """In the order of the reply."""
    rejections: tuple[Rejection, ...]
    """The pieces that were dropped while reading or validating. A case that was kept with a corrected value is here
    too, as WRONG_PREDICTION."""
    n_invalid: int
    """The number of counted faults (`COUNTED_AS_INVALID`); `invalid` in the reward formulas (release
    reward.py:541-583)."""
    nonprintable_share: float
    """In [0, 1], copied from the suite."""
    internal_error: bool = False
    """The solution could not be run; nothing here is evidence."""


_SHOWN = 3
"""Rejections of a suite that its representation names."""


def _count_verdicts(cases: Iterable[CaseReport]) -> str:
    """Return how many cases have each verdict, the most frequent first."""
    counts = Counter(case.verdict for case in cases).most_common()
    return f"cases: {', '.join(f'{n} {verdict}' for verdict, n in counts) or 'none'}"


@dataclass(frozen=True, slots=True)
class CaseReport:
    """One valid case against one candidate."""

    case: ValidCase
    verdict: Verdict
    actual: str = ""
    """The candidate's result, for people: a literal, or `Type: message`; at most 300 characters; empty for PASSED and
    NOT_RUN. For DENIED, why the solution denies the case."""

    @property
    def answer_right(self) -> bool | None:
        """Whether the answer that the test states is the solution's; None where it states none, or none is required."""
        return self.case.prediction_right

    @property
    def is_right_kill(self) -> bool:
        """Whether the candidate fails a right case: one whose answer was right, or is not required."""
        return self.verdict.is_failure and self.answer_right is not False

    def __repr__(self) -> str:
        gave = f"; it gave {self.actual!r:.60}" if self.actual else ""
        return f"<CaseReport {self.verdict}: {self.case.case.to_assert()!r:.80}{gave}>"


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """One suite against the candidate it was written for."""

    suite: ValidSuite
    cases: tuple[CaseReport, ...]
    """One per `suite.cases`, same order; all NOT_RUN if the candidate is invalid."""

    def __repr__(self) -> str:
        rejected = (
            f"{each.reason.value} ({each.detail or each.source:.60})" for each in self.suite.rejections[:_SHOWN]
        )
        more = f", and {n} more" if (n := len(self.suite.rejections) - _SHOWN) > 0 else ""
        return f"<SuiteReport {_count_verdicts(self.cases)}; rejections: {', '.join(rejected) or 'none'}{more}>"

    @property
    def beats(self) -> bool:
        """Whether the candidate fails one of the cases, be it one whose wrong prediction was corrected."""
        return any(case.verdict.is_failure for case in self.cases)

    @property
    def beats_rightly(self) -> bool:
        """Whether the candidate fails a right case: a wrong answer beats nobody, nor does a copied example."""
        return any(case.is_right_kill and not case.case.is_example for case in self.cases)


@dataclass(frozen=True, slots=True)
class Rechecks:
    """How many of one candidate's cases were decided by more than a first comparison of values."""

    equal_answers: int = 0
    """Cases that passed because the candidate answers every call like the solution."""
    undecided: int = 0
    """Cases that the judge cannot decide: no evidence about candidate or tester."""
    rerun: int = 0
    """Calls that ran again: for memory, for time, or because other calls had used up the job's resources."""

    def plus(self, *, equal_answers: int = 0, undecided: int = 0, rerun: int = 0) -> Rechecks:
        """Return these counts plus the given ones."""
        return Rechecks(self.equal_answers + equal_answers, self.undecided + undecided, self.rerun + rerun)


@dataclass(frozen=True, slots=True, repr=False)
class CandidateReport:
    """All results about one candidate."""

    candidate: Candidate
    verdict: Verdict
    """PASSED iff it is valid: it parses, its module body runs, and it defines the entry point."""
    detail: str = ""
    """Why it is invalid, for people."""
    replayed: tuple[CaseReport, ...] = ()
    """The Mistake Book's cases, in the order of retrieval."""
    suites: tuple[SuiteReport, ...] = ()
    """(M,) the suites written for this candidate."""
    golden_pass_rate: float | None = None
    """Share of golden tests passed, in [0, 1]; None where they were not run."""
    rechecks: Rechecks = field(default_factory=Rechecks, compare=False)
    """Counts of the judge; records do not keep them."""

    def __repr__(self) -> str:
        said = _count_verdicts(case for report in self.suites for case in report.cases)
        golden = "" if self.golden_pass_rate is None else f"; golden {self.golden_pass_rate:.3g}"
        return f"<CandidateReport {'loads' if self.loads else self.verdict}; {said}{golden}>"

    @property
    def loads(self) -> bool:
        """True iff the candidate is valid: it parses, its module body runs, and it defines the entry point."""
        return self.verdict is Verdict.PASSED

    @property
    def passes(self) -> bool:
        """True iff the candidate loads and no case, new or replayed, is evidence against it."""
        cases = (*self.replayed, *(case for report in self.suites for case in report.cases))
        return self.loads and not any(case.verdict.is_failure for case in cases)

    @property
    def has_internal_error(self) -> bool:
        """True iff our own failure hides anything that a reward would use: mask the reward."""
        return bool(self.internal_error)

    @property
    def internal_error(self) -> str:
        """What failed of ours, for people; empty if nothing did."""
        cases = [*self.replayed, *(case for report in self.suites for case in report.cases)]
        failed = next((case for case in cases if case.verdict is Verdict.INTERNAL_ERROR), None)
        if self.verdict is Verdict.INTERNAL_ERROR:
            return self.detail or "the sandbox failed on the program"
        if failed is not None:
            return f"the sandbox failed on {failed.case.case.expression:.80}: {failed.actual or 'internal error'}"
        return "the sandbox failed on the solution" if any(each.suite.internal_error for each in self.suites) else ""


@dataclass(frozen=True, slots=True)
class ProblemReport:
    """The judge's report on one problem's candidates and suites."""

    problem_id: str
    candidates: tuple[CandidateReport, ...]
    """(N,)"""
    shares_suites: bool = False
    """Whether every candidate ran the same M suites, in the same order."""

    def __repr__(self) -> str:
        loads = sum(each.loads for each in self.candidates)
        cases = _count_verdicts(case for each in self.candidates for suite in each.suites for case in suite.cases)
        return f"<ProblemReport {self.problem_id:.60}: {loads} of {len(self.candidates)} candidates load; {cases}>"


@dataclass(frozen=True, slots=True)
class GoldenFinding:
    """The results of all golden tests of a problem on one program."""

    passed: bool | None
    """Whether the program passes all; False with the first failure. None: unknown, for the reason in `masked`."""
    pass_rate: float | None
    """Share passed, in [0, 1]; tests after a call that hangs or crashes count as failed. None if any result is
    unknown."""
    verdict: Verdict
    """Verdict on the first test that did not pass; PASSED if all did."""
    detail: str = ""
    masked: str = ""
    """`sandbox` (our failure), `test` (a golden test is broken) or `agent` (no reply) where `passed` is None."""
    program: str = ""
    """The program read from a reply (`Referee.golden`); empty if there is none."""
    n_own_tests: int = 0
    """Statements that were left out of it, as they only test it."""
