"""Computes the memory and time that GRPO on two models of some billion parameters needs, from their shapes.

    python benchmarks/training_arithmetic.py [--json] [--handover MILLIONS]

It runs nothing on a GPU. The shapes are the published ones of Qwen2.5-Coder, and the GPU figures those of the makers
(dense bfloat16). The share of these figures that a training reaches is an assumption, which the output states.
`--handover` measures the transfer of weights from a learner to a runner in this process, with a model of random
weights.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from typing import Any

from measuring import Spread, machine
from rich.console import Console
from rich.table import Table

GB = 1e9


@dataclass(frozen=True)
class ModelShape:
    """A Qwen2 model."""

    name: str
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    vocabulary: int
    is_tied: bool
    head_size: int = 128

    @property
    def parameters(self) -> int:
        """Number of parameters, tied ones counted once."""
        attention = self.hidden * self.head_size * (2 * self.heads + 2 * self.kv_heads)
        biases = self.head_size * (self.heads + 2 * self.kv_heads)
        layer = attention + biases + 3 * self.hidden * self.intermediate + 2 * self.hidden
        return self.vocabulary * self.hidden * (1 if self.is_tied else 2) + self.layers * layer + self.hidden

    @property
    def lora_parameters(self) -> int:
        """Number of parameters of adapters of rank 16 on all seven linear layers."""
        q, kv = self.heads * self.head_size, self.kv_heads * self.head_size
        sides = 2 * (self.hidden + q) + 2 * (self.hidden + kv) + 3 * (self.hidden + self.intermediate)
        return 16 * self.layers * sides

    @property
    def kv_bytes(self) -> int:
        """Bytes of the key-value cache in bfloat16, per token."""
        return 2 * 2 * self.layers * self.kv_heads * self.head_size

    @property
    def activation_bytes(self) -> int:
        """Bytes that autograd keeps per token and layer under bfloat16 autocast.

        Two inputs of norms in float32, twice their value and their bfloat16 output, q, k, v, the attention's output,
        and four tensors of the feed-forward part.
        """
        return (
            2 * (4 + 4 + 2) * self.hidden
            + 2 * self.head_size * (2 * self.heads + 2 * self.kv_heads)
            + 8 * self.intermediate
        )


SHAPES = (
    ModelShape("1.5B", 1536, 8960, 28, 12, 2, 151_936, is_tied=True),
    ModelShape("3B", 2048, 11_008, 36, 16, 2, 151_936, is_tied=True),
    ModelShape("7B", 3584, 18_944, 28, 28, 4, 152_064, is_tied=False),
)


@dataclass(frozen=True)
class Gpu:
    """One kind of GPU, with the figures of its maker."""

    name: str
    memory_gb: float
    tflops: float
    bandwidth_tb: float


GPUS = (
    Gpu("RTX 4090", 24, 165, 1.01),
    Gpu("L40S", 48, 362, 0.86),
    Gpu("A100", 80, 312, 2.04),
    Gpu("H100", 80, 989, 3.35),
    Gpu("H20", 96, 148, 4.0),
)


@dataclass(frozen=True)
class Step:
    """One iteration of the paper's run. Mean lengths are assumptions."""

    candidates: int = 2048
    suites: int = 16_384
    trained_suites: int = 2048
    prompt: int = 700
    response: int = 500
    longest: int = 4096
    learns_at: float = 0.35
    """Share of a GPU's peak that learning reaches; long prefills reach about the same."""
    samples_at: float = 0.5
    """Share of a GPU's bandwidth that decoding reaches."""
    rows_sampled: int = 128
    """Responses in flight."""


STEP = Step()
_LOGIT_BYTES = 19  # float32, with what log-probabilities, entropies and gradients need meanwhile; measured on a CPU
_LOGITS_AT_ONCE = 256  # the default of `training.logits_at_once`
_JUDGE_MS, _READING_MS = 8.4, 1.8  # processor time of a candidate with 8 suites: docs/benchmarks.md


def memory_gb(shape: ModelShape, *, learners: int = 1, checkpointing: bool, lora: bool = False) -> dict[str, float]:
    """Return the memory of one learner, which holds both roles. Activations are those of one row of full length."""
    n = shape.parameters
    trained = shape.lora_parameters if lora else n
    tokens = STEP.prompt + STEP.longest
    layers = (
        shape.layers * 4 * shape.hidden + shape.activation_bytes
        if checkpointing
        else shape.layers * shape.activation_bytes
    )
    found = {
        "weights": 2 * 4 * n,
        # One role learns after the other; DDP keeps the buckets of both.
        "gradients": 4 * trained + (2 * 4 * trained if learners > 1 else 0),
        "AdamW": 2 * 8 * trained,
        "references": 0 if lora else 2 * 4 * n,  # a model with its adapters off is its own reference
        "activations": tokens * layers,
        "logits": _LOGITS_AT_ONCE * shape.vocabulary * _LOGIT_BYTES,
    }
    return {name: value / GB for name, value in found.items()}


def sampling_gb(shape: ModelShape) -> dict[str, float]:
    """Return the memory of a runner: both roles in bfloat16, and the cache of all rows in flight at full length."""
    cache = STEP.rows_sampled * (STEP.prompt + STEP.longest) * shape.kv_bytes
    return {"weights": 2 * 2 * shape.parameters / GB, "cache": cache / GB}


