"""What a test may mention besides the entry point and names of its own: values, not the machine.

The sandbox holds hostile code anyway. These lists keep a test from meaning something else on the solution than on a
candidate (clock, chance, object identity) and from inspecting the program instead of calling it.
"""

from __future__ import annotations

import builtins

__all__ = ["FORBIDDEN_ATTRIBUTES", "PURE_MODULES", "SAFE_BUILTINS", "is_importable", "may_be_imported_from"]

_EXCEPTIONS = frozenset(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException) and not issubclass(value, Warning)
)

_PLAIN_BUILTINS = """
    Ellipsis NotImplemented abs all any ascii bin bool bytearray bytes callable chr complex dict divmod enumerate filter
    float format frozenset hex int isinstance issubclass iter len list map max min next oct ord pow range repr reversed
    round set slice sorted str sum tuple type zip
"""
_CLOCK_AND_CHANCE = "now today utcnow random default_rng"
_ATTRIBUTES_BY_NAME = "attrgetter methodcaller"
_WAYS_INTO_THE_INTERPRETER = """
    sys os io builtins importlib codecs contextlib copyreg ctypes ctypeslib inspect gc types weakref f2py testing
    f_back f_builtins f_code f_globals f_locals gi_code gi_frame cr_code cr_frame ag_code ag_frame tb_frame
"""
_NUMPY_FILES = "fromfile genfromtxt load loadtxt memmap open_memmap save savetxt savez savez_compressed tofile"
_MODULES = """
    bisect cmath collections copy datetime decimal fractions functools heapq itertools json math numpy operator re
    statistics string textwrap typing
"""

SAFE_BUILTINS = _EXCEPTIONS | frozenset(_PLAIN_BUILTINS.split())
"""Built-in names that a test may use. Not among them: input and output, evaluation of text, namespaces, attributes by
name, and whatever shows an object's identity."""

PURE_MODULES = frozenset(_MODULES.split())
"""Modules that a test may import, with their submodules."""

FORBIDDEN_ATTRIBUTES = frozenset(
    (
        *_CLOCK_AND_CHANCE.split(),
        *_ATTRIBUTES_BY_NAME.split(),
        *_WAYS_INTO_THE_INTERPRETER.split(),
        *_NUMPY_FILES.split(),
    )
)
"""Attributes that a test may not use on anything, besides all that begin with an underscore."""


def is_importable(module: str) -> bool:
    """Whether a test may import the dotted `module`."""
    first, *rest = module.split(".")
    return first in PURE_MODULES and all(may_be_imported_from(part) for part in rest)


def may_be_imported_from(name: str) -> bool:
    """Whether a test may take `name` out of a module, as an attribute or by `from ... import`."""
    return not name.startswith("_") and name not in FORBIDDEN_ATTRIBUTES and name != "*"
