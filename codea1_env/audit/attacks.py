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
(default 0) of these tests. Optional keys are `limits`, `rules` (a preset, by default `fixed`), and, as in the row of a
problem, `answers` and `calls`.

Only attacks with `safe_to_run_unsandboxed` may run outside a sandbox. No attack that kills, forks, fills memory or
disk, or uses a network has this key.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from codea1_env.errors import BrokenInput, UnknownName
from codea1_env.facts.answers import EQUAL_ANSWERS, AnswerRules
from codea1_env.facts.call_forms import PLAIN_CALLS, CallForms
from codea1_env.facts.outcomes import OutcomeKind
from codea1_env.facts.submissions import RejectionReason
from codea1_env.problems.problem import GoldenCase, Problem
from codea1_env.rules.ruleset import PRESETS, Ruleset, preset
from codea1_env.sandbox.interface import Call, Job, Limits

NEEDLE = "needle-in-the-solution-4711"
"""Part of the solution of every testbed; it must not appear anywhere else."""

_COMMON_KEYS = {"tries", "safe_to_run_unsandboxed"}
_PROGRAM_KEYS = {"program", "calls", "right", "evidence", "values", "outcomes", "limits"}
_SUITE_KEYS = {"ground", "reply", "repeat", "escaped", "n_valid", "n_beating", "reasons"}
_CANDIDATE_KEYS = {
    "solution",
    "program",
    "asserts",
    "repeat",
    "truth",
    "golden",
    "n_golden",
    "limits",
    "rules",
    "answers",
    "calls",
}

