"""The declaration of an experiment in TOML: systems, each trained for several seeds and bases."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, ValidationError

from codea1_agents.train.settings.loading import load_training
from codea1_agents.train.settings.options import TrainingConfig
from codea1_agents.train.settings.run_parts import limits_of, rules_of
from codea1_env.agent import Role
from codea1_env.errors import UserError
from codea1_env.records.faults import first_fault, read_file, read_toml
from codea1_env.secret import require_no_secrets

ITSELF = "0"
"""The name in a headline that compares a figure with 0."""

_BUILT_IN = Path(__file__).parent / "declared"


class Strict(BaseModel):
    """A model of a file: frozen, and without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Pretraining(Strict):
    """The pretraining of each base model."""

    steps: int = Field(default=0, ge=0)
    """0: those of `codea1 pretrain`."""
    variant: Literal["plain", "rare", "deep-rare", "rarest"] = "plain"
    """Variant of the problems: `plain`, or one whose bugs naive inputs do not find."""
    aware: float = Field(default=0.0, ge=0, le=1)
    """Share of a white-box tester's tests of wrong programs that make the program fail."""
    aware_first: int = Field(default=0, ge=0)
    """Steps, from the first, in which all of these tests do."""
    repair: float = Field(default=0.0, ge=0, le=1)
    """Share of documents in which a program is repaired."""
    hostile: float = Field(default=0.0, ge=0, le=1)
    """Share of all documents that are attacks on a grader (`graders.ATTACKS`)."""
    muon: Literal["float32", "bfloat16"] = "bfloat16"
    """As in `PretrainingSettings`. The default is that of the committed results; `float32` takes less than half of the
    time on a processor without AVX-512."""


class StartingModel(Strict):
    """A model that exists, as which both roles begin in all systems, in place of tiny ones that are pretrained."""

    name: str
    """The name by which people know it."""
    digest: str
    """That of its weights, as in a run's `run.json`; other weights are refused."""
    folder: str = ""
    """Its place on this machine."""
    coder: str = ""
    """Options of the agent `transformers` that measures coders, `name=value` with commas."""
    tester: str = ""
    """The same for testers."""


class System(Strict):
    """One system: a way to train the two models."""

    name: str = Field(pattern=r"^[a-z][a-z0-9.-]*$")
    preset: str = ""
    """Preset of `codea1 train`; empty: nothing is trained, and the base is evaluated."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Changes to the preset (to `code-a1` if nothing is trained), by dotted key."""
    seeds: int | None = Field(default=None, ge=1)
    """Number of seeds. None: that of the experiment, or of the systems whose models it takes."""
    bases: int | None = Field(default=None, ge=1)
    """Number of the experiment's bases, from the first; None: all."""
    coder_from: str = ""
    """System whose coder (of the same base and seed) this system starts with; empty: the base."""
    coder_step: int = Field(default=0, ge=0)
    """Step of that system whose checkpoint the coder is taken from; 0: its coder at the end. Its run must keep the
    checkpoint."""
    tester_from: str = ""
    """System whose tester this system starts with; empty: the base."""
    tester_step: int = Field(default=0, ge=0)
    """The same of the tester."""
    from_first_base: bool = False
    """Whether it takes models and tests of the experiment's first base, in place of its own base."""
    supervision: str = ""
    """System whose tester writes the golden tests on which this system's coder trains."""
    sft: bool = False
    """Whether the tester is first fine-tuned on golden tests for failing candidates."""
    grader: Literal["", "judge", "exit status"] = ""
    """The grader that pays the coder 1 or 0, watched by an outside oracle (`graders`); empty: the rules of the game."""
    together: bool = False
    """Whether the system is measured by its choice among the coder's programs by the tester's blind suites."""

    @property
    def is_random(self) -> bool:
        """Whether its own seed changes its models."""
        return bool(self.preset) or self.sft

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the systems whose models or tests it takes, each once."""
        sources = (self.coder_from, self.tester_from, self.supervision)
        return tuple(dict.fromkeys(name for name in sources if name))


class Evaluation(Strict):
    """The measurement of each cell's models."""

    coder: dict[str, str] = Field(default_factory=dict)
    """By name, a source of problems with golden tests."""
    samples: int = Field(default=8, ge=1)
    turns: int = Field(default=1, ge=1)
    """In later ones, the coder repairs what failed in a suite of the system's own tester."""
    tester: str = ""
    """Source of the problems that tests are written for; empty: testers are not measured by right programs."""
    duels: str = ""
    """Source of the problems on which coder and tester meet, and the tester meets known wrong programs; empty: that of
    `tester`."""
    duel_samples: int = Field(default=0, ge=0)
    """Programs per problem there; 0: as many as `samples`."""
    duel_problems: int = Field(default=0, ge=0)
    """Number of these problems, from the first; 0: all."""
    tests: int = Field(default=4, ge=1)
    """Test cases requested per suite (K)."""
    together: str = ""
    """Source of the problems on which the tester's suites choose among the coder's programs."""
    candidates: int = Field(default=16, ge=2)
    """Programs per problem (N) for that choice, and as many suites."""


