"""What the driver has its runners do: rollouts ahead, and weights on their way, in this process and in others."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from codea1_env.errors import MissingExtra
from tests.support.grpo import ON_RAY, built, distance, moved, tiny_config, weights_of
from tests.support.language_models import PHRASES, phrase_folder

ray = pytest.importorskip("ray", reason="Ray is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")
from codea1_agents.train.failures import StaleWeights  # noqa: E402
from codea1_agents.train.grpo import GRPO, GRPOConfig, ModelSettings  # noqa: E402
from codea1_agents.train.grpo import runners as runners_module  # noqa: E402
from codea1_agents.train.grpo.causal_models import untied  # noqa: E402
from codea1_agents.train.grpo.rollout import Reply, RolloutResult, Task  # noqa: E402
from codea1_agents.train.grpo.weights import checksum  # noqa: E402
from tests.support.memory import LiveBytes  # noqa: E402

pytestmark = ON_RAY


@pytest.fixture(scope="module")
def settings(phrase_folders: dict[str, str], increments: str) -> GRPOConfig:
    made: GRPOConfig = tiny_config(phrase_folders, increments).training(overlap=1)
    made.env_runners(num_env_runners=2, num_cpus_per_env_runner=0.5)
    return made.fault_tolerance(restart_failed_env_runners=True)


@pytest.fixture(scope="module")
def algorithm(settings: GRPOConfig, cluster: None) -> Iterator[Any]:
    made = settings.copy(copy_frozen=False).build_algo()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def beginning(algorithm: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(algorithm.save_to_path(tmp_path_factory.mktemp("beginning")))


def sampled(algorithm: Any) -> list[tuple[Any, ...]]:
    """The programs of the last iteration, by task."""
    return [(tree.task.number, *(answer.text for answer in tree.candidates)) for tree in algorithm.last_trees]


def test_a_new_process_continues_with_replies_of_the_weights_before(settings, cluster, tmp_path):
    """They are not compared with the learner's: a gap of theirs is the update between, no fault of the sampler."""
    with built(settings.copy(copy_frozen=False)) as first:
        for _ in range(2):
            first.train()
        saved = str(first.save_to_path(tmp_path / "saved"))
    again = GRPO.from_checkpoint(saved)
    figures = again.train()["learners"]["coder"]
    again.stop()
    assert again.last_step.staleness == 1
    assert figures["sampler_gap"] > again.settings.models["coder"].allowed_gap


def test_each_iteration_is_sampled_with_the_weights_before_the_last_one(algorithm, beginning, settings):
    """The second iteration is that of a run that has not learnt yet; afterwards weights are one iteration old."""
    algorithm.restore_from_path(beginning)
    stale, trees = [], []
    for _ in range(3):
        algorithm.train()
        stale.append(algorithm.last_step.staleness)
        trees.append(sampled(algorithm))
    assert stale == [0, 1, 1]

    with built(settings.copy(copy_frozen=False).training(overlap=0, lr=1e-30)) as frozen:
        for number in range(3):
            frozen.train()
            assert (sampled(frozen) == trees[number]) == (number < 2), number


def test_it_samples_while_it_learns(algorithm: Any, beginning: str, monkeypatch: pytest.MonkeyPatch) -> None:
    algorithm.restore_from_path(beginning)
    during = []
    update = algorithm.learner_group.update

    def watched(**given: Any) -> Any:
        during.append([thread.name for thread in threading.enumerate() if thread.name.startswith("codea1-rollouts")])
        algorithm._ahead.finish()  # without an update in between
        return update(**given)

    monkeypatch.setattr(algorithm.learner_group, "update", watched)
    algorithm.train()
    assert during[0]


def test_a_checkpoint_holds_the_trees_that_were_sampled_ahead(algorithm: Any, beginning: str, tmp_path: Path) -> None:
    algorithm.restore_from_path(beginning)
    algorithm.train()
    saved = algorithm.save_to_path(tmp_path / "checkpoint")
    expected = [(algorithm.train(), sampled(algorithm), weights_of(algorithm)) for _ in range(2)]
    algorithm.restore_from_path(saved)
    for result, tokens, weights in expected:
        again = algorithm.train()
        assert sampled(algorithm) == tokens
        assert algorithm.last_step.staleness == 1
        assert again["book_size"] == result["book_size"]
        assert distance(weights_of(algorithm), weights) < 1e-6


