"""Access to a container engine through the `docker` SDK, which is imported only when it is needed."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import socket
from collections.abc import Iterator
from typing import Any

from codea1_env.errors import MissingExtra, SandboxError

LABEL = "codea1-env"
"""On what this project makes; its value is `container` or `image`."""

_TIMEOUT_S = 60


class EngineGone(SandboxError):
    """The engine does not answer: it is missing, it is being restarted, or this user may not use it."""


class EngineFailed(SandboxError):
    """The engine reports an error of its own."""


def check_sdk() -> None:
    """Raise MissingExtra if the SDK is not installed."""
    if importlib.util.find_spec("docker") is None:
        raise MissingExtra.of("the docker sandbox", "docker")


@contextlib.contextmanager
def connected() -> Iterator[Any]:
    """Yield a low-level client of the engine that `DOCKER_HOST` names, by default the local one.

    Each use makes a new connection, since clients survive neither forks nor restarts of the engine.

    Raises:
        MissingExtra: the SDK is not installed.
        EngineGone: the engine does not answer.
        EngineFailed: the engine reports an error of its own.
        SandboxError: the engine refuses a request that the block sends.
    """
    check_sdk()
    import docker  # noqa: PLC0415  -- heavy, and an extra
    from docker import errors  # noqa: PLC0415  -- heavy, and an extra
    from requests.exceptions import RequestException  # noqa: PLC0415  -- comes with docker

    place = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    try:
        if place.startswith("unix://"):
            with socket.socket(socket.AF_UNIX) as probe:  # the SDK's own error is long, and it leaks a socket
                probe.connect(place.removeprefix("unix://"))
        client = docker.from_env(timeout=_TIMEOUT_S)
    except (errors.DockerException, RequestException, OSError) as error:
        raise EngineGone(f"no Docker engine answers at {place} (DOCKER_HOST names another): {error}") from error
    try:
        yield client.api
    except errors.APIError as error:
        kind = EngineFailed if error.is_server_error() else SandboxError
        raise kind(f"the Docker engine at {place} refuses: {error.explanation or error}") from error
    except (errors.DockerException, RequestException) as error:
        raise EngineGone(f"the Docker engine at {place} has stopped answering: {error}") from error
    finally:
        client.close()


def remove_container(client: Any, name: str) -> bool:
    """End and remove a container, by name or id; return False if it does not exist or is being removed already."""
    from docker.errors import APIError  # noqa: PLC0415  -- heavy, and an extra

    try:
        client.remove_container(name, force=True)
    except APIError as error:
        if error.is_server_error():
            raise
        return False
    return True
