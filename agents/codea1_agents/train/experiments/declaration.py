"""What an experiment is: systems, each trained for several seeds and bases, as declared in TOML."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from codea1_agents.train.loop.loading import load_training
from codea1_env.errors import UserError
from codea1_env.runs.records import first_fault
from codea1_env.secret import without_secrets

_BUILT_IN = Path(__file__).parent / "declared"


class Strict(BaseModel):
    """What is read from files: nothing unknown, nothing that changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Pretraining(Strict):
    """How a base model is made, once per base."""

    size: Literal["laptop", "gpu"] = "laptop"
    steps: int = Field(default=0, ge=0)
    """0: as many as the size asks for."""
    variant: Literal["plain", "rare"] = "plain"
    """Family of problems: `plain`, or `rare`, whose bugs naive inputs do not reach."""
    aware: float = Field(default=0.0, ge=0, le=1)
    """Share of a white-box tester's documents whose inputs are chosen to hit the program shown."""


class System(Strict):
    """One way to train."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    preset: str = ""
    """Of `codea1 train`; empty: nothing is trained, the base is evaluated."""
    set: dict[str, Any] = Field(default_factory=dict)
    """What differs from the preset (`code-a1` where nothing is trained), by dotted key."""
    seeds: int | None = Field(default=None, ge=1)
    """None: as many as the experiment says, or as those that it takes from have."""
    bases: int | None = Field(default=None, ge=1)
    """Only the first so many of the experiment's; None: all."""
    coder_from: str = ""
    """System whose coder (of the same base and seed) this one begins with; empty: the base."""
    tester_from: str = ""
    """Likewise its tester."""
    supervision: str = ""
    """System whose tester writes the golden tests that this one's coder is trained on."""
    sft: bool = False
    """Whether the tester is trained on golden tests for failing candidates, supervised, before anything else."""
    together: bool = False
    """Whether what is measured is the choice among the coder's programs by the tester's blind suites."""

    @property
    def is_random(self) -> bool:
        """Whether its own seed decides anything."""
        return bool(self.preset) or self.sft

    @property
    def is_fixed(self) -> bool:
        """Whether no seed of a training decides anything."""
        return not (self.is_random or self.needs)

    @property
    def needs(self) -> tuple[str, ...]:
        """Systems whose models or tests it takes, without repetition."""
        found = (self.coder_from, self.tester_from, self.supervision)
        return tuple(dict.fromkeys(name for name in found if name))


class Evaluation(Strict):
    """What every cell is measured by in the end."""

    coder: dict[str, str] = Field(default_factory=dict)
    """Name -> source of problems with golden tests."""
    samples: int = Field(default=8, ge=1)
    tester: str = ""
    """Source of the problems that tests are written for; empty: testers are not measured."""
    tests: int = Field(default=4, ge=1)
    """K."""
    together: str = ""
    """Source of the problems for which coder and tester work together."""
    candidates: int = Field(default=16, ge=2)
    """N programs, and as many suites, per problem then."""


class Table(Strict):
    """A table of the report: one row per system, one column per figure."""

    title: str
    rows: tuple[str, ...] = Field(min_length=1)
    columns: dict[str, str] = Field(min_length=1)
    """Heading -> name of a figure of `CellResult`."""
    percent: bool = True
    """Whether figures are shares, told times 100."""


class Picture(Strict):
    """A picture of the report: figures over training, or over a setting."""

    title: str
    file: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    systems: tuple[str, ...] = Field(min_length=1)
    panels: dict[str, str] = Field(min_length=1)
    """Heading -> figure of a `CurvePoint`, or of a `CellResult` where `over` is a setting."""
    over: str = "step"
    """`step`, `cpu_s`, or the dotted key of a setting that the systems differ in."""


class Experiment(Strict):
    """A grid."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    about: str = ""
    bases: tuple[int, ...] = (0,)
    """Seeds of pretraining."""
    seeds: int = Field(default=3, ge=1)
    """Of training, per base."""
    pretraining: Pretraining = Field(default_factory=Pretraining)
    set: dict[str, Any] = Field(default_factory=dict)
    """What differs from every preset, by dotted key."""
    systems: tuple[System, ...] = Field(min_length=1)
    compared_to: str = ""
    """System that all others are paired with in the report."""
    evaluation: Evaluation = Field(default_factory=Evaluation)
    warm_up: str = "tiny:train"
    """Source of the problems that supervised testers learn from."""
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()

    def system(self, name: str) -> System:
        """Return a system by name.

        Raises:
            KeyError: there is none.
        """
        return {each.name: each for each in self.systems}[name]

    @property
    def sources(self) -> tuple[str, ...]:
        """All that cells load problems from, beside what their presets say."""
        named = (*self.evaluation.coder.values(), self.evaluation.tester, self.evaluation.together, self.warm_up)
        return tuple(dict.fromkeys(filter(None, named)))


def load_experiment(name: str) -> Experiment:
    """Return an experiment by the name of a declared one or the path of a TOML file.

    Raises:
        UserError: there is none, or it is not well formed.
    """
    path = Path(name) if name.endswith(".toml") else _BUILT_IN / f"{name}.toml"
    try:
        declared = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        known = ", ".join(sorted(each.stem for each in _BUILT_IN.glob("*.toml")))
        raise UserError(f"no experiment {name!r}; there are {known}, or give a .toml file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path}: {error}") from error
    try:
        experiment = Experiment.model_validate(declared)
    except ValidationError as error:
        raise UserError(f"{path}: {first_fault(error)}") from error
    _check(experiment, str(path))
    return experiment


def _check(experiment: Experiment, where: str) -> None:
    _require_no_secrets(experiment, where)
    names = [system.name for system in experiment.systems]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{where}: system {name!r} is declared twice")
    if len(set(experiment.bases)) != len(experiment.bases) or not experiment.bases:
        raise UserError(f"{where}: bases must be different seeds, at least one")
    seen: list[str] = []
    for system in experiment.systems:
        _check_settings(experiment, system, where)
        for needed in system.needs:
            if needed not in seen:
                raise UserError(f"{where}: {system.name} needs {needed!r}, and no system before it is called so")
        seen.append(system.name)
    named = [
        experiment.compared_to,
        *(name for each in experiment.tables for name in each.rows),
        *(name for each in experiment.pictures for name in each.systems),
    ]
    for name in named:
        if name and name not in names:
            raise UserError(f"{where}: no system is called {name!r}")


def _require_no_secrets(experiment: Experiment, where: str) -> None:
    for settings in (experiment.set, *(system.set for system in experiment.systems)):
        told = repr(settings)
        if without_secrets(told) != told:
            raise UserError(
                f"{where}: an experiment's folder holds no secrets; name a variable that has them, as in key_env=MY_KEY"
            )


def _check_settings(experiment: Experiment, system: System, where: str) -> None:
    """Find a wrong preset or setting before hours of other cells, not after them."""
    try:
        load_training(system.preset or "code-a1", {**experiment.set, **system.set})
    except UserError as error:
        raise UserError(f"{where}: system {system.name!r}: {error}") from error
