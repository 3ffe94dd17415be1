"""One container per zygote: start it, pass the control socket to it, notice its end, end it.

A thread per container does what takes long (an engine needs a third of a second for a container). The zygote is process
1 of the container, so every process in the container ends with it. The zygote ends when its control socket is closed,
also if this process is killed. The engine then removes the container.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
import subprocess
import threading
import weakref
from secrets import token_hex
from time import monotonic, sleep
from typing import Any

from codea1_env.errors import CodeA1Error, SandboxError
from codea1_env.sandbox.docker.container_output import ContainerOutput, output_of
from codea1_env.sandbox.docker.container_settings import UNSUITABLE_ENGINE, ContainerSettings, environment
from codea1_env.sandbox.docker.engine import SESSION_LABEL, EngineFailed, EngineGone, connected, remove_container
from codea1_env.sandbox.docker.folder import startup_folder
from codea1_env.sandbox.wire import Op

_CONNECT_TIMEOUT_S = 30.0
_RESTART_TIMEOUT_S = 20.0
"""How long an engine may be unreachable."""
_MAX_FAILURES = 3
_PAUSE_S = 0.25
_END_TIMEOUT_S = 10.0


class Container:
    """The container of a worker's zygote, as a `Launched` process."""

    def __init__(self, settings: ContainerSettings, options: dict[str, Any], control: socket.socket) -> None:
        self.returncode: int | None = None
        self.pid = -1
        """Of the zygote, in this process's pid namespace."""
        self._name = ""
        self._settings = settings
        self._options = {**options, "environment": sorted(environment())}
        self._control = control.dup()
        self._connection: socket.socket | None = None
        """Set when the zygote has connected; stays open as long as the zygote runs."""
        self._is_cancelled = False
        self._starter = threading.Thread(target=self._start, name="codea1-container", daemon=True)
        _ALL.add(self)
        self._starter.start()

    # The interface `Launched`

    def poll(self) -> int | None:
        """Return 0 if it has ended, None if not."""
        has_started = self.returncode is None and not self._starter.is_alive()
        if has_started and (self._connection is None or _can_be_read(self._connection, 0.0)):
            self._mark_ended()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, which must have been requested before.

        Raises:
            subprocess.TimeoutExpired: after `timeout` seconds. Without a timeout this returns after ten seconds at
                most: `clean` removes what remains.
        """
        deadline = monotonic() + (_END_TIMEOUT_S if timeout is None else timeout)
        self._is_cancelled = True
        self._starter.join(max(0.0, deadline - monotonic()))
        if self.returncode is None and not self._starter.is_alive() and self._connection is not None:
            _can_be_read(self._connection, max(0.0, deadline - monotonic()))
        if self.poll() is None:
            if timeout is not None:
                raise subprocess.TimeoutExpired(self._name, timeout)
            self._mark_ended()
        return 0

    def kill(self) -> None:
        """Request its end from the engine, without waiting for it."""
        self._is_cancelled = True
        if self.poll() is None:
            try:
                threading.Thread(target=self._remove, name="codea1-container-end", daemon=True).start()
            except RuntimeError:  # this process is ending, and no thread can be started any more
                self._remove()

    def forget(self) -> None:
        """Close the copies of the sockets in a forked process; the container belongs to its parent."""
        self._control.close()
        self._mark_ended()

    def _mark_ended(self) -> None:
        self.returncode = 0
        if self._connection is not None:
            self._connection.close()

    def _remove(self) -> None:
        with contextlib.suppress(CodeA1Error), connected() as client:
            remove_container(client, self._name)

    # Starting, in a thread of its own

    def _start(self) -> None:
        try:
            self._start_with_retries()
        except (CodeA1Error, OSError) as error:
            with contextlib.suppress(OSError):  # the worker has closed its end
                self._control.send(Op.REFUSED + str(error).encode())
        finally:
            self._control.close()

    def _start_with_retries(self) -> None:
        """Start it; try again while the engine is being restarted."""
        deadline, n_failures = monotonic() + _RESTART_TIMEOUT_S, 0
        while True:
            try:
                self._start_once()
                return
            except EngineGone:
                if self._is_cancelled or monotonic() > deadline:
                    raise
            except EngineFailed:
                n_failures += 1
                if self._is_cancelled or n_failures >= _MAX_FAILURES:
                    raise
            sleep(_PAUSE_S)

    def _start_once(self) -> None:
        self._name = f"codea1-{self._settings.session}-{token_hex(4)}"  # an earlier one may still be taken
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, startup_folder(listener) as shared:
            listener.listen(1)
            with connected() as client:
                self._settings.create(client, self._name, shared)
                try:
                    with output_of(client, self._name) as output:
                        client.start(self._name)
                        self._connection = self._connect(listener, output)
                except BaseException:
                    remove_container(client, self._name)
                    raise

    def _connect(self, listener: socket.socket, output: ContainerOutput) -> socket.socket:
        """Send the control socket to the container; return the connection when the zygote has imported everything."""
        deadline = monotonic() + _CONNECT_TIMEOUT_S
        if not output.wait_for(listener, deadline):
            raise self._start_error(output)
        connection, _ = listener.accept()
        try:
            self.pid = _pid_of_peer(connection)
            if self._is_cancelled:
                raise SandboxError("the start was cancelled")
            socket.send_fds(connection, [json.dumps(self._options).encode()], [self._control.fileno()])
            if not output.wait_for(connection, deadline) or not connection.recv(64):
                raise self._start_error(output)
        except BaseException:
            connection.close()
            raise
        return connection

    def _start_error(self, output: ContainerOutput) -> SandboxError:
        last = output.last()
        if last.startswith("no connection") and "Permission denied" in last:
            return SandboxError(f"a security policy (SELinux?) denies containers access to sockets outside: {last}")
        if last.startswith("no connection"):
            return SandboxError(f"{UNSUITABLE_ENGINE}; from inside: {last}")
        return SandboxError(f"a container of the image {self._settings.image.reference} does not start: {last}")


class Launcher:
    """Starts containers for the workers of one sandbox."""

    def __init__(self, settings: ContainerSettings) -> None:
        self._settings = settings

    def __call__(self, options: dict[str, Any], control: socket.socket) -> Container:
        """Start a container; see `Launch`."""
        return Container(self._settings, options, control)

    def close(self) -> None:
        """Wait until the engine has removed all containers. It does so by itself when they have ended."""
        deadline = monotonic() + _END_TIMEOUT_S
        ours = {"label": f"{SESSION_LABEL}={self._settings.session}"}
        with contextlib.suppress(CodeA1Error), connected() as client:
            while left := client.containers(all=True, filters=ours):
                is_late = monotonic() > deadline
                for container in left:
                    if is_late or container["State"] == "created":  # never started, so it never ends
                        remove_container(client, container["Id"])
                if is_late:
                    return
                sleep(0.02)


def _can_be_read(connection: socket.socket, timeout: float) -> bool:
    """Return whether the other end is closed within `timeout` seconds; it sends nothing after its first message."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(timeout * 1000))


def _pid_of_peer(connection: socket.socket) -> int:
    """Return the other end's process id in our pid namespace, -1 if it is not visible there."""
    pid, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(pid) or -1


_ALL: weakref.WeakSet[Container] = weakref.WeakSet()


def _forget_all() -> None:
    for container in list(_ALL):
        container.forget()


os.register_at_fork(after_in_child=_forget_all)
