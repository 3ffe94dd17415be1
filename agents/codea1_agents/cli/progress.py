"""Says on stderr what goes on: a live line; where that is no terminal, a plain one a second into each phase.

Where a phase lasts, a plain line follows every half minute, even if nothing is done in the meantime, and one after ten
seconds if the first could not yet say how long it lasts. Both kinds name what runs for five seconds or more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Self, TypeVar

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

_T = TypeVar("_T")
_FIRST_LINE_S, _FORETOLD_S, _LINE_S, _POLL_S, _LONG_S = 1.0, 10.0, 30.0, 0.25, 5.0


def bar_columns(unit: str = "") -> tuple[ProgressColumn, ...]:
    """Return description, bar, count, time so far and time left."""
    return (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(" of "),
        *([TextColumn(unit)] if unit else []),
        TextColumn("elapsed"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )


class Progress:
    """A progress line; after an episode, it also shows the episode's problem and rewards.

    Args:
        what: name of the phase, such as `loading models`.
        total: steps of the phase; None: unknown.
        page: takes the plain lines.
        done: steps that are done already.
        hidden: whether to say nothing.
    """

    def __init__(self, what: str, total: int | None, page: Page, *, done: int = 0, hidden: bool = False) -> None:
        console = Console(stderr=True)
        self._page = None if hidden or page.quiet or console.is_terminal else page
        self.running: Callable[[], tuple[str, float] | None] = lambda: None
        """Returns what has been running for longest, and since when (`time.monotonic`)."""
        self.facts: Callable[[], str] = lambda: ""
        """Returns what else is known of the phase."""
        self._progress = RichProgress(
            *bar_columns(),
            console=console,
            transient=True,
            disable=hidden or page.quiet or not console.is_terminal,
            # Results may go to another stream than stderr; the live display must not redirect them.
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task("")
        self._next_line = 0.0
        self._over, self._teller = Event(), Thread(target=self._tell, daemon=True)
        self.begin(what, total, done=done)

    def begin(self, what: str, total: int | None = None, *, done: int = 0, soon: bool = True) -> None:
        """Begin a phase: its clock starts anew, and a plain line follows soon."""
        self.what, self._about, self._first, self._begun = what, "", done, time.monotonic()
        if soon:
            self.rest(_FIRST_LINE_S)
        self._progress.reset(self._task, completed=done, description=what)
        self._progress.tasks[0].total = total  # `reset` would keep the former one if there is none
        self._text = what

    def reach(self, done: int, total: int, about: str = "") -> None:
        """Set the numbers of finished and of all steps, and what is done at present."""
        self._about = f" ({about})" if about else ""
        self._progress.update(self._task, completed=done, total=total)
        self._text = f"{self.what}{self._about}"

    def step(self) -> None:
        """Count one finished step."""
        self._progress.advance(self._task)

    def counting(self, items: Iterable[_T]) -> Iterator[_T]:
        """Yield the items, which are the steps of the phase."""
        for item in items:
            yield item
            self.step()

    def advance(self, record: EpisodeRecord) -> None:
        """Count one finished episode."""
        rewards = record.rounds[-1].rewards
        tester = rewards.testers[0].value if rewards.testers else None
        self.step()
        self._text = f"coder {_short(rewards.coder.value)}  tester {_short(tester)}  {harmless(record.problem_id)}"

    def _waits(self) -> str:
        name, since = self.running() or ("", time.monotonic())
        seconds = time.monotonic() - since
        return f"waiting {clock(seconds)} for {harmless(name)}" if seconds >= _LONG_S else ""

    def rest(self, seconds: float = _LINE_S) -> None:
        """Print no plain line for some seconds: something else has just been printed."""
        self._next_line = time.monotonic() + seconds

    def line(self) -> str:
        """Return what the plain line says now."""
        task, elapsed = self._progress.tasks[0], time.monotonic() - self._begun
        new, total = task.completed - self._first, task.total
        counted = "" if total is None else f" {task.completed:g}/{total:g}"
        left = f", left {clock(elapsed / new * (total - task.completed))}" if new and total else ""
        waits, facts = self._waits(), self.facts()
        counted += f", {facts}" if facts else ""
        return f"{self.what}{self._about}{counted}, elapsed {clock(elapsed)}{left}{f'; {waits}' if waits else ''}"

    def tell(self) -> None:
        """Bring the live line up to date; without a terminal, print a plain one if the last is some time ago."""
        facts = ", ".join(filter(None, (self._waits() or self._text, self.facts())))
        most = max(self._progress.console.width - 40, 20)  # a short bar, counts and clocks need 40 columns
        self._progress.update(self._task, description=facts if len(facts) <= most else f"{facts[: most - 1]}…")
        if self._page is not None and time.monotonic() >= self._next_line:
            line, early = self.line(), self._begun + _FORETOLD_S - time.monotonic()
            self.rest(early if early > 0 and "left" not in line and self._progress.tasks[0].total else _LINE_S)
            self._page.note(line)

    def _tell(self) -> None:
        while not self._over.wait(_POLL_S):
            self.tell()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Hide the progress line inside the block, so that other output can be printed."""
        self._progress.stop()
        try:
            yield
        finally:
            self._progress.start()

    def __enter__(self) -> Self:
        self._progress.start()
        self._teller.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
        self._over.set()
        self._teller.join()


def clock(seconds: float) -> str:
    """Return minutes and seconds, with hours if there are any."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def _short(reward: float | None) -> str:
    return "masked" if reward is None else f"{reward:.2f}"
