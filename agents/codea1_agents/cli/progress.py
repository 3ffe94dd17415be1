"""Shows a live progress line on stderr; where that is no terminal, a plain line every half minute."""

from __future__ import annotations

import time
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

_FIRST_LINE_S, _LINE_S = 10.0, 30.0


def bar_columns() -> tuple[ProgressColumn, ...]:
    """Return description, bar, count, time so far and time left."""
    return (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("elapsed"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )


class Progress:
    """A progress line; after an episode, it also shows the episode's problem and rewards."""

    def __init__(self, what: str, total: int, page: Page, *, done: int = 0, hidden: bool = False) -> None:
        console = Console(stderr=True)
        self._page = None if hidden or page.quiet or console.is_terminal else page
        self._what, self._first, self._begun = what, done, time.monotonic()
        self._next_line = self._begun + _FIRST_LINE_S
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
        self._tell()

    def advance(self, record: EpisodeRecord) -> None:
        """Count one finished episode."""
        rewards = record.rounds[-1].rewards
        tester = rewards.testers[0].value if rewards.testers else None
        text = f"{harmless(record.problem_id)}  coder {_short(rewards.coder.value)}  tester {_short(tester)}"
        self._progress.update(self._task, advance=1, description=text)
        self._tell()

    def _tell(self) -> None:
        """Print a plain line, if there is no terminal and the last one was some time ago."""
        now = time.monotonic()
        if self._page is None or now < self._next_line:
            return
        self._next_line = now + _LINE_S
        task, elapsed = self._progress.tasks[0], now - self._begun
        new, total = task.completed - self._first, task.total or 0
        left = f", left {_clock(elapsed / new * (total - task.completed))}" if new and total else ""
        self._page.note(f"{self._what} {task.completed:g}/{total:g}, elapsed {_clock(elapsed)}{left}")

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


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def _short(reward: float | None) -> str:
    return "masked" if reward is None else f"{reward:.2f}"
