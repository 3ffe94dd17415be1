"""Prints what GRPO on two models of some billion parameters needs, and holds the arithmetic against a measurement.

    python benchmarks/training_arithmetic.py [--json] [--measure] [--handover MILLIONS]

The memory and the minutes are those of `codea1 train --dry-run`, for the presets and some GPUs; nothing runs on a GPU.
`--measure` compares the bytes of a learner with those that a CPU allocates, for a model of 54 million random weights.
`--handover` measures the transfer of weights from a learner to a runner in this process, with random weights, too.
"""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import fields
from typing import Any

from measuring import Spread, machine, option_parser
from rich.console import Console
from rich.table import Table

from codea1_agents.models.shapes import PUBLISHED
from codea1_agents.train.grpo.settings import LoraSettings, ModelSettings
from codea1_agents.train.settings.loading import load_training
from codea1_agents.train.settings.options import ClusterOptions
from codea1_agents.train.sizing.devices import SHEETS, Devices, Gpu, parse_devices
from codea1_agents.train.sizing.fitting import advice
from codea1_agents.train.sizing.memory import MicroBatch, SizedModule, learner_parts
from codea1_agents.train.sizing.run_size import assumptions, size_of

GB = 1e9
PRESETS = ("one-gpu", "one-gpu-lora", "node-lora", "paper-1.5b", "paper-3b", "paper-7b")
DEVICES = ("1 x 24GB", "8 x 80GB", "8 x 96GB")
LEARNER_BATCH = MicroBatch(tokens=8192 + 4096, replies=4096, keys=8192 + 4096)
"""One row of the longest prompt and reply that the paper's settings allow."""
VARIANTS: dict[str, dict[str, Any]] = {
    "float32": {},
    "bfloat16": {"autocast": "bfloat16"},
    "bfloat16, checkpointing": {"autocast": "bfloat16", "gradient_checkpointing": True},
    "bfloat16, checkpointing, LoRA": {"autocast": "bfloat16", "gradient_checkpointing": True, "lora": LoraSettings()},
}
_JUDGE_MS, _READING_MS = 8.4, 1.8  # processor time of a candidate with 8 suites: docs/benchmarks.md
_LAYER = 4 * 512 * 512 + 3 * 512 * 2048  # weights of a layer of the random models


def learner_gb(model: str, n_learners: int, options: dict[str, Any], *, is_sharded: bool = False) -> dict[str, float]:
    """Return the memory of a learner of both roles, by part."""
    module = SizedModule(PUBLISHED[model], ModelSettings(model, **options), LEARNER_BATCH)
    sharding = "full" if is_sharded else "none"
    parts = learner_parts(
        [module, module], ClusterOptions(learners=n_learners, gpus_per_learner=1.0, sharding=sharding)
    )
    return {each.name: each.n_bytes / GB for each in parts if not each.is_on_host}


def paper_minutes(size: str, gpu: Gpu) -> dict[str, float]:
    """Return the minutes of a step of the paper's run on eight GPUs of a kind."""
    seconds = size_of(load_training(f"paper-{size}"), Devices(8, gpu)).seconds
    assert seconds is not None
    return {name: getattr(seconds, name) / 60 for name in ("decode", "prefill", "learn")}


def judging_s() -> float:
    """Return the processor seconds of judging a step of the paper's run."""
    coder = size_of(load_training("paper-1.5b"), parse_devices("8 x H100")).work[0]
    return coder.sampled * (_JUDGE_MS + _READING_MS) / 1000


def random_model(millions: float, vocabulary: int = 4096) -> Any:
    """Return a Qwen2 of about so many parameters, 512 wide."""
    from transformers import Qwen2Config, Qwen2ForCausalLM  # noqa: PLC0415

    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=vocabulary,
            hidden_size=512,
            intermediate_size=2048,
            num_hidden_layers=max(1, round((millions * 1e6 - vocabulary * 512) / _LAYER)),
            num_attention_heads=8,
            num_key_value_heads=8,
            max_position_embeddings=4096,
            tie_word_embeddings=True,
        )
    )


