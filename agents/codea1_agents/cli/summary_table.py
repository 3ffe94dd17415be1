"""Prints a run's figures as a table."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from codea1_agents.cli.console import counted, estimate_cells, new_table
from codea1_agents.play.games import TimeSplit
from codea1_agents.play.summary import LABELS, Summary
from codea1_env.rendering import harmless
from codea1_env.runs.config import RunConfig


def summary_table(summary: Summary, config: RunConfig) -> RenderableType:
    """Return the title, the table, and a line about the Mistake Book and masked rounds."""
    title = f"{config.coder} against {config.tester}: {counted(summary.n_episodes, 'episode')}"
    title += f" on {counted(summary.n_problems, 'problem')}, rules {config.rules.name}, seed {config.seed}"
    rows = [(label, *estimate_cells(getattr(summary, name))) for name, label in LABELS.items()]
    table = new_table(("mean over problems", "mean", "95 % interval", "rounds"), rows, right=(1, 3))
    ends = [f"Mistake Book: {counted(summary.book_size, 'case')}"]
    if summary.n_unasked_rounds:
        ends.append(f"{counted(summary.n_unasked_rounds, 'round')} without a tester (invalid program)")
    if summary.n_masked_rounds:
        ends.append(
            f"{counted(summary.n_masked_rounds, 'round')} masked: the sandbox or an agent failed; in no figure above"
        )
    return Group(Text(harmless(title), style="bold"), table, Text("; ".join(ends)))


def time_sentence(spent: TimeSplit, wall_s: float | None = None) -> str:
    """Return a sentence about the time spent; `wall_s` is the time of a run whose games overlapped."""
    split = (
        f"{spent.total_s:.1f} s: judging {spent.judging_s:.1f} s, agents {spent.agents_s:.1f} s,"
        f" the rest {spent.rest_s:.1f} s"
    )
    return f"time: {split}" if wall_s is None else f"time: {wall_s:.1f} s; all games together {split}"
