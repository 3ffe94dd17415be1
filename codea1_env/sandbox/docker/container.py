"""The one container of a pool: starts it, has its process 1 start zygotes in it, notices the ends of these.

Theory of operation. The container's process 1 (`inside/docker_entry`) connects to a socket in a mounted folder. Over
that connection each zygote's control socket is passed in once; from then on jobs do not involve the engine or process
1, and cost what they cost in the local sandbox. The connection is also the container's life: when it is closed, or this
process is killed, process 1 ends, every process in the container with it, and the engine removes the container.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import struct
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import randbelow, token_hex
from time import monotonic, sleep
from typing import Any

from codea1_env.errors import CodeA1Error, SandboxError
from codea1_env.sandbox.docker.container_settings import UNSUITABLE_ENGINE, ContainerSettings, environment
from codea1_env.sandbox.docker.engine import EngineFailed, EngineGone, connected, remove_container
from codea1_env.sandbox.wire import Op

_CONNECT_TIMEOUT_S = 30.0
_RESTART_TIMEOUT_S = 20.0
"""How long an engine may be unreachable."""
_MAX_FAILURES = 3
_PAUSE_S = 0.25
_END_TIMEOUT_S = 10.0
_KILL_TIMEOUT_S = 2.0
_ROOT = Path(__file__).parents[3]
_NEEDED_INSIDE = ("values", "sandbox", "sandbox/inside")


class PoolContainer:
    """Launches zygotes in one container, which it starts with the first of them, and again after it has ended.

    Only the scheduler's thread uses it; `close` may come from another one, after the scheduler has ended.
    """

    def __init__(self, settings: ContainerSettings) -> None:
        self.pid = -1
        """Id of the container's process 1 as this process sees it; -1 if it is hidden here."""
        self._settings = settings
        self._name = ""
        self._connection: socket.socket | None = None
        self._n_launched = 0
        self._running: set[int] = set()
        self._first_user = randbelow(len(settings.users))
        _ALL.add(self)

    def __call__(self, options: dict[str, Any], control: socket.socket) -> Zygote:
        """Start a zygote; see `Launch`. If no container starts, the worker is told why, as by a refusing zygote."""
        self._n_launched += 1
        number, users = self._n_launched, self._settings.users
        request = {
            "number": number,
            "user": users[(self._first_user + number) % len(users)],
            "environment": sorted(environment()),
            "options": options,
        }
        try:
            if not self._is_alive():
                self._start_with_retries()
            assert self._connection is not None
            socket.send_fds(self._connection, [json.dumps(request).encode()], [control.fileno()])
            self._running.add(number)
        except (CodeA1Error, OSError) as error:
            control.send(Op.REFUSED + str(error).encode())
        return Zygote(self, number)

    def has_ended(self, number: int) -> bool:
        """Whether a zygote has ended."""
        return not (self._is_alive() and number in self._running)

    def kill(self, number: int) -> None:
        """Have a zygote killed that does not end by itself; give the container up if process 1 does not do it."""
        if self._connection is not None and number in self._running:
            with contextlib.suppress(OSError):  # the container has ended, too
                self._connection.send(json.dumps({"number": number}).encode())
        deadline = monotonic() + _KILL_TIMEOUT_S
        while not self.has_ended(number):
            if monotonic() > deadline:
                self.forget()
            sleep(0.01)

    def close(self) -> None:
        """End the container, and wait until the engine has removed it."""
        if not self._name:
            return
        self.forget()
        deadline = monotonic() + _END_TIMEOUT_S
        with contextlib.suppress(CodeA1Error), connected() as client:
            while client.containers(all=True, filters={"name": self._name}):
                if monotonic() > deadline:
                    remove_container(client, self._name)
                sleep(0.02)

    def forget(self) -> None:
        """Close the connection: in the process that started it, this ends the container; in a fork, the fork's copy."""
        self._running.clear()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _is_alive(self) -> bool:
        """Read which zygotes have ended; return whether the container runs."""
        while self._connection is not None:
            try:
                data = self._connection.recv(64, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return True
            except OSError:
                data = b""
            if not data:
                self.forget()
            else:
                self._running.discard(int(data))
        return False

    # Starting

    def _start_with_retries(self) -> None:
        """Start it; try again while the engine is being restarted."""
        deadline, n_failures = monotonic() + _RESTART_TIMEOUT_S, 0
        while True:
            try:
                self._start_once()
                return
            except EngineGone:
                if monotonic() > deadline:
                    raise
            except EngineFailed:
                n_failures += 1
                if n_failures >= _MAX_FAILURES:
                    raise
            sleep(_PAUSE_S)

    def _start_once(self) -> None:
        before, self._name = self._name, f"codea1-{self._settings.session}-{token_hex(4)}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, startup_folder(listener) as shared:
            listener.listen(1)
            listener.settimeout(0.05)
            with connected() as client:
                if before:
                    remove_container(client, before)  # where it hangs; else the engine has done it, or is doing it
                self._settings.create(client, self._name, shared)
                try:
                    said = _Said(client, self._name)
                    client.start(self._name)
                    self._connection = self._connect(listener, said)
                except BaseException:
                    remove_container(client, self._name)
                    raise
        peer = self._connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        self.pid = int(struct.unpack("3i", peer)[0]) or -1

    def _connect(self, listener: socket.socket, said: _Said) -> socket.socket:
        deadline = monotonic() + _CONNECT_TIMEOUT_S
        while True:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                if not said.thread.is_alive():
                    raise self._start_error(said.last_line) from None
                if monotonic() > deadline:
                    raise SandboxError("a container was started but did not connect in time") from None
                continue
            connection.settimeout(max(0.0, deadline - monotonic()))
            if not connection.recv(64):
                connection.close()
                raise self._start_error(said.last_line)
            connection.settimeout(None)
            return connection

    def _start_error(self, last: str) -> SandboxError:
        if last.startswith("no connection") and "Permission denied" in last:
            return SandboxError(f"a security policy (SELinux?) denies containers access to sockets outside: {last}")
        if last.startswith("no connection"):
            return SandboxError(f"{UNSUITABLE_ENGINE}; from inside: {last}")
        return SandboxError(f"a container of the image {self._settings.image.reference} does not start: {last}")


class Zygote:
    """One zygote in a container, as a `Launched` process."""

    def __init__(self, container: PoolContainer, number: int) -> None:
        self.returncode: int | None = None
        self._container = container
        self._number = number

    @property
    def pid(self) -> int:
        """Id of the container's process 1, which started it."""
        return self._container.pid

    def poll(self) -> int | None:
        """Return 0 if it has ended, None if not."""
        if self.returncode is None and self._container.has_ended(self._number):
            self.returncode = 0
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return at once: it ends when its control socket is closed, and nobody needs to know when."""
        return 0

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        if self.poll() is None:
            self._container.kill(self._number)


class _Said:
    """What a container writes to standard error until its process 1 has connected, or ends."""

    def __init__(self, client: Any, name: str) -> None:
        self._stream = client.attach_socket(name, {"stderr": 1, "stream": 1})
        self._parts: list[bytes] = []
        self.thread = threading.Thread(target=self._read, name="codea1-container", daemon=True)
        """Reads it until it is complete."""
        self.thread.start()

    @property
    def last_line(self) -> str:
        """The last line; waits a second at most for it."""
        self.thread.join(1.0)
        lines = b"".join(self._parts).decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""

    def _read(self) -> None:
        from docker.utils.socket import frames_iter  # noqa: PLC0415  -- heavy, and an extra

        try:
            for _, part in frames_iter(self._stream, tty=False):
                self._parts.append(part[-10_000:])
        except (OSError, ValueError):  # the engine has gone
            pass
        finally:
            self._stream._response.close()  # closes the stream and its connection, which the client no longer manages


@contextmanager
def startup_folder(listener: socket.socket) -> Iterator[Path]:
    """Yield a folder to mount in a container: our sources, and `socket`, to which `listener` is bound.

    The container's users can read the folder and connect; other users of this machine cannot reach it.
    """
    with tempfile.TemporaryDirectory(prefix="codea1-docker-", ignore_cleanup_errors=True) as private:
        shared = Path(private, "shared")
        package = _ROOT / "codea1_env"
        for part in _NEEDED_INSIDE:
            for file in (*(package / part).glob("*.py"), *(package / part).glob("__pycache__/*.pyc")):
                target = shared / file.relative_to(_ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, target)  # keeps the time, by which a compiled file recognises its source
                target.chmod(0o644)
        for path in (shared, *shared.rglob("*")):
            if path.is_dir():
                path.chmod(0o755)
        descriptor = os.open(shared, os.O_PATH | os.O_DIRECTORY)
        try:
            listener.bind(f"/proc/self/fd/{descriptor}/socket")  # the folder's own path may be too long for a socket
        finally:
            os.close(descriptor)
        (shared / "socket").chmod(0o666)
        yield shared


_ALL: weakref.WeakSet[PoolContainer] = weakref.WeakSet()


def _forget_all() -> None:
    for container in list(_ALL):
        container.forget()


os.register_at_fork(after_in_child=_forget_all)
