"""Two runners and two learners: they change nothing, and what happens when one of them is killed; runs in Tune."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.grpo import ON_RAY, Weights, built, distance, tiny_config, weights_of
from tests.support.waiting import wait_until

ray = pytest.importorskip("ray", reason="Ray is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")
from codea1_agents.train.failures import LearnerLost, NotFinite, RunnerFailed  # noqa: E402
from codea1_agents.train.grpo import GRPO, GRPOConfig, learner_group  # noqa: E402
from codea1_agents.train.grpo import runners as runners_module  # noqa: E402
from codea1_agents.train.grpo.rollout import Task  # noqa: E402

pytestmark = ON_RAY

N = 5
"""Iterations that are compared."""


@dataclass
class Expected:
    """A run in one process: what every other layout must give."""

    weights: dict[int, Weights]
    """After so many iterations."""
    results: list[dict[str, Any]]


@pytest.fixture(scope="module")
def settings(phrase_folders: dict[str, str], increments: str) -> GRPOConfig:
    return tiny_config(phrase_folders, increments).training(minibatches_per_epoch=2, epochs_per_step=2)


@pytest.fixture(scope="module")
def expected(settings: GRPOConfig, cluster: None) -> Expected:
    weights, results = {}, []
    with built(settings.copy(copy_frozen=False)) as algorithm:
        for number in range(1, N + 1):
            results.append(algorithm.train())
            weights[number] = weights_of(algorithm)
    return Expected(weights, results)


@pytest.fixture(scope="module")
def remote(settings: GRPOConfig, cluster: None) -> Iterator[Any]:
    """The same with two runners and two learners of their own."""
    yield from running(settings, n_runners=2)


@pytest.fixture
def doomed(settings: GRPOConfig, cluster: None) -> Iterator[Any]:
    """One with two learners, for a test after which nothing can be done with it."""
    yield from running(settings, n_runners=0)


def running(settings: GRPOConfig, *, n_runners: int) -> Iterator[Any]:
    config = settings.copy(copy_frozen=False)
    config.env_runners(num_env_runners=n_runners, num_cpus_per_env_runner=0.5)
    config.learners(num_learners=2, num_cpus_per_learner=0.5)
    config.fault_tolerance(restart_failed_env_runners=True)
    algorithm = config.build_algo()
    yield algorithm
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        algorithm.stop()


@pytest.fixture(scope="module")
def beginning(remote: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where every test of the remote run starts from."""
    return str(remote.save_to_path(tmp_path_factory.mktemp("beginning")))


def test_two_runners_and_two_learners_change_nothing(remote: Any, beginning: str, expected: Expected) -> None:
    remote.restore_from_path(beginning)
    for number, one in enumerate(expected.results[:3], 1):
        result = remote.train()
        assert distance(expected.weights[number], weights_of(remote)) < 1e-5
        assert result["book_size"] == one["book_size"]
        assert result["num_env_steps_sampled_lifetime"] == one["num_env_steps_sampled_lifetime"]
        assert result["env_runners"]["coder_reward"] == pytest.approx(one["env_runners"]["coder_reward"])
        for module in set(one["learners"]) & {"coder", "tester"}:  # sums over learners, not means of their parts
            for name in ("loss", "kl", "entropy", "clip_share", "ratio_gap", "grad_norm"):
                figure = one["learners"][module][name]
                assert result["learners"][module][name] == pytest.approx(figure, rel=1e-3, abs=1e-6, nan_ok=True), name


def first_runner(algorithm: Any) -> int:
    (process, _) = algorithm.env_runner_group.foreach_env_runner(lambda _: os.getpid(), local_env_runner=False)
    return int(process)


def test_a_runner_killed_costs_no_problem_and_every_step_is_counted(remote, beginning, expected):
    remote.restore_from_path(beginning)
    remote.train()
    os.kill(first_runner(remote), signal.SIGKILL)
    results = [remote.train() for _ in range(N - 1)]
    assert [result["tasks_lost"] for result in results] == [0] * (N - 1)
    assert distance(expected.weights[N], weights_of(remote)) < 1e-5
    for name in ("num_env_steps_sampled_lifetime", "training_iteration", "book_size"):
        assert results[-1][name] == expected.results[-1][name], name


