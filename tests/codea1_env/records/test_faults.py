"""What somebody else has written is read within bounds, and refused in one sentence."""

from __future__ import annotations

import json
import time
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.errors import BrokenInput
from codea1_env.records import faults
from codea1_env.records.faults import count_values, read_file, read_json, read_toml, read_within
from codea1_env.records.journal import whole_lines

MIB = 1 << 20
HUGE_TOML = {
    "digits": "a = " + "9" * 5000,
    "64 bits": f"a = {10**30}",
    "hexadecimal": "a = 0x" + "f" * MIB,
    "in a list": f"a = [1, [{-(10**30)}]]",
    "brackets": "a = " + "[" * 100_000,
    "levels": "a = " + "[" * 40 + "]" * 40,
    "tables": "a = " + "{b = " * 900 + "1" + "}" * 900,
    "parts of a key": ".".join("a" * 300_000) + " = 1",
    "parts with marks": ".".join(["'a.b'", '"=\\""', "c "] * 20_000) + " = 1",
    "parts of a table's name": "[" + ".".join("a" * 300_000) + "]",
    "parts in a table": "a = {" + ".".join("b" * 300_000) + " = 1}",
    "bytes": "# " + "a" * MIB,
    "no text": "\udcff",
    "quotes": "a = " + '"\\' * 300_000,
}


@pytest.mark.parametrize("text", HUGE_TOML.values(), ids=HUGE_TOML)
def test_toml_is_bounded_in_bytes_digits_and_levels(text: str) -> None:
    started = time.process_time()
    with pytest.raises(BrokenInput, match=r"^x\.toml: not TOML \(") as caught:
        read_toml("x.toml", text.encode("utf-8", "surrogateescape"))
    assert len(str(caught.value)) < 300
    assert time.process_time() - started < 20


def test_toml_of_usual_depth_is_read() -> None:
    text = f"a = {2**63 - 1}\nb = {-(2**63) + 1}\n[c.d.e]\nf = [[1.5, true]]\n'g.h'.\"i j\" = '''{'...' * 99}'''\r\n"
    assert read_toml("x", text.encode())["c"]["d"]["e"]["f"] == [[1.5, True]]


HUGE_JSON = {
    "digits": "[" + "9" * 5000 + "]",
    "brackets": "[" * 100_000,
    "names": '{"a": 1, "a": 2}',
    "infinite": "[NaN]",
    "no text": "\udcff",
    "values": "[" + "[]," * (1 << 24) + "1]",
}


@pytest.mark.parametrize("text", HUGE_JSON.values(), ids=HUGE_JSON)
def test_json_is_bounded_in_digits_levels_and_values(text: str) -> None:
    with pytest.raises(BrokenInput, match=r"^x( is not JSON)?: ") as caught:
        read_json("x", text.encode("utf-8", "surrogateescape"))
    assert len(str(caught.value)) < 300


@given(st.recursive(st.text() | st.integers() | st.none(), lambda of: st.lists(of) | st.dictionaries(st.text(), of)))
def test_values_are_counted_before_they_are_made(value: Any) -> None:
    def n_of(part: Any) -> int:
        inner = list(part.values() if isinstance(part, dict) else part) if isinstance(part, dict | list) else []
        own = isinstance(part, dict | list) + max(0, len(inner) - 1) + (len(inner) if isinstance(part, dict) else 0)
        return own + sum(map(n_of, inner))

    text = json.dumps(value).encode()
    assert count_values(text) == n_of(value)
    assert read_json("x", text) == value


def test_files_and_lines_are_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "endless"
    with path.open("wb") as file:
        file.write(b"short\n")
        file.truncate(1 << 40)  # which takes no place on a disk
    lines = whole_lines(path)
    assert next(lines) == b"short\n"
    with pytest.raises(BrokenInput, match="endless line 2: expected at most 67,108,864 bytes, got more"):
        next(lines)
    with pytest.raises(BrokenInput, match="endless: expected at most 67,108,864 bytes, got more"):
        read_file(path)
    assert read_within(BytesIO(b"1234"), 4, "x") == b"1234"
    monkeypatch.setattr(faults, "LONGEST", 10)
    path.write_bytes(b"0123456789")
    assert read_file(path) == b"0123456789"
