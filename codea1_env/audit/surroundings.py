"""What an attack must leave as it was: the processes, files and listening sockets of this machine.

Looks from outside and asks no back end. Processes and sockets are looked for on Linux only (in /proc). A process counts
as left behind if there are more of ours than before: a back end may replace one of its own.
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
"""Every file that an attack tries to leave has a name that begins so."""

_CANARY = "codea1-canary-"  # attacks look for it
_LISTENING = "0A"
_SANDBOXED = b"sandbox/inside/bootstrap.py"


@dataclass(frozen=True, slots=True)
class _State:
    """What there is at one moment."""

    processes: frozenset[int]
    """Ours, this one and the local pool apart."""
    sockets: frozenset[str]
    """Inodes of those that other processes of ours hold."""
    files: frozenset[str]


class Surroundings:
    """Watches while attacks run; use it as a context manager.

    Args:
        settling_s: how long `changes` waits for what is about to end, in seconds.
    """

    def __init__(self, settling_s: float = 5.0) -> None:
        self._settling_s = settling_s
        self._folder = Path(tempfile.mkdtemp(prefix=_CANARY))
        self._folder.chmod(0o755)
        self._canary = self._folder / "secret"
        self.secret = f"{_CANARY}{os.urandom(8).hex()}"
        """Stands in a file that anyone may read, and must not be seen anywhere else."""
        self._canary.write_text(self.secret, encoding="utf-8")
        self._written = self._canary.stat().st_mtime_ns
        self._before = _look()

    def __enter__(self) -> Surroundings:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def settle(self) -> bool:
        """Take what there is now as what must remain; return whether there are more processes than before."""
        before, self._before = self._before, _look()
        return len(self._before.processes) > len(before.processes)

    def changes(self) -> list[str]:
        """Return what is different from when things had settled, one sentence each, and remove files that were left."""
        deadline = monotonic() + self._settling_s
        now = _look()
        while (left := self._left(now)) and monotonic() < deadline:
            sleep(0.02)
            now = _look()
        found = left + self._damage()
        for path in now.files - self._before.files:
            _remove(Path(path))
        return found

    def _left(self, now: _State) -> list[str]:
        before = self._before
        new = sorted(now.processes - before.processes)
        n_more = len(new) - len(before.processes - now.processes)
        found = [f"process {_described(pid)} still runs" for pid in new] if n_more > 0 else []
        found += [f"something listens at {address}" for address in _listening(now.sockets - before.sockets)]
        return found + [f"{path} was left" for path in sorted(now.files - before.files)]

    def _damage(self) -> list[str]:
        try:
            intact = self._canary.read_text(encoding="utf-8") == self.secret
            intact = intact and self._canary.stat().st_mtime_ns == self._written
            intact = intact and os.listdir(self._folder) == [self._canary.name]
        except OSError:
            intact = False
        return [] if intact else [f"{self._folder} was changed"]


def _look() -> _State:
    processes = _our_processes()
    return _State(processes, frozenset(_held_sockets(processes)), frozenset(_marked_files()))


# -- processes -------------------------------------------------------------------------------------


def _our_processes() -> frozenset[int]:
    """Return all that this process has started and sandboxed ones that nobody waits for, the local pool's own apart.

    The pool starts interpreters when it likes. They are our children, or first in a process namespace below one; what
    an attack leaves can be neither, since an orphan goes to the namespace's first process or to the machine's.
    """
    parents = dict(_parents())
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    pool = {pid for pid, parent in parents.items() if parent == os.getpid() and _is_sandboxed(pid)}
    pool |= {pid for pid, parent in parents.items() if parent in pool and _is_first_in_namespace(pid)}
    orphans = {pid for pid, parent in parents.items() if parent == 1 and _is_sandboxed(pid)}
    return frozenset((found | orphans) - pool - {os.getpid()})


def _parents() -> Iterator[tuple[int, int]]:
    for entry in _numbered("/proc"):
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


def _described(pid: int) -> str:
    command = _read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode("utf-8", "replace")
    return f"{pid} ({command.strip()[:60]})"


def _numbered(folder: str) -> list[str]:
    try:
        return [entry for entry in os.listdir(folder) if entry.isdecimal()]
    except OSError:
        return []


# -- sockets ---------------------------------------------------------------------------------------


def _listening(sockets: Collection[str]) -> Iterator[str]:
    """Yield the addresses of those sockets that listen."""
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
        for fd in _numbered(f"/proc/{pid}/fd"):
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
    except OSError:  # of another user; it has been named
        return
