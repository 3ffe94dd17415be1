"""The image of the containers that run zygotes: one that the user names, or one built from this interpreter."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.errors import UserError
from codea1_env.sandbox.docker.engine import LABEL
from codea1_env.sandbox.docker.root import Root

REPOSITORY = "codea1-env-sandbox"
"""Name of the images that are made here; the tag is a hash of the content."""


@dataclass(frozen=True, slots=True)
class Image:
    """What to start containers from."""

    reference: str
    """Name with tag, or id."""
    python: str
    """Its interpreter: a path, or a name that is looked up in the container."""


def given_image(client: Any, reference: str) -> Image:
    """Return an image that the user names and that the engine has; it must contain `python3`, 3.11 or newer.

    Raises:
        UserError: the engine has no such image. This project never pulls one.
    """
    if not _has(client, reference):
        raise UserError(f"the Docker engine has no image {reference!r}; get it first: docker pull {reference}")
    return Image(reference, "python3")


def own_image(client: Any, packages: Mapping[str, str]) -> Image:
    """Return the image of this interpreter and some site packages; build it if the engine does not have it.

    Args:
        client: see `codea1_env.sandbox.docker.engine.connected`.
        packages: name to the folder that contains the package; it has the same path in the image.
    """
    root, tag = _root_of(tuple(sorted(packages.items())))
    reference = f"{REPOSITORY}:{tag}"
    with _one_at_a_time():
        if not _has(client, reference):
            _import(client, root, tag)
    return Image(reference, root.python)


@functools.lru_cache(maxsize=4)
def _root_of(packages: tuple[tuple[str, str], ...]) -> tuple[Root, str]:
    """Return a root and its digest. Cached, since a process keeps using the files that it has imported."""
    root = Root(dict(packages))
    return root, root.digest()


def _has(client: Any, reference: str) -> bool:
    from docker.errors import ImageNotFound  # noqa: PLC0415  -- heavy, and an extra

    try:
        client.inspect_image(reference)
    except ImageNotFound:
        return False
    return True


def _import(client: Any, root: Root, tag: str) -> None:
    with tempfile.TemporaryFile() as archive:  # without a name: no file remains if this process is killed
        root.write(archive)
        archive.seek(0)
        client.import_image(archive, repository=REPOSITORY, tag=tag, changes=[f"LABEL {LABEL}=image"])


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Let only one process of this installation build images: the engine would keep both."""
    with Path(__file__).open("rb") as file:  # any file that exists in every installation
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
