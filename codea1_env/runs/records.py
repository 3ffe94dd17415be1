"""One line per episode: a record from which an episode can be shown, plotted and scored again without running programs.

Other programs may read these records; their JSON Schema is published next to this file as `schemas/episode_v1.json`. A
change of their meaning raises `SCHEMA_VERSION` and adds a schema. A record contains nothing that differs between two
runs with the same seed: no time, host, path or process id.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from math import isnan
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from codea1_env.errors import BrokenInput
from codea1_env.facts.judge_version import UNSTATED_JUDGE
from codea1_env.facts.submissions import Candidate, Rejection, RejectionReason, TestCase
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
from codea1_env.records.faults import first_fault, read_json
from codea1_env.rules.mistake_book import BookDelta

SCHEMA_VERSION: Literal[1] = 1


def _encodable(text: object) -> object:
    """Replace lone surrogates, which UTF-8 cannot encode, by escapes; leave all other text unchanged."""
    return text.encode("utf-8", "backslashreplace").decode() if isinstance(text, str) else text


Text = Annotated[str, BeforeValidator(_encodable)]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", from_attributes=True, frozen=True, use_attribute_docstrings=True)


class RejectionRecord(_Record):
    """One dropped part of a reply."""

    reason: RejectionReason
    source: Text
    """The dropped text, cut to 200 characters."""
    line: int
    """Line in the reply, from 1; 0 if it concerns no single line."""
    detail: Text

    def to_rejection(self) -> Rejection:
        """Return the recorded rejection."""
        return Rejection(self.reason, self.source, self.line, self.detail)


class CaseRecord(_Record):
    """One valid test case and the candidate's verdict on it."""

    expression: Text
    """Python source that calls the entry point."""
    prediction: Text | None
    """Python source of the tester's prediction; null if the tester writes only calls."""
    imports: tuple[Text, ...]
    direct: bool
    """Whether the expression is exactly one entry-point call with literal arguments."""
    line: int
    """Line of the assert in the reply, from 1; 0 for a replayed case."""
    expected: Text
    """The solution's value as canonical JSON (codea1_env.values)."""
    prediction_right: bool | None
    is_example: bool = False
    """Whether the examples in the problem's statement already contain everything that the case checks."""
    verdict: Verdict
    actual: Text
    """Description of what the candidate did, for people."""

    @classmethod
    def of(cls, report: CaseReport) -> CaseRecord:
        """Return the record of one case."""
        case = report.case.case
        return cls(
            expression=case.expression,
            prediction=case.prediction,
            imports=case.imports,
            direct=case.direct,
            line=case.line,
            expected=report.case.expected.decode(),
            prediction_right=report.case.prediction_right,
            is_example=report.case.is_example,
            verdict=report.verdict,
            actual=report.actual,
        )

    def to_report(self) -> CaseReport:
        """Return the recorded report of the case."""
        case = TestCase(self.expression, self.prediction, self.imports, self.direct, self.line)
        valid = ValidCase(case, self.expected.encode(), self.prediction_right, self.is_example)
        return CaseReport(valid, self.verdict, self.actual)


class SuiteRecord(_Record):
    """One tester's suite after validation, and the verdicts of its cases."""

    cases: tuple[CaseRecord, ...]
    """In the order of the reply."""
    rejections: tuple[RejectionRecord, ...]
    n_invalid: int = Field(ge=0)
    """Number of faults that the validation rule counts."""
    nonprintable_share: float = Field(ge=0, le=1)
    """Share of the reply's characters that the reading counts as non-printable."""
    internal_error: bool
    """Whether the sandbox could not run the solution; then the suite is not evidence."""

    @classmethod
    def of(cls, report: SuiteReport) -> SuiteRecord:
        """Return the record of one suite."""
        return cls(
            cases=tuple(map(CaseRecord.of, report.cases)),
            rejections=tuple(map(RejectionRecord.model_validate, report.suite.rejections)),
            n_invalid=report.suite.n_invalid,
            nonprintable_share=report.suite.nonprintable_share,
            internal_error=report.suite.internal_error,
        )

    def to_report(self) -> SuiteReport:
        """Return the recorded report of the suite."""
        cases = tuple(case.to_report() for case in self.cases)
        rejections = tuple(rejection.to_rejection() for rejection in self.rejections)
        valid = tuple(case.case for case in cases)
        suite = ValidSuite(valid, rejections, self.n_invalid, self.nonprintable_share, self.internal_error)
        return SuiteReport(suite, cases)


