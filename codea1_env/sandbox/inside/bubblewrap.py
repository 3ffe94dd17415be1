"""Tier `bwrap`: the same isolation as `namespaces`, made by bubblewrap where only that program may make namespaces.

Some systems (Ubuntu since 23.10) allow user namespaces only to a few programs, bubblewrap among them. The interpreter
that was started finds which files must be visible, tests whether bubblewrap works, and replaces itself by bubblewrap.
Bubblewrap starts the interpreter again, as process 1 inside, which becomes the zygote.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from codea1_env.sandbox.inside import kernel, seal
from codea1_env.sandbox.inside.layout import Layout, is_readable_by_all, layout

_BWRAP_PATHS = ("/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap")
_BOOTSTRAP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bootstrap.py")
_FLAGS = ("-S", "-s", "-P", "-B")
_PROBE_TIMEOUT_S = 20.0


def enter(options: dict[str, Any]) -> NoReturn:
    """Replace this process by bubblewrap, which runs a zygote whose options contain `is_inside`.

    Raises:
        KernelRefuses: bubblewrap is not installed, or the system does not let it work.
    """
    program = next((path for path in _BWRAP_PATHS if os.access(path, os.X_OK)), None)
    if program is None:
        raise kernel.KernelRefuses("bubblewrap is not installed")
    python, visible = os.path.realpath(sys.executable), layout(options["packages"])
    if os.geteuid() == 0:
        _leave_root((*visible.shown, *visible.packages, *_own_sources(options["root"]), python))
    arguments = [program, *_bwrap_options(visible, python, options["root"]), "--", python, *_FLAGS]
    _try([*arguments, "-c", "import ctypes"])
    reading, writing = os.pipe()
    os.write(writing, json.dumps({**options, "is_inside": True}).encode() + b"\n")
    os.dup2(reading, 0)
    os.execv(program, [*arguments, _BOOTSTRAP])


def _leave_root(needed: Sequence[str]) -> None:
    """Become a user that owns nothing, since the limit on the number of threads does not apply to root."""
    if not is_readable_by_all(needed):
        raise kernel.KernelRefuses("as root, only where any user can read this Python")
    seal.become(seal.free_user())


def _try(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PROBE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise kernel.KernelRefuses(f"bubblewrap does not start: {error}") from error
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"status {done.returncode}"]
        raise kernel.KernelRefuses(lines[-1][:300])


def _bwrap_options(visible: Layout, python: str, root: str) -> list[str]:
    """Return bubblewrap's options."""
    arguments = ["--unshare-all", "--hostname", "sandbox", "--die-with-parent", "--new-session", "--as-pid-1"]
    arguments += ["--cap-drop", "ALL"]
    for path in (*visible.shown, python):
        arguments += ["--ro-bind", path, path]
    for path in visible.hidden:
        arguments += ["--tmpfs", path]
    for path in (*visible.packages, *_own_sources(root)):
        arguments += ["--ro-bind", path, path]
    for path in visible.hidden:
        arguments += ["--remount-ro", path]
    for path in visible.devices:
        arguments += ["--dev-bind", path, path]
    for name in ("lib", "lib64", "usr/lib64"):
        if os.path.islink(f"/{name}"):
            arguments += ["--symlink", os.readlink(f"/{name}"), f"/{name}"]
    return [*arguments, "--dir", "/tmp", "--remount-ro", "/", "--chdir", "/"]


def _own_sources(root: str) -> Iterator[str]:
    """Yield the sources that the interpreter inside must import. Programs can read them; they contain no secrets."""
    for name in ("values", "sandbox/inside", "sandbox/wire.py"):
        yield os.path.join(root, "codea1_env", name)
