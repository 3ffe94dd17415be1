"""Tier `bwrap`: what `namespaces` does, done by bubblewrap, where only that program may make namespaces.

Some systems (Ubuntu since 23.10) forbid user namespaces to all but a few programs, bubblewrap among them. The
interpreter that was started looks at what must be visible, tries whether bubblewrap works, and becomes it; bubblewrap
starts the interpreter anew, as process 1 inside, which lives as long as any zygote.
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

_PLACES = ("/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap")
_BOOTSTRAP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bootstrap.py")
_FLAGS = ("-S", "-s", "-P", "-B")
_PROBE_TIMEOUT_S = 20.0


def enter(options: dict[str, Any]) -> NoReturn:
    """Replace this process by bubblewrap with a zygote in it, whose options say `is_inside`.

    Raises:
        KernelRefuses: bubblewrap is not installed, or may not do its work here.
    """
    program = next((path for path in _PLACES if os.access(path, os.X_OK)), None)
    if program is None:
        raise kernel.KernelRefuses("bubblewrap is not installed")
    python, visible = os.path.realpath(sys.executable), layout(options["packages"])
    if os.geteuid() == 0:
        _leave_root((*visible.shown, *visible.packages, *_own_sources(options["root"]), python))
    walls = [program, *_walls(visible, python, options["root"]), "--", python, *_FLAGS]
    _try([*walls, "-c", "import ctypes"])
    os.execv(program, [*walls, _BOOTSTRAP, json.dumps({**options, "is_inside": True})])


def _leave_root(needed: Sequence[str]) -> None:
    """Become a user that owns nothing, since no limit on the number of threads holds for root."""
    if not is_readable_by_all(needed):
        raise kernel.KernelRefuses("as root, only where any user can read this Python")
    seal.become(seal.free_user())


def _try(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PROBE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise kernel.KernelRefuses(f"bubblewrap does not start: {error}") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"status {done.returncode}"]
        raise kernel.KernelRefuses(said[-1][:300])


def _walls(visible: Layout, python: str, root: str) -> list[str]:
    """Return bubblewrap's options."""
    walls = ["--unshare-all", "--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"]
    for path in (*visible.shown, python):
        walls += ["--ro-bind", path, path]
    for path in visible.hidden:
        walls += ["--tmpfs", path]
    for path in (*visible.packages, *_own_sources(root)):
        walls += ["--ro-bind", path, path]
    for path in visible.hidden:
        walls += ["--remount-ro", path]
    for path in visible.devices:
        walls += ["--dev-bind", path, path]
    for name in ("lib", "lib64", "usr/lib64"):
        if os.path.islink(f"/{name}"):
            walls += ["--symlink", os.readlink(f"/{name}"), f"/{name}"]
    return [*walls, "--dir", "/tmp", "--remount-ro", "/", "--chdir", "/"]


def _own_sources(root: str) -> Iterator[str]:
    """What the interpreter inside still has to import. Programs can read it: there are no secrets in it."""
    for name in ("values", "sandbox/inside", "sandbox/wire.py"):
        yield os.path.join(root, "codea1_env", name)