def test_a_runner_killed_with_the_trees_that_it_has_rolled_out_changes_nothing(
    remote: Any, beginning: str, expected: Expected, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No tree passes through the driver: learners fetch them from the runners, and one of these is dead."""
    remote.restore_from_path(beginning)
    remote.train()
    assign, doomed = remote._assign, [first_runner(remote)]

    def kills(rolled: Any) -> Any:
        os.kill(doomed.pop(), signal.SIGKILL)
        return assign(rolled)

    def unread(_: Any) -> None:
        raise AssertionError("the driver fetches trees")

    with monkeypatch.context() as patched:
        patched.setattr(remote, "_assign", kills)
        patched.setattr(runners_module, "fetch", unread)  # in this process
        result = remote.train()
    assert (result["tasks_lost"], result["book_size"]) == (0, expected.results[1]["book_size"])
    assert distance(expected.weights[2], weights_of(remote)) < 1e-5


def test_trees_that_are_lost_are_rolled_out_again(settings, expected, monkeypatch):
    lost = [frozenset({1, 2}), frozenset({0})]
    with built(settings.copy(copy_frozen=False)) as algorithm:
        each = algorithm.learner_group.each
        monkeypatch.setattr(algorithm.learner_group, "each", lambda work: [(None, lost.pop())] if lost else each(work))
        result = algorithm.train()
        assert not lost
        assert (result["tasks_lost"], result["book_size"]) == (0, expected.results[0]["book_size"])
        assert distance(expected.weights[1], weights_of(algorithm)) < 1e-5


def test_an_exception_in_a_runner_ends_the_run_in_one_sentence(remote, beginning, monkeypatch):
    remote.restore_from_path(beginning)
    with monkeypatch.context() as patched:
        patched.setattr(remote, "_next_tasks", lambda: [Task(0, "no such problem")])
        with pytest.raises(RunnerFailed, match=r"a runner failed in iteration \d+: .*no such problem"):
            remote.train()
    remote.restore_from_path(beginning)
    assert remote.train()["tasks_lost"] == 0


def test_a_loss_that_is_no_number_stops_all_learners_alike(doomed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    update = doomed.learner_group.update

    def spoilt(*, episodes_refs: list[Any], **more: Any) -> Any:
        first = [replace(episode, advantage=float("nan")) for episode in ray.get(episodes_refs[0])]
        return update(episodes_refs=[ray.put(first), *episodes_refs[1:]], **more)

    with monkeypatch.context() as patch:
        patch.setattr(doomed.learner_group, "update", spoilt)
        with pytest.raises(NotFinite, match=r"^stopped: the loss of '(coder|tester)' is nan") as caught:
            doomed.train()
    assert "Traceback" not in str(caught.value)
    # That no weight has moved is tested with one learner: these have ended.


@pytest.mark.parametrize(
    ("raised", "expected", "said"),
    [
        (ValueError("odd"), LearnerLost, r"^the learner of rank 1 \(process \d+ on \S+\) failed: ValueError: odd$"),
        (OSError(28, "No space left on device"), OSError, "No space left"),
    ],
)
def test_what_a_learner_raises_is_named_while_another_waits_for_it(doomed, monkeypatch, raised, expected, said):
    monkeypatch.setattr(learner_group, "_GRACE_S", 0.5)

    def work(_: Any) -> None:
        if torch.distributed.get_rank() == 1:
            raise raised
        torch.distributed.barrier()

    with pytest.raises(expected, match=said):
        doomed.learner_group.foreach_learner(work)


def test_a_learner_that_hangs_is_lost_if_it_is_called_alone(doomed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doomed.learner_group._worker_manager, "_timeout_s", 0.5)
    process, _ = [each.get() for each in doomed.learner_group.foreach_learner(lambda _: os.getpid())]
    os.kill(process, signal.SIGSTOP)
    said = r"^the learner of rank 0 \(process \d+ on \S+\) did not answer \(cluster.learner_timeout_s is 0.5\)$"
    with pytest.raises(LearnerLost, match=said):
        doomed.learner_group.foreach_learner(lambda _: None, remote_actor_ids=[0])
    assert wait_until(lambda: not Path(f"/proc/{process}").exists(), 60)


def test_tune_compares_learning_rates_and_its_checkpoints_load(settings, tmp_path, monkeypatch):
    from ray import tune

    config = settings.copy(copy_frozen=False).training(lr=tune.grid_search([3e-3, 1e-4]))
    config.resources(num_cpus_for_main_process=1)
    monkeypatch.setenv("TUNE_DISABLE_SIGINT_HANDLER", "1")  # it would stay, and swallow the interrupts of later tests
    ends = {"stop": {"training_iteration": 2}, "checkpoint_config": tune.CheckpointConfig(checkpoint_at_end=True)}
    run = tune.RunConfig(storage_path=str(tmp_path), verbose=0, **ends)
    results = tune.Tuner(GRPO, param_space=config, run_config=run).fit()
    assert not results.errors
    rates = {}
    for result in results:
        assert result.metrics["training_iteration"] == 2
        algorithm = GRPO.from_checkpoint(result.checkpoint.path)
        assert algorithm.iteration == 2
        rates[algorithm.config.lr] = weights_of(algorithm)
        assert algorithm.train()["training_iteration"] == 3
        algorithm.stop()
    assert set(rates) == {3e-3, 1e-4}
    assert distance(rates[3e-3], rates[1e-4]) > 1e-4


def test_a_learner_killed_ends_the_run_with_one_error_and_the_checkpoint_good(
    remote: Any, beginning: str, settings: GRPOConfig, expected: Expected, tmp_path: Path, monkeypatch: Any
) -> None:
    """The last test of the remote run: a lost learner cannot be replaced."""
    remote.restore_from_path(beginning)
    remote.train()
    path = remote.save_to_path(tmp_path / "checkpoint")
    (_, process) = [each.get() for each in remote.learner_group.foreach_learner(lambda _: os.getpid())]
    update = remote.learner_group.update

    def killed(**given: Any) -> Any:
        os.kill(process, signal.SIGKILL)
        return update(**given)

    monkeypatch.setattr(remote.learner_group, "update", killed)
    with pytest.raises(LearnerLost, match=r"^the learner of rank 1 \(process \d+ on \S+\) died$"):
        remote.train()

    with built(settings.copy(copy_frozen=False)) as other:
        other.restore_from_path(path)
        other.train()
        assert distance(expected.weights[2], weights_of(other)) < 1e-5
