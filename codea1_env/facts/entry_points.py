"""Entry points as text: the name of a function, or a method as tests call it, for example `Solution().two_sum`."""

from __future__ import annotations

import re
from textwrap import indent
from typing import NamedTuple

_CREATION = "()."
_METHOD = re.compile(r"[^\W\d]\w*\(\)\.[^\W\d]\w*")


class EntryPoint(NamedTuple):
    """The parts of an entry point."""

    name: str
    """The function or the class that a program must define."""
    method: str = ""
    """The method that tests call on a new instance of the class; empty for a function."""


def read_entry_point(text: str) -> EntryPoint:
    """Return the parts of an entry point; a text without a method is a function's name."""
    name, _, method = text.partition(_CREATION)
    return EntryPoint(name, method)


def is_method(text: str) -> bool:
    """Return whether a text names a method of a class, e.g. `Solution().two_sum`."""
    return _METHOD.fullmatch(text) is not None


def definition(text: str, parameters: str, body: str) -> str:
    """Return the source that defines an entry point.

    Args:
        text: the entry point.
        parameters: as between the brackets, without `self`.
        body: the statements of the function, indented.
    """
    name, method = read_entry_point(text)
    if not method:
        return f"def {name}({parameters}):\n{body}"
    whole = f"def {method}(self{', ' if parameters else ''}{parameters}):\n{body}"
    return f"class {name}:\n{indent(whole, '    ')}"


def placeholder_program(text: str) -> str:
    """Return a program that defines an entry point and returns None for every call."""
    return definition(text, "*arguments, **named", "    return None\n")
