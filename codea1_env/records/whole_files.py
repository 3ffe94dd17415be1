"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from codea1_env.errors import UserError


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file's content at once; who reads it meanwhile sees the old content or the new.

    A link stays and its target is replaced; a file keeps its permissions. What is no regular file (a pipe, a device)
    has no content to keep, so it is written to as it is.

    Raises:
        OSError: it cannot be written. A regular file is then as it was.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with target.open("wb", buffering=0) as stream:
            _write_all(stream.fileno(), content)
        return
    draft = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            draft.chmod(target.stat().st_mode & 0o7777)
        draft.replace(target)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Replace a file, whole or not at all; links, pipes and devices: see `write_whole`.

    Raises:
        UserError: it cannot be written.
    """
    try:
        write_whole(path, text.encode("utf-8", "surrogatepass"))
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from error


def write_whole_folder(place: Path, write: Callable[[Path], object]) -> None:
    """Replace a folder at once by one that `write` fills; what it raises leaves the old folder as it was.

    Raises:
        OSError: it cannot be written.
    """
    draft = place.with_name(f".{place.name}.new")
    try:
        remove_folder(draft)
        draft.mkdir(parents=True)
        write(draft)
        remove_folder(place)
        draft.rename(place)
    finally:
        remove_folder(draft)


def remove_folder(folder: Path) -> None:
    """Remove a folder: first out of sight, so that nobody takes half of it for a whole."""
    if not folder.exists():
        return
    hidden = folder.with_name(f".{folder.name}.old") if not folder.name.startswith(".") else folder
    with suppress(OSError):
        if hidden != folder:
            shutil.rmtree(hidden, ignore_errors=True)
            folder.rename(hidden)
        shutil.rmtree(hidden)


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
