"""The files that a sealed interpreter must see: its standard library, shared libraries and allowed packages.

Everything else is hidden, including all other site packages, since some contain the answers to the problems.

Like everything that a zygote loads, this module avoids modules that few programs import (`pathlib`, `dataclasses`,
`sysconfig`): they would use memory in every job's process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
EXTRA_FILES = ("/etc/ld.so.cache", "/usr/share/zoneinfo", "/usr/lib/locale/C.utf8")
"""Files outside the library folders that the loader and the standard library read."""
_HIDDEN_NAMES = ("site-packages", "dist-packages")


class Layout(NamedTuple):
    """Absolute paths; no path of a field lies below another path of the same field."""

    shown: tuple[str, ...]
    """Folders and files that can be read, except for the hidden folders."""
    hidden: tuple[str, ...]
    """Folders below shown ones in which only the packages can be read."""
    packages: tuple[str, ...]
    """Allowed site packages: folders and files."""
    devices: tuple[str, ...]
    """Device files that can be read."""


def layout(packages: dict[str, str]) -> Layout:
    """Return the layout for the allowed packages (name to the folder that contains the package)."""
    shown = _outermost([_stdlib(), *_library_folders(), *EXTRA_FILES])
    own = sorted({path for name, folder in packages.items() for path in _parts(name, folder)})
    hidden = {os.path.join(root, name) for root in _stdlib_parents(shown) for name in _HIDDEN_NAMES}
    hidden |= set(packages.values())
    return Layout(
        shown=tuple(shown),
        hidden=tuple(_outermost(path for path in hidden if _is_below(path, shown))),
        packages=tuple(own),
        devices=tuple(path for path in _DEVICES if os.path.exists(path)),
    )


def is_readable_by_all(paths: Iterable[str]) -> bool:
    """Return whether every user can read the paths, by their permissions and those of their parent folders."""
    every = {part for path in paths for part in _with_parents(path)}
    return all(os.stat(path).st_mode & (0o001 if os.path.isdir(path) else 0o004) for path in every)


def _with_parents(path: str) -> Iterator[str]:
    yield path
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        yield path


def _stdlib() -> str:
    return os.path.dirname(os.__file__)


def _library_folders() -> set[str]:
    """Return the folders of the libraries that are loaded now, and those in which the loader looks for more."""
    folders = {"/lib64", "/usr/lib64"}
    multiarch = getattr(sys.implementation, "_multiarch", "")  # such as x86_64-linux-gnu
    if multiarch:
        folders |= {f"/lib/{multiarch}", f"/usr/lib/{multiarch}"}
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            path = line.rstrip("\n").partition("/")[2]
            name = os.path.basename(path)
            if ".so" in name and not any(part in path for part in (*_HIDDEN_NAMES, " (deleted)", "lib-dynload")):
                folders.add(os.path.dirname("/" + path))
    return folders


def _parts(name: str, folder: str) -> list[str]:
    candidates = [os.path.join(folder, entry) for entry in (name, f"{name}.py", f"{name}.libs")]
    return [os.path.realpath(path) for path in candidates if os.path.exists(path)]


def _stdlib_parents(shown: list[str]) -> set[str]:
    stdlib = os.path.realpath(_stdlib())
    return {stdlib, os.path.dirname(stdlib), os.path.join(os.path.dirname(stdlib), "python3"), *shown}


def _outermost(paths: Iterable[str]) -> list[str]:
    real = sorted({os.path.realpath(path) for path in paths if os.path.exists(path)})
    return [path for path in real if not any(path.startswith(other + "/") for other in real)]


def _is_below(path: str, shown: list[str]) -> bool:
    return any(os.path.realpath(path).startswith(folder + "/") for folder in shown)
