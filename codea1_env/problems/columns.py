"""Typed access to one row of a problem file; every complaint names the column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codea1_env.errors import BrokenInput

Row = Mapping[str, Any]


def text(row: Row, column: str) -> str:
    """Return a column that must hold text other than white space.

    Raises:
        BrokenInput: missing, empty, not text, or text that no source file could hold.
    """
    value = optional_text(row, column)
    if not value.strip():
        raise BrokenInput(f"column {column!r} is {'empty' if column in row else 'missing'}")
    return value


def optional_text(row: Row, column: str) -> str:
    """Return a column's text, "" where it is absent or null.

    Raises:
        BrokenInput: not text, or text that no source file could hold.
    """
    value = row.get(column)
    return "" if value is None else checked_text(value, f"column {column!r}")


def checked_text(value: object, what: str) -> str:
    """Return `value` if it is text that can be written as UTF-8 and holds no NUL.

    Raises:
        BrokenInput: it is not; `what` names it in the message.
    """
    if not isinstance(value, str):
        raise BrokenInput(f"{what} holds {type(value).__name__}, not text")
    if "\0" in value:
        raise BrokenInput(f"{what} holds a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise BrokenInput(f"{what} holds half of a surrogate pair") from error
    return value


def sub_row(row: Row, column: str) -> Row:
    """Return a column that holds named fields, {} where it is absent or null.

    Raises:
        BrokenInput: it holds something else.
    """
    value = row.get(column)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BrokenInput(f"column {column!r} holds {type(value).__name__}, not named fields")
    return value
