from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from codea1_env.errors import UserError
from codea1_env.records.whole_files import require_file, require_folder, write_whole, write_whole_folder


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


@pytest.mark.parametrize("check", [require_file, require_folder])
def test_a_place_that_cannot_be_written_is_told_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("old")
    Path("folder").mkdir()
    Path("loop").symlink_to("loop")
    places = ["file/x", "file/x/y", "a" * 300, f"new/{'a' * 300}/x", "x/" * 3000, "loop/x", "/proc/x/y"]
    for place in (*places, "folder" if check is require_file else "file"):
        with pytest.raises(UserError, match="cannot be written") as caught:
            check(Path(place))
        assert "\n" not in str(caught.value)
    for place in ("file" if check is require_file else "folder", "new/er/x", "folder/x", "x"):
        check(Path(place))
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["file", "folder", "loop"]
    assert Path("file").read_text() == "old"


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
