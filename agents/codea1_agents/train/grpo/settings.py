"""The settings of one training run, as plain values that runners, learners and the driver share.

Needs neither torch nor Ray.
"""

# Annotations are evaluated here, as pydantic reads them through derived classes in other modules.

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pydantic import ConfigDict

from codea1_agents.models.shapes import UnknownShape, shape_of
from codea1_agents.train.declared import Count, Flag, NotNegative, Positive, check_values, values_of
from codea1_agents.train.grpo.hyperparameters import (
    AdvantageSettings,
    LengthSettings,
    RolloutSettings,
)
from codea1_env.agent import AgentSpec
from codea1_env.errors import UserError
from codea1_env.problems import DEFAULT_SOURCE
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.sandbox import Limits
from codea1_env.secret import require_no_secrets

DTYPES = ("float32", "bfloat16", "float16")
SHARDS = "shards"
"""Folder of a checkpoint with the parts of all learners."""
SHARDED_ABOVE = 1_000_000_000
"""Parameters of all models of a run above which `auto` shards them; with gradients and AdamW these are 16 GB."""

_GAPS = {"": 1e-3, "float32": 1e-3, "float16": 0.05, "bfloat16": 0.2}  # docs/training-engines.md, "What is verified"
_USED = 0.9  # share of a GPU's memory that all engines of a runner use together, as vLLM's usual default for one
_CPU_CACHE_BYTES = 4 * 2**30  # caches of all engines of a runner on a CPU, whose memory is not the runner's alone


_OF_BASE = (
    "path",
    "base_dtype",
    "gathering_dtype",
    "sampling_dtype",
    "rollout_engine",
    "engine_options",
    "handover_piece_mb",
    "handover_folder",
)
"""What modules on one base say alike."""


