"""The settings of a hardened container: its limits, its mounts and the rights that it does not get."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.errors import SandboxError
from codea1_env.sandbox.docker.engine import LABEL
from codea1_env.sandbox.docker.image import Image
from codea1_env.sandbox.local.worker import clean_environment

UNSUITABLE_ENGINE = (
    "the docker sandbox needs an engine on the same kernel that sees the same files: no remote engine, no Docker"
    " Desktop, no gVisor, no engine outside a container that this process runs in (if only the folder for temporary"
    " files differs, set TMPDIR to one that both see)"
)

_INSIDE, _SOURCES = "/run/codea1", "/run/codea1-sources"
_ENTRY = f"{_INSIDE}/codea1_env/sandbox/inside/docker_entry.py"
_TMP_OPTIONS = "size=4m,mode=1777,noexec,nosuid,nodev"
_SOURCES_OPTIONS = "size=8m,mode=755,noexec,nosuid,nodev"
_MIN_PROCESSES, _PROCESSES_PER_WORKER = 4096, 1024  # a job may have 256 threads; a worker has few jobs at a time
_CORES_PER_WORKER = 2.0  # a worker has two jobs that use a processor at the same time
_LIMITS = {"MemoryLimit": "memory", "PidsLimit": "processes", "CpuCfsQuota": "processors"}
# Users that own nothing: above the ids that distributions and engines assign, or within a container's 65,536.
_FREE_USERS, _FREE_USERS_REMAPPED = range(400_000, 500_000), range(20_000, 60_000)


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """The settings of a sandbox's container, and of those that replace it."""

    image: Image
    session: str
    """Part of the containers' names, by which they are told from those of other sandboxes."""
    memory_mb: int
    """For all processes of the container together."""
    n_cores: float
    """Most processors that the container may keep busy."""
    n_processes: int
    """Most processes and threads in the container."""
    users: range
    """Each zygote gets one of these user ids."""
    unlimited: tuple[str, ...] = ()
    """The resources that this engine cannot limit. The limits of each job do not depend on the engine."""

    @classmethod
    def for_engine(cls, client: Any, image: Image, session: str, memory_mb: int, n_workers: int) -> ContainerSettings:
        """Return the settings that suit an engine.

        Raises:
            SandboxError: the engine's containers do not run Linux.
        """
        facts = client.info()
        if facts.get("OSType") != "linux":
            raise SandboxError(f"the docker sandbox needs Linux containers, but this engine runs {facts.get('OSType')}")
        is_remapped = any("name=userns" in text or "name=rootless" in text for text in facts["SecurityOptions"] or ())
        users = _FREE_USERS_REMAPPED if is_remapped else _FREE_USERS
        unlimited = tuple(what for key, what in _LIMITS.items() if not facts.get(key))
        n_cores = min(_CORES_PER_WORKER * n_workers, float(facts["NCPU"]))
        n_processes = max(_MIN_PROCESSES, _PROCESSES_PER_WORKER * n_workers)
        return cls(image, session, memory_mb * n_workers, n_cores, n_processes, users, unlimited)

    def create(self, client: Any, name: str, shared: Path) -> None:
        """Create a container without starting it.

        Args:
            client: see `codea1_env.sandbox.docker.engine.connected`.
            name: the container's name.
            shared: folder that is mounted in it, read-only.

        Raises:
            SandboxError: the engine does not see the same files as this process.
        """
        from docker.errors import APIError  # noqa: PLC0415  -- heavy, and an extra

        try:
            client.create_container(
                self.image.reference,
                name=name,
                entrypoint=[self.image.python, "-S", "-s", "-B", _ENTRY, _INSIDE, _SOURCES],
                user="0:0",  # its rights are to give each zygote a user of its own, and to kill it; a zygote has none
                working_dir="/",
                hostname="sandbox",
                stop_signal="SIGKILL",  # process 1 ignores other signals, and an engine that ends would wait for it
                environment={**environment(), "PYTHONPATH": "", "PYTHONSAFEPATH": "1"},  # the image may say otherwise
                labels={LABEL: "container"},
                host_config=self._limits(client, shared),
            )
        except APIError as error:
            if "bind source path" in str(error.explanation):
                raise SandboxError(UNSUITABLE_ENGINE) from error
            raise

    def _limits(self, client: Any, shared: Path) -> Any:
        from docker.types import Mount  # noqa: PLC0415  -- heavy, and an extra

        return client.create_host_config(
            auto_remove=True,
            init=False,  # our process is process 1, whatever the engine's own settings
            network_mode="none",
            ipc_mode="none",  # no /dev/shm
            read_only=True,
            tmpfs={"/tmp": _TMP_OPTIONS, _SOURCES: _SOURCES_OPTIONS},
            mounts=[
                Mount(_INSIDE, str(shared), type="bind", read_only=True),
                *(Mount(path, path, type="bind", read_only=True) for path in self.image.shown),
                *(Mount(path, None, type="tmpfs", tmpfs_size=1 << 20, tmpfs_mode=0o755) for path in self.image.hidden),
            ],
            cap_drop=["ALL"],
            cap_add=["KILL", "SETGID", "SETUID"],
            security_opt=["no-new-privileges"],  # the engine's own system call filter stays
            pids_limit=self.n_processes,
            mem_limit=self.memory_mb << 20,
            memswap_limit=self.memory_mb << 20,
            nano_cpus=int(self.n_cores * 1e9),
            log_config={"Type": "none"},
        )


def environment() -> dict[str, str]:
    """Return the environment variables of a zygote in a container; programs see them."""
    return {**clean_environment(), "PATH": "/usr/local/bin:/usr/bin:/bin"}
