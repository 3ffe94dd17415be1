"""Encode Python literals without executing them: predictions, and asserts from files of a Mistake Book.

Reads what `values.to_source` writes, and the bare names `nan` and `inf` in which the release writes floats. Each call
in the table below makes plain data from literal arguments. Its time and memory are bounded by the text's length.
"""

from __future__ import annotations

import ast
import datetime
import re
from collections import deque
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np

from codea1_env import values

_DTYPE = re.compile(r"[<>=|][biufcUSO]\d{0,6}")
_MAX_ARRAY_BYTES = 1_000_000


class LiteralError(ValueError):
    """The expression is not a literal value; the message says why."""


def encoded_literal(node: ast.expr) -> bytes:
    """Return the encoded value of a literal expression.

    Raises:
        LiteralError: the expression is not a literal, or its value cannot be encoded.
    """
    try:
        return values.encode(_value(node))
    except LiteralError:
        raise
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise LiteralError(f"not a value: {error}"[:200]) from error


def _value(node: ast.expr) -> Any:
    reader = _READERS.get(type(node))
    if reader is None:
        raise _not_a_literal(node)
    return reader(node)


def _constant(node: ast.Constant) -> Any:
    if node.value is Ellipsis:
        raise _not_a_literal(node)
    return node.value


def _dict(node: ast.Dict) -> dict[Any, Any]:
    if None in node.keys:  # {**other}
        raise _not_a_literal(node)
    return {_value(key): _value(item) for key, item in zip(node.keys, node.values, strict=True) if key is not None}


def _signed(node: ast.UnaryOp) -> Any:
    if not isinstance(node.op, ast.USub | ast.UAdd):
        raise _not_a_literal(node)
    number = _number(node.operand)
    return -number if isinstance(node.op, ast.USub) else number


def _complex_sum(node: ast.BinOp) -> complex:
    left, right = _number(node.left), _number(node.right)
    if isinstance(left, complex) or not isinstance(right, complex) or not isinstance(node.op, ast.Add | ast.Sub):
        raise _not_a_literal(node)
    return left + right if isinstance(node.op, ast.Add) else left - right


def _number(node: ast.expr) -> int | float | complex:
    value = _value(node)
    if type(value) not in (int, float, complex):
        raise _not_a_literal(node)
    number: int | float | complex = value
    return number


def _name(node: ast.Name | ast.Attribute) -> Any:
    name = ast.unparse(node)
    if name not in _NAMES:
        raise _not_a_literal(node)
    return _NAMES[name]


def _called(call: ast.Call) -> Any:
    if isinstance(call.func, ast.Attribute) and call.func.attr == "reshape" and isinstance(call.func.value, ast.Call):
        return _called(call.func.value).reshape(*map(_value, call.args))
    maker = _CONSTRUCTORS.get(ast.unparse(call.func))
    if maker is None or any(keyword.arg is None for keyword in call.keywords):
        raise _not_a_literal(call)
    options = {str(keyword.arg): _value(keyword.value) for keyword in call.keywords}
    return maker(*map(_value, call.args), **options)


def _not_a_literal(node: ast.expr) -> LiteralError:
    return LiteralError(f"not a literal: {ast.unparse(node)}"[:200])


def _float(text: str) -> float:
    if text not in ("nan", "inf", "-inf"):
        raise LiteralError(f"not a literal: float({text!r})"[:200])
    return float(text)


def _collection(kind: Callable[[Any], Any]) -> Callable[..., Any]:
    def collection(content: Any = ()) -> Any:
        if not isinstance(content, list | tuple | set | frozenset):  # a range could fill the memory
            raise LiteralError(f"not a literal: a collection made of a {type(content).__name__}")
        return kind(content)

    return collection


def _bytearray(content: bytes = b"") -> bytearray:
    if not isinstance(content, bytes):  # an integer would allocate that many bytes
        raise LiteralError("not a literal: bytearray of something other than bytes")
    return bytearray(content)


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(str(text))
    except InvalidOperation as error:
        raise LiteralError(f"not a literal: Decimal({text!r})"[:200]) from error


def _fraction(numerator: int, denominator: int) -> Fraction:
    return Fraction(int(numerator), int(denominator))  # a text could state 10 ** 10 ** 9


def _array(content: object, dtype: str) -> np.ndarray[Any, Any]:
    if not isinstance(content, list) or not _DTYPE.fullmatch(dtype):
        raise LiteralError("not a literal: an array of something other than a list and a plain type")
    if np.dtype(dtype).itemsize * len(content) > _MAX_ARRAY_BYTES:
        raise LiteralError(f"not a literal: an array of more than {_MAX_ARRAY_BYTES} bytes")
    array = np.empty(len(content), dtype=dtype)
    for position, part in enumerate(content):  # one assignment of the whole list would nest its elements
        array[position] = part
    return array


_NAMES = {"nan": float("nan"), "inf": float("inf"), "datetime.timezone.utc": datetime.UTC}

_READERS: dict[type[ast.expr], Callable[[Any], Any]] = {
    ast.Constant: _constant,
    ast.List: lambda node: [_value(part) for part in node.elts],
    ast.Tuple: lambda node: tuple(_value(part) for part in node.elts),
    ast.Set: lambda node: {_value(part) for part in node.elts},
    ast.Dict: _dict,
    ast.UnaryOp: _signed,
    ast.BinOp: _complex_sum,
    ast.Name: _name,
    ast.Attribute: _name,
    ast.Call: _called,
}

_CONSTRUCTORS: dict[str, Callable[..., Any]] = {
    "float": _float,
    "complex": complex,
    "list": _collection(list),
    "tuple": _collection(tuple),
    "set": _collection(set),
    "frozenset": _collection(frozenset),
    "bytearray": _bytearray,
    "range": range,
    "deque": _collection(deque),
    "Decimal": _decimal,
    "Fraction": _fraction,
    "datetime.date": datetime.date,
    "datetime.time": datetime.time,
    "datetime.datetime": datetime.datetime,
    "datetime.timedelta": datetime.timedelta,
    "datetime.timezone": datetime.timezone,
    "numpy.array": _array,
}
