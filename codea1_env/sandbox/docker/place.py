"""A hardened container: what it may use, and what is taken from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from secrets import randbelow
from typing import Any

from codea1_env.errors import SandboxError
from codea1_env.sandbox.docker.engine import OWNER_LABEL, SESSION_LABEL
from codea1_env.sandbox.docker.image import Image
from codea1_env.sandbox.docker.owner import Owner
from codea1_env.sandbox.local.worker import clean_environment

NOT_HERE = (
    "the docker sandbox needs an engine on the same kernel that sees the same files: no remote engine, no Docker"
    " Desktop, no gVisor, no engine outside a container that this process runs in (if only the folder for temporary"
    " files differs, set TMPDIR to one that both see)"
)

_INSIDE = "/run/codea1"
_ENTRY = f"{_INSIDE}/codea1_env/sandbox/inside/docker_entry.py"
_TMP_OPTIONS = "size=4m,mode=1777,noexec,nosuid,nodev"
_MAX_PROCESSES = 4096  # a child may have 256 threads; this is for all children together
_MAX_CORES = 2.0  # a worker has two jobs that use a processor at the same time
# Users that own nothing: beyond what distributions and engines hand out, or within the 65,536 that a container has.
_LIMITS = {"MemoryLimit": "memory", "PidsLimit": "processes", "CpuCfsQuota": "processors"}
_FREE_USERS, _FREE_USERS_REMAPPED = range(400_000, 500_000), range(20_000, 60_000)


@dataclass(frozen=True, slots=True)
class Place:
    """What all containers of one sandbox have in common."""

    image: Image
    session: str
    """Label by which they are found."""
    memory_mb: int
    """For all processes of one container together."""
    n_cores: float
    """Most processors that one container may keep busy."""
    users: range
    """One of them is a container's user."""
    without: tuple[str, ...] = ()
    """What this engine cannot limit; each job's own limits hold without it."""

    @classmethod
    def on(cls, client: Any, image: Image, session: str, memory_mb: int) -> Place:
        """Fit it to an engine.

        Raises:
            SandboxError: its containers are not Linux.
        """
        facts = client.info()
        if facts.get("OSType") != "linux":
            raise SandboxError(f"the docker sandbox needs Linux containers, this engine has {facts.get('OSType')}")
        is_remapped = any("name=userns" in text or "name=rootless" in text for text in facts["SecurityOptions"] or ())
        users = _FREE_USERS_REMAPPED if is_remapped else _FREE_USERS
        without = tuple(what for key, what in _LIMITS.items() if not facts.get(key))
        return cls(image, session, memory_mb, min(_MAX_CORES, float(facts["NCPU"])), users, without)

    def create(self, client: Any, name: str, shared: Path) -> None:
        """Create a container, which is to be started next.

        Args:
            client: see `codea1_env.sandbox.docker.engine.connected`.
            name: of the container.
            shared: folder that it sees, read-only.

        Raises:
            SandboxError: the engine sees other files than we do.
        """
        from docker.errors import APIError  # noqa: PLC0415  -- heavy, and an extra

        user = self.users[randbelow(len(self.users))]  # of its own, so that limits per user are not shared
        try:
            client.create_container(
                self.image.reference,
                name=name,
                entrypoint=[self.image.python, "-S", "-s", "-B", _ENTRY, _INSIDE],
                user=f"{user}:{user}",
                working_dir="/",
                hostname="sandbox",
                stop_signal="SIGKILL",  # process 1 does not hear others, and an engine that ends would wait for it
                environment={**environment(), "PYTHONPATH": "", "PYTHONSAFEPATH": "1"},  # the image may say otherwise
                labels={SESSION_LABEL: self.session, OWNER_LABEL: str(Owner.here())},
                host_config=self._limits(client, shared),
            )
        except APIError as error:
            if "bind source path" in str(error.explanation):
                raise SandboxError(NOT_HERE) from error
            raise

    def _limits(self, client: Any, shared: Path) -> Any:
        from docker.types import Mount  # noqa: PLC0415  -- heavy, and an extra

        return client.create_host_config(
            auto_remove=True,
            init=False,  # the zygote is process 1, whatever the engine's own settings
            network_mode="none",
            ipc_mode="none",  # no /dev/shm
            read_only=True,
            tmpfs={"/tmp": _TMP_OPTIONS},
            mounts=[Mount(_INSIDE, str(shared), type="bind", read_only=True)],
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],  # the engine's own system call filter stays
            pids_limit=_MAX_PROCESSES,
            mem_limit=self.memory_mb << 20,
            memswap_limit=self.memory_mb << 20,
            nano_cpus=int(self.n_cores * 1e9),
            log_config={"Type": "none"},
        )


def environment() -> dict[str, str]:
    """Return the environment variables of a zygote in a container; programs see them."""
    return {**clean_environment(), "PATH": "/usr/local/bin:/usr/bin:/bin"}
