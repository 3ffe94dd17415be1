"""Compare two encoded values as checked trees, without live objects and without hashes of hostile numbers.

Small values of the most common kinds are compared as live objects all the same (`exact`), which is much cheaper. Trees
without tagged nodes are plain lists, numbers and texts, and Python's own `==` compares them. Any other tree is written
as a key, such that two keys are the same text exactly when Python's `==` holds between the values: each kind has its
own first character, and texts are quoted. Sets and dicts sort the keys of their elements, so hostile hash collisions
cost nothing.

Known differences from Python's `==`:

- A Decimal of more than 2,000 digits, written out, equals Decimals only. So does a range whose numbers have more than
  4,096 hexadecimal digits, unless start, stop and step are the same.
- A value beyond the budget of `tree` equals only the same bytes. So does a pair of values whose comparison takes more
  steps than two of the largest values have nodes (sets of sets of floats under a tolerance, thousands of long
  Decimals).
- Counter and OrderedDict compare as dicts, dataclasses by class name and fields, arrays as a whole, and a signalling
  NaN as nan.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, NoReturn

from codea1_env.values.tree import MAX_NODES, BeyondBudget, Tagged, moment, parse

_MAX_MATCHED = 64  # sets of up to this length are matched exactly; longer ones are paired by order
_MAX_STEPS = 2 * MAX_NODES  # visits of nodes: enough to write both keys of any two values
_DIGITS_A_STEP = 32  # of a Decimal
_MOMENT_STEPS = 3
_MAX_DECIMAL_DIGITS = 2_000  # written out; 1E+1000000000 would fill the memory as an integer
_MAX_RANGE_DIGITS = 4_096  # dividing longer numbers takes too long
_WHOLE = 1 << 53  # whole floats up to this size are written as integers
_MAX_DENOMINATOR_DIGITS = 269  # hexadecimal, of any float
_MICROSECOND = datetime.timedelta(microseconds=1)
_FAMILIES = {**dict.fromkeys("fciDr", "number"), **dict.fromkeys("sz", "set"), **dict.fromkeys("bB", "bytes")}
_MULTISETS = _UNORDERED_LIST, _UNORDERED_TUPLE = "unordered list", "unordered tuple"
_quoted = json.JSONEncoder().encode
INEXACT = object()
"""The result for every value that is not exact, and for some that are."""

_MAX_EXACT_BYTES = 4096
_SHORT, _MAX_REMEMBERED = 256, 8192  # bytes of an exact value that is kept, number of them


def equal(
    expected: bytes,
    actual: bytes,
    *,
    rel_tol: float = 0.0,
    abs_tol: float = 0.0,
    nan_equal: bool = False,
    strict_types: bool = False,
    mutual: bool = False,
    unordered_levels: int = 0,
    exact_numbers_too: bool = False,
) -> bool:
    """Return whether two encoded values are equal with the meaning of Python's `==` on plain data.

    1 == 1.0 == True, a list differs from a tuple, set == frozenset, dicts are unordered, NaN differs from itself.
    Arrays equal only arrays of the same shape and elements, and without dimensions also what they hold; Counter and
    OrderedDict compare as dicts; dataclasses by class name and fields.

    A tolerance applies where the expected number is a float or complex; an expected integer needs equality.

    Args:
        expected: an encoding made by `encode` or checked by `validate`.
        actual: likewise.
        rel_tol: relative tolerance for floats at any depth, as in `math.isclose`; sets and dict keys are matched
            one to one.
        abs_tol: absolute tolerance, likewise.
        nan_equal: NaN equals NaN.
        strict_types: bool, int and float, set and frozenset, bytes and bytearray, array types differ.
        mutual: neither value is the expected one; a tolerance applies where both numbers are floats or complex.
        unordered_levels: how many outer levels of lists and tuples are compared without order, as multisets.
        exact_numbers_too: the tolerance also applies where the expected number is a Decimal or a Fraction.

    Returns:
        False, too, if the bytes differ and one of the values is beyond the budget (`tree.parse`), or if half a million
        steps do not suffice.

    Raises:
        Malformed: either is not an encoded value.
    """
    if expected == actual and (nan_equal or b"nan" not in expected.lower()):
        return True
    exact_a, exact_b = exact(expected), exact(actual)
    if exact_a is not INEXACT and exact_b is not INEXACT and not unordered_levels:
        return bool(exact_a == exact_b)
    try:
        tree_a, tree_b = (_without_order(parse(data), unordered_levels) for data in (expected, actual))
    except BeyondBudget:
        return False
    if not strict_types and (b",[],[" in expected or b",[],[" in actual):
        tree_a, tree_b = _unboxed(tree_a), _unboxed(tree_b)
    if not strict_types and not unordered_levels and b"{" not in expected and b"{" not in actual:
        if tree_a == tree_b:
            return True
        if rel_tol == abs_tol == 0:
            return False
    return _Comparing(rel_tol, abs_tol, nan_equal, strict_types, mutual, exact_numbers_too).equal(tree_a, tree_b)


def _unboxed(node: Any) -> Any:
    """Return a tree in which an array without dimensions is what it holds: numpy compares the two as equal."""
    if type(node) is list:
        return [_unboxed(each) for each in node]
    if type(node) is not Tagged:
        return node
    is_box = node.tag == "n" and not node.payload[1]
    return _unboxed(node.payload[2][0]) if is_box else Tagged(node.tag, _unboxed(node.payload))


def _without_order(node: Any, n_levels: int) -> Any:
    """Return a tree whose outer lists and tuples are multisets: nodes with tags that no encoding has."""
    is_tuple = type(node) is Tagged and node.tag == "t"
    if n_levels == 0 or not (is_tuple or type(node) is list):
        return node
    items = [_without_order(item, n_levels - 1) for item in (node.payload if is_tuple else node)]
    return Tagged(_UNORDERED_TUPLE if is_tuple else _UNORDERED_LIST, items)


class _HasNaN(Exception):
    """The tree holds a NaN, which equals no value."""


class _TooManySteps(Exception):
    """The budget of steps is used up."""


@dataclass(slots=True)
class _Comparing:
    """One comparison of two trees; the first of two nodes belongs to the expected value."""

    rel_tol: float
    abs_tol: float
    nan_equal: bool
    strict: bool
    mutual: bool
    exact_numbers_too: bool
    steps: int = field(default=_MAX_STEPS, init=False)

    def equal(self, a: Any, b: Any) -> bool:
        if _family(a) != _family(b):
            return False
        try:
            if self.rel_tol > 0 or self.abs_tol > 0:
                return self.close(a, b)
            return self.key(a) == self.key(b)
        except (_HasNaN, _TooManySteps):
            return False

    def spend(self, n_steps: int) -> None:
        self.steps -= n_steps
        if self.steps < 0:
            raise _TooManySteps

    # Exact: keys

    def key(self, node: Any) -> str:
        kind = type(node)
        if kind is str:
            return _quoted(node)
        if kind is int or kind is float or kind is bool:
            return (_STRICT[kind] if self.strict else "#") + _number_text(node)
        if kind is Tagged:
            return _KEYS[node.tag](self, node.payload)
        if kind is list:
            return f"[{self.keys(node)}]"
        return "~"

    def keys(self, nodes: list[Any]) -> str:
        self.spend(len(nodes))
        return ",".join(map(self.key, nodes))

    def key_special_float(self, payload: str) -> str:
        if payload == "nan" and not self.nan_equal:
            raise _HasNaN
        return ("." if self.strict else "#") + payload

    def key_int(self, payload: str) -> str:
        return f"#x{payload}"

    def key_complex(self, payload: list[Any]) -> str:
        real, imaginary = map(self.key, payload)
        return real if _is_zero(payload[1]) and not self.strict else f"c({real},{imaginary})"

    def key_decimal(self, payload: str) -> str:
        prefix = "D" if self.strict else "#"
        unsigned = payload.removeprefix("-")
        sign = payload[: len(payload) - len(unsigned)]
        if unsigned.endswith("Infinity"):
            return f"{prefix}{sign}inf"
        if "N" in unsigned:
            return self.key_special_float("nan")
        mantissa, _, power = unsigned.partition("E")
        whole, _, decimals = mantissa.partition(".")
        digits = (whole + decimals).lstrip("0")
        exponent = int(power or 0) - len(decimals)
        text = digits.rstrip("0")
        exponent += len(digits) - len(text)
        if not text:
            return f"{prefix}0"
        if len(text) + abs(exponent) > _MAX_DECIMAL_DIGITS:
            return f"{prefix}D{sign}{text}e{exponent}"
        self.spend((len(text) + abs(exponent)) // _DIGITS_A_STEP)
        number = int(sign + text)
        if exponent >= 0:
            return prefix + _number_text(number * 10**exponent)
        divisor = math.gcd(number, 10**-exponent)
        return prefix + _ratio_text(number // divisor, 10**-exponent // divisor)

    def key_fraction(self, payload: list[Any]) -> str:
        prefix = "r" if self.strict else "#"
        numerator, denominator = payload
        if denominator == 1:
            return prefix + (_number_text(numerator) if type(numerator) is int else f"x{numerator.payload}")
        may_be_float = type(numerator) is int and len(_hexadecimal(denominator)) <= _MAX_DENOMINATOR_DIGITS
        if may_be_float:
            return prefix + _ratio_text(numerator, _integer(denominator))
        return f"{prefix}x{_hexadecimal(numerator)}/{_hexadecimal(denominator)}"

    def key_set(self, payload: list[Any], tag: str) -> str:
        return self.key_unordered(payload, tag if self.strict else "")

    def key_unordered(self, payload: list[Any], kind: str) -> str:
        self.spend(len(payload))
        return kind + "{" + ",".join(sorted(map(self.key, payload))) + "}"

    def key_dict(self, payload: list[Any]) -> str:
        self.spend(2 * len(payload))
        return "<" + ",".join(sorted(f"{self.key(key)}:{self.key(value)}" for key, value in payload)) + ">"

    def key_range(self, payload: list[Any]) -> str:
        if sum(len(number.payload) for number in payload if type(number) is Tagged) > _MAX_RANGE_DIGITS:
            return "gx" + ",".join(map(_hexadecimal, payload))
        start, stop, step = map(_integer, payload)
        n_items = max(0, (stop - start + step - (1 if step > 0 else -1)) // step)
        return f"g{n_items:x}" + (f",{start:x}" if n_items else "") + (f",{step:x}" if n_items > 1 else "")

    def key_moment(self, payload: list[str]) -> str:
        self.spend(_MOMENT_STEPS)
        value = moment(*payload)
        if isinstance(value, datetime.timedelta):
            return f"Td{value // _MICROSECOND}"
        if isinstance(value, datetime.datetime):
            return "T" + _instant(value)
        if isinstance(value, datetime.time):
            return "T" + _time_of_day(value)
        return f"Ty{value.toordinal()}"

    def key_dataclass(self, payload: list[Any]) -> str:
        return f"k{_quoted(payload[0])}[{self.keys(payload[1])}]"

    def key_array(self, payload: list[Any]) -> str:
        dtype, shape, flat = payload
        return f"n{_quoted(dtype) if self.strict else ''}{shape}[{self.keys(flat)}]"

    # With a tolerance: both trees side by side

    def close(self, a: Any, b: Any) -> bool:
        kind, other = type(a), type(b)
        if kind is other is float:
            return bool(a == b) or self.near(a, b)
        if kind is other and kind in _ONLY_EQUAL:
            return bool(a == b)
        if kind in _PLAIN_NUMBERS and other in _PLAIN_NUMBERS:
            return (a == b and (kind is other or not self.strict)) or self.close_numbers(a, b)
        if kind is list:
            return other is list and self.close_lists(a, b)
        if self.is_number(a) and self.is_number(b):
            return self.same(a, b) or self.close_numbers(a, b)
        return self.close_tagged(a, b) if kind is other is Tagged else self.same(a, b)

    def close_tagged(self, a: Tagged, b: Tagged) -> bool:
        tags = {a.tag, b.tag}
        if tags <= {"s", "z"} or a.tag == b.tag in _MULTISETS:
            return not (self.strict and len(tags) == 2) and self.matched(a.payload, b.payload)
        if len(tags) == 2 or a.tag not in "tqdkn":
            return self.same(a, b)
        if a.tag == "d":
            by_key, other = self.by_key(a.payload), self.by_key(b.payload)
            if by_key is None or other is None:
                return self.matched(a.payload, b.payload)
            return by_key.keys() == other.keys() and all(self.close(by_key[key], other[key]) for key in by_key)
        if a.tag == "n":
            same_form = a.payload[1] == b.payload[1] and not (self.strict and a.payload[0] != b.payload[0])
            return same_form and self.close_lists(a.payload[2], b.payload[2])
        return self.close_lists(a.payload, b.payload)

    def same(self, a: Any, b: Any) -> bool:
        self.spend(1)
        try:
            return _family(a) == _family(b) and self.key(a) == self.key(b)
        except _HasNaN:
            return False

    def close_lists(self, a: list[Any], b: list[Any]) -> bool:
        self.spend(len(a))
        return len(a) == len(b) and all(map(self.close, a, b))

    def close_numbers(self, a: Any, b: Any) -> bool:
        """Whether two unequal numbers are within the tolerance."""
        if not self.is_inexact(a) or (self.mutual and not self.is_inexact(b)):
            return False
        if self.strict and _number_kind(a) != _number_kind(b):
            return False
        try:
            return self.near(_number(a), _number(b))
        except OverflowError:  # an int, or the magnitude of a complex number, beyond every float
            return False

    def is_number(self, node: Any) -> bool:
        return _is_number(node) or (self.exact_numbers_too and _is_exact(node))

    def is_inexact(self, node: Any) -> bool:
        return _is_floating(node) or (self.exact_numbers_too and _is_exact(node))

    def near(self, x: complex, y: complex) -> bool:
        distance = abs(x - y)
        return distance <= max(self.rel_tol * max(abs(x), abs(y)), self.abs_tol) and math.isfinite(distance)

    def by_key(self, items: list[list[Any]]) -> dict[str, Any] | None:
        """Return the items of a dict by key if all keys are texts and integers, which have no tolerance; else None."""
        if {type(key) for key, _ in items} - {str, int}:
            return None
        self.spend(len(items))
        found = {self.key(key): value for key, value in items}
        return found if len(found) == len(items) else None

    def matched(self, a: list[Any], b: list[Any]) -> bool:
        """Pair the elements of two sets (or the items of two dicts) one to one."""
        if len(a) != len(b):
            return False
        a, b = self.without_equal(a, b)
        if len(a) > _MAX_MATCHED:
            self.spend(len(a))
            return all(map(self.close, sorted(a, key=_order), sorted(b, key=_order)))
        near: list[list[int]] = []
        for x in a:
            self.spend(len(b))
            near.append([j for j, y in enumerate(b) if self.close(x, y)])
            if not near[-1]:
                return False
        partner: dict[int, int] = {}
        return all(_find_partner(i, near, partner, set()) for i in range(len(a)))

    def without_equal(self, a: list[Any], b: list[Any]) -> tuple[list[Any], list[Any]]:
        """Remove elements that are exactly equal on both sides; remove nothing if there is a NaN."""
        self.spend(len(a) + len(b))
        try:
            keyed_a, keyed_b = sorted((self.key(x), i) for i, x in enumerate(a)), [(self.key(x), x) for x in b]
        except _HasNaN:
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


def _find_partner(i: int, near: list[list[int]], partner: dict[int, int], tried: set[int]) -> bool:
    """Find a partner for the i-th element, moving earlier ones if necessary: one step of augmenting paths."""
    for j in near[i]:
        if j in tried:
            continue
        tried.add(j)
        if j not in partner or _find_partner(partner[j], near, partner, tried):
            partner[j] = i
            return True
    return False


_ONLY_EQUAL = frozenset({int, str, bool, type(None)})  # no tolerance applies between two of one kind
_PLAIN_NUMBERS = frozenset({int, float, bool})
_STRICT = {bool: "?", int: "#", float: "."}


def _number_text(value: float) -> str:
    """Write a number such that two texts are the same exactly when the numbers are equal: as a float if it is one."""
    if type(value) is float:
        return str(int(value)) if -_WHOLE <= value <= _WHOLE and value.is_integer() else repr(value)
    if -_WHOLE <= value <= _WHOLE:
        return str(int(value))
    try:
        nearest = float(value)
    except OverflowError:
        nearest = 0.0
    return repr(nearest) if nearest == value else f"x{value:x}"


def _ratio_text(numerator: int, denominator: int) -> str:
    """Write a fraction in lowest terms with the same property."""
    if denominator == 1:
        return _number_text(numerator)
    if denominator & (denominator - 1) == 0 and abs(numerator) <= _WHOLE:
        nearest = numerator / denominator
        if nearest.as_integer_ratio() == (numerator, denominator):
            return repr(nearest)
    return f"x{numerator:x}/{denominator:x}"


def _integer(node: Any) -> int:
    return int(node.payload, 16) if type(node) is Tagged else int(node)


def _hexadecimal(node: Any) -> str:
    return str(node.payload) if type(node) is Tagged else f"{node:x}"


def _is_zero(node: Any) -> bool:
    return type(node) is float and node == 0.0


def _instant(value: datetime.datetime) -> str:
    offset = value.utcoffset()
    if offset is None:
        return f"n{value.isoformat()}"
    days = datetime.timedelta(value.toordinal())
    return f"a{(days + _since_midnight(value) - offset) // _MICROSECOND}"


def _time_of_day(value: datetime.time) -> str:
    offset = value.utcoffset()
    if offset is None:
        return f"h{_since_midnight(value) // _MICROSECOND}"
    # Like Python, which ignores the microseconds of an offset.
    return f"j{(_since_midnight(value) - datetime.timedelta(offset.days, offset.seconds)) // _MICROSECOND}"


def _since_midnight(value: datetime.time | datetime.datetime) -> datetime.timedelta:
    return datetime.timedelta(
        hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond
    )


def _family(node: Any) -> str:
    """Return the group of a node's kind: equal nodes are in the same group."""
    kind = type(node)
    if kind is Tagged:
        return str(_FAMILIES.get(node.tag, node.tag))
    return "number" if kind in _PLAIN_NUMBERS else str(kind)


