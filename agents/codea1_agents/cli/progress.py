"""Shows a live progress line on stderr; shows nothing if stderr is not a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress

from codea1_agents.cli.console import Page
from codea1_env.rendering import harmless
from codea1_env.runs.records import EpisodeRecord


def bar_columns() -> tuple[ProgressColumn, ...]:
    """Return description, bar, count, time so far and time left."""
    return (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )


class Progress:
    """A progress line; after an episode, it also shows the episode's problem and rewards."""

    def __init__(self, what: str, total: int, page: Page, *, done: int = 0, hidden: bool = False) -> None:
        console = Console(stderr=True)
        self._progress = RichProgress(
            *bar_columns(),
            console=console,
            transient=True,
            disable=hidden or page.quiet or not console.is_terminal,
            # Results may go to another stream than stderr; the live display must not redirect them.
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task(what, total=total, completed=done)

    def reach(self, done: int, total: int) -> None:
        """Set the numbers of finished and of all steps."""
        self._progress.update(self._task, completed=done, total=total)

    def advance(self, record: EpisodeRecord) -> None:
        """Count one finished episode."""
        rewards = record.rounds[-1].rewards
        tester = rewards.testers[0].value if rewards.testers else None
        text = f"{harmless(record.problem_id)}  coder {_short(rewards.coder.value)}  tester {_short(tester)}"
        self._progress.update(self._task, advance=1, description=text)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Hide the progress line inside the block, so that other output can be printed."""
        self._progress.stop()
        try:
            yield
        finally:
            self._progress.start()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


def _short(reward: float | None) -> str:
    return "masked" if reward is None else f"{reward:.2f}"
