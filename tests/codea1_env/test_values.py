"""Encoding, comparing and writing values; what hostile objects and hostile bytes can do to it."""

from __future__ import annotations

import collections
import contextlib
import copy
import ctypes
import dataclasses
import datetime
import enum
import json
import math
import pickle
import subprocess
import sys
import time
import types
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import codea1_env.values
from codea1_env.sandbox.interface import Limits
from codea1_env.values import Malformed, Opaque, TooLarge, decode, describe, encode, equal, to_source, validate
from codea1_env.values.comparison import INEXACT, exact
from codea1_env.values.encoding import MAX_DEPTH
from codea1_env.values.source import describe_call
from codea1_env.values.tree import MAX_BYTES, MAX_NODES, BeyondBudget, parse


class Point(NamedTuple):
    x: int
    y: int


class Level(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass
class Box:
    width: int
    content: list[int]


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(2**1100), max_value=2**1100)
    | st.floats()
    | st.complex_numbers()
    | st.text(st.characters(codec=None, exclude_categories=()))
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.dates()
    | st.times()
    | st.datetimes(timezones=st.none() | st.just(datetime.UTC))
    | st.timedeltas()
    | st.builds(range, st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 3))
)
HASHABLE = st.recursive(SCALARS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=4), max_leaves=6)
DATA = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.builds(collections.deque, st.lists(inner, max_size=3))
        | st.sets(HASHABLE, max_size=4)
        | st.dictionaries(HASHABLE, inner, max_size=4)
    ),
    max_leaves=12,
)
SMALL = st.recursive(
    st.sampled_from(
        [None, True, False, 0, 1, 2, 1.0, 2.0, -0.0, 0.5, Decimal("0.5"), Fraction(1, 2), 1 + 0j, "", "1", b""]
    ),
    lambda inner: (
        st.lists(inner, max_size=2) | st.tuples(inner, inner) | st.dictionaries(st.integers(0, 2), inner, max_size=2)
    ),
    max_leaves=5,
)


FEW = settings(max_examples=min(40, settings.default.max_examples))


def has_nan(value: Any) -> bool:
    return b"nan" in encode(value).lower()


@FEW
@given(DATA)
def test_a_value_comes_back_with_its_type_and_bits_and_equals_itself_without_nan(value: Any) -> None:
    data = encode(value)
    validate(data)
    again = decode(data)
    assert type(again) is type(value)
    assert encode(again) == data
    assert has_nan(value) or (again == value and equal(data, encode(value)))


@FEW
@given(st.sets(st.text() | st.floats(allow_nan=False) | st.frozensets(st.text()), max_size=6))
def test_sets_have_one_encoding_whatever_their_order(value: set[Any]) -> None:
    filler = {object() for _ in range(1000)}
    other = filler | value  # a larger table, in which the elements stand in another order
    other -= filler
    assert encode(other) == encode(value)


def test_a_dict_keeps_its_order() -> None:
    assert list(decode(encode({"b": 1, "a": 2}))) == ["b", "a"]


@pytest.mark.parametrize(
    "array", [np.arange(6).reshape(2, 3), np.zeros((0, 2)), np.array(1.5), np.array(["a", "bc"]), np.array([1 + 2j])]
)
def test_arrays_come_back_with_shape_and_type(array: Any) -> None:
    again = decode(encode(array))
    assert again.dtype == array.dtype
    assert np.array_equal(again, array)


def test_a_dataclass_crosses_by_its_fields() -> None:
    again = decode(encode(Box(1, [2])))
    assert (type(again).__name__, again.width, again.content) == ("Box", 1, [2])
    assert equal(encode(Box(1, [2])), encode(again))
    assert not equal(encode(Box(1, [2])), encode(Box(1, [3])))


