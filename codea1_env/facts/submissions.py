"""What the two agents see, and their submissions, read but not yet judged: candidates, test cases, suites.

`codea1_env.rules.replies` makes them from raw model text; tests and tools may build them directly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Literal, NamedTuple

Role = Literal["coder", "tester"]

Observation = Mapping[str, Any]
"""One observation of `codea1_env.code_a1_v0`: see its module docstring for the keys."""

Info = Mapping[str, Any]
"""The environment's `infos` entry of the agent that acts."""


class RejectionReason(StrEnum):
    """Why a piece of an agent's reply, or a test case, does not count."""

    # Found while reading a reply.
    EMPTY_REPLY = "empty_reply"
    """Nothing but white space."""
    NO_CODE = "no_code"
    """No block and no bare text that could be a program or an assert."""
    TOO_LONG = "too_long"
    """A reply longer than the reader accepts, which was not parsed, or a program longer than the rules accept, which
    was not run."""
    SYNTAX_ERROR = "syntax_error"
    """Not Python."""
    NOT_AN_ASSERT = "not_an_assert"
    """A statement that is neither an assert, a plain assignment nor an import."""
    NO_COMPARISON = "no_comparison"
    """Release reading only: not of the form `assert call <operator> expression`."""
    NO_ENTRY_POINT_CALL = "no_entry_point_call"
    """The asserted expression never calls the problem's entry point, or holds whatever the entry point returns."""
    FORBIDDEN_NAME = "forbidden_name"
    """Uses a name or attribute that a test may not use (see `rules.replies`)."""
    # Found while validating against the solution.
    TOO_MANY = "too_many"
    """Beyond the number of cases that a suite may hold."""
    DUPLICATE = "duplicate"
    """Other cases of the suite make the same calls."""
    WRONG_PREDICTION = "wrong_prediction"
    """The solution has another value (the case is dropped under `drop_wrong`, else it is corrected and kept)."""
    SOLUTION_ERROR = "solution_error"
    """The call raises or crashes on the solution."""
    SOLUTION_TIME_LIMIT = "solution_time_limit"
    """The call takes too long on the solution."""
    FLAKY = "flaky"
    """Two runs of the solution gave different values."""
    OPAQUE_VALUE = "opaque_value"
    """The solution's value, an argument or a result cannot be sent between processes: it is not plain data, or too
    large."""
    UNPASSABLE = "unpassable"
    """The solution's value is not equal to itself (nan), so nothing can equal it."""
    VACUOUS = "vacuous"
    """Holds whatever the entry point returns: no change of the solution's answers makes it false
    (`codea1_env.judging.solution_values`)."""
    TOO_MANY_CALLS = "too_many_calls"
    """The expression calls the entry point more often than can be recorded."""
    UNKNOWABLE = "unknowable"
    """The judge cannot know whether the candidate passes the case (`codea1_env.judging.candidate_runs`)."""


COUNTED_AS_INVALID = frozenset(
    {
        RejectionReason.SYNTAX_ERROR,
        RejectionReason.NO_ENTRY_POINT_CALL,
        RejectionReason.FORBIDDEN_NAME,
        RejectionReason.DUPLICATE,
        RejectionReason.WRONG_PREDICTION,
        RejectionReason.SOLUTION_ERROR,
        RejectionReason.SOLUTION_TIME_LIMIT,
        RejectionReason.FLAKY,
        RejectionReason.UNPASSABLE,
        RejectionReason.VACUOUS,
    }
)
"""Rejections that count as failed attempts at a test. Prose, statements that are not read and surplus cases are
reported but do not count, as in the release, whose reading never gives NO_ENTRY_POINT_CALL or FORBIDDEN_NAME. Cases
beyond the judge's own limits do not count either: values that cannot be sent between processes, and too many calls to
record."""


class Span(NamedTuple):
    """A part of a reply: offsets of characters into the text as written."""

    start: int
    end: int
    """After its last character."""