class CandidateRecord(_Record):
    """The program that was read from the coder's reply, and whether it loads."""

    program: Text
    rejection: RejectionRecord | None
    verdict: Verdict
    """`passed` iff it is valid."""
    detail: Text
    golden_pass_rate: float | None = Field(ge=0, le=1)
    """Share of golden tests passed; null if they were not run."""
    n_own_tests: int = Field(0, ge=0)
    """How many statements of the reply's program were left out, since they only test it."""

    @classmethod
    def of(cls, report: CandidateReport) -> CandidateRecord:
        """Return the record of one candidate, without its cases."""
        rejection = report.candidate.rejection
        return cls(
            program=report.candidate.program,
            rejection=None if rejection is None else RejectionRecord.model_validate(rejection),
            verdict=report.verdict,
            detail=report.detail,
            golden_pass_rate=report.golden_pass_rate,
            n_own_tests=report.candidate.n_own_tests,
        )

    def to_report(self, suites: Iterable[SuiteRecord], replayed: Iterable[CaseRecord] = ()) -> CandidateReport:
        """Return the recorded report of the candidate, with its cases."""
        rejection = None if self.rejection is None else self.rejection.to_rejection()
        return CandidateReport(
            candidate=Candidate(self.program, rejection, self.n_own_tests),
            verdict=self.verdict,
            detail=self.detail,
            replayed=tuple(case.to_report() for case in replayed),
            suites=tuple(suite.to_report() for suite in suites),
            golden_pass_rate=self.golden_pass_rate,
        )


class ReportRecord(_Record):
    """All verdicts on one program."""

    candidate: CandidateRecord
    replayed: tuple[CaseRecord, ...]
    suites: tuple[SuiteRecord, ...]

    @classmethod
    def of(cls, report: CandidateReport) -> ReportRecord:
        """Return the record of a report."""
        return cls(
            candidate=CandidateRecord.of(report),
            replayed=tuple(map(CaseRecord.of, report.replayed)),
            suites=tuple(map(SuiteRecord.of, report.suites)),
        )

    def to_report(self) -> CandidateReport:
        """Return the recorded report."""
        return self.candidate.to_report(self.suites, self.replayed)


_Number = Annotated[float, Field(ge=-1e18, le=1e18, allow_inf_nan=False)]


class RewardPartRecord(_Record):
    """One term of a reward."""

    name: str
    value: _Number
    weight: _Number


def _drop_nan(value: object) -> object:
    return None if isinstance(value, float) and isnan(value) else value


class RewardRecord(_Record):
    """A reward and its terms; it is their weighted sum."""

    value: Annotated[_Number | None, BeforeValidator(_drop_nan)]
    """null if masked: the sandbox failed, or nothing was tested and the rules mask that."""
    parts: tuple[RewardPartRecord, ...]


class RewardsRecord(_Record):
    """The rewards of the round under the rules of its run."""

    coder: RewardRecord
    testers: tuple[RewardRecord, ...]
    """One per suite."""


class BookChangeRecord(_Record):
    """Counts of the changes that the round made to the problem's entries in the Mistake Book."""

    added: int = Field(ge=0)
    """New entries, and entries that were removed and added again in the same round."""
    removed: int = Field(ge=0)
    """Entries that were removed because the candidate passed them."""
    evicted: int = Field(ge=0)
    """Entries that were removed because the book is full."""
    incremented: int = Field(ge=0)
    """Remaining entries whose frequency increased."""
    decremented: int = Field(ge=0)
    """Remaining entries whose frequency decreased."""
    size: int = Field(ge=0)
    """Number of the problem's entries after the round."""
    denied: int = Field(default=0, ge=0)
    """Entries that were removed because the solution no longer confirms them."""

    def to_delta(self) -> BookDelta:
        """Return the recorded changes."""
        return BookDelta(**self.model_dump())


