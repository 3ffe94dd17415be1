"""Fewer bits and fewer kept activations: how far from the plain computation they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.grpo import module_of, scored, some_batch

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.models.sampling import SamplingRules, sample_responses  # noqa: E402
from codea1_agents.train.grpo.batch import padded_batch  # noqa: E402
from codea1_agents.train.grpo.rl_module import CausalLMModule  # noqa: E402
from codea1_agents.train.grpo.settings import LoraSettings, ModelSettings  # noqa: E402
from codea1_env.errors import UserError  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # Ray's own


def gap_to_learner(folder: str, *, autocast: str, sampling_dtype: str) -> float:
    """The largest difference of a runner's log-probabilities to the learner's, on 64 responses of 12 tokens."""
    learner = module_of(folder, autocast=autocast, sampling_dtype=sampling_dtype)
    runner = module_of(folder, sampling_dtype=sampling_dtype, inference_only=True)
    runner.set_state(learner.get_state())
    prompt = [3, 4, 5]
    seeds, rules = [[n] for n in range(64)], SamplingRules(max_tokens=12)
    responses = sample_responses(runner.model, [prompt] * 64, seeds, end_tokens=[], rules=rules)
    rows = [replace(scored("coder", 1, 1), prompt=tuple(prompt), response=each) for each in responses]
    with torch.no_grad():
        found = learner.forward_train(padded_batch(rows))["log_probs"]
    assert found.dtype == torch.float32
    return float((found - torch.tensor([each.log_probs for each in responses])).abs().max())


@pytest.mark.parametrize(
    ("autocast", "sampling_dtype", "most"),
    [("", "float32", 1e-5), ("bfloat16", "float32", 5e-3), ("", "bfloat16", 1e-2), ("bfloat16", "bfloat16", 1e-2)],
)
def test_the_runner_says_nearly_what_the_learner_says(phrase_folders, autocast, sampling_dtype, most):
    gap = gap_to_learner(phrase_folders["coder"], autocast=autocast, sampling_dtype=sampling_dtype)
    print(f"learner {autocast or 'float32'}, runner {sampling_dtype}: {gap:.1e}")  # docs/training-engines.md
    assert gap < most
    assert "bfloat16" not in (autocast, sampling_dtype) or gap > 1e-4  # or nothing was computed in fewer bits


def test_what_learns_stays_in_full_precision(phrase_folders: dict[str, str]) -> None:
    module = module_of(phrase_folders["coder"], autocast="bfloat16", sampling_dtype="bfloat16")
    module.forward_train(some_batch())["log_probs"].sum().backward()
    assert {each.dtype for p in module.model.parameters() for each in (p, p.grad)} == {torch.float32}


def test_adapters_under_autocast_need_no_casts_of_their_own(phrase_folders: dict[str, str]) -> None:
    pytest.importorskip("peft", reason="peft is not installed")
    of_both = []
    for casts in (False, True):
        module = module_of(phrase_folders["coder"], autocast="bfloat16", base_dtype="bfloat16", lora=LoraSettings())
        layers = [layer for layer in module.model.modules() if hasattr(layer, "get_delta_weight")]
        assert layers
        for layer in layers:
            assert not layer.cast_input_dtype_enabled
            layer.cast_input_dtype_enabled = casts
            torch.nn.init.ones_(layer.lora_B["default"].weight)
        log_probs = module.forward_train(some_batch())["log_probs"]
        log_probs.sum().backward()
        of_both.append([log_probs, *(each.grad for each in module.model.parameters() if each.grad is not None)])
    assert all(torch.equal(without, cast) for without, cast in zip(*of_both, strict=True))


def kept_and_gradients(module: CausalLMModule) -> tuple[int, dict[str, Any]]:
    """Bytes that a forward pass keeps for the gradient, the parameters apart; and the gradients."""
    own = {parameter.data_ptr() for parameter in module.model.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: Any) -> Any:
        if tensor.data_ptr() not in own:
            kept[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    module.train()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        log_probs = module.forward_train(some_batch(rows=8, prompt=24, response=24))["log_probs"]
        n_bytes = sum(kept.values())
        log_probs.square().sum().backward()
    return n_bytes, {name: each.grad for name, each in module.model.named_parameters() if each.grad is not None}


@pytest.mark.parametrize("lora", [None, LoraSettings(rank=4)])
def test_checkpointing_keeps_less_and_gives_the_same_gradients(model_folder: str, lora: LoraSettings | None) -> None:
    if lora is not None:
        pytest.importorskip("peft", reason="peft is not installed")
    n_plain, plain = kept_and_gradients(module_of(model_folder, lora=lora, with_reference=False))
    less = module_of(model_folder, lora=lora, with_reference=False, gradient_checkpointing=True)
    n_less, found = kept_and_gradients(less)
    print(f"{'adapters' if lora else 'all'}: {n_plain} -> {n_less} bytes")  # docs/training-engines.md
    assert n_less < 0.7 * n_plain
    assert found.keys() == plain.keys() != set()
    for name, gradient in plain.items():
        assert torch.allclose(found[name], gradient, atol=1e-6), name


@pytest.mark.parametrize(
    "wrong",
    [
        {"rollout_engine": "vlm"},
        {"sampling_dtype": "bf16"},
        {"sampling_dtype": ""},
        {"autocast": "half"},
        {"largest_gap": -1.0},
        {"engine_options": {"max_num_seqs": 8}},
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        ModelSettings("somewhere", **wrong)
