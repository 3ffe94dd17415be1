"""Names from installed packages: entry points, and `module:attribute` strings.

The project's own agents, problem sources and sandboxes are registered in the same way as anyone's: in an installed
distribution's metadata, groups `codea1_env.agents`, `.problems`, `.sandboxes` and `.rewards`. Listing imports nothing.
"""

from __future__ import annotations

import importlib
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from codea1_env.errors import UnknownName, UserError

__all__ = ["Group", "names", "resolve"]

Group = Literal["agents", "problems", "sandboxes", "rewards"]


def names(group: Group) -> tuple[str, ...]:
    """Return the registered names of a group, sorted."""
    return tuple(sorted(_registered(group)))


def resolve(group: Group, name: str) -> Any:
    """Return the object behind a registered name or a `module:attribute` string.

    Raises:
        UnknownName: not registered and not of the form `module:attribute`.
        UserError: the module or the attribute cannot be imported.
    """
    registered = _registered(group)
    if name in registered:
        return _imported(registered[name].value, f"{group[:-1]} {name!r}")
    if ":" in name:
        return _imported(name, f"{group[:-1]} {name!r}")
    raise UnknownName.of(group[:-1].removesuffix("e") if group == "sandboxes" else group[:-1], name, registered)


def _registered(group: Group) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=f"codea1_env.{group}")}


def _imported(path: str, what: str) -> Any:
    module_name, _, attribute = path.partition(":")
    try:
        target: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            target = getattr(target, part)
    except ImportError as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{what}: cannot import {module_name!r} ({error})") from error
    except AttributeError as error:
        raise UserError(f"{what}: {error}") from error
    return target
