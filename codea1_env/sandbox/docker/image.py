"""What containers are started from: an image that the user names, or the files of this interpreter.

These files are those that a sealed interpreter of the local sandbox sees (`inside.layout`), mounted read-only at the
paths that they have here. So nothing is built or stored: the image below them has only the links by which the loader
finds libraries.
"""

from __future__ import annotations

import functools
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from codea1_env.errors import SandboxError, UserError
from codea1_env.sandbox.docker.engine import LABEL
from codea1_env.sandbox.inside import layout
from codea1_env.sandbox.local.worker import clean_environment

REPOSITORY = "codea1-env-sandbox"
"""Name of the images that are made here; the tag is a hash of the content."""

_LINKS = ("lib", "lib64", "usr/lib64")
_LAYOUT = "import json, runpy, sys; print(json.dumps(runpy.run_path(sys.argv[1])['layout'](json.loads(sys.argv[2]))))"


@dataclass(frozen=True, slots=True)
class Image:
    """An image, and the files of this machine that its containers mount."""

    reference: str
    """Name with tag, or id."""
    python: str
    """Its interpreter: a path, or a name that is looked up in the container."""
    shown: tuple[str, ...] = ()
    """Paths of this machine that are mounted, including those below hidden folders."""
    hidden: tuple[str, ...] = ()
    """Folders below these, over which an empty file system is mounted."""


def given_image(client: Any, reference: str) -> Image:
    """Return an image that the user names and that the engine has; it must contain `python3`, 3.11 or newer.

    Raises:
        UserError: the engine does not have the image. This project never pulls one.
    """
    if not _has(client, reference):
        raise UserError(f"the Docker engine has no image {reference!r}; get it first: docker pull {reference}")
    return Image(reference, "python3")


def own_image(client: Any, packages: Mapping[str, str]) -> Image:
    """Return the image of this interpreter and some site packages.

    Args:
        client: see `codea1_env.sandbox.docker.engine.connected`.
        packages: name to the folder that contains the package; it has the same path in a container.

    Raises:
        SandboxError: the interpreter cannot be started.
    """
    content = _links()
    tag = sha256(content).hexdigest()[:16]
    if not _has(client, f"{REPOSITORY}:{tag}"):  # two processes may import it: the engine keeps one
        client.import_image(io.BytesIO(content), repository=REPOSITORY, tag=tag, changes=[f"LABEL {LABEL}=image"])
    python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    visible = _layout_of(python, tuple(sorted(packages.items())))
    return Image(f"{REPOSITORY}:{tag}", python, (*visible.shown, *visible.packages, python), visible.hidden)


def _has(client: Any, reference: str) -> bool:
    from docker.errors import ImageNotFound  # noqa: PLC0415  -- heavy, and an extra

    try:
        client.inspect_image(reference)
    except ImageNotFound:
        return False
    return True


def _links() -> bytes:
    """Return a tar archive with links such as /lib -> usr/lib, as they are on this machine."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name in ("tmp", *_LINKS):
            member = tarfile.TarInfo(name)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            if os.path.islink(f"/{name}"):
                member.type, member.linkname = tarfile.SYMTYPE, os.readlink(f"/{name}")
            archive.addfile(member)
    return file.getvalue()


@functools.lru_cache(maxsize=4)
def _layout_of(python: str, packages: tuple[tuple[str, str], ...]) -> layout.Layout:
    """Return the layout as a new interpreter finds it: this process may have loaded more libraries."""
    command = [python, "-S", "-s", "-P", "-B", "-c", _LAYOUT, layout.__file__, json.dumps(dict(packages))]
    done = subprocess.run(command, capture_output=True, text=True, env=clean_environment(), check=False)
    if done.returncode != 0:
        raise SandboxError(f"cannot find out which files {python} needs: {done.stderr.strip()[-300:]}")
    return layout.Layout(*map(tuple, json.loads(done.stdout)))
