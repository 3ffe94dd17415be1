"""A root file system that contains only this interpreter, for an image whose build needs no network.

It contains the standard library, the shared libraries that this loads, and the allowed site packages, at the same paths
as on this machine (but see `path_in_image`). To find the shared libraries, a separate interpreter imports the modules
and reads which files the kernel has mapped.
"""

from __future__ import annotations

import glob
import hashlib
import io
import json
import os
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

from codea1_env.errors import SandboxError
from codea1_env.sandbox.inside.layout import EXTRA_FILES
from codea1_env.sandbox.local.worker import clean_environment

_FORMAT = "1"
"""Must change when the same files would give another image."""
_EXCLUDED = {"site-packages", "dist-packages", "test", "idlelib", "tkinter", "turtledemo", "ensurepip"}
_LOADERS = ("/lib*/ld-linux*.so*", "/lib*/ld-musl*.so*")
_LINKS_TO_LIBRARIES = ("/lib", "/lib64", "/usr/lib64")
_EMPTY_FOLDERS = ("dev", "etc", "proc", "run", "sys", "tmp")
_MAX_LINKS = 40
_TMP = "/tmp/"  # containers mount an empty file system there
_TMP_PREFIX = "/outside"

_LIST_LIBRARIES = """
import ctypes, importlib, json, os, sys
sys.path += json.loads(sys.argv[2])
names = [name for folder in sys.path if os.path.basename(folder) == "lib-dynload" for name in os.listdir(folder)]
for name in [name.partition(".")[0] for name in sorted(names)] + json.loads(sys.argv[1]):
    if not name.startswith(("_test", "_tkinter", "xx")):
        try:
            importlib.import_module(name)
        except ImportError:
            pass
try:
    ctypes.CDLL("libgcc_s.so.1")  # loaded when a thread ends early
except OSError:
    pass
with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as lines:
    print(json.dumps([line.rstrip("\\n")[line.index("/"):] for line in lines if ".so" in line and "/" in line]))
"""


def path_in_image(path: str) -> str:
    """Return the path in the image of a file of this machine."""
    return f"{_TMP_PREFIX}{path}" if path.startswith(_TMP) else path


class Root:
    """The files and links of the root file system; the constructor finds them.

    Args:
        packages: allowed site packages: name to the folder that contains the package.

    Raises:
        SandboxError: the interpreter cannot be started.
    """

    def __init__(self, packages: Mapping[str, str]) -> None:
        self.python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
        """Path of the interpreter, here and in the image."""
        self._files: set[str] = set()
        self._links: dict[str, str] = {}
        self._add(self.python)
        self._add(getattr(sys, "_base_executable", sys.executable))
        self._add_tree(sysconfig.get_path("stdlib"), _EXCLUDED)
        for name, folder in packages.items():
            for entry in (name, f"{name}.py", f"{name}.libs"):
                self._add_tree(os.path.join(folder, entry))
        for library in _libraries(self.python, packages):
            self._add_library(library)
        for path in (*EXTRA_FILES, *(path for pattern in _LOADERS for path in sorted(glob.glob(pattern)))):
            self._add_tree(path)
        for path in _LINKS_TO_LIBRARIES:
            if os.path.islink(path):
                self._links[path] = os.readlink(path)

    def digest(self) -> str:
        """Return 16 hexadecimal digits of a hash of the contents; it does not depend on times of installation."""
        total = hashlib.sha256(_FORMAT.encode())
        for path, target in sorted(self._links.items()):
            total.update(f"{path}\0{target}\0".encode(errors="surrogateescape"))
        for path in sorted(self._files):
            if not path.endswith(".pyc"):  # depends only on its source and on the time of installation
                with open(path, "rb") as file:
                    content = hashlib.file_digest(file, "sha256").hexdigest()
                total.update(f"{path}\0{_is_program(path)}\0{content}\0".encode(errors="surrogateescape"))
        return total.hexdigest()[:16]

    def write(self, file: IO[bytes]) -> None:
        """Write it as a tar archive in which root owns all files and every user can read them."""
        with tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as archive:
            for path in self._folders():
                archive.addfile(_member(path, tarfile.DIRTYPE, 0o1777 if path == "/tmp" else 0o755))
            for path, target in sorted(self._links.items()):
                member = _member(path_in_image(path), tarfile.SYMTYPE, 0o777)
                member.linkname = target
                archive.addfile(member)
            for path in sorted(self._files):
                _write_file(archive, path)

    def _folders(self) -> list[str]:
        parents = {str(parent) for path in (*self._files, *self._links) for parent in Path(path_in_image(path)).parents}
        folders = parents | {f"/{name}" for name in _EMPTY_FOLDERS}
        return sorted(folders - {"/"} - set(map(path_in_image, self._links)))

    # Finding

    def _add(self, path: str) -> None:
        """Add a file and every symbolic link on its path."""
        rest = path.strip("/").split("/")
        here = ""
        for _ in range(_MAX_LINKS + len(rest) * _MAX_LINKS):
            if not rest:
                break
            part = rest.pop(0)
            step = f"{here}/{part}"
            if part in ("", "."):
                continue
            if part == "..":
                here = os.path.dirname(here)
            elif os.path.islink(step):
                target = self._links[step] = os.readlink(step)
                rest = [*target.strip("/").split("/"), *rest]
                here = "" if target.startswith("/") else here
            else:
                here = step
        if os.path.isfile(here):
            self._files.add(here)

    def _add_tree(self, path: str, left_out: Iterable[str] = ()) -> None:
        """Add a file, or a folder and all below it."""
        self._add(path)
        for folder, below, names in os.walk(os.path.realpath(path)):
            below[:] = [name for name in below if name not in left_out and not name.startswith("config-")]
            for name in names:
                if not name.endswith(".pyc") or name.endswith(f".{sys.implementation.cache_tag}.pyc"):
                    self._add(os.path.join(folder, name))

    def _add_library(self, path: str) -> None:
        """Add a library and the links in its folder by which the loader finds it."""
        self._add(path)
        for entry in os.scandir(os.path.dirname(path)):
            if entry.is_symlink() and os.path.realpath(entry.path) == path:
                self._add(entry.path)


def _libraries(python: str, packages: Mapping[str, str]) -> Iterator[str]:
    command = [python, "-S", "-s", "-P", "-B", "-c", _LIST_LIBRARIES]
    command += [json.dumps(list(packages)), json.dumps(sorted(set(packages.values())))]
    done = subprocess.run(command, capture_output=True, text=True, env=clean_environment(), check=False)
    if done.returncode != 0:
        raise SandboxError(f"cannot find out which libraries {python} needs: {done.stderr.strip()[-300:]}")
    for path in sorted(set(json.loads(done.stdout))):
        if os.path.isfile(path):
            yield path


def _is_program(path: str) -> bool:
    return bool(os.stat(path).st_mode & 0o111)


def _member(path: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(path.lstrip("/"))
    member.type, member.mode = kind, mode
    return member


def _write_file(archive: tarfile.TarFile, path: str) -> None:
    member = _member(path_in_image(path), tarfile.REGTYPE, 0o755 if _is_program(path) else 0o644)
    content = Path(path).read_bytes()
    member.size, member.mtime = len(content), int(os.stat(path).st_mtime)  # compiled files store their source's time
    archive.addfile(member, io.BytesIO(content))
