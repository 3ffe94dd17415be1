"""Starts Ray for trainings: quietly, for one process and without files in the home directory."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from codea1_agents.ray_sandbox import init_ray
from codea1_env.errors import UserError, message_of


@contextmanager
def ray_running(n_cpus: int, address: str = "") -> Iterator[None]:
    """Have Ray in this process, as `start_ray` starts it. A Ray that runs already goes on afterwards."""
    import ray  # noqa: PLC0415  heavy

    if ray.is_initialized():
        yield
        return
    try:
        start_ray(ray, n_cpus, address)
        yield
    finally:
        ray.shutdown()


@dataclass(frozen=True, slots=True)
class Wanted:
    """Processes of one kind that a run starts."""

    kind: str
    """In the plural."""
    n: int
    cpus: float
    gpus: float


def require_room(wanted: Iterable[Wanted]) -> None:
    """Check that nodes of any sizes can hold some processes; Ray would wait for ever for one that fits none.

    Raises:
        UserError: they have no room for all of a kind, or all kinds together take more than all nodes have.
    """
    import ray  # noqa: PLC0415  heavy

    nodes = [each["Resources"] for each in ray.nodes() if each["Alive"]]
    have = "; ".join(_amounts(each) for each in nodes)
    total = {"CPU": 0.0, "GPU": 0.0}
    for each in wanted:
        needs = {"CPU": each.cpus, "GPU": each.gpus}
        room = sum(_times(needs, node, each.n) for node in nodes)
        if room < each.n:
            needed = f"{each.n} {each.kind} need {_amounts(needs)} each"
            raise UserError(f"cluster: {needed}, and its nodes have room for {room}; they have {have}")
        total = {name: so_far + each.n * needs[name] for name, so_far in total.items()}
    if not _times(total, {name: sum(node.get(name, 0.0) for node in nodes) for name in total}, 1):
        raise UserError(f"cluster: all processes need {_amounts(total)}, and its nodes have {have}")


def _times(needs: Mapping[str, float], node: Mapping[str, float], most: int) -> int:
    """Return how many processes a node has room for; `most` if they need nothing. A share of a GPU is of one GPU."""
    times = []
    for name, n in needs.items():
        has = node.get(name, 0.0)
        if name == "GPU" and 0 < n < 1:
            times.append(int(has) * int(1 / n + 1e-9))
        elif n:
            times.append(int(has / n + 1e-9))
    return min(times, default=most)


def _amounts(resources: Mapping[str, float]) -> str:
    return f"{resources.get('CPU', 0.0):g} CPUs and {resources.get('GPU', 0.0):g} GPUs"


def start_ray(ray: Any, n_cpus: int, address: str = "") -> None:
    """Connect to a running Ray, or start one that belongs to this process, even if another one runs.

    Args:
        ray: the package.
        n_cpus: cores that runners and learners need. Ray would wait forever for missing ones, so it is told of more.
        address: a running Ray; if empty, the one that the environment variable `RAY_ADDRESS` names, or a new one.

    Raises:
        UserError: it does not start.
    """
    logging.getLogger("ray").setLevel(logging.ERROR)  # it logs much about its own internals
    if address or os.environ.get("RAY_ADDRESS"):
        try:
            init_ray(ray, address=address or None, log_to_driver=False, logging_level="ERROR")
        except Exception as error:  # as below
            raise UserError(
                f"no Ray answers at {address or os.environ['RAY_ADDRESS']!r}: {message_of(error)}"
            ) from error
        return
    for is_last in (False, True):
        try:
            init_ray(
                ray,
                address="local",
                num_cpus=max(os.cpu_count() or 1, n_cpus),
                include_dashboard=False,
                log_to_driver=False,
                logging_level="ERROR",
            )
        except Exception as error:  # Ray raises no narrower class
            ray.shutdown()
            if is_last:  # a busy machine may miss Ray's time limits once
                raise UserError(f"Ray cannot be started here: {error}") from error
        else:
            return
