"""Process 1 of a container: `python3 -S -s -B docker_entry.py FOLDER SOURCES`. It starts zygotes, and ends them.

A container cannot inherit an open file. But a local socket in a mounted folder can transfer one: this module connects
to `FOLDER/socket`, and receives for each zygote its options and its control socket. Each zygote is a new interpreter
with a user of its own, so that zygotes and their jobs can neither signal nor look into others, nor share limits per
user. For that, and for nothing else, this process keeps the rights to change users and to signal them; a zygote has
neither.

The container ends with this process, which ends with the connection, and so with whoever made the container. Nothing
outside has to outlive the start: the mounted folder's sources are copied into memory of the container.
"""

import json
import os
import shutil
import signal
import socket
import sys
from typing import Any

_OLDEST = (3, 11)
_NUMBER_BY_PID: dict[int, int] = {}


def main(folder: str, sources: str) -> None:
    """Serve until the connection is closed.

    Args:
        folder: contains the socket and this project's sources.
        sources: an empty folder for the sources.
    """
    if sys.version_info < _OLDEST:
        sys.exit("its Python is %d.%d, and 3.11 or newer is needed" % sys.version_info[:2])  # noqa: UP031  -- for old ones
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.connect(folder + "/socket")
    except OSError as error:
        sys.exit("no connection: " + str(error))
    shutil.copytree(folder + "/codea1_env", sources + "/codea1_env")
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)  # else the engine would store everything that programs print
    signal.signal(signal.SIGCHLD, lambda *_: _reap(connection))
    connection.send(b"ready")
    while True:
        data, fds, _, _ = socket.recv_fds(connection, 65_536, 1)
        if not data:
            os._exit(0)
        request = json.loads(data)
        if fds:
            _start(sources, request, fds[0])
        else:
            _kill(request["number"])


def _start(sources: str, request: Any, control: int) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # its end must not be seen before its number is known
    pid = os.fork()
    if pid == 0:
        try:
            _become_zygote(sources, request, control)
        finally:
            os._exit(1)
    _NUMBER_BY_PID[pid] = request["number"]
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    os.close(control)


def _become_zygote(sources: str, request: Any, control: int) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    user, options, allowed = request["user"], request["options"], request["environment"]
    packages = _find_packages(options["packages"])
    preload = [name for name in options["preload"] if name in packages or name not in options["packages"]]
    options.update(root=sources, control=control, parent=1, packages=packages, preload=preload)
    os.set_inheritable(control, True)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)  # which ends all rights of this process
    bootstrap = sources + "/codea1_env/sandbox/inside/bootstrap.py"
    environment = {name: os.environ[name] for name in allowed if name in os.environ}
    reading, writing = os.pipe()
    os.write(writing, json.dumps(options).encode() + b"\n")
    os.dup2(reading, 0)
    os.execve(sys.executable, [sys.executable, "-S", "-s", "-P", "-B", bootstrap], environment)


def _kill(number: int) -> None:
    for pid, known in list(_NUMBER_BY_PID.items()):  # `_reap` changes it as soon as the process has ended
        if known == number:
            os.kill(pid, signal.SIGKILL)  # its children end with it


def _reap(connection: socket.socket) -> None:
    """Reap all processes that have ended, and say which of them were zygotes."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        if pid in _NUMBER_BY_PID:
            connection.send(str(_NUMBER_BY_PID.pop(pid)).encode())


def _find_packages(packages: Any) -> Any:
    """Return the allowed packages that this image contains: name to folder in the image."""
    import sysconfig  # noqa: PLC0415  -- only after the version has been checked

    own = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), "/usr/lib/python3/dist-packages"]
    packages_here = {}
    for name, outside in packages.items():
        for folder in (outside, *own):
            path = os.path.join(folder, name)
            if name not in packages_here and (os.path.isdir(path) or os.path.exists(path + ".py")):
                packages_here[name] = folder
    return packages_here


if __name__ == "__main__":
    main(*sys.argv[1:])
