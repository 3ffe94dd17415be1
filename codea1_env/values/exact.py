"""Small values of the most common kinds as live objects, which are much cheaper to compare and to write than trees.

An exact value consists of None, integers, texts, lists, tuples, sets and dicts. Nothing in it equals a value of another
type, and no tolerance applies to it. It is small, so that no choice of keys makes hashing them expensive.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NoReturn

INEXACT = object()
"""The result for every value that is not exact, and for some that are."""

_MAX_BYTES = 4096
_SHORT, _MAX_REMEMBERED = 256, 8192  # bytes, values


def exact(data: bytes) -> Any:
    """Return the value that checked data encodes, or `INEXACT`. It is cached and shared, so never change it."""
    if len(data) <= _SHORT:
        return _remembered(data)
    return _exact(data) if len(data) <= _MAX_BYTES else INEXACT


def _exact(data: bytes) -> Any:
    # Escapes can make surrogates; True equals 1; -0 would be read as 0. A text that contains these is merely slower.
    if b"\\" in data or b"true" in data or b"false" in data or b"-0" in data:
        return INEXACT
    try:
        text = data.decode()
        value, end = _read(text)
    except (ValueError, TypeError, RecursionError):  # not exact, or not checked
        return INEXACT
    return value if end == len(text) else INEXACT


# Both runs of the solution and every right candidate return the same value.
_remembered = lru_cache(_MAX_REMEMBERED)(_exact)


def _built(pairs: list[tuple[str, Any]]) -> Any:
    ((tag, payload),) = pairs
    if type(payload) is not list:
        raise ValueError("the payload must be a list")
    if tag == "t":
        return tuple(payload)
    if tag not in ("s", "d") or (tag == "d" and {type(pair) for pair in payload} - {list}):
        raise ValueError(f"the tag {tag}")
    found: set[Any] | dict[Any, Any] = set(payload) if tag == "s" else dict(payload)
    if len(found) < len(payload):
        raise ValueError("an element occurs twice, which no encoding has: it equals no value")
    return found


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} may be close to another number")


_read = json.JSONDecoder(object_pairs_hook=_built, parse_float=_refuse, parse_constant=_refuse).raw_decode
