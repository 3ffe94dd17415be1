"""Encode plain Python data as canonical JSON.

Sandboxed processes load this file too, by path, so it imports only the standard library.

None, bool, float, list, str and int (up to 1024 bits) are written as JSON values; the rest are objects with one key:

=====  ==========================================  =====  ==========================================
``t``  tuple, and subclasses that compare as one   ``d``  dict: list of [key, value] in its order
``s``  set: elements sorted by their encoding      ``z``  frozenset: likewise
``q``  deque                                       ``k``  dataclass: [name, [[field, value]..]]
``f``  nan, inf, -inf                              ``c``  complex: [real, imaginary]
``i``  larger int, hexadecimal                     ``u``  str with lone surrogates: hex of its UTF-8
``b``  bytes, hex                                  ``B``  bytearray, hex
``D``  Decimal, as text                            ``r``  Fraction: [numerator, denominator]
``T``  date, time, datetime, timedelta             ``g``  range: [start, stop, step]
``n``  ndarray: [dtype, shape, flat list]
=====  ==========================================  =====  ==========================================

The encoder never calls methods that a hostile object may define (`__eq__`, `__iter__`, `__len__`, its metaclass). It
compares types by identity and reads contents with the methods of the base type. An object that defines its own equality
cannot be encoded.

Each import takes memory and time in every sandboxed process. So modules of rare classes are not imported here: if a
value has such a class, its module is loaded already.
"""

from __future__ import annotations

import collections
import gc
import json
import math
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import datetime
    from decimal import Decimal
    from fractions import Fraction

MAX_DEPTH = 64
PLAIN_INT_BITS = 1024  # larger ones as hex: decimal text takes quadratic time, and Python limits it to 4300 digits
_PLAIN_INT = 1 << PLAIN_INT_BITS

_dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False).encode
mro_of: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
namespace_of: Callable[[type], Any] = type.__dict__["__dict__"].__get__
_name_of: Callable[[type], str] = type.__dict__["__name__"].__get__


def is_protocol_name(name: str) -> bool:
    """Whether libraries read something into an attribute of this name, as numpy reads memory for `__array_interface__`.

    A decoded dataclass has its fields as attributes, so the sender would choose what they read.
    """
    return len(name) > 2 and name[0] == name[-1] == "_"  # `__array__`, but also ctypes' `_as_parameter_`


class Opaque(ValueError):
    """The value is not plain data."""


class TooLarge(ValueError):
    """The value is plain data, but larger than the limit, or nested too deeply."""


def encode(value: object, *, max_bytes: int = 65_536) -> bytes:
    """Return the canonical encoding of plain data.

    Shared objects are written each time they occur; the order of a dict is kept. Counter, defaultdict and OrderedDict
    are encoded as dicts, namedtuples as tuples, IntEnum as int, and numpy scalars as Python's numbers.

    Raises:
        Opaque: a part of it is not plain data; the message names its type.
        TooLarge: longer than `max_bytes`, or nested more than `MAX_DEPTH` deep.
    """
    if type(value) is int and -_PLAIN_INT < value < _PLAIN_INT:  # a fast path for the most common value
        data = b"%d" % value
    else:
        data = _dump(_Encoding(max_bytes).node(value, MAX_DEPTH)).encode()
    if len(data) > max_bytes:
        raise TooLarge(f"{len(data)} bytes, at most {max_bytes} are allowed")
    return data


