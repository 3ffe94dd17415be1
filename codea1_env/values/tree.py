"""Check bytes that claim to be an encoded value, without making the value.

All bytes from a sandboxed process reach trusted code through `parse`. Like `encoding`, this file is also loaded in
sandboxed processes, so it imports only the standard library.

A checked tree consists of None, bool, int, finite float, str (no surrogates), list of trees, and `Tagged` nodes, whose
payloads have the form that `encoding` documents for their tag. Trees are cached and shared, so they must not be
changed.

A value of more than `MAX_BYTES` or `MAX_NODES` is not parsed at all, so that no tree takes more than some tenths of a
second and about 50 MB. By default, candidates cannot return larger values.

The decoder checks a tagged node's form when it makes the node, after the nodes within it. Only numbers and texts that
no encoding holds, and too much depth, remain to be checked. For most values a quick look at the bytes rules these out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from codea1_env.values.encoding import MAX_DEPTH, PLAIN_INT_BITS, is_protocol_name

if TYPE_CHECKING:
    import datetime

MAX_BYTES = 8 << 20
MAX_NODES = 1 << 18

_HEX_INT = re.compile(r"-?[1-9a-f][0-9a-f]*\Z")
_DECIMAL = re.compile(r"-?(\d+(\.\d*)?(E[+-]\d{1,19})?|Infinity|s?NaN\d*)\Z", re.ASCII)
_DELTA = re.compile(r"-?\d{1,9},\d{1,5},\d{1,6}\Z", re.ASCII)
_DTYPE = re.compile(r"[<>=|][biufcUSO]\d*\Z", re.ASCII)
_HASHABLE = frozenset("tzfcubirDTgk")
_LEAVES = frozenset("crgT")  # lists of numbers and texts, which add no level

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_LARGE_EXPONENT = 18  # digits: Decimal itself checks longer exponents

_SHORT = 256  # bytes, and so the most digits of a number in such data
_OUTLINE = bytes.maketrans(b"123456789E{}", b"000000000e[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]"))
_MANY_DIGITS = b"0" * 256  # fewer digits have less than PLAIN_INT_BITS
_MAX_REMEMBERED = 8192


class Malformed(ValueError):
    """Not the encoding of a value."""


class BeyondBudget(Malformed):
    """Too large to be parsed; it equals only the same bytes."""


class Tagged(NamedTuple):
    """A node that JSON writes as an object with one key."""

    tag: str
    payload: Any


def parse(data: bytes) -> Any:
    """Return the checked tree of an encoded value.

    Raises:
        BeyondBudget: too many bytes or nodes; it may or may not be an encoded value.
        Malformed: not an encoded value.
    """
    return _parse_short(data) if len(data) <= _SHORT else _parse(data)


def _parse(data: bytes) -> Any:
    if is_beyond_budget(data):
        raise BeyondBudget(f"{len(data):,} bytes: more than {MAX_BYTES:,} bytes or {MAX_NODES:,} nodes are not parsed")
    return parse_all(data)


def parse_all(data: bytes) -> Any:
    """Return the checked tree of a value of any length; for sandboxed processes, whose own limits apply.

    Raises:
        Malformed: not an encoded value.
    """
    try:
        text = data.decode()
        tree, end = _read(text)
        if end != len(text):
            raise Malformed("more than one value")
        if not _is_harmless(data):
            _check(tree, MAX_DEPTH)
    except Malformed:
        raise
    except (ValueError, RecursionError, ArithmeticError) as error:  # broken UTF-8 or JSON, huge literals, deep brackets
        raise Malformed(f"not an encoded value: {error}"[:200]) from None
    return tree


# Both runs of the solution and every right candidate return the same value.
_parse_short = lru_cache(_MAX_REMEMBERED)(_parse)


def is_beyond_budget(data: bytes) -> bool:
    """Whether an encoded value has more than `MAX_BYTES` or `MAX_NODES`."""
    if len(data) <= MAX_NODES:
        return False
    if len(data) > MAX_BYTES:
        return True
    if _n_nodes(data) <= MAX_NODES:
        return False
    if data.count(b'"') - data.count(b'\\"') > 2 * MAX_NODES:  # more strings than nodes
        return True
    return _n_nodes(_STRING.sub(b"", data)) > MAX_NODES


def _n_nodes(data: bytes) -> int:
    """Return an upper bound of the nodes of a tree; commas and brackets in strings count too."""
    return 1 + data.count(b",") + data.count(b"[") + data.count(b"{")


def _is_harmless(data: bytes) -> bool:
    """Whether JSON data is certainly free of surrogates, infinities, long numbers and deep nesting."""
    if b"\\" in data:
        return False
    is_short = len(data) <= _SHORT
    if is_short and b"e" not in data and b"E" not in data and data.count(b"[") < MAX_DEPTH:
        return True
    outline = b"".join(data.split(b'"')[::2]).translate(_OUTLINE)  # without strings
    if b"e00" in outline or b"e+00" in outline:  # a float with a smaller exponent and so few digits is finite
        return False
    return (is_short or _MANY_DIGITS not in outline) and _is_shallow(outline.translate(None, _NO_BRACKETS))


def _is_shallow(brackets: bytes) -> bool:
    for _ in range(MAX_DEPTH):  # of JSON, where a nested value has up to four levels
        if not brackets:
            return True
        brackets = brackets.replace(b"[]", b"")  # the innermost level
    return False


def moment(kind: str, text: str) -> datetime.date | datetime.time | datetime.timedelta:
    """Return the date, time, datetime or timedelta that a checked `T` payload states."""
    import datetime  # noqa: PLC0415  -- rare, and an import takes memory in every sandboxed process

    if kind == "timedelta":
        days, seconds, micros = (int(part) for part in text.split(","))
        return datetime.timedelta(days, seconds, micros)
    if kind == "date":
        return datetime.date.fromisoformat(text)
    return datetime.time.fromisoformat(text) if kind == "time" else datetime.datetime.fromisoformat(text)


def _tagged(pairs: list[tuple[str, Any]]) -> Tagged:
    if len(pairs) != 1 or pairs[0][0] not in _CHECKS:
        raise Malformed("an object that is not a tagged value")
    tag, payload = pairs[0]
    _CHECKS[tag](payload)
    return Tagged(tag, payload)


def _refuse(constant: str) -> NoReturn:
    raise Malformed(f"the number {constant} is written with a tag")


_read = json.JSONDecoder(object_pairs_hook=_tagged, parse_constant=_refuse).raw_decode


def _require(condition: bool, tag: str) -> None:
    if not condition:
        raise Malformed(f"a broken payload of tag {tag!r}")


def _check(node: Any, levels: int) -> None:
    if levels <= 0:
        raise Malformed("nested too deeply")
    kind = type(node)
    if kind is Tagged:
        inner = levels if node.tag in _LEAVES else levels - 1
        for child in _children(node):
            _check(child, inner)
    elif kind is list:
        for child in node:
            _check(child, levels - 1)
    elif kind is str:
        if not node.isascii():
            node.encode()  # a lone surrogate raises
    elif kind is float:
        _require(math.isfinite(node), "f")
    elif kind is int:
        _require(node.bit_length() <= PLAIN_INT_BITS, "i")


def _children(node: Tagged) -> Iterable[Any]:
    tag, payload = node
    if tag == "d":
        return chain.from_iterable(payload)
    if tag == "k":
        return (payload[0], *chain.from_iterable(payload[1]))
    if tag == "n":
        return (payload[0], *payload[2])
    return payload if type(payload) is list else ()


def _check_list(payload: Any) -> None:
    _require(type(payload) is list, "a list")


def _check_set(payload: Any) -> None:
    _check_list(payload)
    _require(all(map(_is_hashable, payload)), "s")


def _check_dict(payload: Any) -> None:
    _check_list(payload)
    _require(all(type(pair) is list and len(pair) == 2 and _is_hashable(pair[0]) for pair in payload), "d")


def _is_hashable(node: Any) -> bool:
    if type(node) is not Tagged:
        return type(node) is not list
    if node.tag == "t":
        return all(map(_is_hashable, node.payload))
    return node.tag in _HASHABLE


def _check_text(pattern: re.Pattern[str], tag: str) -> Callable[[Any], None]:
    def check(payload: Any) -> None:
        _require(type(payload) is str and pattern.match(payload) is not None, tag)

    return check


def _check_int(payload: Any) -> None:
    _check_text(_HEX_INT, "i")(payload)
    _require(len(payload.lstrip("-")) * 4 > PLAIN_INT_BITS, "i")


def _check_hex(payload: Any) -> None:
    _require(type(payload) is str, "b")
    _require(bytes.fromhex(payload).hex() == payload, "b")


def _check_surrogates(payload: Any) -> None:
    _check_hex(payload)
    text = bytes.fromhex(payload).decode("utf-8", "surrogatepass")
    _require(_SURROGATE.search(text) is not None, "u")


def _check_complex(payload: Any) -> None:
    _check_list(payload)
    _require(len(payload) == 2 and all(_is_float(part) for part in payload), "c")


def _is_float(node: Any) -> bool:
    return type(node) is float or (type(node) is Tagged and node.tag == "f")


def _is_int(node: Any) -> bool:
    return type(node) is int or (type(node) is Tagged and node.tag == "i")


def _check_ints(length: int, tag: str) -> Callable[[Any], None]:
    def check(payload: Any) -> None:
        _check_list(payload)
        _require(len(payload) == length and all(map(_is_int, payload)), tag)
        _require(payload[-1] != 0, tag)  # a denominator or a step
        _require(tag != "r" or _is_reduced(*payload), tag)

    return check


def _is_reduced(numerator: Any, denominator: Any) -> bool:
    """Whether a fraction is in lowest terms; True for large numbers, which are compared without reduction."""
    if type(denominator) is int and type(numerator) is int:
        return denominator > 0 and math.gcd(numerator, denominator) == 1
    return bool(denominator > 0) if type(denominator) is int else not denominator.payload.startswith("-")


def _check_decimal(payload: Any) -> None:
    _check_text(_DECIMAL, "D")(payload)
    if len(payload.partition("E")[2]) >= _LARGE_EXPONENT:
        from decimal import Decimal  # noqa: PLC0415  -- see `moment`

        Decimal(payload)


def _check_moment(payload: Any) -> None:
    _require(type(payload) is list and len(payload) == 2 and all(type(part) is str for part in payload), "T")
    kind, text = payload
    _require(kind in ("date", "time", "datetime", "timedelta") and len(text) < 80, "T")
    _require(kind != "timedelta" or _DELTA.match(text) is not None, "T")
    moment(kind, text)


def _check_dataclass(payload: Any) -> None:
    _check_list(payload)
    _require(len(payload) == 2 and type(payload[0]) is str and type(payload[1]) is list, "k")
    _require(all(type(pair) is list and len(pair) == 2 and _is_field(pair[0]) for pair in payload[1]), "k")


def _is_field(name: Any) -> bool:
    return type(name) is str and not is_protocol_name(name)


def _check_array(payload: Any) -> None:
    _check_list(payload)
    _require(len(payload) == 3 and type(payload[0]) is str, "n")
    dtype, shape, flat = payload
    _require(_DTYPE.match(dtype) is not None and type(shape) is list and type(flat) is list and len(shape) <= 32, "n")
    _require(all(type(length) is int and 0 <= length < 2**31 for length in shape), "n")
    _require(math.prod(shape) == len(flat), "n")


_CHECKS: dict[str, Callable[[Any], None]] = {
    "t": _check_list,
    "q": _check_list,
    "s": _check_set,
    "z": _check_set,
    "d": _check_dict,
    "f": lambda payload: _require(payload in ("nan", "inf", "-inf"), "f"),
    "c": _check_complex,
    "i": _check_int,
    "u": _check_surrogates,
    "b": _check_hex,
    "B": _check_hex,
    "D": _check_decimal,
    "r": _check_ints(2, "r"),
    "g": _check_ints(3, "g"),
    "T": _check_moment,
    "k": _check_dataclass,
    "n": _check_array,
}
