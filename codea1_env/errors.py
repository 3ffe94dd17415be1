"""All exceptions that the project raises on purpose, grouped by whose fault they are.

::

    CodeA1Error
    ├── UserError (ValueError)          the caller's: one sentence that names the place; the command line exits with 2
    │   ├── UnknownName                 no such source, agent, rules or sandbox
    │   ├── BrokenInput                 a file, row, run folder or book that cannot be read
    │   └── MissingExtra (ImportError)  an optional package is needed; the message holds the pip line
    ├── SandboxError (RuntimeError)     ours: the sandbox failed, not the program in it. Never evidence, never a reward
    ├── ClusterError (RuntimeError)     ours: a process of a run was lost and cannot be replaced
    └── AgentUnavailable (RuntimeError) nobody's: an agent gave no reply. Its game is masked, never scored 0

A fault of a *candidate* or a *tester* is never an exception: it is a `Verdict` or a `Rejection`.
All exceptions pickle, so they cross Ray and multiprocessing unchanged.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, distribution
from math import inf
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

_T = TypeVar("_T")

PUBLISHED = False
"""Whether a package index has a release. Until then no text may tell people to install from one."""
DISTRIBUTION = "codea1-env"


class CodeA1Error(Exception):
    """Base class of all errors that are raised on purpose."""


class UserError(CodeA1Error, ValueError):
    """The caller requested something impossible; the message says what and where."""


class UnknownName(UserError):
    """A name that is not in a list of known names."""

    @classmethod
    def of(cls, kind: str, name: str, known: Iterable[str]) -> UnknownName:
        """Make an error that lists the known names, a dozen of them if there are many, after the nearest one if the
        name may be a typing error."""
        names = sorted(known)
        section = name[: max(name.rfind("."), name.rfind("/")) + 1]
        start = len(section) if all(each.startswith(section) for each in names) else 0  # what all share is no likeness
        near = get_close_matches(name[start:], [each[start:] for each in names], n=1)
        hint = f"did you mean {name[:start] + near[0]!r}? " if near else ""
        listed = ", ".join(names[:12]) + f" and {len(names) - 12} more" if len(names) > 24 else ", ".join(names)
        return cls(f"unknown {kind} {name!r}: {hint}known are {listed or 'none'}")


class BrokenInput(UserError):
    """A file, row, run folder or book that cannot be read; the message names the place."""


class MissingExtra(UserError, ImportError):
    """An optional package is needed."""

    @classmethod
    def of(cls, need: str, extra: str) -> MissingExtra:
        """Make an error that names the feature that needs the package, and the pip line that installs it."""
        return cls(f"{need} needs an optional package: {install_line(f'{DISTRIBUTION}[{extra}]')}")


def install_line(requirement: str) -> str:
    """Return the pip command that adds an extra to an installed distribution.

    The command names the clone or file that the distribution was installed from (PEP 610), else its name, and pins
    what a clone's `constraints.txt` pins.

    Args:
        requirement: such as `codea1-env[openai]`.
    """
    name, bracket, extras = requirement.partition("[")
    try:
        origin = json.loads(distribution(name).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        origin = {}
    url, install = origin.get("url", ""), f"{_pip()} install"
    if origin.get("dir_info", {}).get("editable"):
        clone = unquote(url.removeprefix("file://"))
        pins = f"-c '{clone}/constraints.txt' " if Path(clone, "constraints.txt").is_file() else ""
        return f"{install} {pins}-e '{clone}{bracket}{extras}'"
    if url:
        return f"{install} '{requirement} @ {url}'"
    if name == DISTRIBUTION and not PUBLISHED:
        return f"{install} -c constraints.txt -e '.{bracket}{extras}' in a clone of {DISTRIBUTION}"
    return f"{install} '{requirement}'"


def _pip() -> str:
    """Return the pip of this interpreter as a shell finds it: the interpreter's path, unless PATH leads to it."""
    running = Path(sys.executable)
    if Path(shutil.which("pip") or "").parent == running.parent:
        return "pip"
    place = running.relative_to(Path.cwd()) if running.is_relative_to(Path.cwd()) else running
    return f"{shlex.quote(str(place))} -m pip"


@contextmanager
def extra_needed(need: str, extra: str) -> Iterator[None]:
    """Guard imports of an optional package.

    Args:
        need: the feature that needs the package.
        extra: the extra of this project that installs it.

    Raises:
        MissingExtra: an import in the block has failed.
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtra.of(need, extra) from error


class SandboxError(CodeA1Error, RuntimeError):
    """The sandbox itself failed, after its own retries. Callers mask what depends on it."""


class ClusterError(CodeA1Error, RuntimeError):
    """A process of a run was lost and cannot be replaced. What the run has saved is intact."""


class AgentUnavailable(CodeA1Error, RuntimeError):
    """An agent gave no reply for reasons outside of the game, after its own retries, for example because its endpoint
    is down.

    Callers mask the game that needed the reply; other games continue.
    """


def message_of(error: BaseException) -> str:
    """Return what an error of somebody's code says, in one line of at most 300 characters; "" if that raises, too."""
    try:
        return " ".join(str(error).split())[:300]
    except (Exception, SystemExit):  # noqa: BLE001  of its own `__str__`
        return ""


def whole_number(name: str, value: object, *, most: float, least: int = 1) -> int:
    """Return an argument as an integer.

    Raises:
        UserError: it is not a whole number from `least` to `most`.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= most:
        bounds = f"of at least {least}" if most == inf else f"from {least} to {most}"
        raise UserError(f"{name} must be a whole number {bounds}, got {value!r:.100}")
    return int(value)


def as_lists(**given: Any) -> list[list[Any]]:
    """Return several arguments as lists of equal length.

    Raises:
        UserError: one of them is not iterable, or is a string, or their lengths differ.
    """
    for name, value in given.items():
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise UserError(f"{name} must be a list, got {type(value).__name__} ({value!r:.100})")
    lists = {name: list(value) for name, value in given.items()}
    if len({len(values) for values in lists.values()}) > 1:
        numbers = " and ".join(f"{len(values)} {name}" for name, values in lists.items())
        raise UserError(f"expected equal numbers, got {numbers}")
    return [*lists.values()]


def of_type(name: str, value: object, kind: type[_T]) -> _T:
    """Return an argument of the given type.

    Raises:
        UserError: it is not of type `kind`.
    """
    if not isinstance(value, kind):
        raise UserError(f"{name} must be of type {kind.__name__}, got {type(value).__name__} ({value!r:.100})")
    return value


def one_of(name: str, value: str, known: Sequence[str]) -> str:
    """Return an argument that is one of the known values.

    Raises:
        UserError: it is none of them.
    """
    if value not in known:
        raise UserError(f"{name} must be one of {', '.join(known)}, got {value!r}")
    return value
