"""Attacks as data: one TOML file each in `programs/`, `suites/` and `candidates/`; and the testbeds of suites.

A hostile program has the keys `tries` (what it tries to do), `program`, `calls`, and the expected results of the calls:

- `right`: the values of a correct program; the sandbox must never report them for this program;
- `evidence`: the values that it returns if the attack has failed; another value shows that it reached something;
- `values`: right answers, which the sandbox must report;
- `outcomes`: the acceptable kinds of outcome;

optionally `limits`. A hostile suite has the keys `tries`, `ground` (name of a file in `testbeds/`), `reply`, and
optionally the expected result: `n_valid` cases, of which `n_beating` (default 0) rightly beat the testbed's wrong
program, and rejections (`reasons`: name to number). With `repeat`, the reply consists of so many copies of the text, in
which `{n}` is replaced by the number of the copy. With `escaped`, the text uses Python's escapes, since TOML cannot
contain NUL or lone surrogates.

A hostile candidate has the keys `tries`, `solution` and `program`, which both define `f`, `asserts`, and `truth`: the
verdict of a correct judge on each assert (`fails`, `passes`, `doubted`, or a reason for rejection). Each assert is a
suite; `repeat` copies it as above. With `golden` (each of the form `call == value`), the candidate must pass `n_golden`
(default 0) of these tests. Optional keys are `limits`, `rules` (by default `fixed`), and, as in the row of a
problem, `answers` and `calls`.

Only attacks with `safe_to_run_unsandboxed` may run outside a sandbox. No attack that kills, forks, fills memory or
disk, or uses a network has this key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from codea1_env.errors import BrokenInput, UnknownName
from codea1_env.facts.answers import EQUAL_ANSWERS, AnswerRules
from codea1_env.facts.call_forms import PLAIN_CALLS, CallForms
from codea1_env.facts.submissions import RejectionReason
from codea1_env.facts.verdicts import OutcomeKind
from codea1_env.problems.problem import GoldenCase, Problem
from codea1_env.records.faults import first_fault, read_toml
from codea1_env.rules.ruleset import PRESETS, Ruleset, preset
from codea1_env.sandbox.interface import Call, Job, Limits

NEEDLE = "needle-in-the-solution-4711"
"""Part of the solution of every testbed; it must not appear anywhere else."""


@dataclass(frozen=True, slots=True)
class Attack:
    """The fields of every attack."""

    name: str
    tries: str
    """The aim of the attack, in words."""
    is_safe: bool = field(default=False, kw_only=True)
    """Whether it may run outside a sandbox."""


@dataclass(frozen=True, slots=True)
class HostileProgram(Attack):
    """A program that attacks the process or the machine that runs it."""

    program: str
    """Source; should define `f`."""
    calls: tuple[str, ...]
    right: tuple[str, ...] = ()
    """Python source of values, one per call; empty if not stated."""
    evidence: tuple[str, ...] = ()
    """As `right`."""
    values: tuple[str, ...] = ()
    """As `right`."""
    outcomes: frozenset[OutcomeKind] = frozenset()
    """Acceptable kinds; if empty, all are acceptable."""
    limits: Limits = field(default_factory=Limits)

    def to_job(self) -> Job:
        """Return the job that runs it."""
        return Job(self.program, "f", tuple(map(Call, self.calls)), limits=self.limits)


@dataclass(frozen=True, slots=True)
class Testbed:
    """A problem with right programs, wrong programs and honest suites."""

    problem: Problem
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    honest: tuple[str, str]
    """Two replies with only valid and rightly predicted cases; one is judged before the hostile suite, one after it."""
    n_beating: tuple[int, int]
    """For each honest reply, how many of its cases beat each wrong program."""


@dataclass(frozen=True, slots=True)
class HostileSuite(Attack):
    """A tester's reply that attacks programs, the judge, or other testers."""

    testbed: Testbed
    reply: str
    n_valid: int | None = None
    """Number of its valid cases; None if that depends on chance."""
    n_beating: int = 0
    """Number of cases that may beat a wrong program with a right prediction; if `n_valid` is given, the exact number.
    """
    reasons: Mapping[RejectionReason, int] | None = None
    """Number of rejections by reason; None if that depends on chance."""


