"""Every setting of a training run, as TOML has it. Strict models check them before anything is built."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from codea1_agents.train.declared import Count, CountOrZero, Flag, NotNegative, Positive
from codea1_agents.train.grpo.hyperparameters import LearnerSettings, RolloutSettings, UpdateSettings
from codea1_agents.train.grpo.settings import ModelOptions
from codea1_env.rules.ruleset import Ruleset

CURRENT = "current"
"""Name of the coder in training, among the opponents of an evaluation."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


class RunOptions(_Section):
    """The run as a whole."""

    name: str = ""
    """Name for people; empty: the name of the folder."""
    seed: CountOrZero = 0
    """Decides all random numbers of the run."""
    steps: Count = 111
    """Iterations; the paper's 3 epochs over 9,688 problems are 111."""
    folder: str = ""
    """Run folder, new or empty; empty: a new one under `runs/`."""
    give_up_after: CountOrZero = 10
    """Steps on end in which a coder that learns earns nothing, after which the run ends as failed; 0: it goes on."""


class _Game(_Section):
    """The game: problems, rules and sandbox."""

    problems: str = ""
    """Source to train on, by name or path."""
    rules: str = "fixed"
    """Name of the rules. Each field of `Ruleset` is a setting, too, and replaces that part of it."""
    tester_view: Literal["white_box", "black_box"] = "white_box"
    """`white_box`: a tester sees the program that it tests."""
    sandbox: str = "local"
    """Sandbox that runs programs, by name."""
    limits: dict[str, Any] = Field(default_factory=dict)
    """Limits per call of a program, e.g. `cpu_s`; empty: calibrated on the solution."""


RULE_PARTS = tuple(each.name for each in fields(Ruleset) if each.name != "name")
if TYPE_CHECKING:
    GameOptions = _Game
