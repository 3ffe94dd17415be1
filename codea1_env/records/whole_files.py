"""Atomic replacement of files and folders: readers see the old content or the new content, never a part."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile

from codea1_env.errors import UserError

_HERE, _RENAME_EXCHANGE = -100, 2  # AT_FDCWD; of linux/fs.h


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file's content atomically.

    If the path is a link, its target is replaced. A file keeps its permissions. Pipes, devices and other special files
    are written to directly.

    Raises:
        OSError: it cannot be written. A regular file is then unchanged.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with target.open("wb", buffering=0) as stream:
            _write_all(stream.fileno(), content)
        return
    draft = _draft_of(target)
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


def _draft_of(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}.new")


def write_text(path: Path, text: str) -> None:
    """Replace a file by text, encoded as UTF-8, atomically; see `write_whole`. The folders above it are made.

    Raises:
        UserError: it cannot be written.
    """
    with _unwritable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode("utf-8", "surrogatepass"))


def require_file(path: Path) -> None:
    """Check that `write_text` can write a file; this changes nothing and leaves nothing.

    Raises:
        UserError: it cannot, since the path or one above it is something else, too long, or not to be written.
    """
    target = Path(os.path.realpath(path))
    with _unwritable(path), _make_folder(target.parent):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "a folder, expected a file")
        if not target.exists() or target.is_file():
            _draft_of(target).touch()
            _draft_of(target).unlink()


def require_folder(path: Path) -> None:
    """Check that a folder can be made and written, or written if it is there; this changes nothing and leaves nothing.

    Raises:
        UserError: as `require_file`.
    """
    with _unwritable(path), _make_folder(path):
        TemporaryFile(dir=path).close()


@contextmanager
def _make_folder(folder: Path) -> Iterator[None]:
    """Have a folder; at the end of the block, remove it and those above it if they were not there."""
    whole = Path(os.path.abspath(folder))
    missing = [each for each in (whole, *whole.parents) if not each.exists()]
    try:
        whole.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for each in missing:
            with suppress(OSError):
                each.rmdir()


@contextmanager
def _unwritable(path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError as error:
        raise UserError(f"{path}: cannot be written: a file with this name exists") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from error


def cache_folder(name: str) -> Path:
    """Return a folder of this project below the user's cache folder (`XDG_CACHE_HOME`, or `~/.cache`)."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if Path(home).is_absolute() else Path.home() / ".cache") / "codea1-env" / name


@contextmanager
def new_folder(place: Path) -> Iterator[Path]:
    """Yield an empty folder, which replaces the one at `place` at the end of the block; if it raises, nothing changes.

    If this process is killed, the old folder or the new one is there, whole. Where the kernel or the file system cannot
    exchange two folders, none may be there until the next call, or one of `restore_folder`.

    Raises:
        OSError: it cannot be written.
    """
    place = Path(os.path.realpath(place))  # of a link, the target is replaced
    draft = place.with_name(f".{place.name}.new")
    restore_folder(place)
    try:
        remove_folder(draft)
        draft.mkdir(parents=True)
        yield draft
        if not place.exists():
            draft.rename(place)
        elif not _exchange(draft, place):
            place.rename(_aside(place))
            draft.rename(place)
    finally:
        restore_folder(place)
        remove_folder(draft)


def restore_folder(place: Path) -> None:
    """Put a folder back that `new_folder` has moved aside, unless the new one has taken its place."""
    if place.exists():
        remove_folder(_aside(place))
    elif _aside(place).exists():
        _aside(place).rename(place)


def _aside(place: Path) -> Path:
    return place.with_name(f".{place.name}.before")


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; return False where that is not possible."""
    from ctypes import CDLL  # noqa: PLC0415  only here

    rename = getattr(CDLL(None), "renameat2", None)
    return rename is not None and rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _RENAME_EXCHANGE) == 0


def write_whole_folder(place: Path, write: Callable[[Path], object]) -> None:
    """Replace a folder by a new one that `write` fills; see `new_folder`."""
    with new_folder(place) as draft:
        write(draft)


def remove_folder(folder: Path) -> None:
    """Remove a folder. It is renamed first, so that nobody reads a partly removed folder."""
    if not folder.exists():
        return
    hidden = folder.with_name(f".{folder.name}.old") if not folder.name.startswith(".") else folder
    with suppress(OSError):
        if hidden != folder:
            shutil.rmtree(hidden, ignore_errors=True)
            folder.rename(hidden)
        shutil.rmtree(hidden)


def remove_contents(folder: Path) -> None:
    """Remove everything in a folder, and the folder itself if it is then empty."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        folder.rmdir()


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