@dataclass(frozen=True, slots=True)
class LoraSettings:
    """Low-rank adapters (arXiv 2106.09685). Only they train; the weights stay as they were loaded.

    Raises:
        UserError: a number out of range, or no layer to adapt.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    rank: Count = 16
    alpha: Positive = 32.0
    """The output of an adapter is scaled by alpha / rank."""
    target_modules: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    """Names of the linear layers that get an adapter, as in Qwen2 and Llama."""
    seed: int = 0
    """Of the initial weights of the adapters. With any seed, the model starts as it was loaded."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "target_modules", tuple(self.target_modules))
        if self.rank < 1 or not self.alpha > 0 or not self.target_modules or "" in self.target_modules:
            raise UserError(f"these are no adapters: {self}; rank and alpha must be positive, target_modules not empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """How a module is computed and sampled. A settings file has these under `agents`."""

    sampling_dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Data type of the weights that sample. The learner's weights are always float32: fewer bits lose small steps."""
    autocast: Literal["", "bfloat16", "float16"] = ""
    """Data type in which the learner computes; empty: float32."""
    gathering_dtype: Literal["", "bfloat16", "float16"] = ""
    """Data type in which sharded learners gather parameters; empty: float32. Gradients are summed in float32."""
    gradient_checkpointing: Flag = False
    """Whether the learner computes activations again for the gradient. It saves memory and takes a third more time."""
    attention: Literal["", "sdpa", "eager", "flash_attention_2"] = ""
    """Attention of learner and engine `transformers`; empty: PyTorch's (`sdpa`) for most models. `flash_attention_2`
    needs its package and computes in half precision."""
    lora: LoraSettings | None = None
    """Adapters to train instead of the whole model."""
    base_dtype: Literal["float32", "bfloat16"] = "float32"
    """Data type of the frozen weights under adapters where they learn. The adapters are always float32."""
    rollout_engine: Literal["transformers", "vllm"] = "transformers"
    """Engine that samples."""
    engine_options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `vllm.LLM`, e.g. gpu_memory_utilization, max_num_seqs, max_model_len."""
    handover_piece_mb: Positive = 256.0
    """Most MB (2^20 bytes) of weights that are on their way at once; a larger tensor goes alone."""
    handover_folder: str = ""
    """Folder of files that hand weights over to vLLM. Empty: through the GPU's memory if vLLM has one worker on a GPU,
    else by files in /dev/shm or the folder for temporary files."""
    largest_gap: NotNegative = 0.0
    """Largest mean difference of log-probabilities between sampler and learner before the first update, in nats; a
    single token may differ twenty times as much. 0: by the data types of both."""
    template_arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the chat template, e.g. `{ enable_thinking = false }`."""


@dataclass(frozen=True, slots=True)
class ModelSettings(ModelOptions):
    """A causal language model and how it is computed.

    Raises:
        UserError: an unknown engine or data type, or a number out of range.
    """

    path: str
    """A directory, GGUF file or hub id of a causal language model."""
    shares_base: bool = False
    """Whether the weights under its adapters are those of the other modules with this setting: in a process once."""
    with_reference: bool = True
    """Whether the divergence from the model as it was loaded is part of the loss."""
    entropy_bonus: bool = False
    """Whether entropy is part of the loss. Otherwise it is only reported and has no gradient."""
    logits_chunk_tokens: int = 256
    """Response tokens whose logits the learner holds at the same time; 0: all. `GRPOConfig` sets it from its own."""
    prompt_once: bool = True
    """Whether the learner computes a prompt once for all responses to it. `GRPOConfig` sets it from its own."""
    packing: bool = False
    """Whether the responses of a forward pass are one row. `GRPOConfig` sets it from its own."""
    temperature: float = 1.0
    """Of the distribution whose log-probabilities the learner computes. `GRPOConfig` sets it from its own."""
    sharded: bool = False
    """Whether each learner holds a part of the model. `GRPOConfig` sets it from its own."""
    offloaded: bool = False
    """Whether that part is in the host's memory, with its gradients and the states of AdamW. `GRPOConfig` sets it from
    its own."""
    on_gpu: bool = False
    """Whether the module is to be on a GPU. `GRPOConfig` sets it."""

    def __post_init__(self) -> None:
        require_no_secrets(repr(self.engine_options))
        if isinstance(self.lora, Mapping):
            object.__setattr__(self, "lora", LoraSettings(**self.lora))
        check_values(ModelOptions, values_of(self, ModelOptions))
        if self.engine_options and self.rollout_engine == "transformers":
            raise UserError("engine_options are for rollout_engine='vllm'; the engine 'transformers' has none")
        if self.lora is None and (self.shares_base or self.base_dtype != "float32"):
            setting = "shares_base" if self.shares_base else "base_dtype"
            raise UserError(f"{setting} is for models with adapters (lora): all weights of {self.path} train")
        if self.packing and self.attention not in ("", "sdpa"):
            raise UserError(f"packing needs attention='sdpa': {self.attention!r} has no mask of pairs of tokens")

    @property
    def allowed_gap(self) -> float:
        """Largest mean difference of log-probabilities before the first update, in nats: by the coarsest data type."""
        dtypes = (self.sampling_dtype, self.autocast, self.gathering_dtype, self.base_dtype)
        return self.largest_gap or max(map(_GAPS.__getitem__, dtypes))

    @property
    def is_sharded_with_others(self) -> bool:
        """Whether learners hold parts of its base for all modules on it."""
        return self.sharded and self.shares_base

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dictionary for RLlib's `model_config`. `ModelSettings(**d)` restores these settings."""
        return asdict(self)


def require_one_base(models: Mapping[str, ModelSettings]) -> None:
    """Check that the modules on one base say the same of it.

    Raises:
        UserError: they do not.
    """
    sharing = [name for name, model in models.items() if model.shares_base]
    for name in sharing[1:]:
        for setting in _OF_BASE:
            first, own = getattr(models[sharing[0]], setting), getattr(models[name], setting)
            if own != first:
                raise UserError(f"{sharing[0]} and {name} have one base, but {setting} is {first!r} and {own!r}")


def require_adaptable(models: Mapping[str, ModelSettings]) -> None:
    """Check that each layer which is to have an adapter exists and can, as far as shapes of models are known here.

    Raises:
        UserError: one does not, or cannot.
    """
    for name, model in models.items():
        for target in model.lora.target_modules if model.lora is not None else ():
            try:
                why = shape_of(model.path).why_not_adapted(target)
            except UserError:  # loading says what is wrong
                continue
            if why:
                raise UserError(f"{name}: lora.target_modules: {model.path} cannot adapt {target!r}: {why}")


def is_sharded(sharding: str, n_learners: int, models: Collection[ModelSettings]) -> bool:
    """Return whether each learner holds a part of every model.

    Args:
        sharding: as in `LearnerSettings`.
        n_learners: of the run.
        models: of all modules; a base counts once. A model of unknown shape counts nothing.
    """
    if sharding != "auto" or n_learners < 2:
        return sharding == "full"
    own = [each.path for each in models if not each.shares_base]
    return sum(map(_parameters, [*own, *{each.path for each in models if each.shares_base}])) > SHARDED_ABOVE


def _parameters(model: str) -> int:
    try:
        return shape_of(model).parameters
    except UnknownShape:
        return 0


def engine_share(gpus_per_runner: float, n_engines: int) -> float:
    """Return the share of a GPU's memory for each engine of a runner, within (0, 1).

    Args:
        gpus_per_runner: GPUs of the runner; a fraction if runners share one. With more than one, each engine uses a
            part of each. 0: as with 1, since a runner in the driver's process can use a GPU that Ray did not assign.
        n_engines: engines of the runner, at least 1.
    """
    return _USED * min(1.0, gpus_per_runner or 1.0) / n_engines


def memory_options(gpus_per_runner: float, n_engines: int, *, is_cpu: bool) -> dict[str, Any]:
    """Return the arguments of vLLM that divide the memory of a runner among its engines.

    On a CPU vLLM's share would be one of the machine's memory, which learners and other runners use, too. So there the
    engines divide a fixed number of bytes.
    """
    if is_cpu:
        return {"kv_cache_memory_bytes": _CPU_CACHE_BYTES // n_engines}
    return {"gpu_memory_utilization": engine_share(gpus_per_runner, n_engines)}


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """Settings of one run that do not concern Ray."""

    problems: str = DEFAULT_SOURCE
    rules: Ruleset = field(default_factory=lambda: preset("fixed"))
    tester_view: str = "white_box"
    sandbox: str = "local"
    limits: Limits | None = None
    seed: int = 0
    rollout: RolloutSettings = field(default_factory=RolloutSettings)
    advantages: AdvantageSettings = field(default_factory=AdvantageSettings)
    models: Mapping[str, ModelSettings] = field(default_factory=dict)
    """By module: `coder` and `tester`, or one module that both roles share."""
    module_by_role: Mapping[str, str] = field(default_factory=dict)
    agents: Mapping[str, AgentSpec] = field(default_factory=dict)
    """By role: the agent that plays it where no module does."""
    frozen: frozenset[str] = frozenset()
    """Modules that play and do not learn."""
    lengths: LengthSettings = field(default_factory=LengthSettings)
    prompts: str = "default"

    def module_of(self, role: str) -> str:
        """Return the id of the module that plays a role; empty if an agent plays it."""
        return self.module_by_role.get(role, "")

    def player_of(self, role: str) -> str:
        """Return the name of what plays a role: a model's, or an agent's specification."""
        module = self.module_of(role)
        return self.models[module].path if module else str(self.agents.get(role, "nobody"))

    def has_player(self, role: str) -> bool:
        """Whether a module or an agent plays a role. Rules that do not pay the tester need none."""
        return bool(self.module_of(role)) or role in self.agents

    @property
    def trained_roles(self) -> frozenset[str]:
        """Roles whose responses train a module."""
        return frozenset(role for role, module in self.module_by_role.items() if module not in self.frozen)