EQUAL = {"__eq__": lambda *_: True, "__hash__": None}
AlwaysEqual, EqualList, OwnEqualityBox = (type("Equal", (base,), EQUAL) for base in (object, list, Box))
LyingList = type(
    "LyingList", (list,), {"__iter__": lambda _: iter([1, 2, 3]), "__len__": lambda _: 3, "__getitem__": lambda *_: 3}
)
LyingDict = type("LyingDict", (dict,), {"items": lambda _: [("right", "answer")]})
LyingInt = type("LyingInt", (int,), {"__index__": lambda _: 42, "__int__": lambda _: 42, "__repr__": lambda _: "42"})


class HostileMeta(type):
    def __eq__(cls, other: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return hash(int)

    @property
    def __mro__(cls) -> Any:  # type: ignore[override]
        return (cls, int, object)

    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise SystemExit


class Disguised(metaclass=HostileMeta):
    pass


class Hostile(dict[Any, Any]):
    def __getitem__(self, key: Any) -> Any:
        raise AssertionError("it was called")

    keys = items = __iter__ = __len__ = __getitem__  # type: ignore[assignment]


def _user_dict_of_a_list() -> Any:
    value = collections.UserDict[Any, Any]()
    value.data = [1]  # type: ignore[assignment]
    return value


@pytest.mark.parametrize(
    "value",
    [
        *(object(), AlwaysEqual(), EqualList([1]), Disguised(), OwnEqualityBox(1, [])),
        *((n for n in [1]), iter([1]), lambda: 1, int, json),
        enum.Enum("Color", "RED").RED,  # type: ignore[attr-defined]
        *(type("MyDecimal", (Decimal,), {})(1), np.array([object()]), [1, (2, {3: object()})]),
        # wrappers of something else than plain data
        type("Mine", (collections.UserDict,), {})({"a": 1}),
        *(types.MappingProxyType(Hostile(a=1)), collections.ChainMap(Hostile(a=1)), _user_dict_of_a_list()),
        *(types.MappingProxyType(collections.UserDict({"a": 1})), np.longdouble("1e4000"), np.clongdouble(1)),
        *(np.longdouble("0.1") + np.longdouble("1e-19"), np.datetime64("2020-01-01T00:00:00.000000001")),
        *(np.array(object(), dtype=object), np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")])[0]),
    ],
    ids=lambda value: type.__dict__["__name__"].__get__(type(value)),
)
def test_what_is_not_plain_data_is_opaque(value: Any) -> None:
    with pytest.raises(Opaque):
        encode(value)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        *((Point(1, 2), (1, 2)), (Level.LOW, 1), (collections.Counter("aab"), {"a": 2, "b": 1})),
        *((collections.defaultdict(list, {1: [2]}), {1: [2]}), (collections.OrderedDict(a=1), {"a": 1})),
        *((np.int64(5), 5), (np.float32(0.5), 0.5), (np.bool_(True), True), (np.str_("x"), "x")),
        *((type("MyList", (list,), {})([1]), [1]), (type("MyStr", (str,), {})("x"), "x")),
        *((type("MyFloat", (float,), {})(1.5), 1.5), (LyingList([7]), [7]), (LyingDict({1: 2}), {1: 2})),
        (LyingInt(7), 7),
        # wrappers of the libraries
        *((collections.UserDict({"a": 1}), {"a": 1}), (collections.UserList([1, 2]), [1, 2])),
        (collections.UserString("ab"), "ab"),
        (collections.ChainMap({"a": 1}, {"b": 2, "a": 3}), {"b": 2, "a": 1}),
        (collections.ChainMap(collections.OrderedDict(a=1)), {"a": 1}),
        (types.MappingProxyType({"a": [1]}), {"a": [1]}),
        (types.MappingProxyType(collections.OrderedDict(a=1)), {"a": 1}),
        *((np.array(5), 5), (np.array(2.5), 2.5), (np.array("x"), "x"), (np.longdouble(0.5), 0.5)),
        ([np.longdouble("nan")], [float("nan")]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_compares_as_plain_data_travels_as_what_it_holds(value: Any, plain: Any) -> None:
    assert value == plain or "nan" in repr(plain)
    assert equal(encode(plain), encode(value), nan_equal=True)
    assert equal(encode([value, {1: value}]), encode([plain, {1: plain}]), nan_equal=True)
    assert not equal(encode([value]), encode([[plain]]))


def test_too_much_is_refused_before_it_is_written_out() -> None:
    started = time.process_time()
    for value in (list(range(10**6)), "x" * 10**7, 1 << 10**8, [[0] * 50] * 10**5, b"x" * 10**7):
        with pytest.raises(TooLarge):
            encode(value, max_bytes=1000)
    assert time.process_time() - started < 1.0


def test_a_cycle_and_deep_nesting_are_too_large() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    for value in (cycle, deep):
        with pytest.raises(TooLarge):
            encode(value)
    while isinstance(deep, list):
        deep = deep.pop()  # Python's own destructor would recurse


def test_the_limit_is_the_length_of_the_encoding() -> None:
    assert encode("abc", max_bytes=5) == b'"abc"'
    with pytest.raises(TooLarge):
        encode("abc", max_bytes=4)


@given(SMALL, SMALL)
def test_equality_is_that_of_python(a: Any, b: Any) -> None:
    assert equal(encode(a), encode(b)) == (a == b)


@FEW
@given(DATA, DATA)
def test_equality_is_that_of_python_on_anything(a: Any, b: Any) -> None:
    assume(not has_nan(a) and not has_nan(b))
    assert equal(encode(a), encode(b)) == (a == b)


EXACT = st.recursive(
    st.none() | st.integers() | st.text("ab \u00e4'", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.sets(st.integers() | st.text("ab", max_size=2), max_size=3)
        | st.dictionaries(st.integers() | st.text("ab", max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)
RULES = [{}, {"rel_tol": 0.1, "abs_tol": 10.0}, {"nan_equal": True}, {"strict_types": True}]


@given(EXACT, EXACT)
def test_small_ordinary_values_are_compared_live_and_described_as_python_does(a: Any, b: Any) -> None:
    assert exact(encode(a)) == a
    assert b'{"s"' in encode(a) or describe(encode(a), 10_000) == repr(a)
    for rules in RULES:
        assert equal(encode(a), encode(a), **rules)
        assert equal(encode(a), encode(b), **rules) == (a == b)


@FEW
@given(DATA)
def test_what_is_taken_for_exact_is_the_value_itself(value: Any) -> None:
    found = exact(encode(value))
    assert found is INEXACT or (found == value and repr(found) == repr(value)) or "set" in repr(value)


@pytest.mark.parametrize(
    "data",
    [
        *(b"true", b"[1,false]", b"1.0", b"1e5", b"-0", b"NaN", b'"\\ud800"', b'{"f":"nan"}', b'{"z":[1]}'),
        *(b'{"s":[1,1]}', b'{"d":[[1,2],[1,3]]}', b'{"d":["ab"]}', b'{"t":"ab"}', b'{"t":[1],"t":[2]}'),
        *(b" [1]", b"[1] ", b'{"s":[[1]]}', b"[", b"[1" * 900 + b"]" * 900, b"[" + b"1," * 3000 + b"1]"),
    ],
)
def test_anything_else_is_not_exact(data: bytes) -> None:
    assert exact(data) is INEXACT


DAY = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
EAST = datetime.timezone(datetime.timedelta(hours=1))


@pytest.mark.parametrize(
    ("value", "equals", "others"),
    [
        *((1, [True, 1.0], ["1", Decimal("1E+999999999")]), (2**53 + 1, [], [float(2**53)])),
        *((2**2000, [2**2000], [2**2000 + 1]), (None, [], [False]), ([1], [], [(1,), collections.deque([1])])),
        *(({1, 2}, [frozenset([2, 1])], []), ({1: 2, 3: 4}, [{3: 4, 1: 2}], []), ({1: "a"}, [{True: "a"}], [])),
        (b"x", [bytearray(b"x")], []),
        *((b"", [], [11]), (b"\x00", [], [2816]), (bytearray(b"\x00"), [], [0xB00]), ({b"": 1}, [], [{11: 1}])),
        ("\ud800\udc00", [], ["\U00010000"]),
        *((0.0, [-0.0], []), (math.nan, [], [math.nan]), ([math.nan], [], [[math.nan]])),
        *((math.inf, [Decimal("Infinity")], []), (Decimal("1.50"), [Fraction(3, 2)], [])),
        (Decimal("1E+999999999"), [Decimal("10E+999999998")], []),
        (Decimal("9" * 2500), [Decimal("9" * 2500 + ".0")], [Decimal("9" * 2500 + ".1")]),
        (Decimal("-9E+2500"), [Decimal("-9" + "0" * 2500)], [Decimal("9E+2500")]),
        *((Decimal(2) ** -40, [2.0**-40], []), (Fraction(1, 2**1074), [5e-324], [])),
        *((Fraction(10**400), [10**400], []), (Fraction(1, 10**400), [], [Fraction(1, 10**400 + 1)])),
        *((range(0), [range(3, 3)], []), (range(0, 3, 2), [range(0, 4, 2)], [])),
        (range(10**5000), [range(10**5000)], [range(10**5000 + 1)]),
        (DAY, [DAY.astimezone(EAST)], [datetime.date(2020, 1, 1)]),
        *((np.array([1, 2]), [np.array([1.0, 2.0])], [[1, 2]]), (np.zeros((1, 2)), [], [np.zeros((2, 1))])),
    ],
)
def test_equality_by_example(value: Any, equals: list[Any], others: list[Any]) -> None:
    for other, expected in [*((each, True) for each in equals), *((each, False) for each in others)]:
        assert equal(encode(value), encode(other)) is equal(encode(other), encode(value)) is expected, other


@pytest.mark.parametrize("a", [math.nan, [1, math.nan], {math.nan: 1}, Decimal("NaN"), complex(math.nan, 0)])
def test_nan_equals_nan_only_where_asked_for(a: Any) -> None:
    assert not equal(encode(a), encode(a))
    assert equal(encode(a), encode(a), nan_equal=True)
    assert equal(encode(a), encode(a), nan_equal=True, rel_tol=1e-9)


@pytest.mark.parametrize(
    ("a", "b"), [(1, True), (1, 1.0), ({1}, frozenset([1])), (b"", bytearray()), ([1], [1.0]), (1.0, 1 + 0j)]
)
def test_strict_types_tell_apart_what_python_does_not(a: Any, b: Any) -> None:
    assert equal(encode(a), encode(b))
    assert not equal(encode(a), encode(b), strict_types=True)
    assert not equal(encode(a), encode(b), strict_types=True, rel_tol=1e-9)
    assert equal(encode(a), encode(a), strict_types=True)


@pytest.mark.parametrize(
    ("value", "near", "far"),
    [
        (1.0, [1.0 + 1e-8], [1.1, 2**2000]),
        (10**9, [], [10**9 + 1]),  # two ints are never close, only equal
        (complex(1.3e308, 1.3e308), [], [1.0]),  # no float is as large as its magnitude
        *((complex(1.7e308, 0), [], [complex(-1.7e308, 0)]), (math.inf, [math.inf], [1e308])),
        *(([1.0, (2.0,)], [[1.0 + 1e-8, (2.0 - 1e-8,)]], []), ([1.0], [], [(1.0 + 1e-8,), [1.0, 1.0]])),
        ({1.0, 2.0}, [{2.0 + 1e-8, 1.0 - 1e-8}], [{1.0 + 1e-8, 1.0 - 1e-8}]),  # one to one
        ({"a": 1.0}, [{"a": 1.0 + 1e-8}], []),
        ({1.0: "a", 2.0: "b"}, [{2.0 + 1e-8: "b", 1.0 - 1e-8: "a"}], [{2.0 + 1e-8: "a", 1.0 - 1e-8: "b"}]),
        ({(1.0 + 1e-8, 2), (1.0 - 1e-8, 5)}, [{(1.0, 2), (1.0, 5)}], []),
        (1 + 1j, [1 + 1j * (1 + 1e-8)], []),
        ({float(n) for n in range(1, 500)}, [{n + 1e-9 for n in range(1, 500)}], []),
        ("1.0", [], ["1.00000001"]),
    ],
)
def test_a_tolerance_holds_for_floats_at_any_depth(value: Any, near: list[Any], far: list[Any]) -> None:
    for other, expected in [*((each, True) for each in near), *((each, False) for each in far)]:
        for pair in ((encode(value), encode(other)), (encode(other), encode(value))):
            assert equal(*pair, rel_tol=1e-6) is equal(*pair, rel_tol=1e-6, mutual=True) is expected, other


@pytest.mark.parametrize(
    ("exact", "floating"),
    [
        *((10**18 + 1, 10.0**18), (10**18 // 2 + 1, 10**18 / 2), (3, 3.0000000000000004), (1, 1 + 1e-8)),
        *((True, 1 + 1e-8), (2**1024 - 2**970 - 1, float(2**1024 - 2**971))),
        (354_224_848_179_261_915_075, 354_224_848_179_261_915_075.0),
    ],
)
def test_a_tolerance_reaches_no_integer_that_is_expected(exact: int, floating: float) -> None:
    wraps = (lambda x: x, lambda x: [x], lambda x: {x}, lambda x: {x: "a"}, lambda x: {"a": (x,)}, lambda x: {1.5: x})
    for n, wrap in enumerate(wraps):
        integer, number = encode(wrap(exact)), encode(wrap(floating))
        assert not equal(integer, number, rel_tol=1e-6, abs_tol=1e-6), n
        assert equal(number, integer, rel_tol=1e-6, abs_tol=1e-6), n
        for one, other in ((integer, number), (number, integer)):
            assert not equal(one, other, rel_tol=1e-6, abs_tol=1e-6, mutual=True), n


@pytest.mark.parametrize("value", [10**18, 2**53, 0, -7])
def test_an_expected_integer_is_met_by_the_float_that_equals_it(value: int) -> None:
    assert equal(encode([value]), encode([float(value)]), rel_tol=1e-9)
    assert equal(encode([value]), encode([complex(value)]), rel_tol=1e-9, mutual=True)


@pytest.mark.parametrize(
    ("expected", "near", "far"),
    [
        (Fraction(1, 3), [Fraction(333_333, 1_000_000), 0.333333], []),
        (Decimal("0.1"), [Decimal("0.1000001"), 0.1], [Decimal("0.2")]),
        *((0.1, [Decimal("0.1000001")], []), (Decimal("NaN"), [], [Decimal("0.1")])),
        *((Decimal("1E+999999"), [], [Decimal("2E+999999")]), (Fraction(10**400), [], [Fraction(10**400 + 1)])),
        (1, [], [Fraction(1_000_001, 1_000_000)]),
    ],
)
def test_a_tolerance_reaches_decimals_and_fractions_where_it_is_told_to(
    expected: Any, near: list[Any], far: list[Any]
) -> None:
    tolerance = {"rel_tol": 1e-4, "abs_tol": 1e-4}
    for actual, is_near in [*((each, True) for each in near), *((each, False) for each in far)]:
        pair = encode([expected]), encode([actual])
        assert equal(*pair, **tolerance, exact_numbers_too=True) is is_near, actual
        assert isinstance(expected, float) or equal(*pair, **tolerance) is False, actual


def test_an_absolute_tolerance_reaches_zero() -> None:
    assert not equal(encode(0.0), encode(1e-9), rel_tol=1e-6)
    assert equal(encode(0.0), encode(1e-9), abs_tol=1e-6)


def test_hostile_numbers_cost_no_quadratic_time() -> None:
    modulus = sys.hash_info.modulus
    colliding = {n * modulus for n in range(1500)}
    a, b = (encode(colliding | {extra}, max_bytes=1 << 20) for extra in (-1, -2))
    started = time.thread_time()
    assert not equal(a, b)
    assert not equal(a, b, rel_tol=1e-9)
    assert time.thread_time() - started < 1.0


def test_one_of_two_almost_equal_sets_claims_no_element_twice() -> None:
    forged = b'{"s":[1,1.0]}'  # no real set has both
    validate(forged)
    assert not equal(encode({1, 2}), forged)
    assert not equal(encode({1}), forged)


BROKEN = [
    *(b"", b"nul", b"NaN", b"Infinity", b"1e999", b"[1,]", b'"\\ud800"', b"\xff", b'[1,2,3] "trailing"'),
    *(b"{}", b'{"t":[],"s":[]}', b'{"t":[1],"t":[2]}', b'{"x":1}', b'{"t":1}'),
    *(b'{"d":[[1]]}', b'{"d":[[[1],2]]}', b'{"s":[[1]]}', b'{"s":[{"d":[]}]}'),
    *(b'{"f":"1"}', b'{"f":[]}', b'{"i":"5"}', b'{"i":"-"}', b'{"i":5}', b'{"c":[1,2]}'),
    *(b'{"b":"0"}', b'{"b":"GG"}', b'{"u":"61"}', b'{"u":"ff"}'),
    *(b'{"D":"1e5_"}', b'{"D":"__import__"}', b'{"D":"1E+9999999999999999999"}', b'{"D":"1E-9999999999999999999"}'),
    *(b'{"r":[1,0]}', b'{"r":[1,-2]}', b'{"r":[2,4]}', b'{"g":[1,2,0]}'),
    *(b'{"T":["date","2020-13-01"]}', b'{"T":["eval","1"]}'),
    *(b'{"T":["timedelta","1"]}', b'{"T":["timedelta","999999999999,0,0"]}'),
    *(b'{"k":["A",[[1,2]]]}', b'{"n":["<f8",[2],[1.0]]}', b'{"n":["object",[1],[1]]}', b'{"n":["<f8",[-1],[]]}'),
    *(b"[" * 65 + b"]" * 65, b'{"t":[' * 64 + b"1" + b"]}" * 64, b'{"t":[' * 900 + b"]}" * 900),
    *(b"1" * 5000, str(1 << 1100).encode(), b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000),
    b'"' + b"\xff" * MAX_BYTES + b'"',  # too much to be read, but no text either
]


@pytest.mark.parametrize("data", BROKEN, ids=lambda data: repr(data[:30]))
def test_broken_bytes_are_malformed_and_nothing_else(data: bytes) -> None:
    with pytest.raises(Malformed):
        validate(data)


JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list("tszqdfciubBDrTgkn")), inner, max_size=1)
    ),
    max_leaves=10,
)


@given(JSON_LIKE.map(lambda tree: json.dumps(tree).encode()) | st.binary(max_size=60))
def test_whatever_passes_the_check_can_be_compared_written_and_described(data: bytes) -> None:
    try:
        validate(data)
    except Malformed:
        return
    assert isinstance(equal(data, data, nan_equal=True, rel_tol=1e-9), bool)
    assert isinstance(equal(data, b"[1]"), bool)
    assert describe(data)
    to_source(data)
    with contextlib.suppress(Malformed):  # a value that does not exist, such as an array of dates
        decode(data)


def test_all_that_is_encoded_is_read_again_at_the_deepest_level() -> None:
    for leaf in (1, math.inf, 10**400, 1 + 2j, datetime.timedelta(1), b"x", Decimal("1.5"), "\ud800", "\ud800\udc00"):
        for wrap in (lambda x: [x], lambda x: (x,), lambda x: {1: x}):
            value: Any = leaf
            for _ in range(MAX_DEPTH - 1):
                value = wrap(value)
            data = encode(value)
            validate(data)
            assert equal(data, data, rel_tol=1e-9)
            assert encode(decode(data)) == data


@pytest.mark.parametrize(
    "text",
    [
        *("[" + "1," * MAX_NODES + "1]", '["' + '","' * MAX_NODES + '"]', '["a\\\\' + '","\\\\' * MAX_NODES + '"]'),
        *('"' + "\u20ac" * (MAX_BYTES // 3 + 1) + '"', "[" * MAX_NODES + "]" * MAX_NODES),
    ],
    ids=["numbers", "texts", "backslashes", "one text", "brackets"],
)
def test_a_value_beyond_the_budget_equals_the_same_bytes_only(text: str) -> None:
    data = text.encode()
    with pytest.raises(BeyondBudget):
        parse(data)
    validate(data)
    assert equal(data, bytes(data), rel_tol=1e-9)
    assert not equal(data, data[:-1] + b" ]", rel_tol=1e-9)
    assert not equal(encode(1), data)
    assert to_source(data) is None
    assert f"{len(data):,}" in describe(data)


def test_a_long_text_is_one_node_whatever_it_holds() -> None:
    data = encode([",[{" * MAX_NODES, '"' * 100], max_bytes=MAX_BYTES)
    assert parse(data) == [",[{" * MAX_NODES, '"' * 100]


def test_a_candidate_returns_nothing_beyond_the_budget() -> None:
    assert Limits().value_bytes <= MAX_NODES


def nested_sets(levels: int, first: float) -> Any:
    return frozenset(nested_sets(levels - 1, 20 * first + i) for i in range(20)) if levels else first + 0.5


def test_what_takes_too_many_steps_to_match_is_not_equal() -> None:
    some, others = (encode(nested_sets(3, first), max_bytes=1 << 20) for first in (1.0, 1.0 + 1e-12))
    assert not equal(some, others, rel_tol=1e-9)
    assert equal(some, bytes(some), rel_tol=1e-9)
    few, same = (encode(nested_sets(1, first), max_bytes=1 << 20) for first in (1.0, 1.0 + 1e-12))
    assert equal(few, same, rel_tol=1e-9)


@FEW
@given(DATA)
def test_source_evaluates_to_an_equal_value(value: Any) -> None:
    data = encode(value)
    source = to_source(data)
    assert source is not None
    scope: dict[str, Any] = {}
    for statement in source.imports:
        exec(statement, scope)
    assert equal(encode(eval(source.expression, scope)), data, nan_equal=True, strict_types=True)


def test_source_of_an_int_too_long_for_decimal_digits_is_hexadecimal() -> None:
    source = to_source(encode(-(10**5000)))
    assert source is not None
    assert source.expression.startswith("-0x")
    assert eval(source.expression) == -(10**5000)


def test_source_of_an_array_needs_numpy_and_of_a_dataclass_does_not_exist() -> None:
    source = to_source(encode(np.arange(4).reshape(2, 2)))
    assert source is not None
    assert source.imports == ("import numpy",)
    assert np.array_equal(eval(source.expression, {"numpy": np}), np.arange(4).reshape(2, 2))
    assert to_source(encode([Box(1, [])])) is None


@FEW
@given(DATA, st.integers(2, 50))
def test_a_description_is_printable_and_short(value: Any, limit: int) -> None:
    text = describe(encode(value), limit)
    assert len(text) <= limit
    assert text.isprintable() or any(not c.isprintable() for c in repr(value))


@pytest.mark.parametrize("name", ["\x1b[31m", "a\nb", "\u202e"])
def test_no_name_of_a_dataclass_reaches_a_terminal_as_it_is(name: str) -> None:
    data = json.dumps({"k": [name, [[name, 1]]]}, ensure_ascii=True).encode()
    validate(data)
    assert describe(data).isprintable()


def test_a_description_names_what_source_cannot() -> None:
    assert describe(encode([Box(1, [2]), math.nan])) == "[Box(width=1, content=[2]), nan]"


def test_nothing_but_the_standard_library_is_needed() -> None:
    folder = Path(codea1_env.values.__file__).parent
    code = (
        "import sys, types\n"
        "for name, path in (('codea1_env', sys.argv[1] + '/..'), ('codea1_env.values', sys.argv[1])):\n"
        "    sys.modules[name] = types.ModuleType(name); sys.modules[name].__path__ = [path]\n"
        "from codea1_env.values import comparison, decoding, encoding, source, tree\n"
        "assert decoding.decode(encoding.encode([1, {2: 3.5}])) == [1, {2: 3.5}]\n"
        "assert 'numpy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-S", "-I", "-c", code, str(folder)], check=True)


PROTOCOLS = [
    "__array__", "__array_interface__", "__array_struct__", "__array_priority__", "__array_function__",
    "__array_ufunc__", "__buffer__", "__dlpack__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__",
    "__deepcopy__", "__copy__", "__index__", "__float__", "__class__", "__dict__", "__len__", "__iter__",
    "__getitem__", "__eq__", "__hash__", "__bool__", "__fspath__", "__cuda_array_interface__", "_as_parameter_",
    "_repr_html_",
]  # fmt: skip


@given(
    names=st.lists(
        st.sampled_from(PROTOCOLS) | st.from_regex(r"[a-z_]{1,12}", fullmatch=True), min_size=1, max_size=3, unique=True
    ),
    address=st.integers(1, 1 << 47),
)
def test_a_value_from_outside_is_inert_whatever_its_fields_are_called(names: list[str], address: int) -> None:
    interface = {"d": [["shape", {"t": []}], ["typestr", "<f8"], ["data", {"t": [address, True]}], ["version", 3]]}
    data = json.dumps({"k": ["Pointer", [[name, interface] for name in names]]}, separators=(",", ":")).encode()
    try:
        value = decode(data)
    except Malformed:
        return
    assert not set(names) & set(PROTOCOLS)
    assert validate(data) is None
    boxed = np.asarray(value)  # reads memory at the address if it finds an interface
    assert (boxed.dtype, boxed.shape, boxed.item()) == (np.dtype(object), (), value)
    assert copy.deepcopy(value) == copy.copy(value) == value
    for use in (json.dumps, pickle.dumps, float, len, iter, memoryview, ctypes.c_void_p.from_param):
        with pytest.raises((TypeError, ValueError, AttributeError, pickle.PicklingError, ctypes.ArgumentError)):
            use(value)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_field_that_libraries_read_something_into_is_not_sent_and_not_believed(name: str) -> None:
    with pytest.raises(Opaque):
        encode(renamed(name) if name in ("__class__", "__dict__") else dataclasses.make_dataclass("P", [name])(1))
    with pytest.raises(Malformed):
        validate(b'{"k":["Pointer",[["%b",1]]]}' % name.encode())


def renamed(name: str) -> Any:
    """An instance of a dataclass whose list of fields was changed after it was made."""
    made = dataclasses.make_dataclass("Pointer", ["x"])
    made.__dataclass_fields__["x"].name = name
    return made(1)


def test_a_call_is_described_as_people_write_it():
    assert describe_call("f", encode(((1, [2]), {"key": "a"}))) == "f(1, [2], key='a')"
    assert describe_call("f", encode("f(lambda x: x, 3)")) == "f(lambda x: x, 3)"  # functions have no encoding
