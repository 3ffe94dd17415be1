"""First code in a container: `python3 -S -s -B docker_entry.py FOLDER`, then the same zygote as everywhere.

No open file can be given to a container. But a local socket in a folder that the container sees carries one: this
connects to `FOLDER/socket` and gets a zygote's options and its control socket, as if it had inherited them. That first
connection stays open as long as the container's process 1 lives, which is how its end is noticed outside.

What goes wrong before all is imported is written to standard error, which is read until then.
"""

import json
import os
import socket
import sys
from typing import Any

_OLDEST = (3, 11)
_APART = "/outside"  # as in `docker.root`: packages that lie in the folder of temporary files outside


def main(folder: str) -> None:
    """Become a zygote.

    Args:
        folder: holds the socket and this project's sources.
    """
    if sys.version_info < _OLDEST:
        sys.exit("its Python is %d.%d, and 3.11 or newer is needed" % sys.version_info[:2])  # noqa: UP031  -- for old ones
    line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        line.connect(folder + "/socket")
    except OSError as error:
        sys.exit("no connection: " + str(error))
    data, fds, _, _ = socket.recv_fds(line, 65_536, 1)
    if not fds:
        sys.exit("it is not wanted any more")
    options = json.loads(data)
    for name in set(os.environ) - set(options["environment"]):
        del os.environ[name]  # what the image or the engine has added
    packages = _found(options["packages"])
    preload = [name for name in options["preload"] if name in packages or name not in options["packages"]]
    options.update(root=folder, control=fds[0], parent=0, packages=packages, preload=preload)
    sys.path.insert(0, os.path.dirname(__file__))
    import bootstrap  # type: ignore[import-not-found]  # noqa: PLC0415  -- importable only now

    del sys.path[0], sys.modules["bootstrap"]

    def on_imported() -> None:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)  # an engine keeps all that programs print
        os.close(null)
        line.send(b"ready")
        line.detach()  # open until the end

    bootstrap.start(options, on_imported)


def _found(packages: Any) -> Any:
    """Return the allowed packages that this image has (name to folder), where it has them."""
    import sysconfig  # noqa: PLC0415  -- only after the version has been looked at

    own = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), "/usr/lib/python3/dist-packages"]
    found = {}
    for name, outside in packages.items():
        for folder in (outside, _APART + outside, *own):
            path = os.path.join(folder, name)
            if name not in found and (os.path.isdir(path) or os.path.exists(path + ".py")):
                found[name] = folder
    return found


if __name__ == "__main__":
    main(sys.argv[1])