class _Encoding:
    """Turns one value into nodes that `json` can write."""

    def __init__(self, max_bytes: int) -> None:
        self._budget = max_bytes  # every node takes at least one byte, so this bounds time and memory early

    def node(self, value: Any, depth: int) -> Any:
        kind = type(value)
        writer = _WRITERS.get(id(kind))
        if writer is None:
            writer = _writer_for(kind)
        self._spend(1)
        if depth <= 0:
            raise TooLarge(f"nested more than {MAX_DEPTH} deep")
        return writer(self, value, depth - 1)

    def _spend(self, n_bytes: int) -> None:
        self._budget -= n_bytes
        if self._budget < 0:
            raise TooLarge("larger than the limit")

    def nodes(self, values: Iterable[Any], depth: int) -> list[Any]:
        return [self.node(value, depth) for value in values]

    def write_same(self, value: Any, depth: int) -> Any:
        return value

    def write_float(self, value: float, depth: int) -> Any:
        value = float.__float__(value)
        return value if math.isfinite(value) else {"f": repr(value)}

    def write_int(self, value: int, depth: int) -> Any:
        value = int.__int__(value)
        if value.bit_length() <= PLAIN_INT_BITS:
            return value
        self._spend(value.bit_length() // 4)
        return {"i": f"{value:x}"}

    def write_str(self, value: str, depth: int) -> Any:
        text = str.__str__(value)
        self._spend(len(text))
        if text.isascii():
            return text
        try:
            text.encode()
        except UnicodeEncodeError:
            return {"u": text.encode("utf-8", "surrogatepass").hex()}
        return text

    def write_bytes(self, value: bytes, depth: int) -> Any:
        self._spend(2 * bytes.__len__(value))
        return {"b": bytes.hex(value)}

    def write_bytearray(self, value: bytearray, depth: int) -> Any:
        self._spend(2 * bytearray.__len__(value))
        return {"B": bytearray.hex(value)}

    def write_complex(self, value: complex, depth: int) -> Any:
        value = complex.__complex__(value)
        return {"c": [self.write_float(value.real, 0), self.write_float(value.imag, 0)]}

    def write_list(self, value: list[Any], depth: int) -> Any:
        return self.nodes(list.__iter__(value), depth)

    def write_tuple(self, value: tuple[Any, ...], depth: int) -> Any:
        return {"t": self.nodes(tuple.__iter__(value), depth)}

    def write_deque(self, value: collections.deque[Any], depth: int) -> Any:
        return {"q": self.nodes(collections.deque.__iter__(value), depth)}

    def write_set(self, value: set[Any], depth: int) -> Any:
        return {"s": sorted(self.nodes(set.__iter__(value), depth), key=_dump)}

    def write_frozenset(self, value: frozenset[Any], depth: int) -> Any:
        return {"z": sorted(self.nodes(frozenset.__iter__(value), depth), key=_dump)}

    def write_dict(self, value: dict[Any, Any], depth: int) -> Any:
        return {"d": [[self.node(key, depth), self.node(item, depth)] for key, item in dict.items(value)]}

    def write_range(self, value: range, depth: int) -> Any:
        return {"g": self.nodes((value.start, value.stop, value.step), depth)}

    def write_decimal(self, value: Decimal, depth: int) -> Any:
        text = type(value).__str__(value)
        self._spend(len(text))
        return {"D": text}

    def write_fraction(self, value: Fraction, depth: int) -> Any:
        return {"r": self.nodes((value.numerator, value.denominator), depth)}

    def write_date(self, value: datetime.date, depth: int) -> Any:
        return {"T": ["date", value.isoformat()]}

    def write_time(self, value: datetime.time, depth: int) -> Any:
        return {"T": ["time", _isoformat(value)]}

    def write_datetime(self, value: datetime.datetime, depth: int) -> Any:
        return {"T": ["datetime", _isoformat(value)]}

    def write_timedelta(self, value: datetime.timedelta, depth: int) -> Any:
        return {"T": ["timedelta", f"{value.days},{value.seconds},{value.microseconds}"]}

    def write_dataclass(self, value: Any, depth: int) -> Any:
        fields = [field.name for field in sys.modules["dataclasses"].fields(value) if field.compare]
        if any(map(is_protocol_name, fields)):
            raise Opaque(f"a {_name_of(type(value))}"[:200])
        pairs = [[self.node(name, depth), self.node(object.__getattribute__(value, name), depth)] for name in fields]
        return {"k": [self.node(_name_of(type(value)), depth), pairs]}

    def write_user_data(self, value: Any, depth: int) -> Any:
        wanted = {"UserDict": _MAPPINGS, "UserList": (list,), "UserString": (str,)}[type(value).__name__]
        return self.node(_held_by(object.__getattribute__(value, "data"), wanted), depth)

    def write_chain(self, value: Any, depth: int) -> Any:
        merged: dict[Any, Any] = {}
        for mapping in reversed(_held_by(object.__getattribute__(value, "maps"), (list,))):
            merged.update(_held_by(mapping, _MAPPINGS))
        return self.node(merged, depth)

    def write_proxy(self, value: Any, depth: int) -> Any:
        return self.node(_held_by(gc.get_referents(value)[0], _MAPPINGS), depth)

    def write_scalar(self, value: Any, depth: int) -> Any:
        item = value.item()
        if type(item) is type(value) and mro_of(type(value))[1].__name__ == "floating":  # longdouble
            item = float(value)
            if item != value and value == value:
                raise Opaque("a longdouble")
        elif mro_of(type(value))[0].__name__ in ("datetime64", "timedelta64") and type(item) in (int, type(None)):
            raise Opaque(f"a {type(value).__name__} that no datetime equals")
        if type(item) is tuple or (id(type(item)) not in _WRITERS and _late_writer(type(item)) is None):  # void
            raise Opaque(f"a {_name_of(type(value))}")
        return self.node(item, depth)

    def write_array(self, value: Any, depth: int) -> Any:
        if value.dtype.kind not in "biufcUSO":
            raise Opaque(f"an array of {value.dtype}")
        self._spend(value.size)
        shape = self.nodes(value.shape, depth)
        return {"n": [self.node(value.dtype.str, depth), shape, self.nodes(value.ravel().tolist(), depth)]}


_Writer = Callable[[_Encoding, Any, int], Any]

# Keyed by id(), because a metaclass may define the hash and the equality of a class.
_WRITERS: dict[int, _Writer] = {
    id(type(None)): _Encoding.write_same,
    id(bool): _Encoding.write_same,
    id(int): _Encoding.write_int,
    id(float): _Encoding.write_float,
    id(complex): _Encoding.write_complex,
    id(str): _Encoding.write_str,
    id(bytes): _Encoding.write_bytes,
    id(bytearray): _Encoding.write_bytearray,
    id(list): _Encoding.write_list,
    id(tuple): _Encoding.write_tuple,
    id(dict): _Encoding.write_dict,
    id(set): _Encoding.write_set,
    id(frozenset): _Encoding.write_frozenset,
    id(collections.Counter): _Encoding.write_dict,
    id(collections.OrderedDict): _Encoding.write_dict,
    id(collections.defaultdict): _Encoding.write_dict,
    id(collections.deque): _Encoding.write_deque,
    id(range): _Encoding.write_range,
}

# Their contents are read through attributes that a subclass may override, so subclasses are not accepted.
_LATE_WRITERS: dict[tuple[str, str], _Writer] = {
    ("decimal", "Decimal"): _Encoding.write_decimal,
    ("fractions", "Fraction"): _Encoding.write_fraction,
    ("datetime", "date"): _Encoding.write_date,
    ("datetime", "time"): _Encoding.write_time,
    ("datetime", "datetime"): _Encoding.write_datetime,
    ("datetime", "timedelta"): _Encoding.write_timedelta,
    ("collections", "UserDict"): _Encoding.write_user_data,
    ("collections", "UserList"): _Encoding.write_user_data,
    ("collections", "UserString"): _Encoding.write_user_data,
    ("collections", "ChainMap"): _Encoding.write_chain,
    ("types", "MappingProxyType"): _Encoding.write_proxy,
}
"""By module and class: classes that exist only after their module has been imported."""


_MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)


