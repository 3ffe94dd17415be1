"""Every exception the project raises on purpose, sorted by whose fault it is.

::

    CodeA1Error
    ├── UserError (ValueError)          yours: one sentence that names the place; the command line exits with 2
    │   ├── UnknownName                 no such source, agent, preset or sandbox
    │   ├── BrokenInput                 a file, row, run folder or book that cannot be read
    │   └── MissingExtra (ImportError)  an optional package is needed; the message holds the pip line
    ├── SandboxError (RuntimeError)     ours: the sandbox failed, not the program in it. Never evidence, never a reward
    └── AgentUnavailable (RuntimeError) nobody's: an agent could not be asked. Its game is masked, never scored 0

What a *candidate* or a *tester* does wrong is never an exception: it is a `Verdict` or a `Rejection`.
All of them pickle, so that they cross Ray and multiprocessing unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

__all__ = [
    "AgentUnavailable",
    "BrokenInput",
    "CodeA1Error",
    "MissingExtra",
    "SandboxError",
    "UnknownName",
    "UserError",
    "extra_needed",
]


class CodeA1Error(Exception):
    """Base of all errors raised on purpose."""


class UserError(CodeA1Error, ValueError):
    """The caller asked for something that cannot be done; the message says what and where."""


class UnknownName(UserError):
    """A name that is not in a list of known names."""

    @classmethod
    def of(cls, kind: str, name: str, known: Iterable[str]) -> UnknownName:
        """Say which names there are (the first dozen), the nearest one first if the name looks like a slip."""
        names = sorted(known)
        near = get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        listed = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
        return cls(f"unknown {kind} {name!r}: {hint}known are {listed or 'none'}")


class BrokenInput(UserError):
    """A file, row, run folder or book that cannot be read; the message names the place."""


class MissingExtra(UserError, ImportError):
    """An optional package is needed."""

    @classmethod
    def of(cls, need: str, extra: str) -> MissingExtra:
        """Name what needs the package and the pip line that installs it."""
        return cls(f"{need} needs an optional package: pip install 'codea1-env[{extra}]'")


@contextmanager
def extra_needed(need: str, extra: str) -> Iterator[None]:
    """Guard imports of an optional package.

    Args:
        need: what needs the package.
        extra: that installs it.

    Raises:
        MissingExtra: an import has failed.
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtra.of(need, extra) from error


class SandboxError(CodeA1Error, RuntimeError):
    """The sandbox itself failed, after its own retries. Callers mask what depends on it."""


class AgentUnavailable(CodeA1Error, RuntimeError):
    """An agent gave no reply for reasons outside of the game, after its own retries: its endpoint is down, say.

    Callers mask the game that needed the reply; other games go on.
    """