class Truth(StrEnum):
    """The verdict of a correct judge on an assert, if it does not reject it."""

    FAILS = "fails"
    PASSES = "passes"
    DOUBTED = "doubted"
    """It is not evidence about any program."""


@dataclass(frozen=True, slots=True)
class HostileCandidate(Attack):
    """A candidate and asserts that attack the way in which the judge combines several processes and runs."""

    solution: str
    program: str
    asserts: tuple[str, ...]
    """One line each."""
    truth: tuple[Truth | RejectionReason, ...]
    """One per assert."""
    golden: tuple[GoldenCase, ...] = ()
    n_golden: int = 0
    """The number of golden tests that it passes."""
    limits: Limits = field(default_factory=Limits)
    rules: Ruleset = field(default_factory=lambda: preset("fixed"))
    answers: AnswerRules = EQUAL_ANSWERS
    calls: CallForms = PLAIN_CALLS

    @property
    def problem(self) -> Problem:
        """The problem that the solution solves."""
        name = f"audit/{self.name}"
        return Problem(name, self.tries, "f", self.solution, golden=self.golden, answers=self.answers, calls=self.calls)


@dataclass(frozen=True, slots=True)
class Attacks:
    """A collection of attacks."""

    programs: tuple[HostileProgram, ...] = ()
    suites: tuple[HostileSuite, ...] = ()
    candidates: tuple[HostileCandidate, ...] = ()

    def __iter__(self) -> Iterator[HostileProgram | HostileSuite | HostileCandidate]:
        yield from self.programs
        yield from self.suites
        yield from self.candidates

    def __len__(self) -> int:
        return len(self.programs) + len(self.suites) + len(self.candidates)

    def only(self, name: str) -> Attacks:
        """Return only the attack with this name.

        Raises:
            UnknownName: no attack has this name.
        """
        attacks = Attacks(
            tuple(each for each in self.programs if each.name == name),
            tuple(each for each in self.suites if each.name == name),
            tuple(each for each in self.candidates if each.name == name),
        )
        if not attacks:
            raise UnknownName.of("attack", name, (each.name for each in self))
        return attacks


@cache
def load_attacks() -> Attacks:
    """Return the attacks of this package, each kind sorted by name; the files are read once per process.

    Raises:
        BrokenInput: a file of the installation is damaged.
    """
    testbeds = {name: _testbed(text, name) for name, text in _texts("testbeds").items()}
    return Attacks(
        tuple(read_program(text, name) for name, text in _texts("programs").items()),
        tuple(read_suite(text, name, testbeds) for name, text in _texts("suites").items()),
        tuple(read_candidate(text, name) for name, text in _texts("candidates").items()),
    )


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


_File = TypeVar("_File", bound=_Strict)


class _AttackFile(_Strict):
    tries: str
    safe_to_run_unsandboxed: bool = False


class _ProgramFile(_AttackFile):
    program: str
    calls: tuple[str, ...]
    right: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    outcomes: frozenset[OutcomeKind] = frozenset()
    limits: Limits = Limits()


class _SuiteFile(_AttackFile):
    ground: str
    reply: str
    repeat: int = 0
    escaped: bool = False
    n_valid: int | None = None
    n_beating: int = 0
    reasons: dict[RejectionReason, int] | None = None


class _CandidateFile(_AttackFile):
    solution: str
    program: str
    asserts: tuple[str, ...]
    truth: tuple[Truth | RejectionReason, ...]
    repeat: int = 1
    golden: tuple[str, ...] = ()
    n_golden: int = 0
    rules: str = "fixed"
    limits: Limits = Limits()
    answers: AnswerRules = EQUAL_ANSWERS
    calls: CallForms = PLAIN_CALLS


class _TestbedFile(_Strict):
    statement: str
    solution: str
    examples: tuple[str, ...]
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    honest: tuple[str, str]
    n_beating: tuple[int, int]


