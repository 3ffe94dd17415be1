"""Every setting of a training run, as TOML holds it: strict models at the edge, checked before anything is built."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidatorFunctionWrapHandler, WrapValidator

from codea1_env.secret import TextWithSecrets, read_secrets

CURRENT = "current"
"""Among the opponents of an evaluation: the coder that is being trained."""

_Count = Annotated[int, Field(ge=1)]
_CountOrNone = Annotated[int, Field(ge=0)]
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Share = Annotated[float, Field(ge=0, le=1)]
_NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _read(value: object, as_text: ValidatorFunctionWrapHandler) -> str:
    return value if isinstance(value, TextWithSecrets) else read_secrets(as_text(value))


_Agent = Annotated[str, WrapValidator(_read)]
"""A specification; its secrets are in no dump of the settings."""
_Type = Literal["float32", "bfloat16", "float16"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


class RunOptions(_Section):
    """The run as a whole."""

    name: str = ""
    """For people, and for W&B and MLflow; empty: the folder's name."""
    seed: _CountOrNone = 0
    """All randomness descends from it."""
    steps: _Count = 111
    """Iterations; the paper's 3 epochs over 9,688 problems are 111."""
    folder: str = ""
    """Run folder, new or empty; empty: a new one under `runs/`."""


class GameOptions(_Section):
    """What is played."""

    problems: str = ""
    """Source to train on, by name or path."""
    rules: str = "fixed"
    """Preset of the rules; what follows up to `comparison` replaces parts of it."""
    tests_per_suite: _Count | None = None
    reading: str | None = None
    max_program_bytes: _Count | None = None
    validation: str | None = None
    confirm: _Share | None = None
    reward: dict[str, Any] = Field(default_factory=dict)
    """E.g. `alpha`; see docs/rules.md."""
    book: dict[str, Any] = Field(default_factory=dict)
    """E.g. `update = "off"`: no Mistake Book."""
    comparison: dict[str, Any] = Field(default_factory=dict)
    tester_view: Literal["white_box", "black_box"] = "white_box"
    sandbox: str = "local"
    limits: dict[str, Any] = Field(default_factory=dict)
    """Bounds per call of a program, e.g. `cpu_s`; empty: calibrated on the solution."""


class LoraOptions(_Section):
    """Low-rank adapters; unset: as `LoraSettings` has it."""

    rank: _Count | None = None
    alpha: _Positive | None = None
    target_modules: list[str] | None = None


class AgentOptions(_Section):
    """Who plays a role."""

    model: str = ""
    """Directory or hub id of a causal language model, which learns."""
    agent: _Agent = ""
    """An agent that does not learn here, by name and options as in `codea1 play`; either this or `model`."""
    frozen: bool = False
    """The model plays and does not learn."""
    lr: _Positive | None = None
    """Learning rate of this role's module; unset: that of `training`."""
    max_tokens: _Count | None = None
    """Longest reply; unset: 4096, or that of `agents.shared`."""
    max_prompt_tokens: _Count | None = None
    """Longest prompt; unset: 4096 for the coder and 8192 for the tester."""
    sampling_dtype: _Type = "float32"
    """Of the weights that sample."""
    autocast: Literal["", "bfloat16", "float16"] = ""
    """What the learner computes in; its weights are float32. Empty: float32."""
    gradient_checkpointing: bool = False
    lora: LoraOptions | None = None
    """Adapters that are trained in place of the whole model."""
    rollout_engine: Literal["transformers", "vllm"] = "transformers"
    """Who samples."""
    engine_options: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of `vllm.LLM`."""
    handover_folder: str = ""
    """Where weights are put down for another engine; empty: memory, where the system has such a folder."""
    handover_gap: _NotNegative = 0.0
    """Largest difference of log-probabilities after a hand-over; 0: by `sampling_dtype`."""


class AgentsOptions(_Section):
    """Who plays: one entry per role, or one model for both."""

    coder: AgentOptions = Field(default_factory=AgentOptions)
    tester: AgentOptions = Field(default_factory=AgentOptions)
    shared: AgentOptions = Field(default_factory=AgentOptions)
    """One model for both roles (self-play); `coder` and `tester` then only set lengths."""


class RolloutOptions(_Section):
    """What an iteration samples."""

    problems_per_step: _Count = 256
    n_candidates: _Count = 8
    """Per problem."""
    n_suites: _CountOrNone = 8
    """Per candidate, or per problem."""
    suites_per: Literal["candidate", "problem"] = "candidate"
    n_kept: _Count = 1
    """Candidates per problem whose suites are learnt from (l)."""
    keep_flat_groups: bool = False
    """Whether groups of equal rewards count, with advantages of 0, in the divergence and in the mean over tokens."""
    temperature: _Positive = 1.0
    prompts: str = "default"
    """Wording, by name or file."""
    problems_at_once: _Count = 8
    """Generated together by a runner, while the sandbox judges others."""
    rows_sampled_at_once: _Count = 64
    """Responses in one batch of the sampler."""


class UpdateOptions(_Section):
    """How weights are updated."""

    lr: _Positive = 1e-6
    lr_schedule: Literal["constant", "cosine"] = "constant"
    """After the warm-up; `cosine` ends at zero with the last step."""
    warmup_steps: _CountOrNone = 10
    epochs_per_step: _Count = 1
    minibatches_per_epoch: _Count = 2
    rows_at_once: _CountOrNone = 8
    """Responses per forward pass; 0: all of a minibatch."""
    clip_low: _Share = 0.2
    clip_high: _Positive = 0.28
    dual_clip: Annotated[float, Field(gt=1)] = 10.0
    kl_coeff: _NotNegative = 0.001
    """Weight of the divergence from the model as it was loaded; 0: no reference is kept."""
    entropy_coeff: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    weight_decay: _NotNegative = 0.1
    grad_clip: _Positive = 1.0


class ClusterOptions(_Section):
    """Where it runs. Nothing here changes results beyond rounding."""

    address: str = ""
    """Of a Ray cluster, or `auto`; empty: one of this machine's own."""
    env_runners: _CountOrNone = 0
    """Remote processes that roll out; 0: the driver does."""
    cpus_per_env_runner: _NotNegative = 1.0
    gpus_per_env_runner: _NotNegative = 0.0
    learners: _CountOrNone = 0
    """Remote processes that learn; 0: the driver does."""
    cpus_per_learner: _NotNegative = 1.0
    gpus_per_learner: _NotNegative = 0.0
    restart_lost: bool = True
    """Start a runner that has died again; its problems are rolled out by others meanwhile."""
    torch_threads: _CountOrNone = 0
    """Of the driver; 0: torch's own choice. Small models are faster with 1."""


