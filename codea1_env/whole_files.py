"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


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


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
