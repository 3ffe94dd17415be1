"""Clusters whose nodes have unequal sizes: what they cannot hold is refused in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.forks import forked_workers
from tests.support.grpo import ON_RAY

pytest.importorskip("ray", reason="Ray is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")
from codea1_agents.train.loop import load_training, train  # noqa: E402
from codea1_env.errors import UserError  # noqa: E402
from tests.support.ray_clusters import ray_cluster  # noqa: E402  -- needs Ray

pytestmark = [*ON_RAY, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A node of 1 CPU and 1 GPU, which is that of the driver, and one of 3 of each."""
    torch.set_num_threads(1)
    with forked_workers(), ray_cluster({"num_cpus": 1, "num_gpus": 1}, {"num_cpus": 3, "num_gpus": 3}) as cluster:
        yield cluster


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ("learners=2 gpus_per_learner=2", "2 learners need 1 CPUs and 2 GPUs each, and its nodes have room for 1"),
        ("env_runners=2 cpus_per_env_runner=0.5 learners=4", "all processes need 5 CPUs and 0 GPUs, and its nodes"),
    ],
)
def test_a_run_that_no_node_can_hold_is_refused_in_one_sentence(cluster, settings, tmp_path, changes, fault):
    changes = f"{changes} cpus_per_learner=1 sharding=none address={cluster.address}"
    config = load_training(settings, [f"cluster.{each}" for each in changes.split()])
    with pytest.raises(UserError) as caught:
        train(config, out=tmp_path / "run")
    assert str(caught.value).startswith(f"cluster: {fault}")
    assert {"1 CPUs and 1 GPUs", "3 CPUs and 3 GPUs"} == set(str(caught.value).rpartition("have ")[2].split("; "))
    assert not (tmp_path / "run").exists()
