"""Watches the processes, files and listening sockets of this machine, which an attack must not change.

It reads the state of the machine and does not use the back end. It finds processes and sockets only on Linux (in
/proc). A process counts as left behind only if their number has grown, since a back end may replace its own processes.
"""

from __future__ import annotations

import os
import shutil
import site
import sysconfig
import tempfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

MARK = "codea1-attack"
"""Start of the name of every file that an attack tries to leave behind."""

_CANARY = "codea1-canary-"  # attacks search for this name
_LISTENING = "0A"
_SANDBOXED = b"sandbox/inside/bootstrap.py"


@dataclass(frozen=True, slots=True)
class _State:
    """The state of the machine at one moment."""

    processes: frozenset[int]
    """Descendants of this process, without itself and the zygotes of the local sandbox."""
    sockets: frozenset[str]
    """Inodes of the sockets that these processes have open."""
    files: frozenset[str]
    """Files whose names start with `MARK`."""


class Surroundings:
    """Watches the machine while attacks run; use it as a context manager.

    Args:
        settling_s: how long `changes` waits for processes that are about to end, in seconds.
    """

    def __init__(self, wait_s: float = 5.0) -> None:
        self._wait_s = wait_s
        self._folder = Path(tempfile.mkdtemp(prefix=_CANARY))
        self._folder.chmod(0o755)
        self._canary = self._folder / "secret"
        self.secret = f"{_CANARY}{os.urandom(8).hex()}"
        """Content of a file that every user can read; it must not appear anywhere else."""
        self._canary.write_text(self.secret, encoding="utf-8")
        self._written = self._canary.stat().st_mtime_ns
        self._before = _current_state()

    def __enter__(self) -> Surroundings:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def mark(self) -> bool:
        """Store the current state as the reference for `changes`; return whether the number of processes has grown."""
        before, self._before = self._before, _current_state()
        return len(self._before.processes) > len(before.processes)

    def changes(self) -> list[str]:
        """Return the differences from the state at the last `mark`, one sentence each; remove the files left behind."""
        deadline = monotonic() + self._wait_s
        now = _current_state()
        while (left := self._left(now)) and monotonic() < deadline:
            sleep(0.02)
            now = _current_state()
        sentences = left + self._damage()
        for path in now.files - self._before.files:
            _remove(Path(path))
        return sentences

    def _left(self, now: _State) -> list[str]:
        before = self._before
        new = sorted(now.processes - before.processes)
        n_more = len(new) - len(before.processes - now.processes)
        sentences = [f"process {_describe_process(pid)} still runs" for pid in new] if n_more > 0 else []
        sentences += [f"something listens at {address}" for address in _listening(now.sockets - before.sockets)]
        return sentences + [f"{path} was left" for path in sorted(now.files - before.files)]

    def _damage(self) -> list[str]:
        try:
            intact = self._canary.read_text(encoding="utf-8") == self.secret
            intact = intact and self._canary.stat().st_mtime_ns == self._written
            intact = intact and os.listdir(self._folder) == [self._canary.name]
        except OSError:
            intact = False
        return [] if intact else [f"{self._folder} was changed"]


def _current_state() -> _State:
    processes = _our_processes()
    return _State(processes, frozenset(_held_sockets(processes)), frozenset(_marked_files()))


# -- processes -------------------------------------------------------------------------------------


def _our_processes() -> frozenset[int]:
    """Return all descendants of this process and sandboxed orphans, without the zygotes of the local sandbox.

    The local sandbox may start zygotes at any time. They are children of this process, or the first process in a
    process namespace below one. A process that an attack leaves behind is neither, since an orphan becomes a child of
    the first process of its namespace or of the machine.
    """
    parents = dict(_parents())
    pids = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in pids} - pids:
        pids |= more
    pool = {pid for pid, parent in parents.items() if parent == os.getpid() and _is_sandboxed(pid)}
    pool |= {pid for pid, parent in parents.items() if parent in pool and _is_first_in_namespace(pid)}
    orphans = {pid for pid, parent in parents.items() if parent == 1 and _is_sandboxed(pid)}
    return frozenset((pids | orphans) - pool - {os.getpid()})


def _parents() -> Iterator[tuple[int, int]]:
    for entry in _numeric_entries("/proc"):
        try:
            state, parent, *_ = Path("/proc", entry, "stat").read_bytes().rpartition(b")")[2].split()
        except (OSError, ValueError):  # it has just ended
            continue
        if state != b"Z":
            yield int(entry), int(parent)


def _is_sandboxed(pid: int) -> bool:
    return _SANDBOXED in _read(f"/proc/{pid}/cmdline")


def _is_first_in_namespace(pid: int) -> bool:
    lines = _read(f"/proc/{pid}/status").splitlines()
    return any(line.startswith(b"NSpid:") and line.split()[-1] == b"1" for line in lines)


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _describe_process(pid: int) -> str:
    command = _read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode("utf-8", "replace")
    return f"{pid} ({command.strip()[:60]})"


def _numeric_entries(folder: str) -> list[str]:
    try:
        return [entry for entry in os.listdir(folder) if entry.isdecimal()]
    except OSError:
        return []


# -- sockets ---------------------------------------------------------------------------------------


def _listening(sockets: Collection[str]) -> Iterator[str]:
    """Yield the addresses of the sockets that listen."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6") if sockets else ():
        try:
            lines = Path(table).read_text(encoding="utf-8").splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[3] == _LISTENING and fields[9] in sockets:
                address, port = fields[1].split(":")
                yield f"{address} port {int(port, 16)}"


def _held_sockets(processes: Iterable[int]) -> Iterator[str]:
    for pid in processes:
        for fd in _numeric_entries(f"/proc/{pid}/fd"):
            try:
                target = os.readlink(f"/proc/{pid}/fd/{fd}")
            except OSError:
                continue
            if target.startswith("socket:["):
                yield target[len("socket:[") : -1]


# -- files -----------------------------------------------------------------------------------------


def _marked_files() -> Iterator[str]:
    for folder in _watched_folders():
        try:
            yield from (os.path.join(folder, name) for name in os.listdir(folder) if name.startswith(MARK))
        except OSError:
            continue


def _watched_folders() -> set[str]:
    library = sysconfig.get_path("stdlib")
    return {
        *("/", "/tmp", "/var/tmp", "/dev/shm", tempfile.gettempdir(), os.getcwd(), os.path.expanduser("~")),
        *(library, os.path.join(library, "lib-dynload"), os.path.join(library, "site-packages")),
        *(sysconfig.get_path("purelib"), site.getusersitepackages()),
    }


def _remove(path: Path) -> None:
    try:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    except OSError:  # another user's file; `changes` reports it anyway
        return
