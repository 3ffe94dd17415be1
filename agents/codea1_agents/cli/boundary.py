"""Turns errors into one sentence and an exit code; no other module does."""

from __future__ import annotations

import errno
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import typer
from typer.core import TyperGroup

NOT_OK = 1
"""A check found a problem, or a training was stopped."""
USER_ERROR = 2
"""Bad input; typer uses the same code for bad usage."""
SANDBOX_FAILED = 3
"""The sandbox, an agent or a process of a run is unavailable."""
INTERRUPTED = 130
READER_GONE = 141
"""The reader of stdout, such as `head`, closed it. The code is that of a process ended by SIGPIPE."""

_traceback = ContextVar("_traceback", default=False)
_UsageError: Any = typer.BadParameter.__base__  # typer has its own copy of click, which has no public name


class Boundary(TyperGroup):
    """A group of commands. The project's own errors end in one sentence; all others keep their traceback."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Parse the command line; `--help` and `--version` print and exit here."""
        self._words = tuple(args)
        with _handling_errors():
            _refuse_secrets(args)
            # The option stands before the command; people also write it after.
            return super().make_context(
                info_name, sorted(args, key=lambda each: each != "--traceback"), parent, **extra
            )

    def invoke(self, ctx: Any) -> Any:
        """Run a command; exit with the code of its error."""
        token = _traceback.set(bool(ctx.params.get("traceback")))
        try:
            with _handling_errors():
                from codea1_env.plugins import only_typed  # noqa: PLC0415  slow to import for the first help

                with only_typed(self._words):
                    return super().invoke(ctx)
        finally:
            _traceback.reset(token)


def _refuse_secrets(args: list[str]) -> None:
    """Raise UserError before any other message can repeat a word that holds a key."""
    suspects = [word for word in args if re.search("[=: ]", word)]
    if suspects:
        from codea1_env.secret import (  # noqa: PLC0415  slow to import for the first help
            require_no_secrets,
            require_variables,
        )

        for word in suspects:
            require_no_secrets(word)
            require_variables(word)


@contextmanager
def _handling_errors() -> Iterator[None]:
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt:
        _say("interrupted")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        raise typer.Exit(READER_GONE) from None
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # rich raises it while it writes the help
            raise typer.Exit(READER_GONE) from None
        raise
    except _UsageError as error:  # its message quotes the command line
        if type(error).__name__ == "NoArgsIsHelpError":  # it has printed the help
            raise
        details: list[Any] = getattr(error.__cause__, "errors", list)()  # of pydantic, which does not say what it got
        got = f", got {details[0]['input']!r:.100}" if details else ""
        message = error.format_message().replace("Input should be", "expected")
        message = re.sub(r"(, unable to .*)?\.?$", "", message) + got
        message = re.sub(r"Got unexpected extra argument\(s\) \((.*)\)", r"expected no more arguments, got \1", message)
        _say(f"{message} (see {error.ctx.command_path} --help)" if error.ctx else message)
        raise typer.Exit(USER_ERROR) from None
    except Exception as error:
        code = _exit_code(error)
        if code is None:
            raise
        if wants_traceback():
            show_traceback("".join(traceback.format_exception(error)))
        _say(f"{error.filename or 'cannot write'}: {error.strerror}" if isinstance(error, OSError) else str(error))
        raise typer.Exit(code) from error
    finally:
        _flush_stdout()


def _say(sentence: str) -> None:
    from codea1_agents.cli.console import say_error  # noqa: PLC0415  only on errors

    say_error(sentence)


def wants_traceback() -> bool:
    """Return whether the running command was given `--traceback`."""
    return _traceback.get()


def show_traceback(text: str) -> None:
    """Print a traceback on stderr, without control characters."""
    from codea1_env.rendering import harmless  # noqa: PLC0415  only on errors

    sys.stderr.write(harmless(text, keep="\n").rstrip() + "\n")


def _flush_stdout() -> None:
    """Flush stdout. If that fails, redirect it to the null device, or Python would report an error at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _exit_code(error: Exception) -> int | None:
    if isinstance(error, OSError) and error.errno and (error.filename or error.errno == errno.ENOSPC):
        return USER_ERROR
    # If the module is not loaded, none of its errors was raised; importing it would slow `--help` down.
    errors = sys.modules.get("codea1_env.errors")
    if errors is None:
        return None
    if isinstance(error, errors.UserError):
        return USER_ERROR
    if isinstance(error, errors.SandboxError | errors.ClusterError | errors.AgentUnavailable):
        return SANDBOX_FAILED
    if isinstance(error, errors.CodeA1Error):
        return NOT_OK
    return None
