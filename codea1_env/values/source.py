"""Write encoded values as Python source (for stored asserts) and as text for people."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from codea1_env.values.comparison import INEXACT, exact
from codea1_env.values.tree import BeyondBudget, Tagged, moment, parse

_MAX_DECIMAL_DIGITS = 4_000  # Python refuses literals of more than 4300 digits unless they are hexadecimal


@dataclass(frozen=True, slots=True)
class SourceText:
    """A Python expression and the import statements that it needs."""

    expression: str
    imports: tuple[str, ...] = ()


def to_source(data: bytes) -> SourceText | None:
    """Return source that evaluates to the value, or None if there is none (dataclasses, values beyond the budget).

    Raises:
        Malformed: not an encoded value.
    """
    writing = _Writing()
    try:
        expression = writing.text(parse(data))
    except (_NoSource, BeyondBudget):
        return None
    return SourceText(expression, tuple(sorted(writing.imports)))


def describe(data: bytes, limit: int = 300) -> str:
    """Return the value as people write it, printable, at most `limit` characters.

    Raises:
        Malformed: not an encoded value.
    """
    value = exact(data)
    if value is not INEXACT and b'"s"' not in data:  # `repr` writes the same text, except for the order of a set
        text = repr(value)
    else:
        try:
            text = _Writing(for_people=True, n_wanted=limit).text(parse(data))
        except BeyondBudget as error:
            text = f"a value of {error}"
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…"


def describe_call(entry_point: str, arguments: bytes, limit: int = 300) -> str:
    """Return a call as people write it, printable.

    Args:
        entry_point: what is called.
        arguments: an encoded pair of positional and keyword arguments, or, where these hold functions, of the text.
        limit: arguments after so many characters are left out.
    """
    writing = _Writing(for_people=True, n_wanted=limit)
    try:
        given = parse(arguments)
        if isinstance(given, str):
            return given[:limit]
        positional, named = given.payload
    except BeyondBudget as error:
        return f"{entry_point}(...) with {error}"
    texts = chain(map(writing.text, positional.payload), (f"{k}={writing.text(v)}" for k, v in named.payload))
    return f"{entry_point}({writing.joined(texts)})"


class _NoSource(Exception):
    """No expression has this value."""


@dataclass(slots=True)
class _Writing:
    for_people: bool = False
    n_wanted: float = math.inf
    """The number of characters still needed; later parts may be omitted."""
    imports: set[str] = field(default_factory=set)

    def text(self, node: Any) -> str:
        kind = type(node)
        if kind is Tagged:
            return _TEXTS[node.tag](self, node.payload)
        if kind is list:
            return f"[{self.texts(node)}]"
        written = repr(node)
        self.n_wanted -= len(written)
        return written

    def texts(self, nodes: list[Any]) -> str:
        return self.joined(map(self.text, nodes))

    def joined(self, texts: Iterable[str]) -> str:
        parts = []
        for text in texts:
            parts.append(text)
            if self.n_wanted < 0:
                break
        return ", ".join(parts)

    def needs(self, statement: str) -> None:
        self.imports.add(statement)

    def write_tuple(self, payload: list[Any]) -> str:
        return f"({self.texts(payload)}{',' if len(payload) == 1 else ''})"

    def write_set(self, payload: list[Any]) -> str:
        return f"{{{self.texts(payload)}}}" if payload else "set()"

    def write_frozenset(self, payload: list[Any]) -> str:
        return f"frozenset({self.write_set(payload)})" if payload else "frozenset()"

    def write_deque(self, payload: list[Any]) -> str:
        self.needs("from collections import deque")
        return f"deque([{self.texts(payload)}])"

    def write_dict(self, payload: list[Any]) -> str:
        return "{" + self.joined(f"{self.text(key)}: {self.text(value)}" for key, value in payload) + "}"

    def write_special_float(self, payload: str) -> str:
        return payload if self.for_people else f"float({payload!r})"

    def write_complex(self, payload: list[Any]) -> str:
        return f"complex({self.texts(payload)})"

    def write_integer(self, payload: str) -> str:
        if len(payload) * 1.21 > _MAX_DECIMAL_DIGITS:  # log10(16) digits per hexadecimal one
            return f"-0x{payload[1:]}" if payload.startswith("-") else f"0x{payload}"
        return str(int(payload, 16))

    def write_decimal(self, payload: str) -> str:
        self.needs("from decimal import Decimal")
        return f"Decimal({payload!r})"

    def write_fraction(self, payload: list[Any]) -> str:
        self.needs("from fractions import Fraction")
        return f"Fraction({self.texts(payload)})"

    def write_moment(self, payload: list[str]) -> str:
        self.needs("import datetime")
        value = moment(*payload)
        text = repr(value)
        if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
            return text
        raise _NoSource

    def write_array(self, payload: list[Any]) -> str:
        self.needs("import numpy")
        dtype, shape, flat = payload
        made = f"numpy.array([{self.texts(flat)}], dtype={dtype!r})"
        return made if len(shape) == 1 else f"{made}.reshape(({''.join(f'{length}, ' for length in shape)}))"

    def write_dataclass(self, payload: list[Any]) -> str:
        if not self.for_people:
            raise _NoSource
        fields = self.joined(f"{_name(name)}={self.text(value)}" for name, value in payload[1])
        return f"{_name(payload[0])}({fields})"


def _name(name: str) -> str:
    return name if name.isidentifier() else repr(name)


_TEXTS: dict[str, Callable[[_Writing, Any], str]] = {
    "t": _Writing.write_tuple,
    "q": _Writing.write_deque,
    "s": _Writing.write_set,
    "z": _Writing.write_frozenset,
    "d": _Writing.write_dict,
    "f": _Writing.write_special_float,
    "c": _Writing.write_complex,
    "i": _Writing.write_integer,
    "u": lambda _, payload: repr(bytes.fromhex(payload).decode("utf-8", "surrogatepass")),
    "b": lambda _, payload: repr(bytes.fromhex(payload)),
    "B": lambda _, payload: f"bytearray({bytes.fromhex(payload)!r})",
    "D": _Writing.write_decimal,
    "r": _Writing.write_fraction,
    "g": lambda writing, payload: f"range({writing.texts(payload)})",
    "T": _Writing.write_moment,
    "k": _Writing.write_dataclass,
    "n": _Writing.write_array,
}
