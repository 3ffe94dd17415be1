"""The command line `codea1`: the only reader of `argv`. One module per group of commands; what they do is elsewhere."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run `codea1` and exit: 0 done, 1 a check failed, 2 bad input, 3 no sandbox or agent, 130 interrupted, 141 unread.

    The current folder can be imported from, so that `module:attribute` names a file beside the caller. It comes last:
    a file there can never stand in for an installed module.
    """
    sys.path.append("")
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  for as long as the process lives
    from codea1_agents.cli.app import app  # noqa: PLC0415  only when run

    app(prog_name="codea1")
    raise SystemExit(0)  # typer has left by now
