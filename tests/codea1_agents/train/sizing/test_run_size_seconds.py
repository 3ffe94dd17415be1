"""Tokens and seconds of a step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from codea1_agents.models.shapes import PUBLISHED
from codea1_agents.train.grpo.settings import LoraSettings, ModelSettings
from codea1_agents.train.sizing.devices import Gpu
from codea1_agents.train.sizing.memory import MicroBatch, SizedModule
from codea1_agents.train.sizing.run_size import LEARNS_AT, SAMPLES_AT, TOKEN_S, RoleWork, StepSeconds, step_seconds

NAME = "Qwen/Qwen2.5-Coder-0.5B-Instruct"
SHAPE, SETTINGS = PUBLISHED[NAME], ModelSettings(NAME)
WORK = RoleWork(
    "coder", "shared", 700, 500, group=8, sampled=64, trained=64, epochs=1, prompt_once=False, extra_passes=1
)
GPU = Gpu("", 24, tflops=100, bandwidth_tb=1)


def seconds(work: RoleWork = WORK, settings: ModelSettings = SETTINGS, **options: Any) -> StepSeconds:
    module = SizedModule(SHAPE, settings, MicroBatch(2048, 1024, 2048), rows=16, longest=2048)
    return step_seconds([work], {"shared": module}, GPU, **{"n_sampling": 1, "n_learning": 2, **options})


def test_tokens() -> None:
    assert WORK.sampled_tokens == 32_000
    assert WORK.prefilled_tokens == 8 * 700  # a group shares its prompt
    assert WORK.learned_tokens == 64 * 1200
    assert replace(WORK, prompt_once=True, epochs=2).learned_tokens == 2 * (8 * 700 + 64 * 500)


def test_seconds_follow_from_operations_and_bytes() -> None:
    found = seconds()
    assert found.learn == pytest.approx(64 * 1200 * 8 * SHAPE.parameters / (100e12 * LEARNS_AT) / 2)
    read = 4 * SHAPE.parameters + 16 * (700 + 250) * SHAPE.cache_bytes(4)
    assert found.decode == pytest.approx(4 * 500 * read / (1e12 * SAMPLES_AT))
    assert found.prefill == pytest.approx(8 * 700 * 2 * SHAPE.parameters / (100e12 * LEARNS_AT))
    assert found.total == found.decode + found.prefill + found.learn
    assert seconds(overlap=True).total == max(found.decode + found.prefill, found.learn)


def test_a_step_has_a_range_of_the_longest_replies_and_the_hand_over() -> None:
    found = seconds(replace(WORK, longest=4096, batches=2))
    read = 4 * SHAPE.parameters / (1e12 * SAMPLES_AT)
    assert found.tail == pytest.approx(2 * 3596 * max(TOKEN_S, read))
    gigabytes = 4 * SHAPE.parameters / 1e9
    assert found.handover == pytest.approx((1.3 * gigabytes, 2.0 * gigabytes))
    assert found.least == found.total + found.handover[0]
    assert found.most == found.total + found.tail + found.handover[1]
    assert seconds().tail == 0
    adapters = seconds(settings=replace(SETTINGS, lora=LoraSettings()))
    assert adapters.handover[1] < found.handover[0] / 10


def test_a_small_cache_of_an_engine_bounds_the_rows_in_flight() -> None:
    engine = replace(SETTINGS, rollout_engine="vllm")
    assert seconds(settings=engine, cache_tokens=2 * 1200).decode > seconds(settings=engine).decode
    assert seconds(settings=engine, cache_tokens=16 * 1200) == seconds(settings=engine)
    assert seconds(cache_tokens=2 * 1200) == seconds()  # transformers has no such cache


def test_more_gpus_and_adapters_are_faster_and_frozen_roles_learn_nothing() -> None:
    assert seconds(n_sampling=4).decode == pytest.approx(seconds().decode / 4)
    assert seconds(settings=replace(SETTINGS, lora=LoraSettings())).learn < seconds().learn
    assert seconds(replace(WORK, trained=0)).learn == 0
