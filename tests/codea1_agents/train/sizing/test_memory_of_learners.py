"""The memory of a learner: which settings change which part, and by how much. `test_learner_bytes` checks the bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from codea1_agents.models.shapes import PUBLISHED
from codea1_agents.train.grpo.settings import LoraSettings, ModelSettings, is_sharded
from codea1_agents.train.settings.options import ClusterOptions
from codea1_agents.train.sizing.memory import (
    MicroBatch,
    SizedModule,
    first_learner_parts,
    kept_bytes,
    learner_parts,
    loading_part,
    work_bytes,
)

NAME = "Qwen/Qwen2.5-Coder-0.5B-Instruct"
SHAPE = PUBLISHED[NAME]
N = SHAPE.parameters


def module(*, learns: bool = True, tokens: int = 4096, **options: Any) -> SizedModule:
    return SizedModule(SHAPE, ModelSettings(NAME, **options), MicroBatch(tokens, tokens // 2, tokens), learns)


def parts(*modules: SizedModule, **cluster: Any) -> dict[str, int]:
    found = learner_parts(modules, ClusterOptions(**{"gpus_per_learner": 1.0, "sharding": "none", **cluster}))
    return {each.name: each.n_bytes for each in found}


def test_full_fine_tuning_of_two_roles() -> None:
    found = parts(module(), module())
    assert found["weights"] == found["references"] == 8 * N
    assert found["gradients"] == 4 * N  # one role learns after the other
    assert found["AdamW"] == 16 * N
    assert found["buckets of DDP"] == 0
    assert parts(module(), module(), learners=2)["buckets of DDP"] == 8 * N


def test_sharded_learners_hold_parts_and_gather_some() -> None:
    whole, part = parts(module(), module()), parts(module(), module(), learners=4, sharding="full")
    for name in ("weights", "references", "gradients", "AdamW"):
        assert part[name] == whole[name] // 4
    assert part["buckets of DDP"] == whole["gathered"] == 0
    assert 4 * SHAPE.head_weights < part["gathered"] < 4 * N
    assert part["activations"] == whole["activations"]


@pytest.mark.parametrize("cluster", [{}, {"learners": 4, "sharding": "full"}])
def test_modules_on_one_base_have_its_weights_once(cluster: dict[str, Any]) -> None:
    one, two = (
        [module(lora=LoraSettings(rank=rank), shares_base=shares, base_dtype="bfloat16") for rank in (8, 16)]
        for shares in (True, False)
    )
    n_learners = cluster.get("learners", 1)
    on_one, on_two = parts(*one, **cluster), parts(*two, **cluster)
    assert on_two["weights"] - on_one["weights"] == 2 * N // n_learners
    assert 0 <= on_one["gathered"] - on_two["gathered"] < 4 * N / 50  # the other adapter
    if cluster:
        at_start = [first_learner_parts(each, ClusterOptions(**cluster))[0].n_bytes for each in (one, two)]
        assert at_start[0] == n_learners * on_one["weights"]
        assert 2 * N < at_start[1] < at_start[0]


def test_learners_shard_by_what_they_hold() -> None:
    models = [module(lora=LoraSettings(), shares_base=shares).settings for shares in (True, True, True, False)]
    assert not is_sharded("auto", 2, models[:3])  # of .5 * 10^9 parameters
    assert not is_sharded("auto", 2, models[2:])
    assert is_sharded("auto", 2, [*models[2:], models[3]])


def test_the_first_learner_needs_more_of_the_host_at_the_start_or_for_a_checkpoint() -> None:
    modules = (module(), module())
    kinds = (("full", 1.0), ("none", 1.0), ("none", 0.0))
    clusters = (ClusterOptions(learners=4, sharding=each, gpus_per_learner=gpus) for each, gpus in kinds)
    sharded, whole, on_cpu = clusters
    (at_start,) = first_learner_parts(modules, sharded)
    assert (at_start.n_bytes, at_start.when) == (4 * N, "start")  # one model after the other
    (copied,) = first_learner_parts(modules, whole)
    assert (copied.n_bytes, copied.when) == (16 * N, "later")
    assert loading_part(modules, whole).n_bytes == 16 * N  # with references
    for cluster in (sharded, on_cpu):  # one holds nothing whole, the other holds it anyway
        assert not loading_part(modules, cluster).n_bytes
    assert not sum(each.n_bytes for each in first_learner_parts(modules, on_cpu))


def test_what_is_on_the_host_is_not_on_the_gpu() -> None:
    modules = (module(tokens=8), module(tokens=8))
    offloaded = (ClusterOptions(gpus_per_learner=1.0, sharding="full", offload_parameters=on) for on in (False, True))
    on_gpu, on_host = (learner_parts(modules, each) for each in offloaded)
    moved = {each.name for each in on_host if each.is_on_host and each.n_bytes}
    assert moved == {"weights", "gradients", "AdamW", "references"}
    assert not any(each.is_on_host for each in on_gpu if each.n_bytes)
    assert [each.n_bytes for each in on_host[:-2]] == [each.n_bytes for each in on_gpu[:-2]]
    copy_of_adamw = 4 * N
    assert sum(each.n_bytes for each in on_gpu[-2:]) == copy_of_adamw > sum(each.n_bytes for each in on_host[-2:])


def test_adamw_is_on_the_host_between_iterations_and_on_the_gpu_when_it_steps() -> None:
    cluster = ClusterOptions(gpus_per_learner=1.0, offload_optimizer=True)
    found = {each.name: each for each in learner_parts([module()], cluster)}
    moved = found["AdamW between iterations"]
    assert moved.is_on_host
    assert moved.n_bytes == found["AdamW"].n_bytes == 8 * N
    assert found["AdamW"].idle_bytes == 0
    assert parts(module())["AdamW between iterations"] == 0


def test_a_frozen_role_has_weights_only_and_adapters_need_no_reference() -> None:
    lora = LoraSettings()
    adapters = SHAPE.adapter_parameters(lora.rank, lora.target_modules)
    for modules, weights, adamw, references in (
        ([module(), module(learns=False)], 8 * N, 8 * N, 4 * N),
        ([module(lora=lora)], 4 * (N + adapters), 8 * adapters, 0),
    ):
        found = parts(*modules)
        assert (found["weights"], found["AdamW"], found["references"]) == (weights, adamw, references)


def test_the_step_of_adamw_on_a_gpu_may_need_more_than_a_micro_batch() -> None:
    small = module(tokens=8)
    on_gpu, on_cpu = (parts(small, gpus_per_learner=each) for each in (1.0, 0.0))
    assert on_gpu["activations"] + on_gpu["work"] == 4 * N
    assert on_cpu["activations"] + on_cpu["work"] < 4 * N


@given(tokens=st.integers(1, 20_000), more=st.integers(1, 20_000), autocast=st.sampled_from(["", "bfloat16"]))
def test_more_tokens_need_more_and_checkpointing_keeps_less(tokens: int, more: int, autocast: str) -> None:
    plain = module(tokens=tokens, autocast=autocast)
    larger = module(tokens=tokens + more, autocast=autocast)
    assume((plain.batch.replies > 256) == (larger.batch.replies > 256))  # logits of several parts are not kept
    checkpointed = module(tokens=tokens, autocast=autocast, gradient_checkpointing=True)
    assert kept_bytes(plain) < kept_bytes(larger)
    assert kept_bytes(checkpointed) < kept_bytes(plain)
    assert kept_bytes(plain) + work_bytes(plain) <= kept_bytes(larger) + work_bytes(larger)
