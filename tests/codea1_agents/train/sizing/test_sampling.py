"""The memory of a runner."""

from __future__ import annotations

from typing import Any

from codea1_agents.models.shapes import PUBLISHED
from codea1_agents.train.grpo.model_settings import ModelSettings
from codea1_agents.train.sizing.sampling import SampledModule, runner_memory

NAME = "Qwen/Qwen2.5-Coder-1.5B-Instruct"
SHAPE = PUBLISHED[NAME]
GPU = 24e9


def sampled(engine: str = "vllm", dtype: str = "bfloat16", **options: Any) -> SampledModule:
    settings = ModelSettings(NAME, sampling_dtype=dtype, rollout_engine=engine, engine_options=options)
    return SampledModule(SHAPE, settings, longest=2048, rows=64)


def test_engines_divide_the_share_of_their_runner() -> None:
    both = runner_memory([sampled(max_model_len=2048), sampled(max_model_len=2048)], GPU, 0.5)
    one = runner_memory([sampled(max_model_len=2048)], GPU, 0.5)
    assert sum(each.n_bytes for each in both.on_device) == sum(each.n_bytes for each in one.on_device) == 0.45 * GPU
    assert 0 < both.cache_tokens < one.cache_tokens
    assert sum(each.n_bytes for each in both.on_host) == 2 * 2 * SHAPE.parameters


def test_a_stated_share_has_precedence() -> None:
    found = runner_memory([sampled(gpu_memory_utilization=0.3, max_model_len=2048)], GPU, 1.0)
    assert sum(each.n_bytes for each in found.on_device) == int(0.3 * GPU)


def test_an_engine_must_hold_the_longest_request() -> None:
    short, long = (runner_memory([sampled(max_model_len=n)], GPU, 0.25) for n in (2048, 32_768))
    assert not short.fault
    assert long.fault == "an engine of vLLM gets 5.4 GB and needs 5.9 for 32768 tokens"
    assert runner_memory([sampled()], GPU, 0.25).fault == long.fault  # the model's own context is as long


def test_transformers_samples_with_a_cache_for_all_rows() -> None:
    half, full = (runner_memory([sampled("transformers", dtype)], GPU, 1.0) for dtype in ("bfloat16", "float32"))
    weights, cache = (each.n_bytes for each in half.on_device if each.n_bytes)
    assert weights == 2 * SHAPE.parameters
    assert cache > 64 * 2048 * SHAPE.cache_bytes(2)
    assert next(iter(full.on_device)).n_bytes == 2 * weights
    assert half.cache_tokens == 0
    assert not half.fault
