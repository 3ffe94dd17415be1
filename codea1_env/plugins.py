"""Resolve names from installed packages: entry points, and `module:attribute` strings.

The project registers its own agents, problem sources and sandboxes in the same way as any other distribution: in its
metadata, in the groups `codea1_env.agents`, `.problems`, `.sandboxes` and `.rewards`. Listing names imports nothing.
"""

from __future__ import annotations

import importlib
import os
import sys
from difflib import get_close_matches
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, Literal

from codea1_env.errors import CodeA1Error, UnknownName, UserError

Group = Literal["agents", "problems", "sandboxes", "rewards"]


def names(group: Group) -> tuple[str, ...]:
    """Return the registered names of a group, sorted."""
    return tuple(sorted(_registered(group)))


def resolve(group: Group, name: str) -> Any:
    """Return the object of a registered name or of a `module:attribute` string.

    Raises:
        UnknownName: the name is not registered and not of the form `module:attribute`.
        UserError: the string is malformed, its module cannot be imported or fails, or it has no such attribute.
    """
    registered = _registered(group)
    if name in registered:
        return _imported(registered[name].value, f"{group[:-1]} {name!r}")
    if ":" in name:
        return _imported(name, f"{group[:-1]} {name!r}")
    unknown = UnknownName.of(group[:-1].removesuffix("e") if group == "sandboxes" else group[:-1], name, registered)
    if group == "agents" and "." in name:
        raise UnknownName(f"{unknown}; your own class or function is {':'.join(name.rsplit('.', 1))}")
    raise unknown


def _registered(group: Group) -> dict[str, EntryPoint]:
    return _read(group, tuple((place, _changed_ns(place)) for place in sys.path))


@lru_cache
def _read(group: Group, _places: tuple[tuple[str, int], ...]) -> dict[str, EntryPoint]:
    """Read the metadata of all installed distributions, which takes milliseconds; once, unless a place has changed."""
    return {point.name: point for point in entry_points(group=f"codea1_env.{group}")}


def _changed_ns(place: str) -> int:
    try:
        return os.stat(place or os.curdir).st_mtime_ns
    except OSError:
        return 0


def _imported(path: str, what: str) -> Any:
    module_name, _, attribute = path.partition(":")
    names = attribute.split(".")
    if not all(name.isidentifier() for name in (*module_name.split("."), *names)):
        raise UserError(f"{what}: expected module:attribute, as in my_module:my_function")
    target: Any = _module(module_name, what)
    for name in names:
        if not hasattr(target, name):
            near = get_close_matches(name, [each for each in dir(target) if not each.startswith("_")], n=1)
            hint = f": did you mean {near[0]!r}?" if near else ""
            raise UserError(f"{what}: {getattr(target, '__name__', target)!r} has no attribute {name!r}{hint}")
        target = getattr(target, name)
    return target


def _module(name: str, what: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except CodeA1Error:
        raise
    except ImportError as error:
        raise UserError(f"{what}: cannot import {name!r} ({error})") from error
    except (Exception, SystemExit) as error:  # third-party modules may raise anything
        text = " ".join(str(error).split())[:300]
        raise UserError(f"{what}: importing {name!r} failed: {type(error).__name__}: {text}".rstrip(": ")) from error