def test_checkpoints_with_the_former_names_of_classes_are_read() -> None:
    """Those of a run with overlap hold trees, and were written when the classes were `RolledOut` and `Answer`."""
    rolled = RolloutResult((Reply("a", (1, 2)),), 1.0, 2.0, tasks=(Task(3, "p"),))
    written = pickle.dumps(rolled, 2)
    for now, former in ((b"rollout\nRolloutResult", b"runners\nRolledOut"), (b"rollout\nReply", b"rollout\nAnswer")):
        assert now in written
        written = written.replace(now, former)
    assert pickle.loads(written) == rolled


def test_a_runner_lost_in_between_changes_nothing(algorithm: Any, beginning: str) -> None:
    """Of its trees, those that train are rolled out again; of the others, only what can be read of them is lost."""
    algorithm.restore_from_path(beginning)
    expected = [(algorithm.train(), sampled(algorithm), weights_of(algorithm)) for _ in range(3)]
    algorithm.restore_from_path(beginning)
    algorithm.train()
    algorithm._ahead.finish()
    (process, _) = algorithm.env_runner_group.foreach_env_runner(lambda _: os.getpid(), local_env_runner=False)
    os.kill(process, signal.SIGKILL)
    for step, (result, texts, weights) in enumerate(expected[1:]):
        again = algorithm.train()
        found = sampled(algorithm)
        assert found == texts if step else set(found) <= set(texts)
        assert again["tasks_lost"] == 0
        assert again["book_size"] == result["book_size"]
        assert again["env_runners"]["coder_reward"] == result["env_runners"]["coder_reward"]
        assert distance(weights_of(algorithm), weights) == 0


def test_fetched_trees_have_the_order_of_their_tasks_wherever_they_are(cluster: None) -> None:
    stored = {3: "here", 1: ray.put("there"), 2: "here, too"}
    found = [(3, "here"), (1, "there"), (2, "here, too")]
    assert list(runners_module.fetch(stored).items()) == found
    lost = ray.remote(num_cpus=0)(lambda: 1 / 0).remote()
    assert list(runners_module.fetch({4: lost, **stored}).items()) == found


@pytest.mark.parametrize(("runners", "learners"), [(0, 0), (1, 0), (0, 1)])
def test_trees_pass_through_rays_store_only_to_other_processes(phrase_folders, increments, cluster, runners, learners):
    config = tiny_config(phrase_folders, increments).env_runners(num_env_runners=runners, num_cpus_per_env_runner=0.5)
    with built(config.learners(num_learners=learners, num_cpus_per_learner=0.5)) as algorithm:
        algorithm.train()
        are_stored = {isinstance(each, ray.ObjectRef) for each in algorithm.last_trees._stored.values()}
    assert are_stored == {bool(runners or learners)}


