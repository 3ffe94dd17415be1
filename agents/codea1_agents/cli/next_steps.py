"""What a person is likely to type next, printed when a command is done."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

from codea1_agents.cli.console import Page

NEXT_STEPS = {
    "play": ("codea1 report {out}", "codea1 rescore {out} --sweep alpha=0,.25,.5,.75,1"),
    "train": ("codea1 report {out}", "codea1 train --resume {out} --steps {steps}"),
    "eval": ("the same with another --agent and --out OTHER, then: codea1 eval compare {out} OTHER",),
    "eval without --out": ("the same with --out FOLDER, which codea1 eval compare reads",),
    "duel": ("codea1 demo duel --number {number}",),
    "experiment": ("codea1 experiment {name} --out {out} --seeds {seeds}",),
}
"""By what is done, as it runs in the folder where the user stands."""


def show_next(page: Page, done: str, **values: object) -> None:
    """Print the next steps, unless the output is for a program or the user asked for quiet.

    Args:
        page: the command's output.
        done: a key of `NEXT_STEPS`.
        values: what its texts name; they are quoted for a shell.
    """
    if page.quiet or page.as_json:
        return
    quoted = {name: shlex.quote(str(value)) for name, value in values.items()}
    for text in NEXT_STEPS[done]:
        page.say(f"next: {as_typed(text.format_map(quoted))}")


def as_typed(text: str) -> str:
    """Return a text with commands of `codea1` as they run in the user's shell: with its path, if that does not find it.

    An environment that is not activated, such as the one of `make demo`, is on no path.
    """
    running, found = Path(sys.argv[0]), shutil.which("codea1")
    if running.name != "codea1" or (found is not None and Path(found).resolve() == running.resolve()):
        return text
    place = Path(os.path.relpath(running)) if running.is_relative_to(Path.cwd()) else running
    return re.sub(r"(?:^|(?<=: ))codea1 ", lambda _: f"{shlex.quote(str(place))} ", text)