def seconds(shape: ModelShape, gpu: Gpu) -> dict[str, float]:
    """Return the seconds of a step on one GPU, with sampling and learning one after the other."""
    n, replies = shape.parameters, STEP.candidates + STEP.suites
    length = STEP.prompt + STEP.response
    read = 2 * n + STEP.rows_sampled * (STEP.prompt + STEP.response / 2) * shape.kv_bytes  # per token of all rows
    decode = replies / STEP.rows_sampled * STEP.response * read / (gpu.bandwidth_tb * 1e12 * STEP.samples_at)
    prefill = replies * STEP.prompt * 2 * n / (gpu.tflops * 1e12 * STEP.learns_at)
    # Forward 2 and backward 4 operations per parameter and token, the reference 2, activations again 2.
    learn = (STEP.candidates + STEP.trained_suites) * length * 10 * n / (gpu.tflops * 1e12 * STEP.learns_at)
    return {"decode": decode, "prefill": prefill, "learn": learn}


def judging_s() -> float:
    """Return the processor seconds of judging a step."""
    return STEP.candidates * (_JUDGE_MS + _READING_MS) / 1000


def handover(millions: int, rounds: int = 5) -> dict[str, Any]:
    """Measure get_state, ray.put with ray.get, and set_state of a model in float32."""
    import ray  # noqa: PLC0415
    import torch  # noqa: PLC0415
    from transformers import Qwen2Config, Qwen2ForCausalLM  # noqa: PLC0415

    from codea1_agents.train.grpo.adapters import untied  # noqa: PLC0415

    layer = 4 * 512 * 512 + 3 * 512 * 2048
    config = Qwen2Config(
        vocab_size=4096,
        hidden_size=512,
        intermediate_size=2048,
        num_hidden_layers=max(1, round(millions * 1e6 / layer)),
        num_attention_heads=8,
        num_key_value_heads=8,
    )
    model = Qwen2ForCausalLM(config)
    n_bytes = sum(each.numel() * 4 for each in untied(model).values())
    ray.init(
        "local", num_cpus=1, include_dashboard=False, log_to_driver=False, object_store_memory=int(4 * n_bytes + 2e8)
    )
    times: dict[str, list[float]] = {"get_state": [], "put and get": [], "set_state": []}
    for _ in range(rounds):
        start = time.perf_counter()
        state = {name: tensor.detach().cpu().numpy().copy() for name, tensor in untied(model).items()}
        taken = time.perf_counter()
        arrived = ray.get(ray.put(state))
        carried = time.perf_counter()
        with torch.no_grad():
            for name, tensor in untied(model).items():
                tensor.copy_(torch.from_numpy(arrived[name].copy()))
        done = time.perf_counter()
        for name, value in zip(times, (taken - start, carried - taken, done - carried), strict=True):
            times[name].append(value / (n_bytes / GB))
    ray.shutdown()
    return {"gb": n_bytes / GB, "s_per_gb": {name: Spread.of(values).to_json() for name, values in times.items()}}


def computed() -> dict[str, Any]:
    """Return all figures."""
    variants = {
        "plain": {"checkpointing": False},
        "checkpointing": {"checkpointing": True},
        "checkpointing, DDP": {"checkpointing": True, "learners": 2},
        "checkpointing, LoRA": {"checkpointing": True, "lora": True},
    }
    return {
        "step": STEP.__dict__,
        "judging_cpu_s": judging_s(),
        "models": [
            {
                "name": shape.name,
                "parameters": shape.parameters,
                "lora_parameters": shape.lora_parameters,
                "kv_bytes": shape.kv_bytes,
                "learner_gb": {name: memory_gb(shape, **options) for name, options in variants.items()},  # type: ignore[arg-type]
                "runner_gb": sampling_gb(shape),
                "seconds": {gpu.name: seconds(shape, gpu) for gpu in GPUS},
                "handover_gb": 2 * 4 * shape.parameters / GB,
            }
            for shape in SHAPES
        ],
    }


def show(found: dict[str, Any]) -> None:
    """Print tables."""
    console = Console(width=120)
    memory = Table(
        "", *[each["name"] for each in found["models"]], title="memory, GB; both roles, one row of the longest length"
    )
    for variant in found["models"][0]["learner_gb"]:
        for part in found["models"][0]["learner_gb"][variant]:
            memory.add_row(f"{variant}: {part}", *[f"{m['learner_gb'][variant][part]:.1f}" for m in found["models"]])
        totals = [sum(each["learner_gb"][variant].values()) for each in found["models"]]
        memory.add_row(f"[b]{variant}: together", *[f"[b]{total:.0f}" for total in totals], end_section=True)
    for part in ("weights", "cache"):
        memory.add_row(f"runner, bfloat16: {part}", *[f"{each['runner_gb'][part]:.1f}" for each in found["models"]])
    memory.add_row("hand-over of both, float32", *[f"{each['handover_gb']:.1f}" for each in found["models"]])
    console.print(memory)
    timing = Table(
        "one GPU", *[each["name"] for each in found["models"]], title="minutes of a step: decode + prefill + learn"
    )
    for gpu in GPUS:
        cells = [each["seconds"][gpu.name] for each in found["models"]]
        timing.add_row(gpu.name, *[" + ".join(f"{value / 60:.1f}" for value in cell.values()) for cell in cells])
    console.print(timing)
    console.print(f"judging: {found['judging_cpu_s']:.0f} s of processor time per step; assumptions: {found['step']}")
    if "handover" in found:
        console.print(found["handover"])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument(
        "--handover", type=int, default=0, metavar="MILLIONS", help="parameters of the model that is handed over"
    )
    options = parser.parse_args()
    found = computed()
    if options.handover:
        found |= {"machine": machine(), "handover": handover(options.handover)}
    print(json.dumps(found)) if options.json else show(found)


if __name__ == "__main__":
    main()
