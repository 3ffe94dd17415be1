"""First code in a container: `python3 -S -s -B docker_entry.py FOLDER`; then it runs the same zygote as other tiers.

A container cannot inherit an open file. But a local socket in a mounted folder can transfer one: this module connects
to `FOLDER/socket` and receives a zygote's options and its control socket. The connection stays open as long as the
container's process 1 runs, so the trusted side notices its end.

Until everything is imported, errors are written to standard error, which the trusted side reads until then.
"""

import json
import os
import socket
import sys
from typing import Any

_OLDEST = (3, 11)
_TMP_PREFIX = "/outside"  # as in `docker.root`: of packages that are below /tmp outside


def main(folder: str) -> None:
    """Become a zygote.

    Args:
        folder: contains the socket and this project's sources.
    """
    if sys.version_info < _OLDEST:
        sys.exit("its Python is %d.%d, and 3.11 or newer is needed" % sys.version_info[:2])  # noqa: UP031  -- for old ones
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.connect(folder + "/socket")
    except OSError as error:
        sys.exit("no connection: " + str(error))
    data, fds, _, _ = socket.recv_fds(connection, 65_536, 1)
    if not fds:
        sys.exit("it is not wanted any more")
    options = json.loads(data)
    for name in set(os.environ) - set(options["environment"]):
        del os.environ[name]  # added by the image or the engine
    packages = _found(options["packages"])
    preload = [name for name in options["preload"] if name in packages or name not in options["packages"]]
    options.update(root=folder, control=fds[0], parent=0, packages=packages, preload=preload)
    sys.path.insert(0, os.path.dirname(__file__))
    import bootstrap  # type: ignore[import-not-found]  # noqa: PLC0415  -- importable only now

    del sys.path[0], sys.modules["bootstrap"]

    def on_imported() -> None:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)  # else the engine would store everything that programs print
        os.close(null)
        connection.send(b"ready")
        connection.detach()  # open until the end

    bootstrap.start(options, on_imported)


def _found(packages: Any) -> Any:
    """Return the allowed packages that this image contains: name to folder in the image."""
    import sysconfig  # noqa: PLC0415  -- only after the version has been checked

    own = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), "/usr/lib/python3/dist-packages"]
    found = {}
    for name, outside in packages.items():
        for folder in (outside, _TMP_PREFIX + outside, *own):
            path = os.path.join(folder, name)
            if name not in found and (os.path.isdir(path) or os.path.exists(path + ".py")):
                found[name] = folder
    return found


if __name__ == "__main__":
    main(sys.argv[1])