class Headline(Strict):
    """A comparison that the experiment is run for. All of an experiment are one family of tests."""

    system: str
    figure: str
    """Key of `CellResult.figures`."""
    compared_to: str = ""
    """Another system; empty: that of the experiment; `0`: the figure itself is compared with 0."""


class Table(Strict):
    """A table of the report: one row per system, one column per figure."""

    title: str
    rows: tuple[str, ...] = Field(min_length=1)
    columns: dict[str, str] = Field(min_length=1)
    """By heading, the name of a figure of `CellResult`."""
    percent: bool = True
    """Whether figures are shares, shown times 100."""


class Picture(Strict):
    """A picture of the report: figures over training, or over a setting."""

    title: str
    file: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    systems: tuple[str, ...] = Field(min_length=1)
    panels: dict[str, str] = Field(min_length=1)
    """By heading, a figure of `CurvePoint`, or of `CellResult` if `over` is a setting."""
    over: str = "step"
    """`step`, `cpu_s`, or the dotted key of a setting that the systems differ in."""
    by: str = ""
    """If `over` is a setting: the dotted key of another one, of which each value has its line."""

    @property
    def is_over_setting(self) -> bool:
        """Whether it shows results over a setting, not curves."""
        return self.over not in ("step", "cpu_s")


class Experiment(Strict):
    """A grid of systems, bases and seeds."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    about: str = ""
    predictions: str = ""
    """File that must be committed before a cell starts, in the repository of the declaration; empty: nothing was
    predicted, and no result confirms anything."""
    bases: tuple[int, ...] = (0,)
    """Seeds of pretraining."""
    seeds: int = Field(default=3, ge=1)
    """Seeds of training, per base."""
    pretraining: Pretraining = Field(default_factory=Pretraining)
    model: StartingModel | None = None
    """None: each base is pretrained."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Changes to every preset, by dotted key."""
    systems: tuple[System, ...] = Field(min_length=1)
    compared_to: str = ""
    """System with which the report compares all others, in pairs."""
    evaluation: Evaluation = Field(default_factory=Evaluation)
    warm_up: str = "tiny:train"
    """Source of the problems for fine-tuning testers (`sft`)."""
    read_at_s: tuple[PositiveFloat, ...] = ()
    """Processor seconds of training at which systems are compared; empty: shares of the median of the trained ones."""
    headlines: tuple[Headline, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()

    def system(self, name: str) -> System:
        """Return a system by name.

        Raises:
            KeyError: the system does not exist.
        """
        return {system.name: system for system in self.systems}[name]

    def is_fixed(self, system: System) -> bool:
        """Return whether no seed of a training changes a system's models."""
        return not system.is_random and all(self.is_fixed(self.system(name)) for name in system.needs)

    def training(self, system: System) -> TrainingConfig:
        """Return the settings of a system's training, or those of `code-a1` if the system trains nothing.

        Raises:
            UserError: the preset or a setting is unknown, or a value is wrong.
        """
        return load_training(system.preset or "code-a1", {**self.set, **system.set})

    def other(self, headline: Headline) -> str:
        """Return the system that a headline compares with; `0`: none."""
        return headline.compared_to or self.compared_to

    @property
    def sources(self) -> tuple[str, ...]:
        """All sources of problems, apart from those of the presets."""
        of_testers = (self.evaluation.tester, self.evaluation.duels, self.evaluation.together)
        named = (*self.evaluation.coder.values(), *of_testers, self.warm_up)
        return tuple(dict.fromkeys(filter(None, named)))


def experiment_names() -> list[str]:
    """Return the names of the declared experiments, sorted."""
    return sorted(path.stem for path in _BUILT_IN.glob("*.toml"))


def declaration_path(name: str) -> Path:
    """Return the TOML file of an experiment, which may not exist."""
    return Path(name) if name.endswith(".toml") else _BUILT_IN / f"{name}.toml"


def load_experiment(name: str) -> Experiment:
    """Return an experiment by the name of a declared one or the path of a TOML file.

    Raises:
        UserError: the experiment does not exist, or is malformed.
    """
    path = declaration_path(name)
    try:
        declared = read_toml(str(path), read_file(path))
    except FileNotFoundError:
        known = ", ".join(experiment_names())
        raise UserError(f"unknown experiment {name!r}: expected one of {known}, or a .toml file") from None
    except OSError as error:
        raise UserError(f"{path}: {error}") from error
    try:
        experiment = Experiment.model_validate(declared)
    except ValidationError as error:
        raise UserError(f"{path}: {first_fault(error)}") from error
    _check(experiment, str(path))
    return experiment


def _check(experiment: Experiment, where: str) -> None:
    for settings in (experiment.set, *(system.set for system in experiment.systems)):
        require_no_secrets(repr(settings))
    names = [system.name for system in experiment.systems]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UserError(f"{where}: system {twice[0]!r} is declared twice")
    if len(set(experiment.bases)) != len(experiment.bases) or not experiment.bases:
        raise UserError(f"{where}: bases must be different seeds, at least one")
    seen: list[str] = []
    for system in experiment.systems:
        _check_settings(experiment, system, where)
        for needed in system.needs:
            if needed not in seen:
                raise UserError(f"{where}: {system.name} needs {needed!r}, and no earlier system has this name")
        for role in ("coder", "tester"):
            _check_step(experiment, system, role, where)
        seen.append(system.name)
    _check_names(experiment, where)
    for picture in experiment.pictures:
        if picture.is_over_setting:
            _check_axis(experiment, picture, where)


def _check_names(experiment: Experiment, where: str) -> None:
    names = [system.name for system in experiment.systems]
    named = [
        experiment.compared_to,
        *(headline.system for headline in experiment.headlines),
        *(headline.compared_to for headline in experiment.headlines if headline.compared_to != ITSELF),
        *(name for table in experiment.tables for name in table.rows),
        *(name for picture in experiment.pictures for name in picture.systems),
    ]
    for name in named:
        if name and name not in names:
            raise UserError(f"{where}: no system is called {name!r}")
    if len({picture.file for picture in experiment.pictures}) < len(experiment.pictures):
        raise UserError(f"{where}: expected a file of its own for each picture, got one twice")
    lone = [headline for headline in experiment.headlines if experiment.other(headline) in ("", headline.system)]
    if lone:
        raise UserError(f"{where}: {lone[0].figure} of {lone[0].system!r} is compared with no other system")


def _check_settings(experiment: Experiment, system: System, where: str) -> None:
    """Raise UserError for a wrong preset, setting or rule, before hours of other cells."""
    fault = f"{where}: system {system.name!r}"
    if system.together and not experiment.evaluation.together:
        raise UserError(f"{fault}: together needs problems: set evaluation.together")
    if experiment.model and (system.needs or system.sft):
        raise UserError(
            f"{fault}: with a [model], all systems start from it, so it takes no other and is not fine-tuned"
        )
    if system.from_first_base and not system.needs:
        raise UserError(f"{fault}: from_first_base needs a system to take from")
    for name in ("supervision", "grader"):
        if getattr(system, name) and not system.preset:
            raise UserError(f"{fault}: {name} needs a training: set preset")
    if own := [key for key in ("run.seed", "run.name", "run.folder") if key in {**experiment.set, **system.set}]:
        raise UserError(f"{fault}: {own[0]} is set by the experiment")
    try:
        game = experiment.training(system).game
        rules_of(game)
        limits_of(game)
    except UserError as error:
        raise UserError(f"{fault}: {error}") from error


def _check_axis(experiment: Experiment, picture: Picture, where: str) -> None:
    for name in picture.systems:
        value = experiment.system(name).set.get(picture.over, 0)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UserError(
                f"{where}: picture {picture.file!r}: expected a number, got {picture.over} of {name!r} = {value!r}"
            )


def _check_step(experiment: Experiment, system: System, role: Role, where: str) -> None:
    """Raise UserError for a step whose checkpoint there will not be."""
    step, name = getattr(system, f"{role}_step"), getattr(system, f"{role}_from")
    if not step:
        return
    fault = f"{where}: system {system.name!r}: {role}_step"
    if not name:
        raise UserError(f"{fault} is the step of a system: add {role}_from")
    source = experiment.system(name)
    config = experiment.training(source)
    if not source.preset or not (config.agents.model_of(role) or config.agents.shared.model):
        raise UserError(f"{fault}: {name!r} trains no {role}")
    if step not in (kept := config.checkpoints.kept_steps(config.run.steps)):
        raise UserError(f"{fault} is {step}, and {name!r} keeps the checkpoints of {', '.join(map(str, kept))}")
