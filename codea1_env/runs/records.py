"""One line per episode: the record from which a game can be read, pictured and scored again without running anything.

These are the only models of the project that are written for other programs to read; their JSON Schema is published
beside this file as `schemas/episode_v1.json`. A change of their meaning raises `SCHEMA_VERSION` and adds a schema.
A record holds nothing that differs between two runs of the same seed: no clock, host, path or process id.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from math import isnan
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

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
from codea1_env.rules.mistake_book import BookDelta

SCHEMA_VERSION: Literal[1] = 1


def _encodable(text: object) -> object:
    """Write lone surrogates, which UTF-8 cannot hold, as escapes; all other text stays as it is."""
    return text.encode("utf-8", "backslashreplace").decode() if isinstance(text, str) else text


Text = Annotated[str, BeforeValidator(_encodable)]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", from_attributes=True, frozen=True, use_attribute_docstrings=True)


class RejectionRecord(_Record):
    """One dropped piece of a reply."""

    reason: RejectionReason
    source: Text
    """The dropped text, cut to 200 characters."""
    line: int
    """Line in the reply, from 1; 0 where there is no single one."""
    detail: Text

    def to_rejection(self) -> Rejection:
        """Return the fact that was recorded."""
        return Rejection(self.reason, self.source, self.line, self.detail)


class CaseRecord(_Record):
    """One valid test case and what the candidate did with it."""

    expression: Text
    """Python source that calls the entry point."""
    prediction: Text | None
    """Python source of the tester's own value; null where only calls were asked for."""
    imports: tuple[Text, ...]
    direct: bool
    """Whether the expression is exactly one entry-point call with literal arguments."""
    line: int
    """Line of the assert in the reply, from 1; 0 for a replayed case."""
    expected: Text
    """The solution's value as canonical JSON (codea1_env.values)."""
    prediction_right: bool | None
    is_example: bool = False
    """Whether the statement's own examples give all that the case asks."""
    verdict: Verdict
    actual: Text
    """What the candidate did, for people."""

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
        """Return the fact that was recorded."""
        case = TestCase(self.expression, self.prediction, self.imports, self.direct, self.line)
        valid = ValidCase(case, self.expected.encode(), self.prediction_right, self.is_example)
        return CaseReport(valid, self.verdict, self.actual)


class SuiteRecord(_Record):
    """One tester's suite after validation, and its cases against the candidate."""

    cases: tuple[CaseRecord, ...]
    """In the order of the reply."""
    rejections: tuple[RejectionRecord, ...]
    n_invalid: int = Field(ge=0)
    """Faults that the validation rule counts."""
    nonprintable_share: float = Field(ge=0, le=1)
    """Share of the reply's characters that the reading counts as non-printable."""
    internal_error: bool
    """The solution could not be run; nothing here is evidence."""

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
        """Return the fact that was recorded."""
        cases = tuple(case.to_report() for case in self.cases)
        rejections = tuple(rejection.to_rejection() for rejection in self.rejections)
        valid = tuple(case.case for case in cases)
        suite = ValidSuite(valid, rejections, self.n_invalid, self.nonprintable_share, self.internal_error)
        return SuiteReport(suite, cases)


class CandidateRecord(_Record):
    """The program as read from the coder's reply, and whether it loads."""

    program: Text
    rejection: RejectionRecord | None
    verdict: Verdict
    """`passed` iff it is valid."""
    detail: Text
    golden_pass_rate: float | None = Field(ge=0, le=1)
    """Share of golden tests passed; null where they were not run."""

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
        )

    def to_report(self, suites: Iterable[SuiteRecord], replayed: Iterable[CaseRecord] = ()) -> CandidateReport:
        """Return the fact that was recorded, with its cases."""
        return CandidateReport(
            candidate=Candidate(self.program, None if self.rejection is None else self.rejection.to_rejection()),
            verdict=self.verdict,
            detail=self.detail,
            replayed=tuple(case.to_report() for case in replayed),
            suites=tuple(suite.to_report() for suite in suites),
            golden_pass_rate=self.golden_pass_rate,
        )


class RewardPartRecord(_Record):
    """One term of a reward."""

    name: str
    value: float
    weight: float


def _known(value: object) -> object:
    return None if isinstance(value, float) and isnan(value) else value