def _held_by(content: Any, wanted: tuple[type, ...]) -> Any:
    """Return what a wrapper of the standard library holds, if it is of a class that no program can have redefined."""
    if type(content) not in wanted:
        raise Opaque(f"a wrapper of a {_name_of(type(content))}"[:200])
    return content


def _writer_for(kind: type) -> _Writer:
    """Return the writer of any other class: a late one, one of numpy's, a dataclass, or one with its base's
    equality."""
    late = _late_writer(kind)
    if late is not None:
        return late
    mro = mro_of(kind)
    numpy = sys.modules.get("numpy")  # never imported here: if a value is numpy's, numpy is loaded
    if numpy is not None:
        if any(cls is numpy.generic for cls in mro):
            return _Encoding.write_scalar
        if kind is numpy.ndarray:
            return _Encoding.write_array
    namespace = namespace_of(kind)
    if "__dataclass_fields__" in namespace and _has_generated_equality(namespace):
        return _Encoding.write_dataclass
    for cls in mro[:-1]:
        writer = _WRITERS.get(id(cls))
        if writer is not None and writer is not _Encoding.write_range:  # see `_LATE_WRITERS`
            return writer
        if {"__eq__", "__ne__"} & set(namespace_of(cls)):
            break
    raise Opaque(f"a {_name_of(kind)}"[:200])


def _late_writer(kind: type) -> _Writer | None:
    for (module, name), writer in _LATE_WRITERS.items():
        if kind is getattr(sys.modules.get(module), name, None):
            return writer
    return None


def _isoformat(value: datetime.time | datetime.datetime) -> str:
    if value.tzinfo is not None and type(value.tzinfo) is not sys.modules["datetime"].timezone:
        raise Opaque(f"{_name_of(type(value))} in a named time zone")
    return value.isoformat()


def _has_generated_equality(namespace: Any) -> bool:
    equality = namespace.get("__eq__")
    code = getattr(equality, "__code__", None)
    return (
        code is not None and code.co_filename == "<string>"
    )  # the file name of the methods that dataclasses generates
