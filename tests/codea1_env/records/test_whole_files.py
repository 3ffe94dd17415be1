from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from codea1_env.records.whole_files import write_whole, write_whole_folder


def test_a_file_is_replaced_with_its_permissions_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch(0o600)
    for content in (b"old", b"new"):
        write_whole(path, content)
        assert path.read_bytes() == content
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "target", tmp_path / "link"
    link.symlink_to(target)
    for content in (b"made through a dangling link", b"replaced"):
        write_whole(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    path, found = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    write_whole(path, b"x" * 200_000)
    reader.join()
    assert found == [b"x" * 200_000]
    assert path.is_fifo()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_device_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/full")
    for path in (Path("/dev/full"), tmp_path / "link"):
        with pytest.raises(OSError, match="No space left"):
            write_whole(path, b"text")
    assert Path("/dev/full").is_char_device()
    write_whole(Path("/dev/null"), b"text")
    assert Path("/dev/null").is_char_device()


def test_a_folder_is_replaced_whole_or_stays_as_it_was(tmp_path: Path) -> None:
    place = tmp_path / "a" / "folder"
    write_whole_folder(place, lambda draft: (draft / "old").touch())
    write_whole_folder(place, lambda draft: (draft / "new").touch())
    assert [path.name for path in place.iterdir()] == ["new"]

    def fail(draft: Path) -> None:
        (draft / "half").touch()
        raise RuntimeError("full")

    with pytest.raises(RuntimeError, match="full"):
        write_whole_folder(place, fail)
    assert [path.name for path in place.iterdir()] == ["new"]
    assert [path.name for path in place.parent.iterdir()] == ["folder"]