class CheckpointOptions(_Section):
    """What is kept of the weights."""

    every: _CountOrNone = 50
    """Steps between checkpoints; 0: only the last step's."""
    keep: _CountOrNone = 2
    """Checkpoints that are kept; 0: all."""
    export: bool = True
    """Write the models to `models/` at the end."""


class EvaluationOptions(_Section):
    """Held-out problems, played by the models as they are; nothing is learnt from them."""

    every: _CountOrNone = 0
    """Steps between evaluations, the last step's beside them; 0: none."""
    at_start: bool = True
    """Also before the first step."""
    problems: str = ""
    """Source by name or path; golden tests judge the coder."""
    limit: _CountOrNone = 0
    """Only so many problems, from the front; 0: all."""
    samples: _CountOrNone = 1
    """Programs per problem (n); 0: the coder is not evaluated."""
    temperature: _NotNegative = 0.7
    """0: the most probable token."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 0.95
    opponents: list[_Agent] = Field(default_factory=lambda: ["mutant,strength=1", CURRENT])
    """Coders that the tester writes suites against: agents, or `current`."""
    programs: _Count = 1
    """Of each opponent, per problem."""
    suites: _CountOrNone = 1
    """Per program; 0: the tester is not evaluated."""


class LoggingOptions(_Section):
    """Where figures go beside `metrics.jsonl`. Nothing is uploaded unless it is asked for here."""

    tensorboard: bool = True
    wandb: str = ""
    """Project of Weights & Biases; empty: not used."""
    mlflow: str = ""
    """Experiment of MLflow, at the place that its own environment variables name; empty: not used."""
    samples_every: _CountOrNone = 10
    """Steps between kept rollouts; 0: none."""
    samples: _Count = 2
    """Problems whose rollouts are kept then."""


class TrainingConfig(_Section):
    """All settings of a run."""

    about: str = ""
    """One sentence for `codea1 presets`."""
    run: RunOptions = Field(default_factory=RunOptions)
    game: GameOptions = Field(default_factory=GameOptions)
    agents: AgentsOptions = Field(default_factory=AgentsOptions)
    rollout: RolloutOptions = Field(default_factory=RolloutOptions)
    training: UpdateOptions = Field(default_factory=UpdateOptions)
    cluster: ClusterOptions = Field(default_factory=ClusterOptions)
    checkpoints: CheckpointOptions = Field(default_factory=CheckpointOptions)
    evaluation: EvaluationOptions = Field(default_factory=EvaluationOptions)
    logging: LoggingOptions = Field(default_factory=LoggingOptions)
