from __future__ import annotations

from pathlib import Path

import pytest

from codea1_env.errors import UserError
from codea1_env.records.journal import Journal, cut_half_written, half_written, require_empty, whole_lines
from tests.support.folders import is_held


@pytest.mark.parametrize(
    ("content", "length"),
    [(b"", 0), (b"a\n", 0), (b"a\nbc", 2), (b"abc", 3), (b"a\n" + b"x" * 200_000, 200_000), (b"\n", 0)],
)
def test_what_stands_after_the_last_line_feed_is_left_out_and_cut(tmp_path: Path, content: bytes, length: int) -> None:
    path = tmp_path / "lines"
    path.write_bytes(content)
    whole = content[: len(content) - length]
    assert b"".join(whole_lines(path)) == whole
    assert (half_written(path), cut_half_written(path), half_written(path)) == (length, length, 0)
    assert path.read_bytes() == whole


@pytest.mark.slow
def test_a_journal_keeps_others_out_until_it_is_closed(tmp_path: Path) -> None:
    with Journal.begin(tmp_path / "a" / "b", "lines", "go away") as journal:
        journal.append(b"1\n")
        journal.replace(b"2\n")
        journal.append(b"3\n")
        assert is_held(tmp_path / "a" / "b")
    assert not is_held(tmp_path / "a" / "b")
    assert journal.path.read_bytes() == b"2\n3\n"


def test_a_process_keeps_itself_out_too(tmp_path: Path) -> None:
    with Journal.begin(tmp_path / "run", "lines", "") as first:
        (tmp_path / "other").symlink_to("run")
        for folder in ("run", "other"):
            with pytest.raises(UserError, match="this process is writing to it already"):
                Journal(tmp_path / folder, "lines")
        first.append(b"1\n")
        assert is_held(tmp_path / "run")
    Journal(tmp_path / "run", "lines").close()


def test_lines_that_are_a_link_are_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "lines").symlink_to("../elsewhere")
    with pytest.raises(UserError, match="a link, but a run must be written"):
        Journal(tmp_path / "run", "lines")
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_is_new_as_long_as_its_journal_is_empty(tmp_path: Path) -> None:
    Journal.begin(tmp_path, "lines", "").close()
    with Journal.begin(tmp_path, "lines", "") as journal:
        journal.append(b"1\n")
    with pytest.raises(UserError, match="is not empty: choose another"):
        Journal.begin(tmp_path, "lines", "choose another")


def test_a_foreign_folder_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UserError, match="is not empty"):
        Journal.begin(tmp_path, "lines", "")
    with pytest.raises(UserError, match="is not empty"):
        require_empty(tmp_path, "")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
