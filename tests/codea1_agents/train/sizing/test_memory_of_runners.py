"""The memory of a runner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from codea1_agents.models.shapes import PUBLISHED
from codea1_agents.train.grpo.settings import ModelSettings
from codea1_agents.train.sizing.memory import MicroBatch, Part, SizedModule, engines_of, runner_parts

NAME = "Qwen/Qwen2.5-Coder-1.5B-Instruct"
SHAPE = PUBLISHED[NAME]
GPU = 24e9


def sampled(engine: str = "vllm", dtype: str = "bfloat16", **options: Any) -> SizedModule:
    settings = ModelSettings(NAME, sampling_dtype=dtype, rollout_engine=engine, engine_options=options)
    return SizedModule(SHAPE, settings, MicroBatch(2048, 1024, 2048), rows=64, longest=2048)


def parts(*modules: SizedModule, share: float = 1.0, sleeps: bool = False) -> dict[str, Part]:
    found = runner_parts(modules, engines_of(modules, GPU, share), sleeps=sleeps)
    return {each.name: each for each in found if each.n_bytes}


def test_engines_divide_the_share_of_their_runner() -> None:
    module = sampled(max_model_len=2048)
    both, one = parts(module, module, share=0.5), parts(module, share=0.5)
    assert both["engines"].n_bytes == one["engines"].n_bytes == 0.45 * GPU
    assert both["weights to hand over"] == Part("weights to hand over", 2 * 2 * SHAPE.parameters, is_on_host=True)
    two, (single,) = engines_of([module, module], GPU, 0.5), engines_of([module], GPU, 0.5)
    assert all(0 < each.cache_tokens < single.cache_tokens for each in two)
    stated = sampled(gpu_memory_utilization=0.3, max_model_len=2048)
    assert parts(stated)["engines"].n_bytes == int(0.3 * GPU)


def test_an_engine_must_hold_the_longest_request() -> None:
    short, long, own = (sampled(max_model_len=2048), sampled(max_model_len=32_768), sampled())
    faults = [engine.fault for each in (short, long, own) for engine in engines_of([each], GPU, 0.25)]
    said = "an engine of vLLM gets 5.4 GB and needs 5.9 for 32768 tokens"
    assert faults == ["", said, said]  # the model's own context is as long


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("max_model_len", 32_769, "the model's context is 32768 tokens"),
        ("tensor_parallel_size", 5, "does not divide the model's 12 heads"),
        ("max_num_batched_tokens", 128, "is less than max_num_seqs=256"),
    ],
)
def test_what_vllm_would_refuse_is_refused_before(option: str, value: int, said: str) -> None:
    (engine,) = engines_of([sampled(**{option: value})], 8 * GPU, 1.0)
    assert engine.fault.startswith(f"vLLM refuses {option}={value}")
    assert engine.fault.endswith(said)


def test_a_tensor_is_on_its_way_whole() -> None:
    name, small = "pieces of weights on their way", replace(sampled().settings, handover_piece_mb=1.0)
    assert parts(replace(sampled(), settings=small))[name].n_bytes == 2 * SHAPE.head_weights
    large = parts(replace(sampled(), settings=replace(small, handover_piece_mb=1024.0)))
    assert large[name].n_bytes == large["a piece on its way to an engine"].n_bytes == 2**30
    assert "a piece on its way to an engine" not in parts(sampled("transformers"))


def test_engines_that_sleep_leave_their_weights_on_the_host() -> None:
    found = parts(sampled(), sampled(), sleeps=True)
    assert found["weights of sleeping engines"].n_bytes == 2 * 2 * SHAPE.parameters
    assert found["weights of sleeping engines"].is_on_host
    assert 0 < found["engines"].idle_bytes < found["engines"].n_bytes
    assert "weights of sleeping engines" not in parts(sampled())


def test_an_engine_without_a_gpu_gets_what_it_needs() -> None:
    assert engines_of([sampled()], 0, 0.0) == ()
    (engine,) = engines_of([sampled()], GPU, 0.25)
    (on_cpu,) = [each.n_bytes for each in runner_parts([sampled()], (), sleeps=False) if each.name == "engines"]
    assert not replace(engine, n_bytes=on_cpu).fault
    assert replace(engine, n_bytes=on_cpu - 1).fault


def test_transformers_samples_with_a_cache_for_all_rows() -> None:
    half, full = (parts(sampled("transformers", dtype)) for dtype in ("bfloat16", "float32"))
    assert set(half) == {"weights", "cache and logits", "pieces of weights on their way"}
    assert half["weights"].n_bytes == 2 * SHAPE.parameters
    assert half["cache and logits"].n_bytes > 64 * 2048 * SHAPE.cache_bytes(2)
    assert full["weights"].n_bytes == 2 * half["weights"].n_bytes
