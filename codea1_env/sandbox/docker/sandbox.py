"""The sandbox whose zygotes run in a container: the local sandbox, with one container around its pool.

What the container adds to the local tiers is its image, and isolation where the kernel grants this user none. Each
zygote has a user of its own in it. Jobs do not involve the engine, so a job costs about as much as in the local one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from secrets import token_hex
from typing import Any

from codea1_env.errors import UserError
from codea1_env.sandbox.docker.container import PoolContainer
from codea1_env.sandbox.docker.container_settings import ContainerSettings
from codea1_env.sandbox.docker.engine import check_sdk, connected
from codea1_env.sandbox.docker.image import given_image, own_image
from codea1_env.sandbox.interface import Guarantee, Job, JobReport
from codea1_env.sandbox.local import PACKAGES, TIERS, LocalSandbox
from codea1_env.sandbox.local.scheduler import Hold, Scheduler
from codea1_env.sandbox.local.worker import USUAL_UPKEEP, Upkeep
from codea1_env.sandbox.shared import one_per_process

TIER = "container"
"""The one kind of isolation here."""

_MEMORY_MB = 4096


class DockerSandbox(LocalSandbox):
    """Runs jobs in processes forked from prepared, sealed interpreters, all in one container.

    Needs the `docker` extra and an engine on this machine, which is found as the docker command finds it. Starts
    lazily. Safe to use from any thread and after forks.

    Args:
        workers: how many interpreters run jobs at the same time, per kind (plain, with more imported, with numpy); by
            default one per usable core.
        image: an image that the engine has, with `python3` 3.11 or newer; programs can import those of `packages` that
            it contains. By default an image is built once from the running interpreter, without a network.
        memory_mb: memory of the container per worker; a job may have two processes of `Limits.memory_mb` each.
        packages: top-level names of the site packages that programs may import.

    Raises:
        MissingExtra: the SDK is not installed.
        ValueError: fewer than one worker.
    """

    name = "docker"

    def __init__(
        self,
        workers: int | None = None,
        *,
        image: str = "",
        memory_mb: int = _MEMORY_MB,
        packages: Sequence[str] = PACKAGES,
    ) -> None:
        check_sdk()
        super().__init__(workers, packages=packages, tiers=TIERS)  # none of them is used
        self._image = image
        self._memory_mb = memory_mb
        self._unlimited: tuple[str, ...] = ()

    @property
    def guarantee(self) -> Guarantee:
        """Always `ISOLATED`; reading it starts nothing."""
        return Guarantee.ISOLATED

    @property
    def refusals(self) -> tuple[str, ...]:
        """What the engine cannot limit, or why it has started no container; starts a worker to find out.

        Raises:
            SandboxError: no worker starts.
        """
        missing = [f"{TIER}: this engine does not limit {what}" for what in self._unlimited]
        return (*missing, *super().refusals)

    def run(self, jobs: Sequence[Job], hold: Hold | None = None) -> list[JobReport]:
        """Run all jobs; reports in the order of the jobs. See `LocalSandbox.run`.

        If the engine is restarted meanwhile, the sandbox runs the jobs once more when the engine is back.

        Raises:
            SandboxError: no engine answers, it is not on this machine, or the sandbox was closed meanwhile.
            UserError: a job may use more memory than there is per worker, or the engine does not have the image.
        """
        most = max((job.limits.memory_mb for job in jobs), default=0)
        if most > self._memory_mb:
            raise UserError(f"memory_mb must be at least {most}, the memory that a job may use, got {self._memory_mb}")
        return super().run(jobs, hold)

    def __reduce__(self) -> tuple[object, ...]:
        settings: dict[str, Any] = {"image": self._image, "memory_mb": self._memory_mb, "packages": self._packages}
        return partial(DockerSandbox, self._n_workers, **settings), ()

    def _new_scheduler(self) -> Scheduler:
        with connected() as client:
            packages = self._kinds.plain.packages
            image = given_image(client, self._image) if self._image else own_image(client, packages)
            settings = ContainerSettings.for_engine(client, image, token_hex(6), self._memory_mb, self._n_workers)
        self._unlimited = settings.unlimited
        return _Scheduler(self._n_workers, PoolContainer(settings))


class _Scheduler(Scheduler):
    """Its `close` waits until the engine has removed the container."""

    def __init__(self, n_workers: int, container: PoolContainer, upkeep: Upkeep = USUAL_UPKEEP) -> None:
        super().__init__(n_workers, (TIER,), container, upkeep)
        self._container = container

    def close(self) -> None:
        super().close()
        self._container.close()


@one_per_process
def shared_docker_sandbox() -> DockerSandbox:
    """Return the docker sandbox of this process, made on first use and closed at interpreter exit.

    The environment variable `CODEA1_DOCKER_IMAGE` may name its image.
    """
    return DockerSandbox(image=os.environ.get("CODEA1_DOCKER_IMAGE", ""))
