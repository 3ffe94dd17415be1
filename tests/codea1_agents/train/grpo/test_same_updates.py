"""Settings of memory and speed, and the number of learners, do not change an update.

All combinations of {plain rows, prompt once, one row with each prompt once} x {logits of 16, 256 and all tokens at
once} x {one row, a budget of tokens} x {all weights, adapters}, on three architectures, are compared with plain rows in
one part on one learner; for two architectures also {one learner, two with DDP}.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from tests.support.grpo import ON_RAY, scored
from tests.support.language_models import phrase_tokenizer

ray = pytest.importorskip("ray", reason="Ray is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("peft", reason="the extra codea1-env[lora] is not installed")
from codea1_agents.train.grpo import GRPOConfig, LoraSettings, ModelSettings  # noqa: E402
from codea1_agents.train.grpo.batch import ScoredResponse, planned, shards  # noqa: E402  # noqa: E402

pytestmark = ON_RAY

SHAPE = {"vocab_size": 40, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2}
SHAPE |= {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 128}
SHAPE |= {"tie_word_embeddings": False}
ARCHITECTURES = {"qwen2": ("Qwen2", {}), "llama": ("Llama", {}), "mistral-window": ("Mistral", {"sliding_window": 6})}
COMBINATIONS = [
    {"prompt_once": once, "packing": packed, "logits_chunk_tokens": logits, **parts}
    for (once, packed), logits, parts in product(
        ((False, False), (True, False), (True, True)),
        (16, 256, 0),
        ({"micro_batch_size": 1}, {"micro_batch_size": 0, "micro_batch_tokens": 60}),
    )
]
PLAIN = {"prompt_once": False, "packing": False, "logits_chunk_tokens": 0, "micro_batch_size": 0}
N_UPDATES = 2
WITH_DDP = [("qwen2", None), ("mistral-window", LoraSettings(rank=2))]
"""Two are enough, since learners are processes that take long to start."""


def responses() -> list[ScoredResponse]:
    """Six prompts of different length, with three responses each; of one, each token has an advantage of its own."""
    found = []
    for row, (n_prompt, n_response) in enumerate(product((2, 7, 13, 9, 4, 11), (9, 1, 24))):
        each = scored("coder", n_prompt, n_response, advantage=(-1.2, 0.7, 0.5)[row % 3], seed=row)
        of_tokens = [(-1.0) ** n * (1 + n / 8) for n in range(n_response)] if row % 3 == 2 else None
        found.append(replace(each, prompt=scored("coder", n_prompt, 1).prompt, token_advantages=of_tokens))
    return found


def folder_of(name: str, place: Path) -> str:
    kind, more = ARCHITECTURES[name]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = getattr(transformers, f"{kind}Config")(**SHAPE, **more)
        getattr(transformers, f"{kind}ForCausalLM")(config).save_pretrained(place / name)
    phrase_tokenizer().save_pretrained(place / name)
    return str(place / name)


def group_of(folder: str, lora: LoraSettings | None, n_learners: int, **settings: Any) -> Any:
    """A learner group of one module, the coder's."""
    config = (
        GRPOConfig()
        .problems("starter")
        .llm_agents(coder=ModelSettings(folder, lora=lora))
        .agents(tester="fuzz")
        .learners(num_learners=n_learners)
        .training(**{"lr": 1e-3, "minibatches_per_epoch": 1, "warmup_steps": 0, "kl_coeff": 0.01, **settings})
    )
    config.validate()
    spaces = {"coder": (gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2))}  # nothing reads them
    return config.build_learner_group(rl_module_spec=config.get_multi_rl_module_spec(spaces=spaces))


class Prepared:
    """Changes the settings of a learner, and records the first gradients that its optimiser receives."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def __call__(self, learner: Any) -> None:
        config = learner.config.copy(copy_frozen=False)
        learner.config = config.training(**self.settings)
        module = learner.module["coder"].unwrapped()
        of_module = {name: self.settings[name] for name in ("prompt_once", "packing", "logits_chunk_tokens")}
        module.settings = replace(module.settings, **of_module)
        learner.first_gradients = {}

        def record(*_: Any) -> None:
            if not learner.first_gradients:
                named = module.named_parameters()
                learner.first_gradients = {name: p.grad.numpy().copy() for name, p in named if p.grad is not None}

        learner.recording = learner.get_optimizer("coder").register_step_pre_hook(record)


def first_gradients(learner: Any) -> dict[str, Any]:
    learner.recording.remove()
    found: dict[str, Any] = learner.first_gradients
    return found


def updated(group: Any, settings: dict[str, Any], n_learners: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the first gradients and the weights after all updates; the group is as before."""
    before = group.get_state()
    group.foreach_learner(Prepared(settings))
    plan = shards(planned(responses(), 1, (0,)), max(1, n_learners))
    for _ in range(N_UPDATES):
        group.update(episodes_refs=[ray.put(shard) for shard in plan])
    gradients = next(iter(group.foreach_learner(first_gradients))).get()
    weights = group.get_state(components="learner/rl_module")["learner"]["rl_module"]["coder"]
    group.set_state(before)
    return gradients, weights


def distance(one: dict[str, Any], other: dict[str, Any]) -> float:
    assert one.keys() == other.keys()
    return max(float(np.abs(one[name] - other[name]).max()) for name in one)


@pytest.mark.parametrize("lora", [None, LoraSettings(rank=2)], ids=["full", "lora"])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_combination_makes_the_same_update(name: str, lora: LoraSettings | None, tmp_path: Path) -> None:
    folder = folder_of(name, tmp_path)
    local = group_of(folder, lora, 0)
    gradients, weights = updated(local, PLAIN, 0)
    start = local.get_state(components="learner/rl_module")["learner"]["rl_module"]["coder"]
    scale = max(float(np.abs(each).max()) for each in gradients.values())
    assert distance(start, weights) > 1e-3
    for n_learners in (0, 2) if (name, lora) in WITH_DDP else (0,):
        group = group_of(folder, lora, n_learners) if n_learners else local
        for settings in (
            COMBINATIONS if "window" not in name else [each for each in COMBINATIONS if not each["packing"]]
        ):
            found_gradients, found_weights = updated(group, settings, n_learners)
            where = f"{n_learners} learners, {settings}"
            assert distance(gradients, found_gradients) < 1e-5 * scale, where
            assert distance(weights, found_weights) < 1e-5, where
        group.shutdown()
