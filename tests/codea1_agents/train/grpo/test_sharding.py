"""Sharded learners make the updates of one learner, hold their part of the memory, and continue in another number.

Two of the combinations of settings run by default; `CODEA1_ALL_TESTS=1` runs all 48 (docs/training-scale.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from codea1_agents.models.shapes import shape_of
from codea1_env.errors import UserError
from tests.support import ALL_TESTS
from tests.support.grpo import ON_RAY, scored
from tests.support.language_models import phrase_folder

ray = pytest.importorskip("ray", reason="Ray is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("peft", reason="the extra codea1-env[lora] is not installed")
from codea1_agents.train.grpo import GRPOConfig, LoraSettings, ModelSettings  # noqa: E402
from codea1_agents.train.grpo.batch import ScoredResponse, planned, shards  # noqa: E402  # noqa: E402
from codea1_agents.train.grpo.causal_models import whole_tensor  # noqa: E402
from codea1_agents.train.settings.options import ClusterOptions  # noqa: E402
from codea1_agents.train.sizing.learning import MicroBatch, SizedModule, learner_parts  # noqa: E402

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


def responses() -> list[ScoredResponse]:
    """Six prompts of different length for both roles, with three responses each."""
    found = []
    for row, (module, n_prompt, n_response) in enumerate(
        product(("coder", "tester"), (2, 7, 13, 9, 4, 11), (9, 1, 24))
    ):
        each = scored(module, n_prompt, n_response, advantage=(-1.2, 0.7, 0.5)[row % 3], seed=row)
        of_tokens = [(-1.0) ** n * (1 + n / 8) for n in range(n_response)] if row % 3 == 2 else None
        found.append(replace(each, prompt=scored(module, n_prompt, 1).prompt, token_advantages=of_tokens))
    return found


def group_of(folder: str, case: Case) -> Any:
    config = (
        GRPOConfig()
        .problems("starter")
        .llm_agents(coder=ModelSettings(folder, **case.coder), tester=ModelSettings(folder, **case.tester))
        .learners(num_learners=case.n_learners, sharding=case.sharding)
        .learners(offload_optimizer=case.offload_optimizer, offload_parameters=case.offload_parameters)
        .training(lr=1e-3, minibatches_per_epoch=1, warmup_steps=0, kl_coeff=0.01, micro_batch_size=0, **case.training)
    )
    config.validate()
    one = (gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2))  # nothing reads them
    spaces = dict.fromkeys(("coder", "tester"), one)
    return config.build_learner_group(rl_module_spec=config.get_multi_rl_module_spec(spaces=spaces))


def record_gradients(learner: Any) -> None:
    """Keep the first gradients of each module, whole."""
    learner.gradients = {}
    for name in ("coder", "tester"):

        def record(*_: Any, name: str = name) -> None:
            if name not in learner.gradients:
                named = learner.module[name].unwrapped().policy.model.named_parameters()
                learner.gradients[name] = {
                    each: whole_tensor(p.grad).numpy().copy() for each, p in named if p.grad is not None
                }

        learner.get_optimizer(name).register_step_pre_hook(record)


def update(group: Any, n_learners: int, n_updates: int = N_UPDATES) -> None:
    plan = shards(planned(responses(), 1, (0,)), max(1, n_learners))
    for _ in range(n_updates):
        group.update(episodes_refs=[ray.put(shard) for shard in plan])


def gradients_of(group: Any) -> dict[str, Any]:
    found: dict[str, Any] = next(iter(group.foreach_learner(lambda learner: learner.gradients))).get()
    return found


def weights_of(group: Any) -> dict[str, Any]:
    found: dict[str, Any] = group.get_state(components="learner/rl_module")["learner"]["rl_module"]
    return found


def distance(one: dict[str, Any], other: dict[str, Any]) -> float:
    assert one.keys() == other.keys()
    for module, tensors in one.items():
        assert tensors.keys() == other[module].keys()
    return max(float(np.abs(one[m][name] - other[m][name]).max()) for m in one for name in one[m])


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
        sum(own_bytes(each) for model in models for each in model.parameters()),
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
CASES = [Case(2, "full", {}, LORA | CHECKPOINTED), Case(4, "full", CHECKPOINTED, LORA, offload_parameters=True)]
if ALL_TESTS:
    CASES = [
        Case(n, sharding, checkpointing | lora, checkpointing | lora, once, pieces)
        for (n, sharding), once, pieces, checkpointing, lora in product(
            [(2, "none"), (2, "full"), (4, "full")], (False, True), (False, True), ({}, CHECKPOINTED), ({}, LORA)
        )
    ]


@pytest.mark.parametrize("case", CASES)
def test_learners_make_the_same_updates_and_continue_in_another_number(folder: str, case: Case, tmp_path: Path) -> None:
    one = replace(case, n_learners=0, sharding="none", offload_parameters=False)
    alone, group = group_of(folder, one), group_of(folder, case)
    start = weights_of(alone)
    assert distance(start, weights_of(group)) == 0
    for each, n in ((alone, 0), (group, case.n_learners)):
        each.foreach_learner(record_gradients)
        each.foreach_learner(count_gradients)
        update(each, n)
    expected = gradients_of(alone)
    scale = max(float(np.abs(each).max()) for each in expected["coder"].values())
    assert distance(expected, gradients_of(group)) < 1e-5 * scale
    weights = weights_of(alone)
    assert distance(start, weights) > 1e-3
    assert distance(weights, weights_of(group)) < 1e-5
    (whole,) = [result.get() for result in alone.foreach_learner(held_bytes)]
    parts = [result.get() for result in group.foreach_learner(held_bytes)]
    for held, all_bytes, computed in zip(zip(*parts, strict=True), whole, computed_bytes(folder, case), strict=True):
        assert max(held) == pytest.approx(computed, rel=0.1)
        if case.n_learners == 4:
            assert max(held) < 0.3 * all_bytes
    group.save_to_path(tmp_path / "checkpoint")
    group.shutdown()
    n_others = 2 if case.n_learners == 4 else 3
    other = group_of(folder, replace(case, n_learners=n_others, offload_parameters=False))
    other.restore_from_path(tmp_path / "checkpoint")
    assert distance(weights, weights_of(other)) < 1e-5
    update(alone, 0, 1)
    update(other, n_others, 1)
    assert distance(weights_of(alone), weights_of(other)) < 1e-5
    other.shutdown()


def test_gathering_in_fewer_bits_changes_gradients_little_and_its_own_module_only(folder: str) -> None:
    """The states of AdamW move to the host and back meanwhile, which changes nothing."""
    case = Case(2, "full", {"gathering_dtype": "bfloat16"}, {}, offload_optimizer=True)
    alone, group = group_of(folder, Case(0, "none", {}, {})), group_of(folder, case)
    for each, n in ((alone, 0), (group, 2)):
        each.foreach_learner(record_gradients)
        update(each, n)
    expected, found = gradients_of(alone), gradients_of(group)
    for module, least, most in (("coder", 1e-4, 0.05), ("tester", 0.0, 1e-5)):
        scale = max(float(np.abs(each).max()) for each in expected[module].values())
        difference = distance({module: expected[module]}, {module: found[module]}) / scale
        assert least <= difference < most, module
    one, other = weights_of(alone), weights_of(group)
    assert distance({"tester": one["tester"]}, {"tester": other["tester"]}) < 1e-5
    assert {each.dtype for each in other["coder"].values()} == {np.dtype("float32")}
    group.shutdown()


def test_only_learners_that_hold_parts_gather_and_keep_them_on_the_host(folder: str) -> None:
    with pytest.raises(UserError, match="coder: gathering_dtype is for learners that hold parts"):
        group_of(folder, Case(0, "none", {"gathering_dtype": "bfloat16"}, {}))
    with pytest.raises(UserError, match="offload_parameters is for learners that hold parts"):
        group_of(folder, Case(2, "none", {}, {}, offload_parameters=True))
