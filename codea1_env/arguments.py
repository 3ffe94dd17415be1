"""Arguments that people give by hand, checked where they come in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from codea1_env.errors import UserError

_T = TypeVar("_T")


def whole_number(name: str, value: object, *, most: float, least: int = 1) -> int:
    """Return the value of an argument.

    Raises:
        UserError: it is no whole number from `least` to `most`.
    """
    if not isinstance(value, int | np.integer) or not least <= value <= most:
        raise UserError(f"{name} must be a whole number from {least} to {most}, not {value!r:.100}")
    return int(value)


def as_lists(**given: Any) -> list[list[Any]]:
    """Return the values of arguments that belong together, one of each.

    Raises:
        UserError: one is no list, tuple or the like, or there are more of one than of another.
    """
    for name, value in given.items():
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise UserError(f"{name} must be a list, not {type(value).__name__} ({value!r:.100})")
    found = {name: list(value) for name, value in given.items()}
    if len({len(values) for values in found.values()}) > 1:
        numbers = " and ".join(f"{len(values)} {name}" for name, values in found.items())
        raise UserError(f"{numbers}: there must be one for each")
    return [*found.values()]


def of_type(name: str, value: object, kind: type[_T]) -> _T:
    """Return the value of an argument.

    Raises:
        UserError: it is no `kind`.
    """
    if not isinstance(value, kind):
        raise UserError(f"{name} must be of type {kind.__name__}, not {type(value).__name__} ({value!r:.100})")
    return value


def one_of(name: str, value: str, known: Sequence[str]) -> str:
    """Return the value of an argument.

    Raises:
        UserError: it is none of the known ones.
    """
    if value not in known:
        raise UserError(f"{name} must be one of {', '.join(known)}, not {value!r}")
    return value
