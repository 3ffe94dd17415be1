from __future__ import annotations

import os
import shutil
import signal
import stat
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from codea1_env.errors import UserError
from codea1_env.records import whole_files
from codea1_env.records.whole_files import require_file, require_folder, restore_folder, write_whole, write_whole_folder


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


def fill(folder: Path, text: str) -> None:
    for name in "ab":
        (folder / name).write_text(text)


def content(folder: Path) -> list[str]:
    return [(folder / name).read_text() for name in "ab"]


def replaced_until(line: int, place: Path) -> bool:
    """Replace a folder in a process that is killed before a line that renames or removes; return whether it was."""
    child = os.fork()
    if child == 0:
        left = line

        def count(frame, event, _value):
            nonlocal left
            left -= event == "line" and frame.f_code.co_filename in (whole_files.__file__, shutil.__file__)
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return count

        sys.settrace(count)
        write_whole_folder(place, lambda draft: fill(draft, "new"))
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_kill_at_any_moment_leaves_the_old_folder_or_the_new_one(can_exchange, tmp_path, monkeypatch):
    if not can_exchange:
        monkeypatch.setattr(whole_files, "_exchange", lambda *_: False)
    else:
        for name in ("one", "other"):
            (tmp_path / name).mkdir()
        if not whole_files._exchange(tmp_path / "one", tmp_path / "other"):
            pytest.skip("no exchange of folders here")
    contents, line, was_killed = [], 0, True
    while was_killed:
        line += 1
        place = tmp_path / str(line) / "folder"
        place.mkdir(parents=True)
        fill(place, "old")
        was_killed = replaced_until(line, place)
        if not can_exchange:
            restore_folder(place)
        contents.append(content(place)[0])
        assert content(place) == [contents[-1]] * 2
        if line % 7 == 0:
            write_whole_folder(place, lambda draft: fill(draft, "newer"))
            assert content(place) == ["newer"] * 2
            assert list(place.parent.iterdir()) == [place]
    n_old = contents.count("old")
    assert contents == ["old"] * n_old + ["new"] * (line - n_old)
    assert 10 < n_old < line


def test_of_a_link_to_a_folder_the_target_is_replaced(tmp_path: Path) -> None:
    place, link = tmp_path / "far" / "folder", tmp_path / "link"
    place.mkdir(parents=True)
    link.symlink_to(place)
    write_whole_folder(link, lambda draft: fill(draft, "new"))
    assert link.is_symlink()
    assert content(place) == ["new"] * 2
    assert sorted(path.name for path in (*tmp_path.iterdir(), *place.parent.iterdir())) == ["far", "folder", "link"]
