"""Two adapters on one base are two models with adapters, in half of the memory."""

from __future__ import annotations

import gc
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import tomli_w

from tests.support.grpo import (
    ON_RAY,
    built,
    distance,
    gradients_of,
    group_of,
    group_responses,
    largest,
    learning,
    record_gradients,
    tiny_config,
    update_group,
    weights_in,
    weights_of,
)

pytest.importorskip("ray", reason="Ray is not installed")
pytest.importorskip("peft", reason="the extra codea1-env[lora] is not installed")
import torch

from codea1_agents.train.grpo import LoraSettings, ModelSettings
from codea1_agents.train.settings.loading import load_training
from codea1_agents.train.sizing.devices import devices_here
from codea1_agents.train.sizing.run_size import size_of
from codea1_env.errors import UserError

pytestmark = ON_RAY

ADAPTERS = {"coder": LoraSettings(rank=4), "tester": LoraSettings(rank=2, seed=3)}


def models_on(folder: str, *, one: bool, **settings: Any) -> dict[str, ModelSettings]:
    return {role: ModelSettings(folder, lora=lora, shares_base=one, **settings) for role, lora in ADAPTERS.items()}


def base_tensors(model: Any) -> dict[str, Any]:
    return {name: tensor for name, tensor in model.named_parameters() if ".lora_" not in name}


@dataclass(frozen=True)
class Updated:
    """What three updates made of learners' modules."""

    gradients: Any
    """The first."""
    weights: Any
    changed: list[str]
    """Tensors of the bases that are not what they were."""
    n_bytes: int
    """What the first learner holds of the bases."""


def updated(
    folder: str, *, one: bool, cluster: dict[str, Any] | None = None, frozen: tuple[str, ...] = (), **settings: Any
) -> Updated:
    names = ("base_dtype", "gradient_checkpointing", "gathering_dtype")
    of_models = {name: settings.pop(name) for name in names if name in settings}
    cluster = {"num_learners": 0, **(cluster or {})}
    config = learning(models_on(folder, one=one, **of_models), **settings).learners(**cluster)
    group = group_of(config.llm_agents(**config.models, frozen=frozen))
    try:
        group.foreach_learner(record_gradients)
        group.foreach_learner(keep_bases)
        update_group(group, group_responses("coder", "tester"), cluster["num_learners"], 3)
        changed, n_bytes = next(iter(group.foreach_learner(of_bases))).get()
        return Updated(gradients_of(group), weights_in(group), changed, n_bytes)
    finally:
        group.shutdown()