def _is_number(node: Any) -> bool:
    return type(node) in (bool, int, float) or (type(node) is Tagged and node.tag in "fci")


def _is_floating(node: Any) -> bool:
    return type(node) is float or (type(node) is Tagged and node.tag in "fc")


def _is_exact(node: Any) -> bool:
    """Whether a node is a Decimal or a Fraction."""
    return type(node) is Tagged and node.tag in "Dr"


def _number_kind(node: Any) -> object:
    return (
        {"f": float, "c": complex, "i": int, "D": Decimal, "r": Fraction}[node.tag]
        if type(node) is Tagged
        else type(node)
    )


def _number(node: Any) -> complex:
    if type(node) is not Tagged:
        return float(node)
    if node.tag == "c":
        return complex(*(float(_number(part).real) for part in node.payload))
    if node.tag == "D":
        return math.nan if "N" in node.payload else float(node.payload)
    if node.tag == "r":
        return _integer(node.payload[0]) / _integer(node.payload[1])
    return float(node.payload) if node.tag == "f" else float(_integer(node))


def _order(node: Any) -> tuple[Any, ...]:
    """Return a sort key: by kind, numbers by size, sequences element by element."""
    if _is_number(node) or _is_exact(node):
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


_KEYS: dict[str, Callable[[_Comparing, Any], str]] = {
    "t": lambda comparing, payload: f"({comparing.keys(payload)})",
    "q": lambda comparing, payload: f"q[{comparing.keys(payload)}]",
    "s": lambda comparing, payload: comparing.key_set(payload, "s"),
    "z": lambda comparing, payload: comparing.key_set(payload, "z"),
    "d": _Comparing.key_dict,
    "f": _Comparing.key_special_float,
    "c": _Comparing.key_complex,
    "i": _Comparing.key_int,
    "u": lambda comparing, payload: f"u{payload}",
    "b": lambda comparing, payload: f"b{payload}",
    "B": lambda comparing, payload: f"{'B' if comparing.strict else 'b'}{payload}",
    "D": _Comparing.key_decimal,
    "r": _Comparing.key_fraction,
    "g": _Comparing.key_range,
    "T": _Comparing.key_moment,
    "k": _Comparing.key_dataclass,
    "n": _Comparing.key_array,
    _UNORDERED_LIST: lambda comparing, payload: comparing.key_unordered(payload, "l"),
    _UNORDERED_TUPLE: lambda comparing, payload: comparing.key_unordered(payload, "t"),
}


def exact(data: bytes) -> Any:
    """Return the value that checked data encodes, or `INEXACT`. It is cached and shared, so never change it.

    An exact value consists of None, integers, texts, lists, tuples, sets and dicts. Nothing in it equals a value of
    another type, and no tolerance applies to it. It is small, so that no choice of keys makes hashing them expensive.
    """
    if len(data) <= _SHORT:
        return _remembered(data)
    return _exact(data) if len(data) <= _MAX_EXACT_BYTES else INEXACT


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
