"""The JSON bodies of `POST /judge`: what a client asks to judge, and the answer in the schema of run records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SkipValidation,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from codea1_env import plugins, values
from codea1_env.errors import AgentUnavailable, UnknownName, UserError
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.facts.verdicts import ValidCase
from codea1_env.records.faults import first_fault, read_json
from codea1_env.rounds.referee import Reply, Scored, reply_text
from codea1_env.rules.ruleset import PRESETS, RewardScheme, Ruleset, preset
from codea1_env.runs.records import CaseRecord, ReportRecord, Text
from codea1_env.sandbox.interface import Limits

_T = TypeVar("_T")


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, body: Any) -> Any:
        """End at the first unknown name, where pydantic would state each."""
        unknown = next((name for name in body if name not in cls.model_fields), None) if type(body) is dict else None
        if unknown is not None:
            raise ValueError(f"unknown field {unknown!r:.60}: known are {', '.join(cls.model_fields)}")
        return body


class UnavailableReply(_Body):
    """A reply that did not come; its game is masked."""

    unavailable: str
    """The reason."""


_RULESET = TypeAdapter(list[Ruleset], config=ConfigDict(extra="forbid"))
_LIMITS = TypeAdapter(list[Limits], config=ConfigDict(extra="forbid"))


def _ruleset(rules: Any) -> Ruleset:
    """Return the rules of a name or of an object; what a client writes is never imported."""
    rewards = plugins.names("rewards")
    name = rules.get("name") if isinstance(rules, dict) else rules
    if isinstance(name, str) and name not in (*PRESETS, *rewards):
        raise UnknownName.of("rules", name, [*PRESETS, *rewards])
    if isinstance(rules, str):
        return preset(rules)
    parts = [rules, *(part for part in rules.values() if isinstance(part, dict))] if isinstance(rules, dict) else []
    if sum(map(len, parts)) > _MOST_RULES:
        raise ValueError(f"expected at most {_MOST_RULES} fields, found {sum(map(len, parts))}")
    scheme = rules["reward"].get("scheme") if parts and isinstance(rules.get("reward"), dict) else None
    known = [*map(str, RewardScheme), *rewards]
    if scheme is not None and scheme not in known:
        raise ValueError(f"unknown reward scheme {scheme!r:.60}: known are {', '.join(known)}")
    if isinstance(name, str):  # with the fields of the named rules that the object leaves out
        rules = _override(_RULESET.dump_python([preset(name)], mode="json")[0], rules)
    return _strictly(_RULESET, rules)


def _limits(settings: Any) -> Limits:
    if isinstance(settings, dict) and (unknown := [name for name in settings if name not in Limits.__slots__][:1]):
        raise ValueError(f"unknown limit {unknown[0]!r:.60}: known are {', '.join(Limits.__slots__)}")
    return _strictly(_LIMITS, settings)


def _strictly(kind: TypeAdapter[list[_T]], value: Any) -> _T:
    return kind.validate_json(json.dumps([value]), strict=True)[0]  # which takes an object for a dataclass


def _override(whole: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    both = {name for name, value in changes.items() if isinstance(value, dict) and isinstance(whole.get(name), dict)}
    return whole | {name: _override(whole[name], value) if name in both else value for name, value in changes.items()}


Rules = Annotated[str | Ruleset, BeforeValidator(_ruleset)]
GivenLimits = Annotated[Limits, BeforeValidator(_limits)]
_MOST = 4096
_MOST_RULES = 200
_FEW = Field(max_length=_MOST, fail_fast=True)
"""A fault is a hundred times as large as a broken item, so validation ends at the first one."""
GivenReply = str | UnavailableReply | Annotated[list[dict[str, Any]], _FEW]


class JudgeRequest(_Body):
    """Programs to judge, each with at most one suite."""

    problem_ids: Annotated[list[str], _FEW] = Field(min_length=1)
    """(B,) of the server's problems, or of `problems`."""
    programs: Annotated[list[GivenReply], _FEW]
    """(B,) a coder's reply each: text, chat messages, or why there is none."""
    suites: Annotated[list[GivenReply | None], _FEW] | None = None
    """(B,) a tester's reply each; null where there is none."""
    problems: Annotated[list[dict[str, Any]], _FEW] = []
    """Problems given whole, with the fields of this project's own rows."""
    rules: Rules | None = None
    """A ruleset or the name of one; null: those of the server."""
    replayed: dict[str, SkipValidation[list[CaseRecord]]] = {}
    """By problem, cases that every program runs; their verdicts do not matter."""
    golden: bool | None = None
    """Whether reports state golden pass rates; null: iff the rules pay for golden tests."""
    limits: GivenLimits | None = None
    """Bounds per call of a program; null: the defaults."""

    @classmethod
    def of(cls, body: bytes) -> Self:
        """Read the body of a request.

        Raises:
            UserError: it is not JSON, or not a valid request; the message names the first fault.
        """
        try:
            return cls.model_validate(read_json("the body", body))
        except ValidationError as error:
            raise UserError(first_fault(error)) from error

    def replies(self) -> tuple[list[Reply], list[Reply | None] | None]:
        """Return programs and suites as a referee takes them.

        Raises:
            UserError: the lengths differ, or a reply is neither text nor chat messages.
        """
        suites = self.programs if self.suites is None else self.suites
        if not len(self.problem_ids) == len(self.programs) == len(suites):
            raise UserError("problem_ids, programs and suites must have equal lengths")
        tests: list[Reply | None] | None
        tests = None if self.suites is None else [None if suite is None else _reply(suite) for suite in self.suites]
        return [_reply(program) for program in self.programs], tests

    def cases(self) -> dict[str, list[ValidCase]]:
        """Return the replayed cases by problem.

        Raises:
            UserError: there are too many, one is not a case or of no problem of the request, or an expected value is
                not encoded.
        """
        if any(not isinstance(cases, list) for cases in self.replayed.values()):  # not validated yet
            raise UserError("replayed: expected a list of cases for each problem")
        if unknown := self.replayed.keys() - {*self.problem_ids}:
            raise UserError(f"replayed: {min(unknown)!r:.100} is not in problem_ids, so its cases would never run")
        if sum(map(len, self.replayed.values())) > _MOST:
            raise UserError(f"replayed: expected at most {_MOST} cases in a request")
        return {name: [_case(name, case) for case in cases] for name, cases in self.replayed.items()}


