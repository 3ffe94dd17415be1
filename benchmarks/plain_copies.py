"""How values look after they have been copied between processes, as docs/rules.md says it, in plain Python."""

from __future__ import annotations

import copy
import dataclasses
import functools
import sys
from collections import ChainMap, UserDict, UserList, UserString, deque
from collections.abc import Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

_PLAIN = (int, float, complex, str, bytes, bytearray, type(None), range, Decimal, Fraction, date, time, timedelta)
_HOLDING = (list, tuple, set, frozenset, dict, deque)
_WRAPPERS: dict[type, Any] = {
    UserList: list,
    UserString: str,
    **dict.fromkeys((UserDict, ChainMap, MappingProxyType), dict),
}
"""Classes whose objects are sent as what they hold."""


def opaque(value: Any) -> str:
    """Return the type of the first part that cannot be copied between processes; empty if all can."""
    try:
        return next((found for part in _parts(value) if (found := opaque(part))), "")
    except RecursionError:
        return "endless"
    except TypeError:
        return type(value).__name__


def _parts(value: Any) -> Any:
    """Return the parts of a value that must be plain; raise TypeError if it cannot be copied itself."""
    kind = type(value)
    if kind in _WRAPPERS:
        return [_WRAPPERS[kind](value)]
    if is_array(value) and value.dtype.kind in "biufcUSO":
        return value.ravel().tolist() if value.dtype.char in "OgG" else ()
    if isinstance(value, _numpy_scalar()):
        return _parts_of_scalar(value)
    if dataclasses.is_dataclass(value) and "__eq__" in vars(kind):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    if _has_own_equality(kind) or not isinstance(value, _PLAIN + _HOLDING):
        raise TypeError
    if isinstance(value, _PLAIN):
        return ()
    return [*value, *value.values()] if isinstance(value, dict) else value


def _parts_of_scalar(value: Any) -> Any:
    item = value.item()
    if type(item) is tuple:  # a record
        raise TypeError
    if type(item) is not type(value):
        return [item]
    if value == value and value != float(value):  # a longer float than Python's
        raise TypeError
    return ()


def _has_own_equality(kind: type) -> bool:
    own = next((cls for cls in kind.__mro__ if {"__eq__", "__ne__"} & vars(cls).keys()), object)
    return own not in (object, *_PLAIN, *_HOLDING) and own.__module__ not in ("builtins", "collections", "datetime")


def is_array(value: object) -> bool:
    """Whether it is an array of numpy, and of no subclass."""
    return type(value).__name__ == "ndarray" and type(value).__module__ == "numpy"


def unboxed(value: Any) -> Any:
    """Return what an array without dimensions holds, which equals it; any other value as it is."""
    return value.item() if is_array(value) and not value.shape else value


def _numpy_scalar() -> Any:
    numpy = sys.modules.get("numpy")
    return numpy.generic if numpy else ()


def copied(value: Any) -> Any:
    """Return a result as a test gets it: numbers of numpy and subclasses as Python's own."""
    if opaque(value):
        return _Unsent(value)
    if isinstance(value, _numpy_scalar()):
        value = value.item()
    value = _WRAPPERS.get(type(value), lambda same: same)(value)
    if isinstance(value, dict):
        return {copied(key): copied(item) for key, item in value.items()}
    for kind in (list, tuple, set, frozenset):
        if isinstance(value, kind):
            return kind(map(copied, value))
    return _copied_leaf(value)


def _copied_leaf(value: Any) -> Any:
    if isinstance(value, float):
        return float(repr(float(value)))  # a new object: nan equals itself only
    if isinstance(value, Fraction):
        return Fraction(int(value.numerator), int(value.denominator))
    if dataclasses.is_dataclass(value):  # of another class with the same name
        items = {field.name: copied(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return _data_class(type(value).__name__, tuple(items))(**items)
    bases = (int, complex, str, bytes, bytearray)
    base = next((kind for kind in bases if isinstance(value, kind) and type(value) is not bool), copy.deepcopy)
    return base(value)


@functools.cache
def _data_class(name: str, fields: tuple[str, ...]) -> Any:
    return dataclasses.make_dataclass(name, fields)


class _Unsent:
    """Represents a result that cannot be copied: it is equal to nothing, and it can be iterated if the result can."""

    def __init__(self, value: Any) -> None:
        self._iterate = getattr(value, "__iter__", None)

    def __iter__(self) -> Iterator[Any]:
        if self._iterate is None:
            raise TypeError("not iterable")
        return map(copied, self._iterate())


def become(old: Any, new: Any) -> None:
    """Give a container, or those in a tuple, the content of another one."""
    if isinstance(old, tuple):
        for one, other in zip(old, new, strict=True):
            become(one, other)
    elif isinstance(old, dict | set):
        old.clear()
        old.update(new)
    elif isinstance(old, list | bytearray | deque):
        old.clear()
        old.extend(new)
