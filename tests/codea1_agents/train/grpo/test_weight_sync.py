"""Weights on their way from learners to runners, in this process and in others."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

from codea1_env.errors import MissingExtra
from tests.support.grpo import ON_RAY, tiny_config
from tests.support.language_models import PHRASES, phrase_folder

ray = pytest.importorskip("ray", reason="Ray is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")
from codea1_agents.train.grpo import weight_sync  # noqa: E402
from codea1_agents.train.grpo.adapters import untied  # noqa: E402
from codea1_agents.train.grpo.failures import StaleWeights  # noqa: E402
from codea1_agents.train.grpo.handover import checksum  # noqa: E402
from codea1_agents.train.grpo.model_settings import ModelSettings  # noqa: E402
from codea1_agents.train.grpo.trees import Task  # noqa: E402
from tests.support.memory import LiveBytes  # noqa: E402

pytestmark = ON_RAY

MB = 2**20
PIECE_MB = 1.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of some megabytes, many times a piece."""
    shape = {"hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 8}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 1}
    return phrase_folder(tmp_path_factory.mktemp("model"), PHRASES, **shape, **heads)


def built(folder: str, problems: str, *, runners: int = 0, learners: int = 0, dtype: str = "bfloat16") -> Any:
    model = ModelSettings(folder, sampling_dtype=dtype, handover_piece_mb=PIECE_MB)
    config = tiny_config({"coder": model}, problems).agents(tester="fuzz")
    config.env_runners(num_env_runners=runners, num_cpus_per_env_runner=0.5, create_local_env_runner=not runners)
    config.learners(num_learners=learners, num_cpus_per_learner=0.5)
    return config.build_algo()


def move(learner: Any) -> None:
    """Change the weights as an update would, alike on all learners."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in learner.module["coder"].unwrapped().model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.01)


def checksums(module: Any, dtype: Any = torch.bfloat16) -> dict[str, int]:
    return {name: checksum(tensor.to(dtype)) for name, tensor in untied(module.model).items()}


def of_learner(learner: Any) -> dict[str, int]:
    return checksums(learner.module["coder"].unwrapped())


def of_runner(runner: Any) -> dict[str, int]:
    return checksums(runner.module["coder"])


@pytest.mark.parametrize(("runners", "learners"), [(0, 0), (1, 2)])
def test_runners_have_exactly_the_learners_weights(folder: str, increments: str, runners: int, learners: int) -> None:
    algorithm = built(folder, increments, runners=runners, learners=learners)
    for _ in range(2):
        algorithm.learner_group.foreach_learner(move)
        algorithm.sync_runners()
        expected = [each.get() for each in algorithm.learner_group.foreach_learner(of_learner)]
        found = algorithm.env_runner_group.foreach_env_runner(of_runner)
        assert len(found) == max(1, runners)
        assert all(each == expected[0] for each in [*expected, *found])
    algorithm.stop()


def test_a_hand_over_takes_the_memory_of_a_few_pieces(
    folder: str, increments: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    algorithm = built(folder, increments, runners=1)
    algorithm.sync_runners()  # imports and buffers are made once
    put: list[int] = []

    def measured(piece: Any) -> Any:
        put.append(sum(each["bfloat16"].nbytes for each in piece.arrays.values()))
        return real(piece)

    def begin(runner: Any) -> None:
        runner.live_bytes = LiveBytes()
        runner.live_bytes.__enter__()

    def end(runner: Any) -> int:
        runner.live_bytes.__exit__(None, None, None)
        return int(runner.live_bytes.peak)

    real = ray.put
    monkeypatch.setattr(weight_sync.ray, "put", measured)
    group = algorithm.env_runner_group
    group.foreach_env_runner(begin)
    with LiveBytes() as driver:  # the learner is in this process
        algorithm.sync_runners()
    (runner,) = group.foreach_env_runner(end)
    (whole,) = algorithm.learner_group.foreach_learner(
        lambda learner: sum(each.numel() * 2 for each in learner.module["coder"].unwrapped().model.parameters())
    )
    assert whole.get() > 12 * PIECE_MB * MB
    assert sum(put) == whole.get()  # once for all runners
    assert max(put) <= PIECE_MB * MB
    assert driver.peak < 3 * PIECE_MB * MB  # a piece, and what Ray allocates for any call
    assert runner < 3 * PIECE_MB * MB
    algorithm.stop()


def test_a_remote_runner_that_drops_pieces_ends_the_run_and_samples_no_more(folder: str, increments: str) -> None:
    algorithm = built(folder, increments, runners=1)
    algorithm.train()

    def sabotage(runner: Any) -> None:
        receive = runner.receive_weights
        runner.receive_weights = lambda piece: receive(piece) if piece.is_first else None

    def rolls_out(runner: Any) -> str:
        try:
            runner.sample(tasks=[Task(0, "toy/0")])
        except StaleWeights as error:
            return str(error)
        return ""

    group = algorithm.env_runner_group
    group.foreach_env_runner(sabotage)
    with pytest.raises(StaleWeights, match="a runner does not have the learner's weights"):
        algorithm.train()
    assert group.foreach_env_runner(rolls_out) == ["no hand-over of weights to this runner has been completed"]
    algorithm.stop()


def test_states_that_rllib_sends_to_runners_hold_no_weights(folder: str, increments: str) -> None:
    algorithm = built(folder, increments)
    state = algorithm.learner_group.get_state(components="learner/rl_module", inference_only=True)
    assert state["learner"]["rl_module"] == {"coder": {}}
    before = of_runner(algorithm.env_runner)
    algorithm.learner_group.foreach_learner(move)
    algorithm.set_state({"learner_group": algorithm.learner_group.get_state()})
    expected = [each.get() for each in algorithm.learner_group.foreach_learner(of_learner)]
    assert expected == [of_runner(algorithm.env_runner)] != [before]
    algorithm.stop()


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vllm is installed; test_vllm_engine.py starts its engines")
@pytest.mark.parametrize("runners", [0, 1])
def test_an_engine_that_is_not_installed_ends_the_run_in_one_sentence(
    folder: str, increments: str, runners: int
) -> None:
    model = ModelSettings(folder, rollout_engine="vllm")
    config = tiny_config({"coder": model}, increments).agents(tester="fuzz").env_runners(num_env_runners=runners)
    with pytest.raises(MissingExtra, match=r"^rollout_engine='vllm' needs an optional package: pip install"):
        config.build_algo().train()