@dataclass(frozen=True, slots=True)
class Written:
    """Where a test case stands in its reply. The spans of a side are in order and overlap with no other of the case.

    An expression that was assigned to a name, or given to a parameter, belongs to the side that uses the name; to none
    if both do. The rows of a table share the spans of the assert that they are read with.
    """

    statement: Span
    """The assert, or what else states the test."""
    input: tuple[Span, ...]
    """The side that calls the entry point; of a property case its whole condition."""
    answer: tuple[Span, ...]
    """The other side, which predicts the value; empty for a property case."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """One dropped piece of a reply."""

    reason: RejectionReason
    source: str
    """The dropped text, cut to 200 characters."""
    line: int = 0
    """Line in the reply, from 1; 0 where it concerns several lines."""
    detail: str = ""
    """One sentence for people."""
    written: Written | None = field(default=None, compare=False, repr=False)
    """Where it stands in the reply, if it is a test that was read, or counts as a failed attempt at one."""


MAX_LISTED = 1_024
"""Most dropped pieces of one reply that are listed one by one."""

_MAX_SOURCE = 200


@dataclass(slots=True)
class Rejections:
    """The pieces that are dropped while a reply is read, in their order: the first in full, the rest as counts."""

    listed: list[Rejection] = field(default_factory=list)
    more: Counter[RejectionReason] = field(default_factory=Counter)
    """Counts of the pieces that are not listed."""

    def add(
        self, reason: RejectionReason, source: str, line: int, detail: str, n: int = 1, written: Written | None = None
    ) -> None:
        """Add `n` equal dropped pieces."""
        n_listed = min(n, MAX_LISTED - len(self.listed))
        self.listed += [Rejection(reason, source.strip()[:_MAX_SOURCE], line, detail, written)] * n_listed
        if n > n_listed:
            self.more[reason] += n - n_listed


@dataclass(frozen=True, slots=True)
class Candidate:
    """A coder's program as read from its reply; `program` is empty iff `rejection` is set."""

    program: str
    rejection: Rejection | None = None
    n_own_tests: int = field(default=0, compare=False)
    """How many statements of the reply's program have been left out, since they only test it."""


@dataclass(frozen=True, slots=True)
class TestCase:
    """One expression that calls the entry point, with the value that the tester predicts for it.

    An assert that is not `expression == value` becomes a property case: `expression` is `bool(...)` of the whole
    condition and `prediction` is `True`, so that every case says "this expression has this value".
    """

    __test__: ClassVar[bool] = False  # pytest would collect the class otherwise

    expression: str
    """Python source; calls the entry point at least once (except in the release reading)."""
    prediction: str | None
    """Python source of the predicted value, free of entry-point calls; None without a prediction."""
    imports: tuple[str, ...] = ()
    """Import statements that `expression` or `prediction` needs."""
    direct: bool = False
    """True iff `expression` is exactly one entry-point call with literal arguments.

    Only such an expression may run inside the candidate's process. Any other expression runs in a harness process,
    where a stand-in forwards the calls of the entry point, so that tests and programs never share a process.
    """
    line: int = 0
    """Line of the assert in the reply, from 1; 0 if it did not come from a reply."""
    predicted: bytes | None = field(default=None, compare=False, repr=False)
    """The value of `prediction`, canonical encoding, if it is a literal; None: it has to be evaluated."""
    calls: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """The entry-point calls of `expression`, sorted; empty if not all of them have literal arguments. If `direct`, the
    call with its arguments in canonical form; empty where `expression` is in that form already."""
    written: Written | None = field(default=None, compare=False, repr=False)
    """Where it stands in the reply; None if it did not come from one, and in the release reading."""

    def to_assert(self) -> str:
        """Return one line of Python that states the case (imports first, separated by semicolons)."""
        claim = self.expression if self.prediction is None else f"{self.expression} == {self.prediction}"
        return "; ".join((*self.imports, f"assert {claim}"))


@dataclass(frozen=True, slots=True)
class Suite:
    """The ordered cases of one tester reply, and all pieces of it that were dropped."""

    cases: tuple[TestCase, ...]
    rejections: tuple[Rejection, ...] = ()
    """The first of the dropped pieces; `n_more_invalid` counts those of the others that matter."""
    nonprintable_share: float = 0.0
    """Share of the reply's characters, in [0, 1], that the reading counts as non-printable."""
    n_more_invalid: int = 0
    """Rejections beyond the listed ones that count as invalid tests."""
