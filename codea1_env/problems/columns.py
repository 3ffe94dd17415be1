"""Typed access to one row of a problem file; every error names the column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from codea1_env.errors import BrokenInput
from codea1_env.records.faults import read_json

Row = Mapping[str, Any]


class NotedRow(Mapping[str, Any]):
    """A row that remembers which of its columns are read."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self._read: set[str] = set()
        self.notes: list[str] = []
        """Further facts about the row."""

    def __getitem__(self, column: str) -> Any:
        self._read.add(column)
        return self.row[column]

    def __iter__(self) -> Iterator[str]:
        return iter(self.row)

    def __len__(self) -> int:
        return len(self.row)

    def all_notes(self) -> list[str]:
        """Return the notes, and one for each column with a value that has not been read."""
        unread = (
            name for name, value in self.row.items() if name not in self._read and value not in (None, "", [], {})
        )
        return [*self.notes, *(f"column {name!r} is not used" for name in unread)]


def note(row: Row, text: str) -> None:
    """Note something about a row that whoever checks its file should know."""
    if isinstance(row, NotedRow):
        row.notes.append(text)


def text(row: Row, column: str) -> str:
    """Return a column that must contain text other than white space.

    Raises:
        BrokenInput: it is missing, empty, not text, or text that a source file cannot contain.
    """
    value = optional_text(row, column)
    if not value.strip():
        fault = "missing" if column not in row else "null" if row[column] is None else "empty"
        raise BrokenInput(f"column {column!r} is {fault}")
    return value


def optional_text(row: Row, column: str) -> str:
    """Return a column's text, "" if it is absent or null.

    Raises:
        BrokenInput: it is not text, or text that a source file cannot contain.
    """
    value = row.get(column)
    return "" if value is None else checked_text(value, f"column {column!r}")


def checked_text(value: object, what: str) -> str:
    """Return `value` if it is text that can be encoded as UTF-8 and contains no NUL.

    Raises:
        BrokenInput: otherwise; the message calls it `what`.
    """
    if not isinstance(value, str):
        raise BrokenInput(f"{what} must be text, got {type(value).__name__}")
    if "\0" in value:
        raise BrokenInput(f"{what} contains a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise BrokenInput(f"{what} contains half of a surrogate pair") from error
    return value


def identifier(row: Row, column: str) -> str:
    """Return a column that must contain a number or a text that identifies the row.

    Raises:
        BrokenInput: as `text`.
    """
    value = row.get(column)
    return str(value) if type(value) is int else text(row, column)


def json_value(row: Row, column: str) -> Any:
    """Return the value of a column that contains JSON as text; a column that has been parsed already is returned as is.

    Raises:
        BrokenInput: it is missing or empty, or as `read_json`.
    """
    if row.get(column) is not None and not isinstance(row[column], str):
        return row[column]
    return read_json(f"column {column!r}", text(row, column))


def sub_row(row: Row, column: str) -> Row:
    """Return a column that contains named fields, {} if it is absent or null.

    Raises:
        BrokenInput: it contains something else.
    """
    value = row.get(column)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BrokenInput(f"column {column!r} must be an object with named fields, got {type(value).__name__}")
    return value


def items_of(value: object, what: str) -> Sequence[object]:
    """Return a list; empty for null.

    Raises:
        BrokenInput: it is something else; the message calls it `what`.
    """
    if value is not None and not isinstance(value, list | tuple):
        raise BrokenInput(f"{what} must be a list, got {type(value).__name__}")
    return value or ()


def texts_of(value: object, what: str) -> tuple[str, ...]:
    """Return a list of texts; empty for null.

    Raises:
        BrokenInput: it is something else, or an item is not what `checked_text` accepts.
    """
    return tuple(checked_text(item, f"an item of {what}") for item in items_of(value, what))
