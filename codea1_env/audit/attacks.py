"""Attacks as data: one TOML file each in `programs/`, `suites/` and `candidates/`, and the `grounds/` of suites.

A hostile program holds `tries`, `program`, `calls`, and what must come of the calls:

- `right`: the values of a correct program, which it must never be able to claim;
- `evidence`: what it returns if its attempt has failed; anything else shows that it reached something;
- `values`: right answers that must not be spoilt;
- `outcomes`: the kinds of outcome that are acceptable;

optionally `limits`. A hostile suite holds `tries`, `ground`, `reply`, and optionally what must come of it: `n_valid`
cases, of which `n_beating` (0) rightly beat the ground's wrong program, and rejections (`reasons`: name to number).
`repeat` writes the reply so many times, `{n}` in it standing for the number; `escaped` replies are written with
Python's escapes, since TOML has neither NUL nor halves of characters.

A hostile candidate holds `tries`, `solution` and `program`, which both define `f`, `asserts`, and `truth`: what an
honest judge must say of each assert (`fails`, `passes`, `doubted`, or a reason of rejection). Each assert
is a suite; `repeat` writes it so many times, as above. With `golden` (`call == value`, each), the candidate must pass
`n_golden` (0) of them. Optionally `limits`, and `rules` (a preset, by default `fixed`).

Only an attack with `safe_to_run_unsandboxed` may ever run outside a sandbox; nothing that kills, forks, fills memory
or disk, or talks to a network has it.
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
from codea1_env.facts.outcomes import OutcomeKind
from codea1_env.facts.submissions import RejectionReason
from codea1_env.problems.problem import GoldenCase, Problem
from codea1_env.rules.ruleset import PRESETS, Ruleset, preset
from codea1_env.sandbox.interface import Call, Job, Limits

NEEDLE = "needle-in-the-solution-4711"
"""Stands in every ground's solution, and must not be seen anywhere else."""

_PROGRAM_KEYS = {
    *("tries", "program", "calls", "right", "evidence", "values", "outcomes", "limits", "safe_to_run_unsandboxed")
}
_SUITE_KEYS = {
    *("tries", "ground", "reply", "repeat", "escaped", "n_valid", "n_beating", "reasons", "safe_to_run_unsandboxed")
}
_CANDIDATE_KEYS = {
    *("tries", "solution", "program", "asserts", "repeat", "truth", "golden", "n_golden", "limits", "rules"),
    "safe_to_run_unsandboxed",
}