else:
    _PARTS = dict.fromkeys(RULE_PARTS, (Any, None))  # `Ruleset` checks them, as it checks those of Python
    GameOptions = create_model("GameOptions", __base__=_Game, __doc__=_Game.__doc__, **_PARTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions(ModelOptions):
    """The player of a role; of a model also how it is computed and sampled."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    model: str = ""
    """Directory, GGUF file or hub id of a causal language model, which this run trains."""
    agent: str = ""
    """An agent that this run does not train, by name and options as in `codea1 play`; instead of `model`."""
    frozen: Flag = False
    """Whether the model plays and does not learn."""
    lr: Positive | None = None
    """Learning rate of this role's module; unset: `training.lr`."""
    max_tokens: Count | None = None
    """Longest reply, in tokens; unset: that of `agents.shared`, or 4096."""
    max_prompt_tokens: Count | None = None
    """Longest prompt, in tokens; unset: that of `agents.shared`, or 4096 for the coder and 8192 for the tester. The
    rollout of a longer one is masked."""


class AgentsOptions(_Section):
    """The players: one table per role, or one model for both roles."""

    coder: AgentOptions = Field(default_factory=AgentOptions)
    tester: AgentOptions = Field(default_factory=AgentOptions)
    shared: AgentOptions = Field(default_factory=AgentOptions)
    """One model for both roles (self-play). `coder` and `tester` then set lengths only."""
    base: str = ""
    """Directory or hub id of the model on which each role trains an adapter (`lora`), instead of two models. Its
    weights are in memory once per process."""

    def model_of(self, module: str) -> str:
        """Return the directory or hub id of a module's model: its own, or the base; empty: it has none."""
        options: AgentOptions = getattr(self, module)
        return options.model or ("" if options.agent or module == "shared" else self.base)

    def key_of(self, module: str) -> str:
        """Return the name of the setting that names a module's model."""
        return "agents.base" if self.base else f"agents.{module}.model"


@dataclass(frozen=True, slots=True)
class RolloutOptions(RolloutSettings):
    """What an iteration samples: the hyperparameters of `RolloutSettings`, and the wording."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    prompts: str = "default"
    """Wording, by name or file."""


@dataclass(frozen=True, slots=True)
class UpdateOptions(UpdateSettings):
    """How weights are updated: the hyperparameters of `UpdateSettings`, and the schedule of the learning rate."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    lr_schedule: Literal["constant", "cosine"] = "constant"
    """After the warm-up; `cosine` ends at 0 with the last step."""


@dataclass(frozen=True, slots=True)
class ClusterOptions(LearnerSettings):
    """Where the run computes. These settings change results by rounding only."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    address: str = ""
    """Address of a Ray cluster, or `auto`; empty: start a local one."""
    env_runners: CountOrZero = 0
    """Remote processes that roll out; 0: the driver rolls out."""
    cpus_per_env_runner: NotNegative = 1.0
    """Processors that Ray reserves for each of them."""
    gpus_per_env_runner: NotNegative = 0.0
    """GPUs of each of them; a part where several share one."""
    learners: CountOrZero = 0
    """Remote processes that learn; 0: the driver learns."""
    cpus_per_learner: NotNegative = 1.0
    """Processors that Ray reserves for each of them."""
    gpus_per_learner: NotNegative = 0.0
    """GPUs of each of them."""
    restart_lost: Flag = True
    """Whether a lost runner is started again. Meanwhile other runners roll out its problems."""
    max_restarts: CountOrZero = 3
    """How often the run starts again from the same checkpoint after the loss of a learner; 0: never."""
    torch_threads: CountOrZero = 0
    """Threads of torch in the driver; 0: torch chooses. Small models are faster with 1."""


class CheckpointOptions(_Section):
    """Which checkpoints and models are kept."""

    every: CountOrZero = 50
    """Steps between checkpoints; 0: only after the last step."""
    every_minutes: NotNegative = 0.0
    """Also write a checkpoint once this many minutes have passed since the last one; 0: never."""
    keep: CountOrZero = 2
    """Number of checkpoints to keep; 0: all."""
    export: bool = True
    """Whether the models are written to `models/` at the end."""

    def kept_steps(self, steps: int) -> tuple[int, ...]:
        """Return the steps whose checkpoints are certainly there at the end of a run of so many steps."""
        due = range(self.every, steps, self.every) if self.every else ()
        # Those of `every_minutes` are others in each run, and they count among the newest that are kept.
        return (steps,) if self.keep and self.every_minutes else (*due, steps)[-self.keep :]


class EvaluationOptions(_Section):
    """Evaluation of the models on held-out problems, which train nothing."""

    every: CountOrZero = 0
    """Steps between evaluations; the last step has one, too. 0: no evaluation."""
    at_start: bool = True
    """Whether there is an evaluation before the first step."""
    problems: str = ""
    """Source, by name or path; its golden tests judge the coder."""
    limit: CountOrZero = 0
    """Number of problems, from the first; 0: all."""
    samples: CountOrZero = 1
    """Programs per problem (n); 0: the coder is not evaluated."""
    temperature: NotNegative = 0.7
    """0: the most probable token."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 0.95
    """Only the most probable tokens are sampled that have this probability together."""
    opponents: list[str] = Field(default_factory=lambda: ["mutant,strength=1", CURRENT])
    """Coders for whose programs the tester writes suites: agents, or `current`."""
    programs: Count = 1
    """Programs of each opponent, per problem."""
    suites: CountOrZero = 1
    """Suites per program; 0: the tester is not evaluated."""


class LoggingOptions(_Section):
    """Where figures are logged, apart from `metrics.jsonl`."""

    tensorboard: bool = True
    """Whether there are event files of TensorBoard in the run folder."""
    samples_every: CountOrZero = 10
    """Steps between samples of rollouts that are kept; 0: none."""
    samples: Count = 2
    """Problems in such a sample."""


class TrainingConfig(_Section):
    """All settings of a run."""

    about: str = ""
    """One sentence for `codea1 list presets`."""
    run: RunOptions = Field(default_factory=RunOptions)
    game: GameOptions = Field(default_factory=GameOptions)
    agents: AgentsOptions = Field(default_factory=AgentsOptions)
    rollout: RolloutOptions = Field(default_factory=RolloutOptions)
    training: UpdateOptions = Field(default_factory=UpdateOptions)
    cluster: ClusterOptions = Field(default_factory=ClusterOptions)
    checkpoints: CheckpointOptions = Field(default_factory=CheckpointOptions)
    evaluation: EvaluationOptions = Field(default_factory=EvaluationOptions)
    logging: LoggingOptions = Field(default_factory=LoggingOptions)
