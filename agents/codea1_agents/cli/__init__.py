"""The command line `codea1`: the only reader of `argv`.

A module such as `play` declares the options of a command and imports nothing heavy, for the help and for completion; a
module such as `playing` runs it.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run `codea1` and exit: 0 done, 1 a check failed, 2 bad input, 3 no sandbox or agent, 130 interrupted, 141 unread.

    `module:attribute` also finds modules in the current folder. The folder comes last in the search, so a file in it
    never replaces an installed module.
    """
    sys.path.append("")
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  stays open until the process ends
    from codea1_agents.interrupts import sigterm_interrupts  # noqa: PLC0415  only when run

    try:
        with sigterm_interrupts(then=signal.SIG_IGN):  # what follows is cleanup
            from codea1_agents.cli.app import app  # noqa: PLC0415  only when run

            app(prog_name="codea1")
    except KeyboardInterrupt:  # before a command began, or after it has ended
        print("error: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    raise SystemExit(0)  # not reached: typer exits
