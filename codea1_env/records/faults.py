"""Texts and files of somebody else: what they hold, within bounds, or what is wrong with them, in one line."""

from __future__ import annotations

import json
import re
import tomllib
from io import BufferedIOBase
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from codea1_env.errors import BrokenInput

LONGEST = 64 << 20
"""Bytes of one text: a file, or a line of one."""
_MOST_VALUES = 1 << 24
_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*+["\\]?', re.DOTALL)
_LONGEST_TOML = 1 << 20
_DEEPEST = 32
_DEEP_KEY = re.compile(
    rf"""(?:(?:[\w-]++|"(?:[^"\\\n]|\\.){{0,200}}+"|'[^'\n]{{0,200}}+')[ \t]*+\.[ \t]*+){{{_DEEPEST}}}"""
)
"""Of TOML, whose reader takes the square of its parts in time and memory."""


def read_within(stream: BinaryIO | BufferedIOBase, most: int, what: str) -> bytes:
    """Return all bytes of a stream.

    Raises:
        BrokenInput: they are more than `most`; the message begins with `what`.
        OSError: it cannot be read.
    """
    data = stream.read(most + 1)
    if len(data) > most:
        raise BrokenInput(f"{what}: expected at most {most:,} bytes, got more")
    return data


def read_file(path: Path) -> bytes:
    """Return the content of a file; errors as in `read_within`, with `LONGEST`."""
    with path.open("rb") as file:
        return read_within(file, LONGEST, str(path))


def count_values(data: bytes) -> int:
    """Return how many objects, arrays, keys and items JSON has, before anything is made of it."""
    outside = _TEXTS.sub(b"", data)
    return sum(map(outside.count, (b"{", b"[", b",", b":")))


def read_json(what: str, data: bytes | str, *, most: int = LONGEST, is_strict: bool = True) -> Any:
    """Return what JSON holds.

    Args:
        what: stands before the fault in errors.
        data: in UTF-8.
        most: bytes.
        is_strict: whether a name that is given twice and a number that is not finite are faults.

    Raises:
        BrokenInput: it is none, or too long, or has more than 16 million values.
    """
    rules: dict[str, Any] = {"object_pairs_hook": _once, "parse_constant": _refuse} if is_strict else {}
    try:
        data = data.encode() if isinstance(data, str) else data
        if len(data) > most or (len(data) > _MOST_VALUES and count_values(data) > _MOST_VALUES):
            raise ValueError(f"it has more than {most:,} bytes, or {_MOST_VALUES:,} values")
        return json.loads(data.decode(), **rules)
    except BrokenInput as error:
        raise BrokenInput(f"{what}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise BrokenInput(f"{what} is not JSON: {error}") from error


def read_toml(what: str, data: bytes) -> dict[str, Any]:
    """Return what TOML holds: at most 1 MiB, 32 levels, whole numbers of 64 bits.

    Raises:
        BrokenInput: it is none; the message begins with `what`.
    """
    try:
        text = data.decode()
        if len(data) > _LONGEST_TOML or _DEEP_KEY.search(text):
            raise ValueError(f"expected at most {_LONGEST_TOML:,} bytes, and keys of at most {_DEEPEST} parts")
        table = tomllib.loads(text)
        level: list[Any] = [table]
        for _ in range(_DEEPEST):
            level = [list(each.values()) if isinstance(each, dict) else each for each in level]
            level = [part for each in level if isinstance(each, list) for part in each]
            if any(isinstance(each, int) and each.bit_length() > 63 for each in level):
                raise ValueError("expected whole numbers of 64 bits")
        if level:
            raise ValueError(f"expected at most {_DEEPEST} levels")
    except (ValueError, RecursionError) as error:  # the first also of texts that are not UTF-8
        raise BrokenInput(f"{what}: not TOML ({error})") from error
    return table


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name, value in pairs:
        if name in given:
            raise BrokenInput(f"expected each name once, got {name!r:.60} twice")
        given[name] = value
    return given


def _refuse(constant: str) -> None:
    raise BrokenInput(f"expected finite numbers, got {constant}")


def first_fault(error: ValidationError) -> str:
    """Return the first fault of a failed validation in one line: its place, its message, the number of other faults."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    where, what = ".".join(map(str, faults[0]["loc"])) or "the whole", faults[0]["msg"]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{where}: {what.replace('Input should be', 'expected')}{more}"
