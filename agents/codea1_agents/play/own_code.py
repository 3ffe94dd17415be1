"""Describes an error by its class, its message, and the last line of the agent's own code that it passed."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

import codea1_env
from codea1_env.agent import threads
from codea1_env.errors import message_of

_AGENTS = Path(__file__).parent.parent
_ENVIRONMENT = Path(codea1_env.__file__).parent
_STANDARD_LIBRARY = Path(os.__file__).parent
_CALLERS = (Path(__file__).parent, Path(threads.__file__).parent, _AGENTS / "checks")
"""Folders of the code that calls agents."""
_OWN = "."


def describe_failure(error: BaseException) -> str:
    """Return the error in one line.

    The agent's own code is what belongs neither to an installed package nor to this project; for an agent that is
    itself part of a package, it is that package.
    """
    text = message_of(error)
    return f"{type(error).__name__}{f': {text}' if text else ''}{own_line(error)}"


def own_line(error: BaseException) -> str:
    """Return the last line of the agent's own code that the error passed, as in " (file:line)"; empty if none."""
    frames = [(_package(frame.filename), frame) for frame in traceback.extract_tb(error.__traceback__)]
    packages = [package for package, _ in frames if package]
    own = _OWN if _OWN in packages else next(iter(packages), "")
    place = [f" ({frame.filename}:{frame.lineno})" for package, frame in frames if own and package == own]
    return place[-1] if place else ""


def _package(filename: str) -> str:
    """Return the package of a file, `_OWN` if it is not installed, or "" for code that does not belong to an agent."""
    path = Path(filename)
    if filename.startswith("<frozen ") or path.parent in _CALLERS:
        return ""
    for folder in (_AGENTS, _ENVIRONMENT):
        if path.is_relative_to(folder):
            return folder.name
    for name in ("site-packages", "dist-packages"):
        if name in path.parts[:-1]:
            return path.parts[path.parts.index(name) + 1]
    return "" if path.is_relative_to(_STANDARD_LIBRARY) else _OWN
