"""Reads an agent's options, which are text, as the types that its constructor declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from codea1_env.errors import UnknownName, UserError

_PLAIN = (int, float, bool, str, Path, NoneType)
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", NoneType: "none"}


def constructor_options(cls: type, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the options as the constructor's annotations want them; without an annotation, what the text looks like.

    Raises:
        UserError: an option is unknown, missing, or not of its type.
    """
    named = option_parameters(cls)
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters_of(cls).values()):
        for name in texts:
            if name not in named:
                raise UnknownName.of("option", name, named)
    missing = [name for name, each in named.items() if each.default is each.empty and name not in texts]
    if missing:
        raise UserError(f"{cls.__name__} needs the option {' and '.join(missing)}")
    try:
        hints = get_type_hints(cls.__init__)  # type: ignore[misc]
    except Exception:  # noqa: BLE001  annotations may name what exists for type checkers only
        hints = {}
    return {name: _convert(name, text, hints[name]) if name in hints else _parse(text) for name, text in texts.items()}


def option_parameters(target: Callable[..., object]) -> dict[str, inspect.Parameter]:
    """Return the parameters that options can set, by name: all that have names of their own, but `context`."""
    settable = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {name: each for name, each in parameters_of(target).items() if name != "context" and each.kind in settable}


def parameters_of(target: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    """Return all parameters by name; {} where Python does not know them, as for some builtins."""
    try:
        return inspect.signature(target).parameters
    except (TypeError, ValueError):
        return {}


def _convert(name: str, text: str, kind: Any) -> Any:
    from pydantic import ConfigDict, TypeAdapter, ValidationError  # noqa: PLC0415  slow to import
    from pydantic.errors import PydanticUserError  # noqa: PLC0415

    try:
        is_model = hasattr(kind, "__pydantic_core_schema__")
        adapter = TypeAdapter(kind, config=None if is_model else ConfigDict(arbitrary_types_allowed=True))
    except PydanticUserError:
        return _parse(text)
    is_none = text.lower() == "none" and NoneType in get_args(kind) and str not in get_args(kind)
    for value in (None,) if is_none else (text,) if kind in _PLAIN else (_parse(text), text):
        try:
            return adapter.validate_python(value)
        except ValidationError:
            continue
    raise UserError(f"option {name} must be {_describe_type(kind)}")


def _describe_type(kind: Any) -> str:
    if get_origin(kind) is Literal or (inspect.isclass(kind) and issubclass(kind, Enum)):
        return " or ".join(str(getattr(each, "value", each)) for each in get_args(kind) or kind)
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(map(_describe_type, get_args(kind)))
    return _WORDS[kind] if inspect.isclass(kind) and kind in _WORDS else inspect.formatannotation(kind)


def _parse(text: str) -> object:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text
