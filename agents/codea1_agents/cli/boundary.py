"""The one place where errors become a sentence and an exit code."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperGroup

__all__ = ["INTERRUPTED", "NOT_OK", "SANDBOX_FAILED", "USER_ERROR", "Boundary"]

NOT_OK = 1
"""A check found something."""
USER_ERROR = 2
"""Bad input; also typer's own for bad usage."""
SANDBOX_FAILED = 3
INTERRUPTED = 130


class Boundary(TyperGroup):
    """A group of commands whose errors made on purpose end in one sentence; all others keep their traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; leave with the exit code that its error stands for."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            code = _exit_code(error)
            if code is None:
                raise
            from codea1_agents.cli.console import say_error  # noqa: PLC0415  only on errors

            say_error(str(error))
            raise typer.Exit(code) from error


def _exit_code(error: Exception) -> int | None:
    # None of ours can have been raised if the module is not there; importing it would slow `--help` down.
    errors = sys.modules.get("codea1_env.errors")
    if errors is None:
        return None
    if isinstance(error, errors.UserError):
        return USER_ERROR
    if isinstance(error, errors.SandboxError):
        return SANDBOX_FAILED
    return None