def _case(problem_id: str, entry: Any) -> ValidCase:
    try:
        case = CaseRecord.model_validate_json(json.dumps(entry), strict=True).to_report().case
        values.validate(case.expected)
    except ValidationError as error:
        raise UserError(f"replayed.{problem_id}: {first_fault(error)}") from error
    except values.Malformed as error:
        raise UserError(f"replayed: an expected value is not a valid encoding: {error}") from error
    return case


def _reply(reply: GivenReply) -> str | AgentUnavailable:
    return reply_text(AgentUnavailable(reply.unavailable) if isinstance(reply, UnavailableReply) else reply)


class JudgedItem(_Body):
    """The rewards of one program and of the suite that it ran."""

    problem_id: Text
    coder: float | None
    """The program's reward; null where masked."""
    tester: float | None
    """The suite's reward; null if it is masked, or if the request has no suite."""
    masked_because: Text
    """Reason for which `coder`, or the `tester` of a suite, is null; empty if neither is."""
    parts: Mapping[str, Mapping[str, float]]
    """By role, the weighted terms, which add up to the reward; {} where masked."""
    report: ReportRecord | None
    """All verdicts; null: the sandbox could not be used at all."""

    @classmethod
    def of(cls, scored: Scored) -> Self:
        """Return the item of a referee's result."""
        same = {name: getattr(scored, name) for name in cls.model_fields if name != "report"}
        return cls(**same, report=None if scored.report is None else ReportRecord.of(scored.report))


class JudgeAnswer(_Body):
    """The response of `POST /judge`."""

    judge_version: int = JUDGE_VERSION
    """Verdicts of different versions do not mix."""
    items: tuple[JudgedItem, ...]
    """(B,) in the order of the request."""
