"""Settings are declared as dataclasses: each field states a name, a type, a range, a default and a meaning, once.

Python, settings files and `--set` read the same declaration, so that a wrong value is refused where it is set, with the
same sentence everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields
from functools import cache
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar, get_type_hints

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from codea1_env.errors import UnknownName, UserError

# Ranges. Text and other types, apart from numpy's numbers, are never converted to numbers.

Flag = Annotated[bool, Field(strict=True)]
Count = Annotated[int, Field(ge=1, strict=True)]
CountOrZero = Annotated[int, Field(ge=0, strict=True)]
Share = Annotated[float, Field(ge=0, le=1, strict=True)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Finite = Annotated[float, Field(allow_inf_nan=False, strict=True)]

_D = TypeVar("_D")
_P = ParamSpec("_P")


def check_values(kind: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of some of the settings that a dataclass declares.

    Args:
        kind: the declaration.
        values: by name; those that are missing stay what they are.

    Raises:
        UnknownName: a setting is not declared.
        UserError: a value is of another type or out of its range; the error is about the first.
    """
    adapters = _adapters(kind)  # type: ignore[arg-type]  # classes are hashable
    checked = {}
    for name, value in values.items():
        if name not in adapters:
            raise UnknownName.of("setting", name, adapters)
        try:
            checked[name] = adapters[name].validate_python(value.item() if isinstance(value, np.generic) else value)
        except ValidationError as error:
            raise UserError(fault_of(error, name)) from error
    return checked


def fault_of(error: ValidationError, *path: str) -> str:
    """Say in one line what the first fault of a failed validation is: which setting, what it should be, what it is.

    Args:
        error: as pydantic raised it.
        path: the keys that lead to what was validated.
    """
    fault = error.errors(include_url=False, include_context=False)[0]
    name = ".".join([*path, *(str(part) for part in fault["loc"] if part != "[key]")])
    message = re.sub(" or (an )?instance of .*", "", fault["msg"].removeprefix("Input "))
    if fault["type"] == "value_error":  # raised by a dataclass about several of its settings
        return f"{name}: {message.removeprefix('Value error, ')}"
    return f"{name} {message}, got {fault['input']!r:.100}"


@cache
def _adapters(kind: Hashable) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(kind, include_extras=True)
    return {each.name: TypeAdapter(hints[each.name]) for each in fields(kind)}  # type: ignore[arg-type]


def values_of(settings: Any, kind: type[Any] | None = None) -> dict[str, Any]:
    """Return values by name.

    Args:
        settings: a dataclass, or any object with attributes of the names in `kind`.
        kind: a dataclass that says which names; None: that of `settings`.
    """
    return {each.name: getattr(settings, each.name) for each in fields(kind or settings)}


def settings_in(config: Any, kind: type[_D]) -> _D:
    """Return the dataclass `kind`, with the values that an object has under the names of its fields, checked.

    Raises:
        UserError: a value is of another type or out of its range, or several do not go together.
    """
    return kind(**check_values(kind, values_of(config, kind)))


def takes(kind: Callable[_P, Any]) -> Callable[[Callable[..., _D]], Callable[Concatenate[Any, _P], _D]]:
    """Give a method the parameters that a dataclass declares, for type checkers, editors and `help`."""

    def decorate(method: Callable[..., _D]) -> Callable[Concatenate[Any, _P], _D]:
        hints, defaults = get_type_hints(kind), kind()  # type: ignore[call-arg]  # all fields have defaults
        declared = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=getattr(defaults, name), annotation=hints[name])
            for name in signature(kind).parameters
        ]
        own = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
        method.__signature__ = Signature([own, *declared])  # type: ignore[attr-defined]
        return method

    return decorate
