"""A run on two nodes, with a runner, a learner and a sandbox on each, loses the node that is not the driver's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.forks import forked_workers
from tests.support.grpo import ON_RAY

ray = pytest.importorskip("ray", reason="Ray is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")
from codea1_agents.train.grpo.algorithm import GRPO  # noqa: E402
from codea1_agents.train.loop import load_training, train  # noqa: E402
from codea1_agents.train.loop.folder import read_restarts  # noqa: E402
from codea1_agents.train.loop.loop import Watcher  # noqa: E402
from codea1_env.book.store import MistakeBook  # noqa: E402
from tests.support.ray_clusters import ray_cluster  # noqa: E402  -- needs Ray

pytestmark = [*ON_RAY, pytest.mark.slow]

N_CPUS = 5
"""Of a node: it has room for one runner of 3 and one learner of 2, and not for two runners."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    torch.set_num_threads(1)
    with forked_workers(), ray_cluster({"num_cpus": N_CPUS}) as cluster:
        yield cluster


class Storm(Watcher):
    """Takes a node away after the second step, and brings another one."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self.other = cluster.add_node(num_cpus=N_CPUS)
        self.notes: list[str] = []

    def step(self, line: dict[str, Any]) -> None:
        if line["step"] == 2 and not self.notes:
            self.cluster.remove_node(self.other, allow_graceful=False)
            self.cluster.add_node(num_cpus=N_CPUS)

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def layouts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], list[str]]]:
    """The nodes of learners and of runners, after each start."""
    found: list[tuple[list[str], list[str]]] = []
    watch = GRPO.watch

    def noted(self: Any, show: Any) -> None:
        watch(self, show)
        learners = [each.get() for each in self.learner_group.foreach_learner(node_of)]
        runners = self.env_runner_group.foreach_env_runner(node_of, local_env_runner=False)
        found.append((learners, runners))

    monkeypatch.setattr(GRPO, "watch", noted)
    return found


def node_of(_: Any) -> str:
    return str(ray.get_runtime_context().get_node_id())


def test_a_run_survives_the_loss_of_a_node(cluster, settings, layouts, tmp_path):
    settings["checkpoints"] = {"every": 1}
    whole = train(load_training(settings), out=tmp_path / "whole")
    layouts.clear()
    settings["game"]["sandbox"] = "ray"
    settings["cluster"] |= {"env_runners": 2, "cpus_per_env_runner": 3.0, "learners": 2, "cpus_per_learner": 2.0}
    storm = Storm(cluster)
    done = train(load_training(settings), out=tmp_path / "run", watcher=storm)
    for learners, runners in layouts:
        assert set(learners) == set(runners)
        assert len(set(learners)) == 2
    assert len(layouts) == 2
    assert layouts[0] != layouts[1]
    (note,) = storm.notes
    assert "starting again from the checkpoint of step 2 (restart 1 of 3)" in note
    assert [line["from"] for line in read_restarts(done.folder)] == [2]
    assert (done.steps, len(done.lines)) == (4, 4)
    for line, expected in zip(done.lines, whole.lines, strict=True):
        assert line["figures"] == pytest.approx(expected["figures"], rel=1e-3, abs=1e-4)
    with MistakeBook(done.folder / "book.sqlite", read_only=True) as book:
        assert book.size() == whole.lines[-1]["figures"]["book_size"]