def read_program(text: str, name: str) -> HostileProgram:
    """Return the hostile program in a TOML text.

    Raises:
        BrokenInput: it is not TOML, a key is missing, unknown or of the wrong type, or no expected result is given.
    """
    file = _read(_ProgramFile, text, name)
    stated = file.model_dump(include={"right", "evidence", "values"}, exclude_unset=True)
    if not (stated or file.outcomes):
        raise BrokenInput(f"{name}: no expected result is stated")
    if uneven := [key for key, values in stated.items() if len(values) != len(file.calls)]:
        raise BrokenInput(f"{name}: {uneven[0]} needs one value per call")
    return HostileProgram(**_same(file, name, HostileProgram))


def read_suite(text: str, name: str, testbeds: Mapping[str, Testbed]) -> HostileSuite:
    """Return the hostile suite in a TOML text.

    Raises:
        BrokenInput: it is not TOML, a key is missing, unknown or of the wrong type, or its testbed is unknown.
    """
    file = _read(_SuiteFile, text, name)
    if file.ground not in testbeds:
        raise BrokenInput(f"{name}: unknown testbed {file.ground!r}")
    reply = file.reply
    if file.escaped:
        reply = reply.encode("latin-1", "backslashreplace").decode("unicode_escape")
    if file.repeat:
        reply = "".join(reply.replace("{n}", str(n)) for n in range(file.repeat))
    return HostileSuite(**_same(file, name, HostileSuite) | {"testbed": testbeds[file.ground], "reply": reply})


def read_candidate(text: str, name: str) -> HostileCandidate:
    """Return the hostile candidate in a TOML text.

    Raises:
        BrokenInput: it is not TOML, a key is missing, unknown or of the wrong type, or an assert lacks its truth.
    """
    file = _read(_CandidateFile, text, name)
    if len(file.asserts) != len(file.truth):
        raise BrokenInput(f"{name}: truth needs one word per assert")
    if file.rules not in PRESETS:
        raise BrokenInput(f"{name}: unknown rules {file.rules!r}")
    changed: dict[str, Any] = {
        "asserts": tuple(test.replace("{n}", str(n)) for n in range(file.repeat) for test in file.asserts),
        "truth": file.truth * file.repeat,
        "golden": _golden(file.golden),
        "rules": preset(file.rules),
    }
    return HostileCandidate(**_same(file, name, HostileCandidate) | changed)


def _same(file: _AttackFile, name: str, kind: type[Attack]) -> dict[str, Any]:
    """Return the fields of an attack that its file states as they are."""
    stated = {each.name: getattr(file, each.name) for each in fields(kind) if each.name in type(file).model_fields}
    return stated | {"name": name, "is_safe": file.safe_to_run_unsandboxed}


def _golden(texts: Iterable[str]) -> tuple[GoldenCase, ...]:
    return tuple(GoldenCase(call, value) for call, _, value in (text.partition(" == ") for text in texts))


def _testbed(text: str, name: str) -> Testbed:
    file = _read(_TestbedFile, text, name)
    if NEEDLE not in file.solution:
        raise BrokenInput(f"{name}: the solution does not contain the needle")
    problem = Problem(f"audit/{name}", file.statement, name, file.solution, _golden(file.examples))
    return Testbed(problem, file.right, file.wrong, file.honest, file.n_beating)


def _texts(folder: str) -> dict[str, str]:
    """Return the contents of a folder's files by name."""
    paths = files("codea1_env.audit").joinpath(folder).iterdir()
    texts = {path.name.removesuffix(".toml"): path.read_text("utf-8") for path in paths if path.name.endswith(".toml")}
    return dict(sorted(texts.items()))


def _read(kind: type[_File], text: str, name: str) -> _File:
    try:
        return kind.model_validate_json(json.dumps(read_toml(name, text.encode()), default=str))
    except ValidationError as error:
        raise BrokenInput(f"{name}: {first_fault(error)}") from error
