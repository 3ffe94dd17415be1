"""Errors of the file system as sentences for users."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from codea1_env.errors import BrokenInput, UserError


@contextmanager
def file_errors(path: Path, note: str = "") -> Iterator[None]:
    """Turn an OSError into a UserError: one sentence that names the path and ends with the note."""
    try:
        yield
    except OSError as error:
        place = error.filename or path
        is_file = isinstance(error, FileExistsError)
        reason = "a file with this name exists" if is_file else error.strerror or error
        raise UserError(f"{place}: {reason}{note}") from error


def require_plain(folder: Path, *, may_link: bool) -> None:
    """Raise an error if a folder holds anything but files and folders; a pipe, for example, would block its reader.

    Args:
        folder: may be another person's.
        may_link: whether links to files and folders are accepted; a writer would replace what they point to.

    Raises:
        UserError: it does.
        OSError: it cannot be read.
    """
    for place, folders, files in os.walk(folder):
        for path in (Path(place, name) for name in (*folders, *files)):
            if not may_link and path.is_symlink():
                raise UserError(f"{path}: a link, but a run must be written to a folder of its own")
            mode = mode_of(path)
            if mode and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise UserError(f"{path}: neither a file nor a folder")


def require_run(path: Path, kind: str, *parts: str) -> None:
    """Raise an error unless this is the folder of a run: it has these files, and otherwise only files and folders.

    Raises:
        BrokenInput: it is none.
        UserError: it cannot be read, or holds something else.
    """
    with file_errors(path):
        if not path.is_dir():
            fault = f"a file, not a run folder: {_describe_file(path)}" if path.exists() else "no such run folder"
            raise BrokenInput(f"{path}: {fault}")
        for name in parts:
            if not (path / name).is_file():
                raise BrokenInput(f"{path}: not a {kind}, since {name} is missing")
        require_plain(path, may_link=True)


def _describe_file(file: Path) -> str:
    """Return what a file is that was given as a run, and what was expected."""
    if file.name in ("config.toml", "episodes.jsonl", "metrics.jsonl", "metrics.json"):
        return f"it is a part of a run, expected the folder {file.parent}"
    if file.name == "results.jsonl":
        return "it has results of codea1 experiment, whose report is beside it; expected the folder of one run"
    kind = file.suffix[1:].upper()
    return (
        f"it is {f'a {kind} file' if kind else 'a file without an ending'}, expected a folder of codea1 play or train"
    )


def mode_of(path: Path) -> int:
    """Return the mode of a file or folder, as `stat` knows it; 0: there is none.

    `Path.exists` and `Path.is_dir` of Python 3.14 also say False where a folder above may not be entered.

    Raises:
        OSError: a folder above may not be entered, or the name is too long.
    """
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):  # the last: a NUL in the name
        return 0
