"""How far a step is: runners and learners report what is done, and the driver counts it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum, auto
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codea1_agents.models.sampling import Response


class Phase(StrEnum):
    """What the driver waits for."""

    STARTING = "starting Ray"
    LOADING = "loading models"
    FIRST_EVALUATION = "first evaluation"
    SAMPLING = auto()
    """Until its end, nothing changes that a checkpoint holds."""
    LEARNING = auto()
    EVALUATING = auto()
    SAVING = auto()


PREPARING = (Phase.STARTING, Phase.LOADING, Phase.FIRST_EVALUATION)
"""The phases before the first step."""


class Part(StrEnum):
    """What is counted."""

    PROGRAMS = auto()
    """Replies of coders."""
    SUITES = auto()
    """Replies of testers; those to programs that do not load count when the others are written."""
    JUDGED = "judged problems"
    MINIBATCHES = auto()
    """Optimiser steps."""


@dataclass(frozen=True, slots=True)
class Done:
    """What is done since the last report."""

    part: Part
    n: int = 1
    n_tokens: int = 0
    n_cut: int = 0
    """Replies that the token limit ended."""


Report = Callable[[Done], object]
"""Called with what more is done."""

_REPORT_EVERY_S = 0.5  # a report to another process takes a millisecond


def ignore_report(_done: Done) -> None:
    """Ignore a report."""


@contextmanager
def counted_replies(part: Part, total: int, report: Report) -> Iterator[Callable[[Response], None]]:
    """Yield a function that counts responses and reports them now and then; report all others of `total` at the end."""
    left, new, reported_at = total, Done(part, 0), time.monotonic()

    def count(response: Response) -> None:
        nonlocal left, new, reported_at
        new = Done(part, new.n + 1, new.n_tokens + response.n_tokens, new.n_cut + response.is_cut)
        if time.monotonic() - reported_at >= _REPORT_EVERY_S:
            report(new)
            left, new, reported_at = left - new.n, Done(part, 0), time.monotonic()

    yield count
    report(replace(new, n=left))


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a phase is."""

    phase: Phase
    totals: Mapping[Part, int] = field(default_factory=dict)
    """What is counted; empty: nothing."""
    done: Mapping[Part, int] = field(default_factory=dict)
    """At most the totals."""
    n_tokens: int = 0
    """Of the replies that have ended."""
    n_cut: int = 0
    seconds: float = 0.0
    """Since the phase began."""
    last_s: float = 0.0
    """How long the same phase of the last step took; 0: unknown."""

    def __str__(self) -> str:
        """Return e.g. `sampling: suites 8 of 32, 2 cut, 61 tokens/s, left 0:35`."""
        begun = [part for part in self.totals if part in self.done]
        shown = [part for part in begun if self.done[part] < self.totals[part]] or begun[-1:]
        facts = [f"{part} {self.done[part]} of {self.totals[part]}" for part in shown]
        if self.n_cut:
            facts.append(f"{self.n_cut} cut")
        if self.n_tokens and self.seconds:
            facts.append(f"{self.n_tokens / self.seconds:.0f} tokens/s")
        left_s = round(self.last_s - self.seconds)
        if facts and left_s > 0:
            facts.append(f"left {left_s // 60}:{left_s % 60:02}")
        return f"{self.phase}: {', '.join(facts)}" if facts else str(self.phase)


class Meter:
    """Counts reports and calls `show` with the progress; several threads may report."""

    def __init__(self) -> None:
        self.show: Callable[[Progress], object] = lambda _: None
        self._lock = RLock()
        self._now, self._begun = Progress(Phase.SAVING), 0.0
        self._took: dict[Phase, float] = {}
        """Seconds until the last report of each phase."""

    def begin(self, phase: Phase, totals: Mapping[Part, int] | None = None) -> None:
        """Begin a phase, or what is counted in it. Then `show` gets no late reports of an earlier phase."""
        with self._lock:
            now = time.monotonic()
            if phase is not self._now.phase:
                self._took[self._now.phase], self._begun = self._now.seconds, now
            self._now = Progress(phase, totals or {}, seconds=now - self._begun, last_s=self._took.get(phase, 0.0))
            self.show(self._now)

    def report(self, done: Done) -> None:
        """Count; ignore a late report of another phase."""
        with self._lock:
            now, part = self._now, done.part
            if part in now.totals:  # what a lost runner had done is reported again
                count = min(now.done.get(part, 0) + done.n, now.totals[part])
                n_tokens, n_cut = now.n_tokens + done.n_tokens, now.n_cut + done.n_cut
                seconds, counts = time.monotonic() - self._begun, {**now.done, part: count}
                self._now = replace(now, done=counts, n_tokens=n_tokens, n_cut=n_cut, seconds=seconds)
                self.show(self._now)


def report_minibatches(learner: Any, report: Report) -> None:
    """Let a learner report each step of its optimisers."""
    for module in learner.module.keys():  # noqa: SIM118  a MultiRLModule is no mapping
        for _, optimizer in learner.get_optimizers_for_module(module):
            optimizer.register_step_post_hook(lambda *_: report(Done(Part.MINIBATCHES)))
