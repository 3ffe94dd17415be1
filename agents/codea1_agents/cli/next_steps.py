"""What a person is likely to type next, printed when a command is done."""

from __future__ import annotations

import shlex

from codea1_agents.cli.console import Page

NEXT_STEPS = {
    "play": ("codea1 report {out} -o {out}.html", "codea1 rescore {out} --sweep alpha=0,.25,.5,.75,1"),
    "train": ("codea1 report {out} -o {out}.html", "codea1 train --resume {out} --steps {steps}"),
    "eval": ("the same with another --agent and --out OTHER, then: codea1 eval compare {out} OTHER",),
    "eval without --out": ("the same with --out FOLDER, which codea1 eval compare reads",),
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
        page.say(f"next: {text.format_map(quoted)}")
