"""Starts Ray for trainings: quietly, for one process and without files in the home directory."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from codea1_env.errors import UserError

_TOKEN = "RAY_AUTH_TOKEN"


@contextmanager
def ray_running(n_cpus: int, address: str = "") -> Iterator[None]:
    """Have Ray in this process, as `start_ray` starts it. A Ray that runs already goes on afterwards."""
    import ray  # noqa: PLC0415  heavy

    if ray.is_initialized():
        yield
        return
    start_ray(ray, n_cpus, address)
    try:
        yield
    finally:
        ray.shutdown()


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
        ray.init(address=address or None, log_to_driver=False, logging_level="ERROR")
        return
    names = ("RAY_AUTH_MODE", _TOKEN, f"{_TOKEN}_PATH")
    if not any(name in os.environ for name in names) and not (Path.home() / ".ray" / "auth_token").exists():
        os.environ[_TOKEN] = secrets.token_hex(32)  # otherwise Ray writes one to the home directory
    for is_last in (False, True):
        try:
            ray.init(
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
