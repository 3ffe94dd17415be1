"""Arguments that people give by hand, checked where they come in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from codea1_env.errors import UserError

_T = TypeVar("_T")


def whole_number(name: str, value: object, *, most: int, least: int = 1) -> int:
    """Return the value of an argument.

    Raises:
        UserError: it is no whole number from `least` to `most`.
    """
    if not isinstance(value, int | np.integer) or not least <= value <= most:
        raise UserError(f"{name} must be a whole number from {least} to {most}, not {value!r:.100}")
    return int(value)


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
