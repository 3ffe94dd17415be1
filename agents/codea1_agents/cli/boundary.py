"""The one place where errors become a sentence and an exit code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer
from typer.core import TyperGroup

NOT_OK = 1
"""A check found something, or a training was stopped."""
USER_ERROR = 2
"""Bad input; also typer's own for bad usage."""
SANDBOX_FAILED = 3
"""Something that is not the caller's is missing: the sandbox, or an agent's endpoint."""
INTERRUPTED = 130
READER_GONE = 141
"""Whoever read stdout, such as `head`, has seen enough: as if SIGPIPE had ended the process, and as quietly."""

_UsageError: Any = typer.BadParameter.__base__  # typer brings its own copy of click, which has no public name


class Boundary(TyperGroup):
    """A group of commands whose errors made on purpose end in one sentence; all others keep their traceback."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Read the command line, where `--help` and `--version` are answered."""
        with _bounded():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; leave with the exit code that its error stands for."""
        with _bounded():
            return super().invoke(ctx)


@contextmanager
def _bounded() -> Iterator[None]:
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        raise typer.Exit(READER_GONE) from None
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # as rich has it, which writes the help
            raise typer.Exit(READER_GONE) from None
        raise
    except _UsageError as error:  # which quotes the command line
        from codea1_env.secret import without_secrets  # noqa: PLC0415  only on errors

        said = error.format_message()
        if without_secrets(said) == said:
            raise
        raise _UsageError(without_secrets(said), error.ctx) from None
    except Exception as error:
        code = _exit_code(error)
        if code is None:
            raise
        from codea1_agents.cli.console import say_error  # noqa: PLC0415  only on errors
        from codea1_env.secret import without_secrets  # noqa: PLC0415  only on errors

        is_full_disk = isinstance(error, OSError) and error.errno == errno.ENOSPC
        say_error(f"cannot write: {os.strerror(errno.ENOSPC)}" if is_full_disk else without_secrets(str(error)))
        raise typer.Exit(code) from error
    finally:
        _settle_stdout()


def _settle_stdout() -> None:
    """Write what stdout still holds; where that cannot be, let it go, or Python would complain of it at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _exit_code(error: Exception) -> int | None:
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return USER_ERROR
    # None of ours can have been raised if the module is not there; importing it would slow `--help` down.
    errors = sys.modules.get("codea1_env.errors")
    if errors is None:
        return None
    if isinstance(error, errors.UserError):
        return USER_ERROR
    if isinstance(error, errors.SandboxError | errors.AgentUnavailable):
        return SANDBOX_FAILED
    if isinstance(error, errors.CodeA1Error):
        return NOT_OK
    return None