def local(tensor: Any) -> Any:
    """What this process has of a tensor."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def keep_bases(learner: Any) -> None:
    models = [learner.module[name].unwrapped().model for name in ("coder", "tester")]
    bases = map(base_tensors, models)
    learner.before = [{name: local(tensor).detach().clone() for name, tensor in each.items()} for each in bases]


def of_bases(learner: Any) -> tuple[list[str], int]:
    models = [learner.module[name].unwrapped().model for name in ("coder", "tester")]
    parts = [{name: local(tensor) for name, tensor in base_tensors(each).items()} for each in models]
    changed = [
        name
        for own, before in zip(parts, learner.before, strict=True)
        for name, tensor in own.items()
        if not torch.equal(tensor, before[name])
    ]
    storages = {each.untyped_storage().data_ptr(): each.untyped_storage() for own in parts for each in own.values()}
    return changed, sum(each.nbytes() for each in storages.values())


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"gradient_checkpointing": True, "packing": True},
        {"base_dtype": "bfloat16", "minibatches_per_epoch": 2},
    ],
    ids=["plain", "checkpointed", "bfloat16"],
)
def test_one_base_updates_as_two_bases(phrase_folders: dict[str, str], settings: dict[str, Any]) -> None:
    one, two = (updated(phrase_folders["coder"], one=is_one, **settings) for is_one in (True, False))
    assert distance(one.gradients, two.gradients) == distance(one.weights, two.weights) == 0
    assert all(".lora_" in name for weights in one.weights.values() for name in weights)
    assert one.changed == []
    assert 2 * one.n_bytes == two.n_bytes


SHARDED = {"num_learners": 2, "sharding": "full"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"gradient_checkpointing": True, "packing": True, "kl_coeff": 0.05},
        {
            "base_dtype": "bfloat16",
            "gathering_dtype": "bfloat16",
            "minibatches_per_epoch": 2,
            "old_log_probs": "learner",
            "frozen": ("tester",),
        },
    ],
    ids=["plain", "checkpointed", "in fewer bits"],
)
def test_learners_hold_the_parts_of_one_base_once(phrase_folders: dict[str, str], settings: dict[str, Any]) -> None:
    has_fewer_bits = "base_dtype" in settings
    cluster = SHARDED | {"offload_parameters": has_fewer_bits}
    one, two = (updated(phrase_folders["coder"], one=each, cluster=cluster, **settings) for each in (True, False))
    assert distance(one.gradients, two.gradients) == distance(one.weights, two.weights) == 0
    frozen = set(settings.get("frozen", ()))
    assert one.gradients.keys() == one.weights.keys() - frozen
    begun_at_0 = {name: each for role in frozen for name, each in one.weights[role].items() if ".lora_B." in name}
    assert not any(each.any() for each in begun_at_0.values())
    assert all(".lora_" in name for weights in one.weights.values() for name in weights)
    assert one.changed == two.changed == []
    assert 2 * one.n_bytes == two.n_bytes
    if not has_fewer_bits:
        alone = updated(phrase_folders["coder"], one=True, **settings)
        assert one.n_bytes == pytest.approx(alone.n_bytes / 2, rel=0.1)
        assert distance(one.weights, alone.weights) < 1e-5
        assert distance(one.gradients, alone.gradients) < 1e-5 * largest(alone.gradients["coder"])


@pytest.mark.slow
def test_learners_that_share_the_work_give_the_same_weights(phrase_folders: dict[str, str]) -> None:
    alone, both = (updated(phrase_folders["coder"], one=True, cluster={"num_learners": n}) for n in (0, 2))
    assert distance(alone.weights, both.weights) < 1e-5


@pytest.fixture
def config(phrase_folders: dict[str, str], increments: str) -> Any:
    return tiny_config({"base": phrase_folders["coder"], **ADAPTERS}, increments).training(kl_coeff=0.05)


@pytest.fixture
def algorithm(config: Any) -> Iterator[Any]:
    with built(config) as algorithm:
        yield algorithm


def tensors_of(algorithm: Any) -> list[dict[str, Any]]:
    modules = [algorithm.learner_group._learner.module, algorithm.env_runner_group.local_env_runner.module]
    return [base_tensors(group[role].unwrapped().model) for group in modules for role in ("coder", "tester")]


def test_the_base_is_in_a_process_once(algorithm: Any) -> None:
    first, *others = tensors_of(algorithm)
    for other in others:
        assert {name: tensor.data_ptr() for name, tensor in first.items()} == {
            name: tensor.data_ptr() for name, tensor in other.items()
        }
    del first, others, other
    gc.collect()


def test_a_frozen_role_and_the_base_keep_every_bit(config: Any) -> None:
    config.llm_agents(
        base=next(iter(config.models.values())).path,
        coder=ADAPTERS["coder"],
        tester=ADAPTERS["tester"],
        frozen=["tester"],
    )
    with built(config) as algorithm:
        before = weights_of(algorithm)
        bases = [{name: tensor.clone() for name, tensor in each.items()} for each in tensors_of(algorithm)]
        algorithm.train()
        after = weights_of(algorithm)
        assert distance({"tester": before["tester"]}, {"tester": after["tester"]}) == 0
        assert distance({"coder": before["coder"]}, {"coder": after["coder"]}) > 0
        for old, new in zip(bases, tensors_of(algorithm), strict=True):
            assert all(torch.equal(old[name], new[name]) for name in old)


@pytest.mark.parametrize("cluster", [{}, pytest.param(SHARDED, marks=pytest.mark.slow)], ids=["alone", "sharded"])
def test_rollouts_are_those_of_two_bases(config: Any, cluster: dict[str, Any]) -> None:
    replies = []
    for shares in (True, False):
        config = config.copy(copy_frozen=False).learners(**cluster)
        config.models = {name: replace(each, shares_base=shares) for name, each in config.models.items()}
        with built(config) as algorithm:
            algorithm.train()
            algorithm.train()
            replies.append([repr(tree) for tree in algorithm.last_trees])
    assert replies[0] == replies[1]


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ({"base": "m", "coder": "other"}, "with a base, a role is LoraSettings, got 'other'"),
        ({"coder": LoraSettings()}, "an adapter needs base='MODEL'"),
        ({"base": "m"}, "a base needs adapters"),
        ({"base": "m", "shared": "s"}, "with a base"),
    ],
)
def test_what_makes_no_base_is_refused(models: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        learning({"coder": "m"}).llm_agents(**models)


@pytest.mark.parametrize(
    ("agents", "changes", "message"),
    [
        ({"base": "M", "coder": {"model": "M"}}, [], r"agents\.coder\.model: agents\.base is the model of both roles"),
        ({"base": "M", "shared": {"model": "M"}}, [], r"agents\.shared\.model: .*set agents\.coder\.lora and"),
        ({"base": "M", "shared": {"frozen": True}}, [], r"agents\.shared\.frozen: there is no agents\.shared\.model"),
        ({"base": "M", "shared": {"lora": {"rank": 4}}}, [], r"agents\.shared\.lora: there is no"),
        ({"base": "M"}, ["agents.base=M", "agents.tester.model=M"], r"agents\.tester\.model: agents\.base is"),
        ({"base": "M", "coder": {"sampling_dtype": "bfloat16"}}, [], "have one base, but sampling_dtype is"),
        ({"base": "M", "coder": {"frozen": True}, "tester": {"frozen": True}}, [], "nothing learns"),
        ({"coder": {"agent": "reference"}, "tester": {"agent": "fuzz"}}, [], "nothing learns"),
        ({"base": "M"}, ["agents.tester.lora.target_modules=['q_proj', 'qkv']"], "tester: lora.* cannot adapt 'qkv'"),
        ({"coder": {"model": "M", "lora": {"target_modules": ["c_attn"]}}}, [], "cannot adapt 'c_attn': there is none"),
    ],
)
def test_settings_of_a_base_that_contradict_each_other_are_refused_without_loading(
    phrase_folders: dict[str, str], agents: dict[str, Any], changes: list[str], message: str
) -> None:
    folder = phrase_folders["coder"]
    text = tomli_w.dumps({"game": {"problems": "starter"}, "agents": agents}).replace('"M"', f'"{folder}"')
    config = load_training(tomllib.loads(text), [each.replace("=M", f"={folder}") for each in changes])
    with pytest.raises(UserError, match=message):
        size_of(config, devices_here())


def test_roles_on_one_base_say_the_same_of_it(phrase_folders: dict[str, str]) -> None:
    models = models_on(phrase_folders["coder"], one=True)
    models["tester"] = replace(models["tester"], sampling_dtype="bfloat16")
    with pytest.raises(
        UserError, match="coder and tester have one base, but sampling_dtype is 'float32' and 'bfloat16'"
    ):
        learning(models).validate()
    models = {"coder": replace(models["coder"], lora=LoraSettings(target_modules=("q_proj", "qkv")))}
    with pytest.raises(UserError, match=r"coder: lora\.target_modules: .* cannot adapt 'qkv'"):
        learning(models).validate()
