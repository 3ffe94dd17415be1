"""Clusters of Ray with several nodes, all on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ray
from ray.cluster_utils import Cluster


@contextmanager
def ray_cluster(first: dict[str, float], *others: dict[str, float]) -> Iterator[Any]:
    """Yield a cluster to which this process is connected; `first` are the resources of its node."""
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    ray.shutdown()  # what another module has left
    cluster = Cluster(initialize_head=True, head_node_args=first)
    for each in others:
        cluster.add_node(**each)
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()