MB = 2**20
PIECE_MB = 1.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of some megabytes, many times a piece."""
    shape = {"hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 4}
    return phrase_folder(tmp_path_factory.mktemp("model"), PHRASES, num_key_value_heads=1, **shape)


def handing_over(folder: str, problems: str, *, runners: int = 0, learners: int = 0) -> Any:
    model = ModelSettings(folder, sampling_dtype="bfloat16", handover_piece_mb=PIECE_MB)
    config = tiny_config({"coder": model}, problems).agents(tester="fuzz")
    config.env_runners(num_env_runners=runners, num_cpus_per_env_runner=0.5, create_local_env_runner=not runners)
    return built(config.learners(num_learners=learners, num_cpus_per_learner=0.5))


def move(learner: Any) -> None:
    moved(learner.module["coder"].unwrapped().model, by=0.01)


def checksums(module: Any) -> dict[str, int]:
    return {name: checksum(tensor.to(torch.bfloat16)) for name, tensor in untied(module.model).items()}


def of_learner(learner: Any) -> dict[str, int]:
    return checksums(learner.module["coder"].unwrapped())


def of_runner(runner: Any) -> dict[str, int]:
    return checksums(runner.module["coder"])


@pytest.mark.parametrize(("runners", "learners"), [(0, 0), (1, 2)])
def test_runners_have_exactly_the_learners_weights(folder: str, increments: str, runners: int, learners: int) -> None:
    with handing_over(folder, increments, runners=runners, learners=learners) as algorithm:
        for _ in range(2):
            algorithm.learner_group.foreach_learner(move)
            algorithm.sync_runners()
            expected = [each.get() for each in algorithm.learner_group.foreach_learner(of_learner)]
            found = algorithm.env_runner_group.foreach_env_runner(of_runner)
            assert len(found) == max(1, runners)
            assert all(each == expected[0] for each in [*expected, *found])


def test_a_hand_over_takes_the_memory_of_a_few_pieces(folder, increments, monkeypatch):
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
    with handing_over(folder, increments, runners=1) as algorithm:
        algorithm.sync_runners()  # imports and buffers are made once
        monkeypatch.setattr(runners_module.ray, "put", measured)
        algorithm.env_runner_group.foreach_env_runner(begin)
        with LiveBytes() as driver:  # the learner is in this process
            algorithm.sync_runners()
        (runner,) = algorithm.env_runner_group.foreach_env_runner(end)
        (whole,) = algorithm.learner_group.foreach_learner(
            lambda learner: sum(each.numel() * 2 for each in learner.module["coder"].unwrapped().model.parameters())
        )
    assert sum(put) == whole.get() > 12 * PIECE_MB * MB  # once for all runners
    assert max(put) <= PIECE_MB * MB
    assert driver.peak < 4 * PIECE_MB * MB  # a piece, the next one, and what Ray allocates for any call
    assert runner < 3 * PIECE_MB * MB


def test_a_remote_runner_that_drops_pieces_ends_the_run_and_samples_no_more(folder: str, increments: str) -> None:
    def sabotage(runner: Any) -> None:
        receive = runner.receive_weights
        runner.receive_weights = lambda piece: receive(piece) if piece.is_first else None

    def rolls_out(runner: Any) -> str:
        try:
            runner.roll_out([Task(0, "toy/0")])
        except StaleWeights as error:
            return str(error)
        return ""

    with handing_over(folder, increments, runners=1) as algorithm:
        algorithm.train()
        group = algorithm.env_runner_group
        group.foreach_env_runner(sabotage)
        with pytest.raises(StaleWeights, match="a runner does not have the learner's weights"):
            algorithm.train()
        assert group.foreach_env_runner(rolls_out) == ["no hand-over of weights to this runner has been completed"]


def test_states_that_rllib_sends_to_runners_hold_no_weights(folder: str, increments: str) -> None:
    with handing_over(folder, increments) as algorithm:
        state = algorithm.learner_group.get_state(components="learner/rl_module", inference_only=True)
        assert state["learner"]["rl_module"] == {"coder": {}}
        before = of_runner(algorithm.env_runner)
        algorithm.learner_group.foreach_learner(move)
        algorithm.set_state({"learner_group": algorithm.learner_group.get_state()})
        expected = [each.get() for each in algorithm.learner_group.foreach_learner(of_learner)]
        assert expected == [of_runner(algorithm.env_runner)] != [before]


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vllm is installed; test_vllm_engine.py starts its engines")
@pytest.mark.parametrize("runners", [0, 1])
def test_an_engine_that_is_not_installed_ends_the_run_in_one_sentence(folder, increments, runners):
    model = ModelSettings(folder, rollout_engine="vllm")
    config = tiny_config({"coder": model}, increments).agents(tester="fuzz").env_runners(num_env_runners=runners)
    with pytest.raises(MissingExtra, match=r"^rollout_engine='vllm' needs an optional package: .*pip install"):
        config.build_algo().train()