class RoundRecord(_Record):
    """One judged round."""

    round: int = Field(ge=0)
    coder_reply: Text
    """Raw reply, as the environment accepted it."""
    tester_reply: Text | None
    """null if the tester had no turn."""
    candidate: CandidateRecord
    replayed: tuple[CaseRecord, ...]
    """The Mistake Book's cases, in the order of retrieval."""
    suites: tuple[SuiteRecord, ...]
    rewards: RewardsRecord
    book: BookChangeRecord | None
    """What the round changed in the Mistake Book; null without a book, or if the round is masked."""

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if len(self.rewards.testers) != len(self.suites) or (self.tester_reply is not None and not self.suites):
            raise ValueError("a round must have one reward per suite, and a suite if the tester replied")
        return self

    @classmethod
    def of(cls, judged: JudgedRound) -> RoundRecord:
        """Return the record of a judged round."""
        report = judged.report.candidates[0]
        return cls(
            round=judged.round,
            coder_reply=judged.coder_reply,
            tester_reply=judged.tester_reply,
            candidate=CandidateRecord.of(report),
            replayed=tuple(map(CaseRecord.of, report.replayed)),
            suites=tuple(map(SuiteRecord.of, report.suites)),
            rewards=RewardsRecord.model_validate(judged.rewards),
            book=None if judged.book is None else BookChangeRecord.model_validate(judged.book),
        )

    def to_report(self) -> CandidateReport:
        """Return the recorded report, which contains everything that scoring and the Mistake Book's rules need."""
        return self.candidate.to_report(self.suites, self.replayed)


class EpisodeRecord(_Record):
    """One episode: one problem and one or more rounds."""

    schema_version: Literal[1] = SCHEMA_VERSION
    judge_version: int = Field(default=UNSTATED_JUDGE, ge=1)
    """Version of the judge that made the verdicts; 1 if the record does not state it."""
    episode: int = Field(ge=0)
    """Number within the run, from 0; equal to the number of lines before it."""
    episode_id: str
    """Derived from the seed; names the episode in the Mistake Book."""
    problem_id: Text
    seed: int = Field(ge=0)
    """Seed of the environment's reset. The agents' seeds are derived from the run's seed and the episode's number."""
    rounds: tuple[RoundRecord, ...]

    @property
    def masked(self) -> bool:
        """Whether the coder's reward of a round is unknown."""
        return any(played.rewards.coder.value is None for played in self.rounds)

    def to_problem_report(self, played: RoundRecord) -> ProblemReport:
        """Return one of the rounds as the report that `MistakeBook.record` takes."""
        return ProblemReport(self.problem_id, (played.to_report(),))


def to_line(record: EpisodeRecord) -> bytes:
    """Return one line of ASCII with its line feed; all other line separators are escaped."""
    return json.dumps(record.model_dump(mode="json"), separators=(",", ":"), allow_nan=False).encode() + b"\n"


def from_line(line: bytes, place: str) -> EpisodeRecord:
    """Return the record in a line.

    Args:
        line: with or without its line feed.
        place: the line's name in errors, e.g. `episodes.jsonl line 3`.

    Raises:
        BrokenInput: the line is not JSON, has another schema version, or violates the schema.
    """
    with suppress(ValidationError):  # what is wrong is looked for only if something is
        record = EpisodeRecord.model_validate_json(line)
        if "schema_version" in record.model_fields_set:
            return record
    data = read_json(place, line)
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != SCHEMA_VERSION:
        raise BrokenInput(f"{place}: expected schema version {SCHEMA_VERSION}, got {version!r}")
    try:
        return EpisodeRecord.model_validate_json(line)
    except ValidationError as error:
        raise BrokenInput(f"{place}: {first_fault(error)}") from error
