"""The resolved configuration of a run: every option, every rule, the seed and the versions. Stored as TOML."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any, Literal

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from codea1_env.errors import BrokenInput
from codea1_env.problems.own_rows import problem_to_row
from codea1_env.problems.problem import ProblemSet
from codea1_env.records.faults import first_fault, read_toml
from codea1_env.rules.ruleset import Ruleset
from codea1_env.runs.records import SCHEMA_VERSION
from codea1_env.sandbox.interface import Limits

_CONFIG = "config.toml"
_MAY_CHANGE = frozenset({"versions", "git", "problems", "episodes"})
"""Options that may differ when a run is continued; of the problems only the path may differ."""


class RunConfig(BaseModel):
    """The resolved configuration of a run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = SCHEMA_VERSION
    problems: str
    """Source by name or path, as the user wrote it."""
    problems_digest: str
    """Digest of the problems' contents: a resumed run may read them from another place, but they must be the same."""
    n_problems: int = Field(ge=1)
    coder: str
    tester: str
    episodes: int = Field(ge=1)
    rounds: int = Field(ge=1, le=1_000_000)
    seed: int = Field(ge=0)
    tester_view: Literal["white_box", "black_box"]
    sandbox: str
    limit: int | None = Field(default=None, ge=1)
    """How many problems of the source are used; None: all."""
    strict: bool = False
    """Whether a broken row of the source is an error."""
    limits: Limits
    """Bounds per call of a program."""
    rules: Ruleset
    versions: dict[str, str]
    """Version of Python and of each package that can change a result."""
    git: str | None = None
    """Commit of the environment's checkout, if it runs from one."""

    @property
    def run_id(self) -> str:
        """The run's name in the Mistake Book. Runs with equal settings share it on any host, and resuming keeps it."""
        fixed = {name: value for name, value in self.model_dump(mode="json").items() if name not in _MAY_CHANGE}
        return sha256(json.dumps(fixed, sort_keys=True).encode()).hexdigest()[:16]

    def differences(self, requested: RunConfig) -> tuple[str, ...]:
        """Return one clause per option that prevents `requested` from continuing this run, e.g. `seed was 0, now 1`.

        The number of episodes may grow. Versions and the path of the problems may change, but not their contents.
        """
        changes = changes_between(
            self.model_dump(mode="json"),
            requested.model_dump(mode="json"),
            may_change=lambda name: name.partition(".")[0] in _MAY_CHANGE,
        )
        if requested.episodes < self.episodes:
            changes += (f"episodes was {self.episodes}, now {requested.episodes}",)
        return changes


def problems_digest(problems: ProblemSet) -> str:
    """Return a digest of everything in the problems that can change a result; the same on every host."""
    text = json.dumps([problem_to_row(problem) for problem in problems], sort_keys=True)
    return sha256(text.encode()).hexdigest()[:16]


def to_toml(settings: BaseModel) -> str:
    """Return settings as TOML; values that are None are left out."""
    return tomli_w.dumps(settings.model_dump(mode="json", exclude_none=True))


_table = lru_cache(maxsize=1)(partial(read_toml, _CONFIG))
"""A training keeps hundreds of run folders with the same settings."""


def read_config(text: bytes, place: str) -> RunConfig:
    """Return the configuration that `to_toml` wrote.

    Raises:
        BrokenInput: not TOML, of another schema version, or an option is missing, unknown or out of range.
    """
    try:
        data = _table(text)
    except BrokenInput as error:
        raise BrokenInput(f"{place.removesuffix(_CONFIG)}{error}") from error
    if data.get("schema_version") != SCHEMA_VERSION:
        raise BrokenInput(f"{place}: expected schema version {SCHEMA_VERSION}, got {data.get('schema_version')!r}")
    try:
        return RunConfig.model_validate(data)
    except ValidationError as error:
        raise BrokenInput(f"{place}: {first_fault(error)}") from error


def changes_between(
    stored: Mapping[str, Any], requested: Mapping[str, Any], *, may_change: Callable[[str], bool] = lambda _: False
) -> tuple[str, ...]:
    """Return one clause per setting that differs, e.g. `run.seed was 0, now 1`.

    Args:
        stored: settings of a run, in nested tables.
        requested: settings with which the run is to be continued.
        may_change: returns whether the setting of a dotted name may differ.
    """
    mine, other = flat(stored), flat(requested)
    return tuple(
        f"{name} was {_text_of(mine.get(name))}, now {_text_of(other.get(name))}"
        for name in dict.fromkeys((*mine, *other))
        if mine.get(name) != other.get(name) and not may_change(name)
    )


def flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values of nested tables by dotted name."""
    settings: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            settings |= flat(value, f"{prefix}{key}.")
        else:
            settings[prefix + key] = value
    return settings


def _text_of(value: object) -> str:
    return "unset" if value is None else str(value)
