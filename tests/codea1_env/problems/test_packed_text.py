"""Packed tests are read without loading their pickle."""

from __future__ import annotations

import base64
import json
import os
import pickle
import zlib
from pathlib import Path

import pytest

from codea1_env.errors import BrokenInput
from codea1_env.problems.layouts import FoundRow, read_rows
from codea1_env.problems.packed_text import packed_text
from tests.support.data_set_rows import LIVE_CODE_BENCH

TEST = json.dumps([{"input": "9 8\n", "output": "17\n", "testtype": "stdin"}])


def packed(pickled: bytes) -> str:
    return base64.b64encode(zlib.compress(pickled)).decode()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("text", [TEST, "", "\u00e9" * 300, "x" * 70_000])
def test_a_pickled_text_is_read_in_every_protocol(text: str, protocol: int) -> None:
    assert packed_text(packed(pickle.dumps(text, protocol))) == text


class Runs:
    """Runs a command where it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> object:
        return os.mkdir, (str(self.path),)


def test_what_does_more_than_to_hold_a_text_is_refused(tmp_path: Path) -> None:
    hostile = [pickle.dumps(Runs(tmp_path / "made")), pickle.dumps(["a"]), pickle.dumps(("a", "b")), pickle.dumps(b"a")]
    hostile += [b"Vfirst\nVsecond\n.", b"cos\nsystem\n.", b".", b"", pickle.dumps(TEST)[:-1], b"V" + b"a" * 10]
    for content in [*map(packed, hostile), "no base64", base64.b64encode(b"not compressed").decode(), ""]:
        with pytest.raises(BrokenInput):
            packed_text(content)
    with pytest.raises(BrokenInput, match="more than"):
        packed_text(packed(b"V" + b"a" * (80 << 20) + b"\n."))
    with pytest.raises(BrokenInput, match="cut off"):
        packed_text(base64.b64encode(zlib.compress(pickle.dumps(TEST))[:-9]).decode())
    assert not (tmp_path / "made").exists()


def test_packed_private_tests_are_used_and_those_that_cannot_be_read_are_counted() -> None:
    row = LIVE_CODE_BENCH | {"private_test_cases": packed(pickle.dumps(TEST))}
    assert "run('9 8\\n')" in {test.expression for test in read_rows("r", [FoundRow("1", row)], strict=True)[0].golden}
    broken = LIVE_CODE_BENCH | {"private_test_cases": packed(pickle.dumps([TEST]))}
    notes = read_rows("r", [FoundRow("1", broken)], strict=True).notes
    assert [n for text, n in notes.items() if "private_test_cases" in text] == [1]
