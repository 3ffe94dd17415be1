"""Rules and limits are declared as dataclasses: a field states its type, its range, its default and its meaning, once.

`require_declared` checks the values of an instance against the annotations, wherever the instance comes from: a preset,
Python, a settings file, a record.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from codea1_env.errors import UserError

_LARGEST = 1e9  # the bound where none is declared, so that no sum or product of rules overflows


@dataclass(frozen=True, slots=True)
class Range:
    """Smallest and largest value of a number, both included."""

    least: float = -_LARGEST
    most: float = _LARGEST
    above: float = -_LARGEST
    """A number that is too small, for ranges that do not include their lower bound."""

    def __contains__(self, value: float) -> bool:
        return self.above < value and self.least <= value <= self.most  # false for nan

    def __str__(self) -> str:
        if self.above > -_LARGEST:
            return f" above {self.above:g} and at most {self.most:,}"
        if self.most < _LARGEST:
            return f" from {self.least:g} to {self.most:g}"
        return f" of at least {self.least:g}" if self.least > -_LARGEST else ""


Count = Annotated[int, Range(least=1)]
CountOrZero = Annotated[int, Range(least=0)]
Share = Annotated[float, Range(0, 1)]
NotNegative = Annotated[float, Range(least=0)]


def require_declared(settings: Any, path: str) -> None:
    """Check the values of a dataclass against its annotations; the text of a choice becomes that choice.

    Args:
        settings: the dataclass. Its parts that are dataclasses have checked themselves.
        path: what stands before a field's name in errors, such as `rules: reward.`.

    Raises:
        UserError: the first value of another type or out of its range.
    """
    for name, choices in _read_declarations(type(settings)).items():  # type: ignore[arg-type]  # classes are hashable
        value = getattr(settings, name)
        fitting = next((kind for kind, bounds in choices if _fits(value, kind, bounds)), None)
        if fitting is None:
            expected = " or ".join(_name_type(kind, bounds) for kind, bounds in choices)
            raise UserError(f"{path}{name} must be {expected}, got {value!r:.100}")
        if isinstance(fitting, type) and not isinstance(value, fitting):  # the text of a choice, a whole number
            object.__setattr__(settings, name, fitting(value))


@cache
def _read_declarations(kind: Hashable) -> dict[str, list[tuple[Any, Range]]]:
    return {name: list(_choices(hint)) for name, hint in get_type_hints(kind, include_extras=True).items()}


def _choices(hint: Any) -> Iterator[tuple[Any, Range]]:
    """Yield the types that an annotation allows, with the range of numbers, or the values that it lists."""
    if get_origin(hint) in (Union, UnionType):
        for each in get_args(hint):
            yield from _choices(each)
    elif get_origin(hint) is Annotated:
        yield get_args(hint)
    else:
        yield hint, Range()


def _fits(value: Any, kind: Any, bounds: Range) -> bool:
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    if kind in (int, float):
        is_number = isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)
        return is_number and value in bounds
    if issubclass(kind, StrEnum):
        return isinstance(value, str) and value in list(kind)
    return isinstance(value, kind)


def _name_type(kind: Any, bounds: Range) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(get_args(kind))
    if kind in (int, float):
        return f"a {'whole' if kind is int else 'finite'} number{bounds}"
    if is_dataclass(kind) or not issubclass(kind, StrEnum):
        return {bool: "true or false", str: "text", NoneType: "None"}.get(kind, f"of type {kind.__name__}")
    return f"one of {', '.join(kind)}"