class RewardRecord(_Record):
    """A reward and the terms whose weighted sum it is."""

    value: Annotated[float | None, BeforeValidator(_known)]
    """null when masked: our own failure hides the truth, or nothing was tested and the rules mask that."""
    parts: tuple[RewardPartRecord, ...]


class RewardsRecord(_Record):
    """What the round paid under the rules of its run."""

    coder: RewardRecord
    testers: tuple[RewardRecord, ...]
    """One per suite."""


class BookChangeRecord(_Record):
    """What the round did to the problem's entries in the Mistake Book, counted."""

    added: int = Field(ge=0)
    """Newcomers, and entries that left and came back in the same round."""
    removed: int = Field(ge=0)
    """Entries that left because the candidate passed them."""
    evicted: int = Field(ge=0)
    """Entries that left because the book is full."""
    incremented: int = Field(ge=0)
    """Entries that stayed and gained frequency."""
    decremented: int = Field(ge=0)
    """Entries that stayed and lost frequency."""
    size: int = Field(ge=0)
    """The problem's entries afterwards."""

    def to_delta(self) -> BookDelta:
        """Return the fact that was recorded."""
        return BookDelta(**self.model_dump())


class RoundRecord(_Record):
    """One judged round."""

    round: int = Field(ge=0)
    coder_reply: Text
    """Raw reply, as the environment accepted it."""
    tester_reply: Text | None
    """null where the tester was not asked."""
    candidate: CandidateRecord
    replayed: tuple[CaseRecord, ...]
    """The Mistake Book's cases, in the order of retrieval."""
    suites: tuple[SuiteRecord, ...]
    rewards: RewardsRecord
    book: BookChangeRecord | None
    """What the round changed in the Mistake Book; null where there is no book or the round is masked."""

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
        """Return the report that was recorded: all that scoring and the Mistake Book's rules need."""
        return self.candidate.to_report(self.suites, self.replayed)


class EpisodeRecord(_Record):
    """One episode: one problem, played for one or more rounds."""

    schema_version: Literal[1] = SCHEMA_VERSION
    judge_version: int = Field(default=UNSTATED_JUDGE, ge=1)
    """Of the judge that made the verdicts; 1 in records that do not say."""
    episode: int = Field(ge=0)
    """Number within the run, from 0; equal to the number of lines before it."""
    episode_id: str
    """Derived from the seed; names the episode in the Mistake Book."""
    problem_id: Text
    seed: int = Field(ge=0)
    """Of the environment's reset; the agents' seeds descend from the run's seed and the episode's number."""
    rounds: tuple[RoundRecord, ...]

    @property
    def masked(self) -> bool:
        """Whether it is not known what the episode is worth to the coder."""
        return any(played.rewards.coder.value is None for played in self.rounds)

    def to_problem_report(self, played: RoundRecord) -> ProblemReport:
        """Return one of the rounds as the report that the Mistake Book takes."""
        return ProblemReport(self.problem_id, (played.to_report(),))


def to_line(record: EpisodeRecord) -> bytes:
    """Return one line of ASCII with its line feed; no character in it ends a line for any reader."""
    return json.dumps(record.model_dump(mode="json"), separators=(",", ":"), allow_nan=False).encode() + b"\n"


def from_line(line: bytes, place: str) -> EpisodeRecord:
    """Return the record that a line holds.

    Args:
        line: with or without its line feed.
        place: named in errors, e.g. `episodes.jsonl line 3`.

    Raises:
        BrokenInput: not JSON, of another schema version, or not of the schema.
    """
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BrokenInput(f"{place}: not a JSON object ({error})") from error
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != SCHEMA_VERSION:
        raise BrokenInput(f"{place}: schema version {version!r}, this program reads {SCHEMA_VERSION}")
    try:
        return EpisodeRecord.model_validate_json(line)
    except ValidationError as error:
        raise BrokenInput(f"{place}: {first_fault(error)}") from error


def first_fault(error: ValidationError) -> str:
    """Return the first fault of a failed validation in one line: where, what is wrong, how many more there are."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(map(str, fault["loc"])) or "the whole"
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{where}: {fault['msg']}{more}"


@cache
def episode_schema() -> dict[str, Any]:
    """Return the JSON Schema of one line; `schemas/episode_v1.json` holds the same."""
    schema = EpisodeRecord.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "episode_v1.json", **schema}
