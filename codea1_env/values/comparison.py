"""Whether two encoded values are equal, decided on checked trees: no live object, no hash of a hostile number.

Small values of the commonest kinds are live objects all the same (`exact`). Trees without tagged nodes are plain lists,
numbers and texts: Python's own `==` tells whether they are equal. Any other is written as a key such that two keys are
the same text exactly when Python's `==` holds between the values; sets and dicts sort their elements' keys, so hostile
collisions cost nothing.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from codea1_env.values.exact import INEXACT, exact
from codea1_env.values.tree import Tagged, moment, parse

__all__ = ["equal"]

_MAX_MATCHED = 64  # sets up to here are matched exactly; longer ones pair by order
_ONLY_EQUAL = frozenset({int, str, bool, type(None)})  # two of a kind are equal, never just close
_MICROSECOND = datetime.timedelta(microseconds=1)
_quoted = json.JSONEncoder().encode
_MAX_EXPONENT = 10_000  # Decimals beyond it compare with Decimals only: as an integer they would fill the memory


def equal(
    a: bytes,
    b: bytes,
    *,
    rel_tol: float = 0.0,
    abs_tol: float = 0.0,
    nan_equal: bool = False,
    strict_types: bool = False,
) -> bool:
    """Return whether two encoded values are equal with the meaning of Python's `==` on plain data.

    1 == 1.0 == True, a list is no tuple, set == frozenset, dicts are unordered, NaN differs from itself. Arrays are
    equal to arrays of the same shape and elements only; Counter and OrderedDict compare as dicts; dataclasses by class
    name and fields.

    Args:
        a: an encoding made by `encode` or checked by `validate`.
        b: likewise.
        rel_tol: relative tolerance for floats at any depth, as in `math.isclose`; sets and dict keys are matched
            one to one.
        abs_tol: absolute tolerance, likewise.
        nan_equal: NaN equals NaN.
        strict_types: bool, int and float, set and frozenset, bytes and bytearray, array types differ.

    Raises:
        Malformed: either is not an encoded value.
    """
    if a == b and (nan_equal or b"nan" not in a.lower()):
        return True
    exact_a, exact_b = exact(a), exact(b)
    if exact_a is not INEXACT and exact_b is not INEXACT:
        return bool(exact_a == exact_b)
    tree_a, tree_b = parse(a), parse(b)
    if not strict_types and b"{" not in a and b"{" not in b:
        if tree_a == tree_b:
            return True
        if rel_tol == abs_tol == 0:
            return False
    return _rule(rel_tol, abs_tol, nan_equal, strict_types).equal(tree_a, tree_b)


class _MeetsNaN(Exception):
    """The tree holds a NaN, which equals nothing."""


@dataclass(frozen=True, slots=True)
class _Rule:
    rel_tol: float
    abs_tol: float
    nan_equal: bool
    strict: bool

    def equal(self, a: Any, b: Any) -> bool:
        if self.rel_tol > 0 or self.abs_tol > 0:
            return self.close(a, b)
        try:
            return self.key(a) == self.key(b)
        except _MeetsNaN:
            return False

    # Exact: keys

    def key(self, node: Any) -> str:
        kind = type(node)
        if kind is Tagged:
            return _KEYS[node.tag](self, node.payload)
        if kind is str:
            return _quoted(node)
        if kind is list:
            return f"[{self.keys(node)}]"
        if node is None:
            return "~"
        if self.strict:
            return {bool: "?", int: "", float: "."}[kind] + _ratio(node)
        return _ratio(node)

    def keys(self, nodes: list[Any]) -> str:
        return ",".join(map(self.key, nodes))

    def key_special_float(self, payload: str) -> str:
        if payload == "nan" and not self.nan_equal:
            raise _MeetsNaN
        return f".{payload}" if self.strict else payload

    def key_int(self, payload: str) -> str:
        return payload

    def key_complex(self, payload: list[Any]) -> str:
        real, imaginary = map(self.key, payload)
        return real if _is_zero(payload[1]) and not self.strict else f"c({real},{imaginary})"

    def key_decimal(self, payload: str) -> str:
        value = Decimal(payload)
        if value.is_nan():
            return self.key_special_float("nan")
        prefix = "D" if self.strict else ""
        if value.is_infinite():
            return prefix + ("inf" if value > 0 else "-inf")
        sign, digits, exponent = value.as_tuple()
        text = "".join(map(str, digits)).rstrip("0")
        exponent = int(exponent) + len(digits) - len(text)
        if not text.strip("0"):
            return prefix + "0"
        if abs(exponent) > _MAX_EXPONENT:
            return f"D{'-' * sign}{text.lstrip('0')}e{exponent}"
        return prefix + _ratio(value)

    def key_fraction(self, payload: list[Any]) -> str:
        numerator, denominator = map(_integer, payload)
        divisor = math.gcd(numerator, denominator)
        return ("r" if self.strict else "") + _ratio_text(numerator // divisor, denominator // divisor)

    def key_set(self, payload: list[Any], tag: str) -> str:
        return (tag if self.strict else "") + "{" + ",".join(sorted(map(self.key, payload))) + "}"

    def key_dict(self, payload: list[Any]) -> str:
        return "<" + ",".join(sorted(f"{self.key(key)}:{self.key(value)}" for key, value in payload)) + ">"

    def key_range(self, payload: list[Any]) -> str:
        start, stop, step = map(_integer, payload)
        n_items = max(0, (stop - start + step - (1 if step > 0 else -1)) // step)
        return f"g{n_items:x}" + (f",{start:x}" if n_items else "") + (f",{step:x}" if n_items > 1 else "")

    def key_moment(self, payload: list[str]) -> str:
        kind, text = payload
        value = moment(kind, text)
        if isinstance(value, datetime.timedelta):
            return f"T{value // _MICROSECOND}"
        if isinstance(value, datetime.datetime):
            return "T" + _instant(value)
        if isinstance(value, datetime.time):
            return "T" + _time_of_day(value)
        return f"T{value.isoformat()}"

    def key_dataclass(self, payload: list[Any]) -> str:
        return f"k{_quoted(payload[0])}[{self.keys(payload[1])}]"

    def key_array(self, payload: list[Any]) -> str:
        dtype, shape, flat = payload
        return f"n{dtype if self.strict else ''}{shape}[{self.keys(flat)}]"

    # With a tolerance: both trees side by side

    def close(self, a: Any, b: Any) -> bool:
        kind = type(a)
        if kind is type(b) and kind in _ONLY_EQUAL:
            return bool(a == b)
        if _is_number(a) and _is_number(b):
            return self.close_numbers(a, b)
        if type(a) is list and type(b) is list:
            return self.close_lists(a, b)
        if type(a) is Tagged and type(b) is Tagged:
            return self.close_tagged(a, b)
        return self.same(a, b)

    def close_tagged(self, a: Tagged, b: Tagged) -> bool:
        tags = {a.tag, b.tag}
        if tags <= {"s", "z"}:
            return not (self.strict and len(tags) == 2) and self.matched(a.payload, b.payload)
        if len(tags) == 2 or a.tag not in "tqdkn":
            return self.same(a, b)
        if a.tag == "d":
            by_name, other = _by_name(a.payload), _by_name(b.payload)
            if by_name is None or other is None:
                return self.matched(a.payload, b.payload)
            return by_name.keys() == other.keys() and all(self.close(by_name[name], other[name]) for name in by_name)
        if a.tag == "n":
            same_form = a.payload[1] == b.payload[1] and not (self.strict and a.payload[0] != b.payload[0])
            return same_form and self.close_lists(a.payload[2], b.payload[2])
        return self.close_lists(a.payload, b.payload)

    def same(self, a: Any, b: Any) -> bool:
        try:
            return self.key(a) == self.key(b)
        except _MeetsNaN:
            return False

    def close_lists(self, a: list[Any], b: list[Any]) -> bool:
        return len(a) == len(b) and all(map(self.close, a, b))

    def close_numbers(self, a: Any, b: Any) -> bool:
        if self.same(a, b):
            return True
        if not (_is_floating(a) or _is_floating(b)) or (self.strict and _number_kind(a) != _number_kind(b)):
            return False
        try:
            x, y = _number(a), _number(b)
            distance, larger = abs(x - y), max(abs(x), abs(y))
        except OverflowError:  # an int, or the magnitude of a complex number, beyond every float
            return False
        return math.isfinite(distance) and distance <= max(self.rel_tol * larger, self.abs_tol)

    def matched(self, a: list[Any], b: list[Any]) -> bool:
        """Pair the elements of two sets (or the items of two dicts) one to one."""
        if len(a) != len(b):
            return False
        a, b = self._unequal_rest(a, b)
        if len(a) > _MAX_MATCHED:
            return all(map(self.close, sorted(a, key=_order), sorted(b, key=_order)))
        partner: dict[int, int] = {}
        return all(self._find_partner(i, a, b, partner, set()) for i in range(len(a)))

    def _unequal_rest(self, a: list[Any], b: list[Any]) -> tuple[list[Any], list[Any]]:
        """Take out what is exactly equal on both sides (only where no NaN is met)."""
        try:
            keyed_a, keyed_b = sorted((self.key(x), i) for i, x in enumerate(a)), [(self.key(x), x) for x in b]
        except _MeetsNaN:
            return a, b
        keyed_b.sort(key=lambda pair: pair[0])
        rest_a, rest_b, position = [], [], 0
        for key, i in keyed_a:
            while position < len(keyed_b) and keyed_b[position][0] < key:
                rest_b.append(keyed_b[position][1])
                position += 1
            if position < len(keyed_b) and keyed_b[position][0] == key:
                position += 1
            else:
                rest_a.append(a[i])
        return rest_a, rest_b + [x for _, x in keyed_b[position:]]

    def _find_partner(self, i: int, a: list[Any], b: list[Any], partner: dict[int, int], tried: set[int]) -> bool:
        """One step of augmenting paths: find a partner for `a[i]`, moving earlier ones if need be."""
        for j in range(len(b)):
            if j in tried or not self.close(a[i], b[j]):
                continue
            tried.add(j)
            if j not in partner or self._find_partner(partner[j], a, b, partner, tried):
                partner[j] = i
                return True
        return False


def _by_name(items: list[list[Any]]) -> dict[str, Any] | None:
    """Return the items of a dict whose keys are all texts, which equal nothing but the same texts."""
    if {type(key) for key, _ in items} - {str}:
        return None
    found = dict(items)
    return found if len(found) == len(items) else None


_rule = lru_cache(64)(_Rule)


def _ratio(value: float | Decimal) -> str:
    return _ratio_text(*value.as_integer_ratio())


def _ratio_text(numerator: int, denominator: int) -> str:
    return f"{numerator:x}" if denominator == 1 else f"{numerator:x}/{denominator:x}"


def _integer(node: Any) -> int:
    return int(node.payload, 16) if type(node) is Tagged else int(node)


def _is_zero(node: Any) -> bool:
    return type(node) is float and node == 0.0


def _instant(value: datetime.datetime) -> str:
    offset = value.utcoffset()
    if offset is None:
        return value.isoformat()
    days = datetime.timedelta(value.toordinal())
    return f"z{(days + _since_midnight(value) - offset) // _MICROSECOND}"


def _time_of_day(value: datetime.time) -> str:
    offset = value.utcoffset()
    if offset is None:
        return f"t{_since_midnight(value) // _MICROSECOND}"
    return f"tz{(_since_midnight(value) - offset) // _MICROSECOND}"


def _since_midnight(value: datetime.time | datetime.datetime) -> datetime.timedelta:
    return datetime.timedelta(
        hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond
    )


def _is_number(node: Any) -> bool:
    return type(node) in (bool, int, float) or (type(node) is Tagged and node.tag in "fci")


def _is_floating(node: Any) -> bool:
    return type(node) is float or (type(node) is Tagged and node.tag in "fc")


def _number_kind(node: Any) -> object:
    return {"f": float, "c": complex, "i": int}[node.tag] if type(node) is Tagged else type(node)


def _number(node: Any) -> complex:
    if type(node) is not Tagged:
        return float(node)
    if node.tag == "c":
        return complex(*(float(_number(part).real) for part in node.payload))
    return float(node.payload) if node.tag == "f" else float(_integer(node))


def _order(node: Any) -> tuple[Any, ...]:
    """Sort by kind, numbers by size, sequences element by element."""
    if _is_number(node):
        try:
            value = _number(node)
        except OverflowError:
            value = math.inf
        return (0, value.real, value.imag)
    if type(node) is list:
        return (1, *map(_order, node))
    if type(node) is Tagged and type(node.payload) is list:
        return (2, node.tag, *map(_order, node.payload))
    return (3, str(node))


_KEYS: dict[str, Callable[[_Rule, Any], str]] = {
    "t": lambda rule, payload: f"({rule.keys(payload)})",
    "q": lambda rule, payload: f"q[{rule.keys(payload)}]",
    "s": lambda rule, payload: rule.key_set(payload, "s"),
    "z": lambda rule, payload: rule.key_set(payload, "z"),
    "d": _Rule.key_dict,
    "f": _Rule.key_special_float,
    "c": _Rule.key_complex,
    "i": _Rule.key_int,
    "u": lambda rule, payload: f"u{payload}",
    "b": lambda rule, payload: f"b{payload}",
    "B": lambda rule, payload: f"{'B' if rule.strict else 'b'}{payload}",
    "D": _Rule.key_decimal,
    "r": _Rule.key_fraction,
    "g": _Rule.key_range,
    "T": _Rule.key_moment,
    "k": _Rule.key_dataclass,
    "n": _Rule.key_array,
}