def comparison(millions: float = 55, vocabulary: int = 32_000) -> dict[str, dict[str, dict[str, float]]]:
    """Return computed and measured bytes of a learner's step, by variant and part."""
    import torch  # noqa: PLC0415
    from learner_bytes import Rows, computed, measured  # noqa: PLC0415

    from codea1_agents.train.tiny.tokenizer import new_tokenizer  # noqa: PLC0415

    torch.manual_seed(0)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        random_model(millions, vocabulary).save_pretrained(folder)
        new_tokenizer().save_pretrained(folder)
        for name, options in VARIANTS.items():
            settings = ModelSettings(folder, logits_chunk_tokens=64, **options)
            both = computed(settings, rows := Rows(2, 64, 128)), measured(settings, rows)
            found[name] = {
                each.name: {"computed": getattr(both[0], each.name), "measured": getattr(both[1], each.name)}
                for each in fields(both[0])
            }
    return found


def handover(millions: int, rounds: int = 5) -> dict[str, Any]:
    """Measure get_state, ray.put with ray.get, and set_state of a model in float32."""
    import ray  # noqa: PLC0415
    import torch  # noqa: PLC0415

    from codea1_agents.train.grpo.causal_models import untied  # noqa: PLC0415

    model = random_model(millions)
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


def figures() -> dict[str, Any]:
    """Return all figures that need no measurement."""
    learners = {
        f"{variant}{of_several}": {model: learner_gb(model, n, options) for model in PUBLISHED}
        for n, of_several in ((1, ""), (2, "; two or more learners"))
        for variant, options in VARIANTS.items()
    }
    checkpointed = VARIANTS["bfloat16, checkpointing"]
    learners |= {
        f"bfloat16, checkpointing; sharded over {n} learners": {
            model: learner_gb(model, n, checkpointed, is_sharded=True) for model in PUBLISHED
        }
        for n in (2, 4, 6, 8)
    }
    return {
        "assumptions": assumptions(size_of(load_training("paper-1.5b"), parse_devices(DEVICES[1])).work),
        "learner_gb": learners,
        "presets": {
            name: {on: advice(config, size_of(config, parse_devices(on))) for on in DEVICES}
            for name in PRESETS
            for config in [load_training(name)]
        },
        "paper_minutes": {
            str(gpu): {size: paper_minutes(size, gpu) for size in ("1.5b", "3b", "7b")}
            for gpu in SHEETS
            if gpu.memory_gb >= 80
        },
        "judging_cpu_s": judging_s(),
    }


def show(found: dict[str, Any]) -> None:
    """Print tables."""
    console = Console(width=120)
    for title, by_model in found["learner_gb"].items():
        table = Table("GB", *(name.removeprefix("Qwen/Qwen2.5-Coder-") for name in by_model), title=f"learner: {title}")
        for part in next(iter(by_model.values())):
            table.add_row(part, *(f"{parts[part]:.1f}" for parts in by_model.values()))
        table.add_row("together", *(f"{sum(parts.values()):.0f}" for parts in by_model.values()))
        console.print(table)
    for name, by_devices in found["presets"].items():
        console.print(f"[b]{name}", *by_devices.values(), sep="\n  ")
    timing = Table("8 GPUs", "1.5B", "3B", "7B", title="minutes of a step of the paper: decode + prefill + learn")
    for gpu, by_size in found["paper_minutes"].items():
        timing.add_row(gpu, *(" + ".join(f"{part:.1f}" for part in each.values()) for each in by_size.values()))
    console.print(timing)
    console.print(f"judging: {found['judging_cpu_s']:.0f} s of processor time; assumptions: {found['assumptions']}")
    for variant, parts in found.get("comparison", {}).items():
        table = Table("MB", "computed", "measured", "deviation", title=variant)
        for part, of in parts.items():
            off = f"{of['computed'] / of['measured'] - 1:+.1%}" if of["measured"] else ""
            table.add_row(part, f"{of['computed'] / 1e6:.1f}", f"{of['measured'] / 1e6:.1f}", off)
        console.print(table)
    if "handover" in found:
        console.print(found["handover"])


def main() -> None:
    """Print the tables."""
    parser = option_parser(__doc__, json="one JSON object")
    parser.add_argument("--measure", action="store_true", help="compare with what a CPU allocates; takes minutes")
    parser.add_argument(
        "--handover", type=int, default=0, metavar="MILLIONS", help="parameters of the model that is handed over"
    )
    options = parser.parse_args()
    found = figures()
    if options.measure:
        found |= {"machine": machine(), "comparison": comparison()}
    if options.handover:
        found |= {"machine": machine(), "handover": handover(options.handover)}
    print(json.dumps(found)) if options.json else show(found)


if __name__ == "__main__":
    main()
