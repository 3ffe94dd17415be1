"""One container per zygote: starting it, handing over its control socket, noticing and causing its end.

Whatever takes long (an engine needs a third of a second for a container) happens in a thread per container. The zygote
is the container's process 1, so that its end is the end of all that ran in there. It ends when its control socket does,
also if this process is killed, and the engine then removes the container.
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
from codea1_env.sandbox.docker.engine import SESSION_LABEL, EngineFailed, EngineGone, connected, remove_container
from codea1_env.sandbox.docker.folder import meeting_folder
from codea1_env.sandbox.docker.place import NOT_HERE, Place, environment
from codea1_env.sandbox.docker.words import Words, words_of
from codea1_env.sandbox.wire import Op

_MEET_TIMEOUT_S = 30.0
_RESTART_TIMEOUT_S = 20.0
"""How long an engine may be away."""
_MAX_FAILURES = 3
_PAUSE_S = 0.25
_END_TIMEOUT_S = 10.0


class Container:
    """What a `Worker` needs to know of the container that holds its zygote; see `Launched`."""

    def __init__(self, place: Place, options: dict[str, Any], control: socket.socket) -> None:
        self.returncode: int | None = None
        self.pid = -1
        """Of the zygote, as we see it."""
        self._name = ""
        self._place = place
        self._options = {**options, "environment": sorted(environment())}
        self._control = control.dup()
        self._line: socket.socket | None = None
        """Once we have met: open as long as the zygote lives."""
        self._is_unwanted = False
        self._starter = threading.Thread(target=self._start, name="codea1-container", daemon=True)
        _ALL.add(self)
        self._starter.start()

    # What a worker asks for

    def poll(self) -> int | None:
        """Return 0 if it has ended."""
        has_started = self.returncode is None and not self._starter.is_alive()
        if has_started and (self._line is None or _can_be_read(self._line, 0.0)):
            self._settle()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, which must have been caused.

        Raises:
            subprocess.TimeoutExpired: after `timeout` seconds. Without one, ten are enough: `clean` does the rest.
        """
        deadline = monotonic() + (_END_TIMEOUT_S if timeout is None else timeout)
        self._is_unwanted = True
        self._starter.join(max(0.0, deadline - monotonic()))
        if self.returncode is None and not self._starter.is_alive() and self._line is not None:
            _can_be_read(self._line, max(0.0, deadline - monotonic()))
        if self.poll() is None:
            if timeout is not None:
                raise subprocess.TimeoutExpired(self._name, timeout)
            self._settle()
        return 0

    def kill(self) -> None:
        """Have the engine end it, without waiting for that."""
        self._is_unwanted = True
        if self.poll() is None:
            try:
                threading.Thread(target=self._remove, name="codea1-container-end", daemon=True).start()
            except RuntimeError:  # this process is ending, and no thread can be started any more
                self._remove()

    def forget(self) -> None:
        """Let go of a container that belongs to another process (after a fork of ours)."""
        self._control.close()
        self._settle()

    def _settle(self) -> None:
        self.returncode = 0
        if self._line is not None:
            self._line.close()

    def _remove(self) -> None:
        with contextlib.suppress(CodeA1Error), connected() as client:
            remove_container(client, self._name)

    # Starting, in a thread of its own

    def _start(self) -> None:
        try:
            self._start_with_patience()
        except (CodeA1Error, OSError) as error:
            with contextlib.suppress(OSError):  # nobody listens any more
                self._control.send(Op.REFUSED + str(error).encode())
        finally:
            self._control.close()

    def _start_with_patience(self) -> None:
        """Start it, again if the engine is just being restarted."""
        deadline, n_failures = monotonic() + _RESTART_TIMEOUT_S, 0
        while True:
            try:
                self._start_once()
                return
            except EngineGone:
                if self._is_unwanted or monotonic() > deadline:
                    raise
            except EngineFailed:
                n_failures += 1
                if self._is_unwanted or n_failures >= _MAX_FAILURES:
                    raise
            sleep(_PAUSE_S)

    def _start_once(self) -> None:
        self._name = f"codea1-{self._place.session}-{token_hex(4)}"  # an earlier one may still be taken
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, meeting_folder(listener) as shared:
            listener.listen(1)
            with connected() as client:
                self._place.create(client, self._name, shared)
                try:
                    with words_of(client, self._name) as words:
                        client.start(self._name)
                        self._line = self._met(listener, words)
                except BaseException:
                    remove_container(client, self._name)
                    raise

    def _met(self, listener: socket.socket, words: Words) -> socket.socket:
        """Hand over the control socket; return the line when the container needs nothing more of us."""
        deadline = monotonic() + _MEET_TIMEOUT_S
        if not words.wait_for(listener, deadline):
            raise self._fault(words)
        line, _ = listener.accept()
        try:
            self.pid = _pid_of_peer(line)
            if self._is_unwanted:
                raise SandboxError("not wanted any more")
            socket.send_fds(line, [json.dumps(self._options).encode()], [self._control.fileno()])
            if not words.wait_for(line, deadline) or not line.recv(64):
                raise self._fault(words)
        except BaseException:
            line.close()
            raise
        return line

    def _fault(self, words: Words) -> SandboxError:
        last = words.last()
        if last.startswith("no connection") and "Permission denied" in last:
            return SandboxError(f"a security policy (SELinux?) keeps containers from the sockets of others: {last}")
        if last.startswith("no connection"):
            return SandboxError(f"{NOT_HERE}; from inside: {last}")
        return SandboxError(f"a container of the image {self._place.image.reference} does not start: {last}")


class Launcher:
    """Starts containers for the workers of one sandbox."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def __call__(self, options: dict[str, Any], control: socket.socket) -> Container:
        """Start a container; see `Launch`."""
        return Container(self._place, options, control)

    def close(self) -> None:
        """Return when the engine has removed all containers, which it does by itself once they have ended."""
        deadline = monotonic() + _END_TIMEOUT_S
        ours = {"label": f"{SESSION_LABEL}={self._place.session}"}
        with contextlib.suppress(CodeA1Error), connected() as client:
            while left := client.containers(all=True, filters=ours):
                is_late = monotonic() > deadline
                for container in left:
                    if is_late or container["State"] == "created":  # never started, so it will never end
                        remove_container(client, container["Id"])
                if is_late:
                    return
                sleep(0.02)


def _can_be_read(line: socket.socket, timeout: float) -> bool:
    """Whether the other end is closed, or is within `timeout` seconds; nothing else comes after the first message."""
    poll = select.poll()
    poll.register(line, select.POLLIN)
    return bool(poll.poll(timeout * 1000))


def _pid_of_peer(line: socket.socket) -> int:
    """Return the other end's process id as we see it, -1 if we do not."""
    pid, _, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(pid) or -1


_ALL: weakref.WeakSet[Container] = weakref.WeakSet()


def _forget_all() -> None:
    for container in list(_ALL):
        container.forget()


os.register_at_fork(after_in_child=_forget_all)
