"""The sandbox of a Ray cluster: one pool of workers per node, in one actor, for all processes of the cluster.

`run` sends jobs in small requests to free nodes: first to the caller's own node, then to the node with the fewest
requests of this caller. If a node is lost, its open requests run again on other nodes, at most twice; after that they
are internal errors, never verdicts.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from codea1_agents.interrupts import sigterm_interrupts
from codea1_env.errors import SandboxError, extra_needed
from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.sandbox import Closing, Guarantee, Job, JobReport
from codea1_env.sandbox.local import PACKAGES, LocalSandbox
from codea1_env.sandbox.shared import one_per_process

_NAMESPACE = "codea1"
_REQUESTS_PER_CORE = 2  # one running and one in transit
_SUSPECT_S = 60.0  # longer than Ray takes to notice that a node is gone


class _NodePool:
    """The actor on each node."""

    def __init__(self, workers: int | None, packages: Sequence[str]) -> None:
        self._sandbox = LocalSandbox(workers, packages=packages)

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        return self._sandbox.run(jobs)

    def guarantee(self) -> str:
        return self._sandbox.guarantee.value

    def process_id(self) -> int:
        return os.getpid()


@dataclass(slots=True, eq=False)
class _Node:
    """One node of the cluster as this process sees it."""

    node_id: str
    n_cores: int
    is_near: bool
    pool: Any
    """Handle of its actor."""
    n_open: int = 0
    """Requests of this process without a result."""

    @property
    def is_free(self) -> bool:
        return self.n_open < self.n_cores * _REQUESTS_PER_CORE


@dataclass(slots=True, eq=False)
class _Request:
    """Some jobs of one call of `run`."""

    positions: Sequence[int]
    n_attempts: int = 0
    node: _Node = field(init=False)


class RaySandbox(Closing):
    """Runs jobs on all nodes of the Ray cluster that this process belongs to. Thread-safe; can be pickled.

    Args:
        workers: interpreters per node; by default one per usable core of the node.
        packages: site packages that programs may import, where the nodes have them.
        jobs_per_request: jobs per request; small requests balance better, large ones cost less.
        max_attempts: how often a job runs whose node is lost, before it counts as an infrastructure error; at least 1.

    Raises:
        MissingExtra: Ray is not installed.
        ValueError: fewer than one job per request.
    """

    name = "ray"

    def __init__(
        self,
        workers: int | None = None,
        *,
        packages: Sequence[str] = PACKAGES,
        jobs_per_request: int = 16,
        max_attempts: int = 3,
    ) -> None:
        if jobs_per_request < 1:
            raise ValueError(f"jobs_per_request must be at least 1, got {jobs_per_request}")
        with extra_needed("the sandbox of a Ray cluster", "rllib"):
            import ray  # noqa: PLC0415  -- heavy, and an extra
            import ray.util.scheduling_strategies  # noqa: PLC0415
        self._ray: Any = ray
        self._workers = workers
        self._packages = tuple(packages)
        self._jobs_per_request = jobs_per_request
        self._max_attempts = max_attempts
        self._lock = threading.Lock()
        self._nodes: dict[str, _Node] = {}
        self._suspected_at: dict[str, float] = {}
        self._n_lost: dict[str, int] = {}
        """Pools lost per node. The number is part of a pool's name, since Ray may still return the dead pool by its old
        name."""

    @property
    def guarantee(self) -> Guarantee:
        """The weakest guarantee of all nodes.

        Raises:
            SandboxError: no node can run a sandbox.
        """
        promised = self._fetched([node.pool.guarantee.remote() for node in self._live_nodes()])
        return max(map(Guarantee, promised), key=list(Guarantee).index)

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        """Run all jobs; reports in the order of the jobs.

        Raises:
            SandboxError: no node of the cluster can run a sandbox.
        """
        reports: dict[int, JobReport] = {}
        waiting = deque(
            _Request(range(start, min(start + self._jobs_per_request, len(jobs))))
            for start in range(0, len(jobs), self._jobs_per_request)
        )
        under_way: dict[Any, _Request] = {}
        try:
            while waiting or under_way:
                self._submit(jobs, waiting, under_way)
                done, _ = self._ray.wait(list(under_way), num_returns=1)
                for reference in done:
                    reports |= self._collected(reference, under_way.pop(reference), jobs, waiting)
        finally:
            with self._lock:
                for request in under_way.values():
                    request.node.n_open -= 1
        return [reports[position] for position in range(len(jobs))]

    def close(self) -> None:
        """Release the nodes' pools; a pool ends when no process of the cluster uses it. A later `run` gets new ones."""
        with self._lock:
            self._nodes.clear()

    def __reduce__(self) -> tuple[object, ...]:
        settings: dict[str, Any] = {
            "packages": self._packages,
            "jobs_per_request": self._jobs_per_request,
            "max_attempts": self._max_attempts,
        }
        return partial(RaySandbox, self._workers, **settings), ()

    # Requests

    def _submit(self, jobs: Sequence[Job], waiting: deque[_Request], under_way: dict[Any, _Request]) -> None:
        nodes = self._live_nodes() if waiting else []
        while waiting:
            with self._lock:
                free = [node for node in nodes if node.is_free]
                if not free and under_way:
                    return
                # All nodes are busy with requests of other threads: choose the shortest queue.
                node = min(free or nodes, key=lambda node: (not (node.is_near and node.is_free), node.n_open))
                node.n_open += 1
            request = waiting.popleft()
            request.node = node
            request.n_attempts += 1
            under_way[node.pool.run.remote([jobs[position] for position in request.positions])] = request

    def _collected(
        self, reference: Any, request: _Request, jobs: Sequence[Job], waiting: deque[_Request]
    ) -> dict[int, JobReport]:
        """Return the reports by the positions of their jobs; empty if the request must be sent again."""
        with self._lock:
            request.node.n_open -= 1
        try:
            reports = self._fetched(reference)
        except self._ray.exceptions.RayError as error:
            self._forget(request.node)
            if request.n_attempts < self._max_attempts:
                waiting.appendleft(request)
                return {}
            reports = [_lost(jobs[position], error) for position in request.positions]
        return dict(zip(request.positions, reports, strict=True))

    def _fetched(self, references: Any) -> Any:
        try:
            return self._ray.get(references)
        except self._ray.exceptions.RayTaskError as error:
            raise SandboxError(str(error.cause)) from error

    # Nodes

    def _live_nodes(self) -> list[_Node]:
        """Return the nodes that are alive now; start a pool on each node without one."""
        if not self._ray.is_initialized():
            init_ray(self._ray, log_to_driver=False)
        here = self._ray.get_runtime_context().get_node_id()
        alive = {node["NodeID"]: node for node in self._ray.nodes() if node["Alive"]}
        with self._lock:
            alive = self._trusted(alive)
            for node_id in self._nodes.keys() - alive:
                del self._nodes[node_id]
            for node_id, node in alive.items():
                n_cores = int(node["Resources"].get("CPU", 0))
                if node_id not in self._nodes and n_cores:
                    self._nodes[node_id] = _Node(node_id, n_cores, node_id == here, self._pool_on(node_id, n_cores))
            found = list(self._nodes.values())
        if not found:
            raise SandboxError("no node of the Ray cluster has a processor to run programs on")
        return found

    def _trusted(self, nodes: dict[str, Any]) -> dict[str, Any]:
        """Leave out nodes that recently lost a request, unless all did."""
        now = monotonic()
        suspects = {node_id for node_id, at in self._suspected_at.items() if now - at < _SUSPECT_S}
        return {node_id: node for node_id, node in nodes.items() if node_id not in suspects} or nodes

    def _pool_on(self, node_id: str, n_cores: int) -> Any:
        affinity = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node_id, soft=False)
        packages = "-".join(self._packages)
        options = {
            "name": f"sandbox-{node_id}-{self._workers or 'all'}-{packages}-{self._n_lost.get(node_id, 0)}",
            "namespace": _NAMESPACE,
            "get_if_exists": True,
            "scheduling_strategy": affinity,
            "num_cpus": 0,  # it uses processors only while its callers wait
            "max_concurrency": max(2, n_cores * _REQUESTS_PER_CORE),
        }
        return self._ray.remote(_NodePool).options(**options).remote(self._workers, self._packages)

    def _forget(self, node: _Node) -> None:
        """Treat a node as lost; if it is still alive, it gets a new pool later."""
        with self._lock:
            self._suspected_at[node.node_id] = monotonic()
            if self._nodes.get(node.node_id) is node:
                del self._nodes[node.node_id]
                self._n_lost[node.node_id] = self._n_lost.get(node.node_id, 0) + 1


def _lost(job: Job, error: Exception) -> JobReport:
    outcome = Outcome(OutcomeKind.INTERNAL_ERROR, message=f"lost with every node that tried it: {error}"[:300])
    return JobReport(outcome, (outcome,) * len(job.calls))


def init_ray(ray: Any, **options: Any) -> None:
    """Call `ray.init`, and handle SIGTERM as before. A Ray that starts keeps its token in the environment.

    Args:
        ray: the package, which sets a handler of its own: it would end this process without what Ctrl-C does first.
        options: of `ray.init`.

    Raises:
        KeyboardInterrupt: a signal came in between.
    """
    is_told = any(name.startswith(("RAY_ADDRESS", "RAY_AUTH_")) for name in os.environ)
    if options.get("address", "local") == "local" and not is_told and not (Path.home() / ".ray/auth_token").exists():
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)  # otherwise Ray writes one to the home directory
    try:
        with sigterm_interrupts():
            ray.init(**options)
    except SystemExit:  # of its handler
        raise KeyboardInterrupt from None


@one_per_process
def shared_ray_sandbox() -> RaySandbox:
    """Return the `RaySandbox` of this process, created at first use."""
    return RaySandbox()
