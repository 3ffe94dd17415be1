"""Sharded learners make the updates of one learner, hold their part of the memory, and continue in another number.

Two of the combinations of settings run by default, and one of adapters on one base; `CODEA1_ALL_TESTS=1` runs all 48
(docs/training-scale.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codea1_agents.models.shapes import shape_of
from codea1_env.errors import UserError
from tests.support import ALL_TESTS
from tests.support.grpo import (
    ON_RAY,
    distance,
    gradients_of,
    group_of,
    group_responses,
    largest,
    learning,
    record_gradients,
    update_group,
    weights_in,
)
from tests.support.language_models import phrase_folder

pytest.importorskip("ray", reason="Ray is not installed")
pytest.importorskip("peft", reason="the extra codea1-env[lora] is not installed")
from codea1_agents.train.grpo import LoraSettings, ModelSettings
from codea1_agents.train.settings.options import ClusterOptions
from codea1_agents.train.sizing.memory import MicroBatch, SizedModule, learner_parts

pytestmark = ON_RAY

N_UPDATES = 3
TOKENS_AT_ONCE = 60
PIECE = 16
"""Response tokens whose logits exist at the same time, of up to 24 in a response."""


@dataclass(frozen=True)
class Case:
    """Learners, and what they compute with."""

    n_learners: int
    sharding: str
    coder: dict[str, Any]
    tester: dict[str, Any]
    prompt_once: bool = True
    pieces: bool = True
    offload_optimizer: bool = False
    offload_parameters: bool = False

    @property
    def training(self) -> dict[str, Any]:
        logits = PIECE if self.pieces else 0
        return {"prompt_once": self.prompt_once, "logits_chunk_tokens": logits, "micro_batch_tokens": TOKENS_AT_ONCE}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model whose parameters do not divide evenly, with an output layer that is tied to its embedding."""
    shape = {"hidden_size": 36, "intermediate_size": 50, "num_hidden_layers": 3, "max_position_embeddings": 128}
    return phrase_folder(
        tmp_path_factory.mktemp("models") / "odd", [*"abcdefghijklm"], tie_word_embeddings=True, **shape
    )


def learners_of(folder: str, case: Case) -> Any:
    models = {"coder": ModelSettings(folder, **case.coder), "tester": ModelSettings(folder, **case.tester)}
    config = learning(models, micro_batch_size=0, **case.training)
    config.learners(num_learners=case.n_learners, sharding=case.sharding)
    config.learners(offload_optimizer=case.offload_optimizer, offload_parameters=case.offload_parameters)
    return group_of(config)


def update(group: Any, n_learners: int, n_updates: int = N_UPDATES) -> None:
    update_group(group, group_responses("coder", "tester"), n_learners, n_updates)


def own_bytes(tensor: Any) -> int:
    """Bytes of a tensor that this process holds."""
    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return int(local.numel() * local.element_size())


def held_bytes(learner: Any) -> tuple[int, int, int]:
    """Bytes of parameters with references, of gradients after a backward pass, and of the states of AdamW."""
    modules = [learner.module[name].unwrapped() for name in ("coder", "tester")]
    models = [each for module in modules for each in (module.model, module.reference) if each is not None]
    states = [state for name in ("coder", "tester") for state in learner.get_optimizer(name).state.values()]
    return (
        sum(map(own_bytes, {each for model in models for each in model.parameters()})),
        learner.gradient_bytes,
        sum(own_bytes(state[key]) for state in states for key in ("exp_avg", "exp_avg_sq")),
    )


def computed_bytes(folder: str, case: Case) -> tuple[int, int, int]:
    """The same bytes of one learner by the arithmetic of the dry run."""
    modules = [
        SizedModule(shape_of(folder), ModelSettings(folder, **settings), MicroBatch(48, 24, 48))
        for settings in (case.coder, case.tester)
    ]
    found = learner_parts(modules, ClusterOptions(learners=case.n_learners, sharding=case.sharding))
    n_bytes = {each.name: each.n_bytes for each in found}
    return n_bytes["weights"] + n_bytes["references"], n_bytes["gradients"], n_bytes["AdamW"]


def count_gradients(learner: Any) -> None:
    learner.gradient_bytes = 0

    def count(optimizer: Any, *_: Any) -> None:
        gradients = [p.grad for each in optimizer.param_groups for p in each["params"] if p.grad is not None]
        learner.gradient_bytes = max(learner.gradient_bytes, sum(map(own_bytes, gradients)))

    for name in ("coder", "tester"):
        learner.get_optimizer(name).register_step_pre_hook(count)


