"""Decode an encoded value into a live one, inside sandboxed processes only; trusted code compares trees instead.

Standard library only, like `encoding`. Modules of rare classes are imported when such a value is decoded.
"""

from __future__ import annotations

import collections
import functools
import importlib
from collections.abc import Callable
from typing import Any

from codea1_env.values.tree import Malformed, Tagged, moment, parse_all


def decode(data: bytes) -> Any:
    """Return a new value equal to the encoded one.

    A dataclass is decoded as a generated class with the same name and fields; arrays need numpy.

    Raises:
        Malformed: not an encoded value.
    """
    tree = parse_all(data)
    try:
        return _build(tree)
    except (ValueError, TypeError, ArithmeticError, ImportError) as error:
        raise Malformed(f"no value: {error}"[:200]) from None


def _build(node: Any) -> Any:
    kind = type(node)
    if kind is Tagged:
        return _BUILDERS[node.tag](node.payload)
    if kind is list:
        return [_build(child) for child in node]
    return node


def _build_text(payload: str) -> str:
    return bytes.fromhex(payload).decode("utf-8", "surrogatepass")


def _build_dataclass(payload: Any) -> Any:
    name, pairs = payload
    return _dataclass_like(name, tuple(field for field, _ in pairs))(*(_build(value) for _, value in pairs))


@functools.lru_cache(maxsize=256)
def _dataclass_like(name: str, fields: tuple[str, ...]) -> Callable[..., Any]:
    from dataclasses import make_dataclass  # noqa: PLC0415

    return make_dataclass(name, fields, unsafe_hash=True)


def _build_decimal(payload: str) -> Any:
    from decimal import Decimal  # noqa: PLC0415

    return Decimal(payload)


def _build_fraction(payload: Any) -> Any:
    from fractions import Fraction  # noqa: PLC0415

    return Fraction(*map(_build, payload))


def _build_array(payload: Any) -> Any:
    dtype, shape, flat = payload
    numpy = importlib.import_module("numpy")
    array = numpy.empty(len(flat), dtype=dtype)
    for position, child in enumerate(flat):  # one assignment of the whole list would nest its elements
        array[position] = _build(child)
    return array.reshape(shape)


_BUILDERS: dict[str, Callable[[Any], Any]] = {
    "t": lambda payload: tuple(map(_build, payload)),
    "q": lambda payload: collections.deque(map(_build, payload)),
    "s": lambda payload: set(map(_build, payload)),
    "z": lambda payload: frozenset(map(_build, payload)),
    "d": lambda payload: {_build(key): _build(value) for key, value in payload},
    "f": float,
    "c": lambda payload: complex(*map(_build, payload)),
    "i": lambda payload: int(payload, 16),
    "u": _build_text,
    "b": bytes.fromhex,
    "B": bytearray.fromhex,
    "D": _build_decimal,
    "r": _build_fraction,
    "g": lambda payload: range(*map(_build, payload)),
    "T": lambda payload: moment(*payload),
    "k": _build_dataclass,
    "n": _build_array,
}