Member = TypeVar("Member", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class HostileProgram:
    """A program that attacks whoever runs it."""

    name: str
    tries: str
    program: str
    """Defines, or should define, `f`."""
    calls: tuple[str, ...]
    right: tuple[str, ...] = ()
    """Python source of values, one per call; empty if not stated. So are the next two."""
    evidence: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    outcomes: frozenset[OutcomeKind] = frozenset()
    """Empty: any."""
    limits: Limits = field(default_factory=Limits)
    is_safe: bool = False
    """Whether it may run outside a sandbox."""

    def to_job(self) -> Job:
        """Return what a sandbox is asked to do."""
        return Job(self.program, "f", tuple(map(Call, self.calls)), limits=self.limits)


@dataclass(frozen=True, slots=True)
class Ground:
    """A problem with programs that are right, programs that are wrong, and suites that are honest."""

    problem: Problem
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    honest: tuple[str, str]
    """Two replies of which every case is valid and rightly predicted; one is played before, one after the hostile."""
    n_beating: tuple[int, int]
    """How many of their cases beat each wrong program."""


@dataclass(frozen=True, slots=True)
class HostileSuite:
    """A tester's reply that attacks programs, the judge, or other testers."""

    name: str
    tries: str
    ground: Ground
    reply: str
    n_valid: int | None = None
    """How many of its cases are valid; None where that is luck."""
    n_beating: int = 0
    """How many of its cases may beat a wrong program with a right prediction; exactly so many if `n_valid` is given."""
    reasons: Mapping[RejectionReason, int] | None = None
    """Rejections by reason; None where that is luck."""
    is_safe: bool = False
    """Whether it may run outside a sandbox."""


class Truth(StrEnum):
    """What an honest judge says of an assert about a candidate, beside the reasons for which it rejects one."""

    FAILS = "fails"
    PASSES = "passes"
    DOUBTED = "doubted"
    """It says nothing about anyone."""


@dataclass(frozen=True, slots=True)
class HostileCandidate:
    """A candidate and asserts that attack what the judge makes of several processes and runs."""

    name: str
    tries: str
    solution: str
    program: str
    asserts: tuple[str, ...]
    """One line each."""
    truth: tuple[Truth | RejectionReason, ...]
    """One per assert."""
    golden: tuple[GoldenCase, ...] = ()
    n_golden: int = 0
    """How many of them it passes."""
    limits: Limits = field(default_factory=Limits)
    rules: Ruleset = field(default_factory=lambda: preset("fixed"))
    is_safe: bool = False
    """Whether it may run outside a sandbox."""

    @property
    def problem(self) -> Problem:
        """The problem that the solution solves."""
        return Problem(f"audit/{self.name}", self.tries, "f", self.solution, golden=self.golden)


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
        """Return the attack of this name.

        Raises:
            UnknownName: there is none.
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
    """Return the shipped attacks, each kind by name; read once per process.

    Raises:
        BrokenInput: a file of the installation is damaged.
    """
    grounds = {name: _ground(text, name) for name, text in _texts("grounds").items()}
    return Attacks(
        tuple(read_program(text, name) for name, text in _texts("programs").items()),
        tuple(read_suite(text, name, grounds) for name, text in _texts("suites").items()),
        tuple(read_candidate(text, name) for name, text in _texts("candidates").items()),
    )


def read_program(text: str, name: str) -> HostileProgram:
    """Return the hostile program that a TOML text describes.

    Raises:
        BrokenInput: not TOML, a key is missing, unknown or of the wrong type, or nothing says what must come of it.
    """
    table = _table(text, name, _PROGRAM_KEYS)
    calls = _texts_of(table, "calls", name)
    stated: dict[str, Any] = {
        key: _texts_of(table, key, name) for key in ("right", "evidence", "values") if key in table
    }
    outcomes = _members(OutcomeKind, _texts_of(table, "outcomes", name, []), name)
    if not (stated or outcomes):
        raise BrokenInput(f"{name}: says nothing of what must come of it")
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


def read_suite(text: str, name: str, grounds: Mapping[str, Ground]) -> HostileSuite:
    """Return the hostile suite that a TOML text describes.

    Raises:
        BrokenInput: not TOML, a key is missing, unknown or of the wrong type, or there is no such ground.
    """
    table = _table(text, name, _SUITE_KEYS)
    ground = _value(table, "ground", str, name)
    if ground not in grounds:
        raise BrokenInput(f"{name}: no ground {ground!r}")
    reasons = _value(table, "reasons", dict, name, {})
    return HostileSuite(
        **_common(table, name),
        ground=grounds[ground],
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
    """Return the hostile candidate that a TOML text describes.

    Raises:
        BrokenInput: not TOML, a key is missing, unknown or of the wrong type, or not every assert has its truth.
    """
    table = _table(text, name, _CANDIDATE_KEYS)
    asserts, truth = _texts_of(table, "asserts", name), _truth(table, name)
    if len(asserts) != len(truth):
        raise BrokenInput(f"{name}: truth needs one word per assert")
    numbers = range(_value(table, "repeat", int, name, 1))
    rules = _value(table, "rules", str, name, "fixed")
    if rules not in PRESETS:
        raise BrokenInput(f"{name}: no rules {rules!r}")
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
    )


def _common(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return what every kind of attack says of itself."""
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


def _ground(text: str, name: str) -> Ground:
    keys = {"statement", "solution", "examples", "right", "wrong", "honest", "n_beating"}
    table = _table(text, name, keys)
    solution = _value(table, "solution", str, name)
    if NEEDLE not in solution:
        raise BrokenInput(f"{name}: the solution does not hold the needle")
    problem = Problem(
        id=f"audit/{name}",
        statement=_value(table, "statement", str, name),
        entry_point=name,
        solution=solution,
        golden=_golden(_texts_of(table, "examples", name)),
    )
    first, second = _texts_of(table, "honest", name)
    n_first, n_second = _value(table, "n_beating", list, name)
    return Ground(
        problem, _texts_of(table, "right", name), _texts_of(table, "wrong", name), (first, second), (n_first, n_second)
    )


def _members(kind: type[Member], names: Iterable[str], place: str) -> list[Member]:
    try:
        return [kind(name) for name in names]
    except ValueError as error:
        raise BrokenInput(f"{place}: {error}") from error


def _texts(folder: str) -> dict[str, str]:
    """Return the texts of a folder's files by name."""
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
