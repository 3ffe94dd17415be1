"""What one module is made of, and what computes its responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from codea1_env.errors import UnknownName, UserError

DTYPES = ("float32", "bfloat16", "float16")
ENGINES = ("transformers", "vllm")

_GAPS = {"float32": 1e-4, "bfloat16": 0.1, "float16": 0.05}  # measured: docs/training-engines.md


@dataclass(frozen=True, slots=True)
class LoraSettings:
    """Low-rank adapters (arXiv 2106.09685): all that learns, beside weights that stay as they were loaded.

    Raises:
        UserError: a number out of range, or no module to adapt.
    """

    rank: int = 16
    alpha: float = 32.0
    """What an adapter adds is scaled by alpha / rank."""
    target_modules: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    """Names of the linear layers that get one; as in Qwen2 and Llama."""
    seed: int = 0
    """Of the adapters' first weights; the model begins as it was loaded whatever it is."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "target_modules", tuple(self.target_modules))
        if self.rank < 1 or not self.alpha > 0 or not self.target_modules or "" in self.target_modules:
            raise UserError(f"these are no adapters: {self}; rank and alpha must be positive, target_modules not empty")


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """A causal language model and how it is computed.

    Raises:
        UserError: an unknown engine or type of numbers, or numbers out of range.
    """

    path: str
    """A directory or hub id of a causal language model."""
    sampling_dtype: str = "float32"
    """Of the weights that sample; the learner's are float32 always, as small steps vanish in fewer bits."""
    autocast: str = ""
    """Type that the learner computes in, e.g. `bfloat16`; empty: float32."""
    gradient_checkpointing: bool = False
    """Whether activations are computed again for the gradient instead of kept: less memory, a third more time."""
    with_reference: bool = True
    """Whether the divergence from the model as it was loaded is part of the loss."""
    entropy_bonus: bool = False
    """Whether entropy is part of the loss; else it is only told, without a gradient."""
    lora: LoraSettings | None = None
    """Adapters to train in place of the whole model."""
    rollout_engine: str = "transformers"
    """Who samples: `transformers`, in the runner's process, or `vllm`."""
    engine_options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `vllm.LLM`, e.g. gpu_memory_utilization, max_num_seqs, kv_cache_memory_bytes."""
    handover_folder: str = ""
    """Where weights are put down for another engine; empty: /dev/shm, or the folder for temporary files."""
    handover_gap: float = 0.0
    """Largest difference of log-probabilities between engine and learner after a hand-over; 0: by `sampling_dtype`."""

    def __post_init__(self) -> None:
        if isinstance(self.lora, Mapping):
            object.__setattr__(self, "lora", LoraSettings(**self.lora))
        if self.rollout_engine not in ENGINES:
            raise UnknownName.of("rollout engine", self.rollout_engine, ENGINES)
        for dtype in filter(None, (self.sampling_dtype, self.autocast)):
            if dtype not in DTYPES:
                raise UnknownName.of("type of numbers", dtype, DTYPES)
        if not self.sampling_dtype or not 0 <= self.handover_gap < float("inf"):
            raise UserError(f"sampling_dtype must be named and handover_gap at least 0: {self}")
        if self.engine_options and self.rollout_engine == "transformers":
            raise UserError("engine_options are for rollout_engine='vllm'; the engine 'transformers' has none")

    @property
    def allowed_gap(self) -> float:
        """Largest difference of log-probabilities, in nats, that a hand-over may leave."""
        return self.handover_gap or _GAPS[self.sampling_dtype]

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dictionary, as RLlib's `model_config` wants it; `ModelSettings(**it)` is this again."""
        return asdict(self)
