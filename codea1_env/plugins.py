"""Resolve names from installed packages: entry points, and `module:attribute` strings.

The project registers its own agents, problem sources and sandboxes in the same way as any other distribution: in its
metadata, in the groups `codea1_env.agents`, `.problems`, `.sandboxes` and `.rewards`. Listing names imports nothing.

A `module:attribute` string is code, so somebody must have written it as such: in Python, or on the command line. One
that stands in a record (another person's run folder, a checkpoint) imports nothing. A command knows the words that were
typed (`only_typed`); Python code that reads a record says so (`from_record`).
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from functools import lru_cache
from importlib.metadata import EntryPoint, distributions
from types import ModuleType
from typing import Any, Literal, TypeVar

from codea1_env.errors import CodeA1Error, UnknownName, UserError, message_of

_T = TypeVar("_T")

Group = Literal["agents", "problems", "sandboxes", "rewards"]


def names(group: Group) -> tuple[str, ...]:
    """Return the registered names of a group, sorted."""
    return tuple(sorted(_find_registered(group)))


def resolve(group: Group, name: str) -> Any:
    """Return the object of a registered name or of a `module:attribute` string.

    Raises:
        UnknownName: the name is not registered and not of the form `module:attribute`.
        UserError: the string is malformed, stands in a record, its module cannot be imported or fails, or it has no
            such attribute.
    """
    registered = _find_registered(group)
    if name in registered:
        return _import_object(registered[name].value, f"{group[:-1]} {name!r}")
    if ":" in name:
        try:
            return _import_object(name, f"{group[:-1]} {name!r}", must_be_typed=_in_record.get() or _typed is not None)
        except UserError as error:
            module, _, options = name.partition(":")
            near = get_close_matches(module, registered, n=1)
            if near and isinstance(error.__cause__, ImportError):
                raise UserError(f"{error}: did you mean {f'{near[0]}:{options}'!r}?") from error
            raise
    unknown = UnknownName.of(group[:-1].removesuffix("e") if group == "sandboxes" else group[:-1], name, registered)
    if group == "agents" and os.path.isdir(name):
        raise UnknownName(f"{unknown}; the model in this folder is transformers,model={name}")
    if group == "agents" and os.path.isfile(f"{name}.py"):
        raise UnknownName(f"{unknown}; an agent in {name}.py is named with it, for example {name}:tester")
    if group == "agents" and "." in name:
        raise UnknownName(f"{unknown}; your own class or function is {':'.join(name.rsplit('.', 1))}")
    raise unknown


def result_of(what: str, function: Callable[..., _T], *given: Any, **options: Any) -> _T:
    """Return what somebody's function or class returns.

    Raises:
        UserError: it raises anything; the message begins with `what`.
    """
    try:
        return function(*given, **options)
    except CodeA1Error:
        raise
    except (Exception, SystemExit) as error:
        text = message_of(error)
        text = text if text and isinstance(error, TypeError | ValueError) else f"{type(error).__name__}: {text}"
        raise UserError(f"{what}: {text}".rstrip(": ")) from error


_PATH = r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*"
_typed: set[str] | None = None
"""The `module:attribute` strings that the user has typed; None: no command is running."""
_in_record: ContextVar[bool] = ContextVar("_in_record", default=False)


@contextmanager
def only_typed(words: Iterable[str]) -> Iterator[None]:
    """Within the block, in all threads, only the `module:attribute` strings in these words are resolved."""
    global _typed  # noqa: PLW0603  -- threads of a command do not inherit context variables
    before, _typed = _typed, set[str]()
    try:
        for word in words:
            also_typed(word)
        yield
    finally:
        _typed = before


def also_typed(text: str) -> None:
    """Accept the `module:attribute` strings in a text that the user has named, such as a file of settings."""
    if _typed is not None:
        _typed.update(re.findall(_PATH, text))


def is_path(name: str) -> bool:
    """Whether a name that has been resolved names a module: it must be typed again where it stands in a record."""
    return re.fullmatch(_PATH, name) is not None and not name.startswith(
        ("hf:", *(f"{each}:" for each in names("problems")))
    )


@contextmanager
def from_record() -> Iterator[None]:
    """Within the block, names come from a record: only those are imported that the user has typed as well."""
    token = _in_record.set(True)
    try:
        yield
    finally:
        _in_record.reset(token)


def _find_registered(group: Group) -> dict[str, EntryPoint]:
    return _read(group, tuple((place, _changed_ns(place)) for place in sys.path))


@lru_cache
def _read(group: Group, _places: tuple[tuple[str, int], ...]) -> dict[str, EntryPoint]:
    """Read the metadata of all installed distributions, which takes milliseconds; once, unless a place has changed."""
    points: dict[str, EntryPoint] = {}
    # Without the current folder, which may be anybody's; the first distribution on the path wins, as in imports.
    for distribution in distributions(path=[place for place in sys.path if place]):
        for point in distribution.entry_points.select(group=f"codea1_env.{group}"):
            points.setdefault(point.name, point)
    return points


def _changed_ns(place: str) -> int:
    try:
        return os.stat(place or os.curdir).st_mtime_ns
    except OSError:
        return 0


def _import_object(path: str, what: str, *, must_be_typed: bool = False) -> Any:
    module_name, _, attribute = path.partition(":")
    names = attribute.split(".")
    if not all(name.isidentifier() for name in (*module_name.split("."), *names)):
        raise UserError(f"{what}: expected module:attribute, as in my_module:my_function")
    if must_be_typed and path not in (_typed or ()):
        raise UserError(
            f"{what} comes from a recorded run, and nothing named there is imported: if you trust that module, name"
            " it on the command line"
        )
    target: Any = _module(module_name, what)
    for name in names:
        if not hasattr(target, name):
            public = [each for each in dir(target) if not each.startswith("_")]
            own = [each for each in public if getattr(getattr(target, each), "__module__", "") == module_name]
            hint = f", but {', '.join(own[:12])}" if own else ""
            if near := get_close_matches(name, public, n=1):
                hint = f": did you mean {near[0]!r}?"
            raise UserError(f"{what}: {getattr(target, '__name__', target)!r} has no attribute {name!r}{hint}")
        target = getattr(target, name)
    return target


def _module(name: str, what: str) -> ModuleType:
    try:
        return result_of(f"{what}: importing {name!r} failed", importlib.import_module, name)
    except UserError as error:
        if not isinstance(error.__cause__, ImportError):
            raise
        raise UserError(f"{what}: cannot import {name!r} ({error.__cause__})") from error.__cause__
