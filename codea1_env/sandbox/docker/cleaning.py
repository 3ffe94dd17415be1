"""Removes what killed processes have left on an engine and in the folder for temporary files.

Usually nothing is left: containers end with the process that made them, and the engine removes them. Two things can
remain: a container that was created but not yet started, and the images, which are kept on purpose.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.sandbox.docker.engine import OWNER_LABEL, SESSION_LABEL, connected, remove_container
from codea1_env.sandbox.docker.folder import PREFIX, owner_of
from codea1_env.sandbox.docker.owner import Owner


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What was removed, and how many things were kept because their owner runs or may run."""

    containers: tuple[str, ...] = ()
    """Names."""
    images: tuple[str, ...] = ()
    """Names with tags, or ids."""
    folders: tuple[str, ...] = ()
    n_left: int = 0


def clean() -> Cleaned:
    """Remove the containers, images and folders of this project whose owner process has ended.

    Only things with this project's labels are listed.

    Raises:
        MissingExtra: the SDK is not installed.
        EngineGone: no engine answers.
    """
    folders = _clean_folders()
    with connected() as client:
        containers, n_living = _clean_containers(client)
        images, n_kept = _clean_images(client)
    return Cleaned(tuple(containers), tuple(images), tuple(folders), n_living + n_kept)


def remove_leftovers() -> None:
    """Remove the containers and folders, but not the images, of processes that have ended."""
    _clean_folders()
    with connected() as client:
        _clean_containers(client)


def _clean_containers(client: Any) -> tuple[list[str], int]:
    removed, n_left = [], 0
    for container in client.containers(all=True, filters={"label": [SESSION_LABEL, OWNER_LABEL]}):
        if not _is_dead(container):
            n_left += 1
        elif remove_container(client, container["Id"]):
            removed.append(container["Names"][0].lstrip("/"))
    return removed, n_left


def _clean_images(client: Any) -> tuple[list[str], int]:
    from docker.errors import APIError  # noqa: PLC0415  -- heavy, and an extra

    removed, n_left = [], 0
    for image in client.images(filters={"label": [f"{SESSION_LABEL}=image", OWNER_LABEL]}):
        if not _is_dead(image):
            n_left += 1
            continue
        try:
            client.remove_image(image["Id"])
        except APIError:  # in use by a container
            n_left += 1
        else:
            removed.append(next(iter(image["RepoTags"] or ()), image["Id"]))
    return removed, n_left


def _is_dead(thing: dict[str, Any]) -> bool:
    owner = Owner.parse(thing["Labels"][OWNER_LABEL])
    return owner is not None and owner.is_dead()


def _clean_folders() -> list[str]:
    return list(_removed_folders())


def _removed_folders() -> Iterator[str]:
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        owner = owner_of(folder)
        if owner is not None and owner.is_dead():
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():  # another user's folder cannot be removed
                yield str(folder)