LORA = {"lora": LoraSettings(rank=4)}  # up to four learners divide it
CHECKPOINTED = {"gradient_checkpointing": True}
ON_ONE_BASE = {"lora": LoraSettings(rank=4, target_modules=("q_proj", "down_proj")), "shares_base": True}
CASES = [Case(2, "full", {}, LORA | CHECKPOINTED), Case(4, "full", CHECKPOINTED, LORA, offload_parameters=True)]
if ALL_TESTS:
    CASES = [
        Case(n, sharding, checkpointing | lora, checkpointing | lora, once, pieces)
        for (n, sharding), once, pieces, checkpointing, lora in product(
            [(2, "none"), (2, "full"), (4, "full")], (False, True), (False, True), ({}, CHECKPOINTED), ({}, LORA)
        )
    ]
CASES.append(Case(2, "full", ON_ONE_BASE | LORA | CHECKPOINTED, ON_ONE_BASE))


@pytest.mark.parametrize("case", CASES)
def test_learners_make_the_same_updates_and_continue_in_another_number(folder: str, case: Case, tmp_path: Path) -> None:
    one = replace(case, n_learners=0, sharding="none", offload_parameters=False)
    alone, group = learners_of(folder, one), learners_of(folder, case)
    start = weights_in(alone)
    assert distance(start, weights_in(group)) == 0
    for each, n in ((alone, 0), (group, case.n_learners)):
        each.foreach_learner(record_gradients)
        each.foreach_learner(count_gradients)
        update(each, n)
    expected = gradients_of(alone)
    assert distance(expected, gradients_of(group)) < 1e-5 * largest(expected["coder"])
    weights = weights_in(alone)
    assert distance(start, weights) > 1e-3
    assert distance(weights, weights_in(group)) < 1e-5
    (whole,) = [result.get() for result in alone.foreach_learner(held_bytes)]
    parts = [result.get() for result in group.foreach_learner(held_bytes)]
    for held, all_bytes, computed in zip(zip(*parts, strict=True), whole, computed_bytes(folder, case), strict=True):
        assert max(held) == pytest.approx(computed, rel=0.1)
        if case.n_learners == 4:
            assert max(held) < 0.3 * all_bytes
    group.save_to_path(tmp_path / "checkpoint")
    group.shutdown()
    n_others = 2 if case.n_learners == 4 else 3
    other = learners_of(folder, replace(case, n_learners=n_others, offload_parameters=False))
    other.restore_from_path(tmp_path / "checkpoint")
    assert distance(weights, weights_in(other)) < 1e-5
    update(alone, 0, 1)
    update(other, n_others, 1)
    assert distance(weights_in(alone), weights_in(other)) < 1e-5
    other.shutdown()


def test_gathering_in_fewer_bits_changes_gradients_little_and_its_own_module_only(folder: str) -> None:
    """The states of AdamW move to the host and back meanwhile, which changes nothing."""
    case = Case(2, "full", {"gathering_dtype": "bfloat16"}, {}, offload_optimizer=True)
    alone, group = learners_of(folder, Case(0, "none", {}, {})), learners_of(folder, case)
    for each, n in ((alone, 0), (group, 2)):
        each.foreach_learner(record_gradients)
        update(each, n)
    expected, found = gradients_of(alone), gradients_of(group)
    for module, least, most in (("coder", 1e-4, 0.05), ("tester", 0.0, 1e-5)):
        difference = distance({module: expected[module]}, {module: found[module]}) / largest(expected[module])
        assert least <= difference < most, module
    one, other = weights_in(alone), weights_in(group)
    assert distance({"tester": one["tester"]}, {"tester": other["tester"]}) < 1e-5
    assert {each.dtype for each in other["coder"].values()} == {np.dtype("float32")}
    group.shutdown()


def test_only_learners_that_hold_parts_gather_and_keep_them_on_the_host(folder: str) -> None:
    with pytest.raises(UserError, match="coder: gathering_dtype is for learners that hold parts"):
        learners_of(folder, Case(0, "none", {"gathering_dtype": "bfloat16"}, {}))
    with pytest.raises(UserError, match="offload_parameters is for learners that hold parts"):
        learners_of(folder, Case(2, "none", {}, {}, offload_parameters=True))
