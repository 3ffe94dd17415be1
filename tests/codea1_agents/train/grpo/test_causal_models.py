"""Adapters: only they move, travel and are saved; what comes out is a plain model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.grpo import built, distance, module_of, moved, some_batch, tiny_config, weights_of

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("ray", reason="Ray is not installed")
pytest.importorskip("peft", reason="peft is not installed")

from codea1_agents.models.chat_format import load_tokenizer  # noqa: E402
from codea1_agents.train.grpo.causal_models import load_causal_model, plain_tensors, untied  # noqa: E402
from codea1_agents.train.grpo.rl_module import CausalLMModule, export_state  # noqa: E402
from codea1_agents.train.grpo.settings import LoraSettings, ModelSettings  # noqa: E402
from codea1_env.errors import UserError  # noqa: E402

pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("default"),  # Ray's own
]

LORA = LoraSettings(rank=4, alpha=8.0)


def stirred(module: CausalLMModule) -> CausalLMModule:
    moved(module.model, by=0.1)
    return module


def logits_of(model: Any) -> Any:
    with torch.no_grad():
        return model(torch.tensor([[3, 4, 5, 6]])).logits


@pytest.fixture(params=["untied", "tied"])
def folder(request: pytest.FixtureRequest, phrase_folders: dict[str, str], model_folder: str) -> str:
    return phrase_folders["coder"] if request.param == "untied" else model_folder


def test_they_begin_as_the_model_and_are_the_same_on_every_host(folder: str) -> None:
    module, again = module_of(folder, lora=LORA), module_of(folder, lora=LORA)
    assert torch.equal(logits_of(module.model), logits_of(load_causal_model(folder)))
    assert all(np.array_equal(again.get_state()[name], value) for name, value in module.get_state().items())


def test_the_reference_is_the_model_without_them(folder: str) -> None:
    module = stirred(module_of(folder, lora=LORA))
    found = module.forward_train(some_batch())
    plain = module_of(folder).forward_train(some_batch())
    assert torch.allclose(found["reference_log_probs"], plain["reference_log_probs"], atol=1e-6)
    assert not torch.allclose(found["log_probs"], found["reference_log_probs"], atol=1e-2)
    assert module.reference is None


def test_only_they_want_gradients_and_travel(folder: str) -> None:
    module = stirred(module_of(folder, lora=LORA))
    module.forward_train(some_batch())["log_probs"].sum().backward()
    moved = {name for name, tensor in module.model.named_parameters() if tensor.grad is not None}
    assert moved == set(module.get_state()) != set()
    assert all(".lora_" in name for name in moved)
    other = module_of(folder, lora=LORA, inference_only=True)
    other.set_state(module.get_state())
    assert torch.equal(logits_of(other.model), logits_of(module.model))
    with pytest.raises(ValueError, match="another model"):
        module_of(folder).set_state(module.get_state())


def test_an_export_is_a_plain_model_that_computes_the_same(folder: str, tmp_path: Path) -> None:
    module = stirred(module_of(folder, lora=LORA))
    expected = logits_of(module.model)
    export_state(module.settings, module.get_state(), tmp_path)
    assert not list(tmp_path.glob("adapter*"))
    assert torch.allclose(logits_of(load_causal_model(str(tmp_path))), expected, atol=1e-5)
    assert load_tokenizer(str(tmp_path))("f(1)")["input_ids"] == load_tokenizer(folder)("f(1)")["input_ids"]
    assert torch.equal(logits_of(module.model), expected)  # it can go on learning
    assert dict(plain_tensors(module.model)).keys() == untied(load_causal_model(folder)).keys()
    plain = stirred(module_of(folder))
    export_state(plain.settings, plain.get_state(), tmp_path / "plain")
    assert torch.equal(logits_of(load_causal_model(str(tmp_path / "plain"))), logits_of(plain.model))


@pytest.mark.parametrize("wrong", [{"rank": 0}, {"alpha": 0}, {"alpha": float("nan")}, {"target_modules": ()}])
def test_impossible_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="no adapters"):
        LoraSettings(**wrong)


def test_layers_that_cannot_be_adapted_are_named(phrase_folders: dict[str, str], model_folder: str) -> None:
    with pytest.raises(UserError, match="lm_head"):  # it is also the embedding
        module_of(model_folder, lora=LoraSettings(target_modules=("q_proj", "lm_head")))
    for targets in (("nowhere",), ("q_proj", "nowhere"), ("q_proj", "proj")):
        with pytest.raises(UserError, match=targets[-1]):
            module_of(phrase_folders["coder"], lora=LoraSettings(target_modules=targets))


# Training


def test_training_raises_the_reward_and_goes_on_exactly_from_a_checkpoint(
    cluster: None, phrase_folders: dict[str, str], increments: str, tmp_path: Path
) -> None:
    # This model's last hidden state has a fixed length: only its head can make a choice sure.
    lora = LoraSettings(rank=8, target_modules=("v_proj", "down_proj", "lm_head"))
    config = tiny_config({"coder": ModelSettings(phrase_folders["coder"], lora=lora)}, increments)
    config.agents(tester="fuzz").training(lr=2e-2, n_candidates=12, n_suites=1, weight_decay=0.0)
    with built(config.copy(copy_frozen=False)) as algorithm:
        results = [algorithm.train() for _ in range(20)]
        path = algorithm.save_to_path(tmp_path / "checkpoint")
        algorithm.train()
        expected = weights_of(algorithm)
    rewards = [result["env_runners"]["coder_reward"] for result in results]
    assert np.mean(rewards[-3:]) > np.mean(rewards[:3]) + 0.2
    gaps = [result["learners"]["coder"]["ratio_gap"] for result in results if "coder" in result["learners"]]
    assert max(gaps) < 1e-5
    assert all(".lora_" in name for name in expected["coder"])
    with built(config) as other:
        other.restore_from_path(path)
        other.train()
        assert distance(expected, weights_of(other)) == 0