Member = TypeVar("Member", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Attack:
    """The fields of every attack."""

    name: str
    tries: str
    """What the attack tries to do, in words."""
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
    """How many of its cases are valid; None if that depends on chance."""
    n_beating: int = 0
    """How many of its cases may beat a wrong program with a right prediction; if `n_valid` is given, the exact number.
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
    """How many golden tests it passes."""
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
        found = Attacks(
            tuple(each for each in self.programs if each.name == name),
            tuple(each for each in self.suites if each.name == name),
            tuple(each for each in self.candidates if each.name == name),
        )
        if not found:
            raise UnknownName.of("attack", name, (each.name for each in self))
        return found


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


def read_program(text: str, name: str) -> HostileProgram:
    """Return the hostile program in a TOML text.

    Raises:
        BrokenInput: it is not TOML, a key is missing, unknown or of the wrong type, or no expected result is given.
    """
    table = _table(text, name, _COMMON_KEYS | _PROGRAM_KEYS)
    calls = _texts_of(table, "calls", name)
    stated: dict[str, Any] = {
        key: _texts_of(table, key, name) for key in ("right", "evidence", "values") if key in table
    }
    outcomes = _members(OutcomeKind, _texts_of(table, "outcomes", name, []), name)
    if not (stated or outcomes):
        raise BrokenInput(f"{name}: no expected result is stated")
    if uneven := [key for key, values in stated.items() if len(values) != len(calls)]:
        raise BrokenInput(f"{name}: {uneven[0]} needs one value per call")
    return HostileProgram(
        **_common(table, name),
        program=_value(table, "program", str, name),
        calls=calls,
        outcomes=frozenset(outcomes),
        limits=Limits(**_value(table, "limits", dict, name, {})),
        **stated,
    )


def read_suite(text: str, name: str, testbeds: Mapping[str, Testbed]) -> HostileSuite:
    """Return the hostile suite in a TOML text.

    Raises:
        BrokenInput: it is not TOML, a key is missing, unknown or of the wrong type, or its testbed is unknown.
    """
    table = _table(text, name, _COMMON_KEYS | _SUITE_KEYS)
    testbed = _value(table, "ground", str, name)
    if testbed not in testbeds:
        raise BrokenInput(f"{name}: unknown testbed {testbed!r}")
    reasons = _value(table, "reasons", dict, name, {})
    return HostileSuite(
        **_common(table, name),
        testbed=testbeds[testbed],
        reply=_reply(table, name),
        n_valid=_value(table, "n_valid", int, name) if "n_valid" in table else None,
        n_beating=_value(table, "n_beating", int, name, 0),
        reasons=(
            dict(zip(_members(RejectionReason, reasons, name), reasons.values(), strict=True))
            if "reasons" in table
            else None
        ),
    )


def read_candidate(text: str, name: str) -> HostileCandidate:
    """Return the hostile candidate in a TOML text.

    Raises:
        BrokenInput: it is not TOML, a key is missing, unknown or of the wrong type, or an assert lacks its truth.
    """
    table = _table(text, name, _COMMON_KEYS | _CANDIDATE_KEYS)
    asserts, truth = _texts_of(table, "asserts", name), _truth(table, name)
    if len(asserts) != len(truth):
        raise BrokenInput(f"{name}: truth needs one word per assert")
    numbers = range(_value(table, "repeat", int, name, 1))
    rules = _value(table, "rules", str, name, "fixed")
    if rules not in PRESETS:
        raise BrokenInput(f"{name}: unknown rules {rules!r}")
    return HostileCandidate(
        **_common(table, name),
        solution=_value(table, "solution", str, name),
        program=_value(table, "program", str, name),
        asserts=tuple(each.replace("{n}", str(n)) for n in numbers for each in asserts),
        truth=truth * len(numbers),
        golden=_golden(_texts_of(table, "golden", name, [])),
        n_golden=_value(table, "n_golden", int, name, 0),
        limits=Limits(**_value(table, "limits", dict, name, {})),
        rules=preset(rules),
        answers=AnswerRules(**_value(table, "answers", dict, name, {})),
        calls=CallForms(**_value(table, "calls", dict, name, {})),
    )


def _common(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the fields that all kinds of attack have."""
    is_safe = _value(table, "safe_to_run_unsandboxed", bool, name, False)
    return {"name": name, "tries": _value(table, "tries", str, name), "is_safe": is_safe}


def _truth(table: Mapping[str, Any], name: str) -> tuple[Truth | RejectionReason, ...]:
    found: list[Truth | RejectionReason] = []
    for word in _texts_of(table, "truth", name):
        found += _members(Truth, [word], name) if word in list(Truth) else _members(RejectionReason, [word], name)
    return tuple(found)


def _golden(texts: Iterable[str]) -> tuple[GoldenCase, ...]:
    return tuple(GoldenCase(call, value) for call, _, value in (text.partition(" == ") for text in texts))


def _reply(table: Mapping[str, Any], name: str) -> str:
    reply: str = _value(table, "reply", str, name)
    if _value(table, "escaped", bool, name, False):
        reply = reply.encode("latin-1", "backslashreplace").decode("unicode_escape")
    n_times = _value(table, "repeat", int, name, 0)
    return "".join(reply.replace("{n}", str(n)) for n in range(n_times)) if n_times else reply


def _testbed(text: str, name: str) -> Testbed:
    keys = {"statement", "solution", "examples", "right", "wrong", "honest", "n_beating"}
    table = _table(text, name, keys)
    solution = _value(table, "solution", str, name)
    if NEEDLE not in solution:
        raise BrokenInput(f"{name}: the solution does not contain the needle")
    problem = Problem(
        id=f"audit/{name}",
        statement=_value(table, "statement", str, name),
        entry_point=name,
        solution=solution,
        golden=_golden(_texts_of(table, "examples", name)),
    )
    first, second = _texts_of(table, "honest", name)
    n_first, n_second = _value(table, "n_beating", list, name)
    return Testbed(
        problem, _texts_of(table, "right", name), _texts_of(table, "wrong", name), (first, second), (n_first, n_second)
    )


def _members(kind: type[Member], names: Iterable[str], place: str) -> list[Member]:
    try:
        return [kind(name) for name in names]
    except ValueError as error:
        raise BrokenInput(f"{place}: {error}") from error


def _texts(folder: str) -> dict[str, str]:
    """Return the contents of a folder's files by name."""
    found = files("codea1_env.audit").joinpath(folder).iterdir()
    texts = {path.name.removesuffix(".toml"): path.read_text("utf-8") for path in found if path.name.endswith(".toml")}
    return dict(sorted(texts.items()))


def _table(text: str, name: str, keys: set[str]) -> dict[str, Any]:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BrokenInput(f"{name}: not TOML ({error})") from error
    if unknown := sorted(table.keys() - keys):
        raise BrokenInput(f"{name}: unknown key {unknown[0]!r}")
    return table


def _value(table: Mapping[str, Any], key: str, kind: type[Any], name: str, default: Any = None) -> Any:
    value = table.get(key, default)
    if type(value) is not kind:
        raise BrokenInput(f"{name}: {key} is missing or not of type {kind.__name__}")
    return value


def _texts_of(table: Mapping[str, Any], key: str, name: str, default: Any = None) -> tuple[str, ...]:
    texts = _value(table, key, list, name, default)
    if not all(isinstance(text, str) for text in texts):
        raise BrokenInput(f"{name}: {key} is not a list of texts")
    return tuple(texts)
