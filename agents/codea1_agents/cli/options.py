"""A command whose options are the fields of one dataclass; what every command has."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, all else on stderr.")]

_T = TypeVar("_T")


def takes(options: type[_T]) -> Callable[[Callable[[_T], None]], Callable[..., None]]:
    """Return a decorator that gives a command the fields of a dataclass as its options, as annotated there.

    Args:
        options: the dataclass; a field's annotation is that of an option, its default the option's.
    """

    def decorator(command: Callable[[_T], None]) -> Callable[..., None]:
        def run(**given: Any) -> None:
            command(options(**given))

        hints = get_type_hints(options, include_extras=True)
        signature = inspect.signature(options)
        parameters = [each.replace(annotation=hints[name]) for name, each in signature.parameters.items()]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__, run.__doc__, run.__name__ = hints, command.__doc__, command.__name__
        return run

    return decorator
