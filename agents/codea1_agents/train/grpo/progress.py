"""How far a step is: runners and learners report what is done, and the driver counts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum, auto
from threading import RLock
from typing import Any


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
    """Problems whose programs are written."""
    SUITES = auto()
    """Problems whose suites are written."""
    JUDGED = auto()
    """Problems that are judged."""
    MINIBATCHES = auto()
    """Optimiser steps."""


_PARTS = {Phase.SAMPLING: (Part.PROGRAMS, Part.SUITES, Part.JUDGED), Phase.LEARNING: (Part.MINIBATCHES,)}

Report = Callable[[Part, int], object]
"""Called with how many more are done."""


def unreported(_part: Part, _n: int) -> None:
    """Ignore a report."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a phase is."""

    phase: Phase
    total: int = 0
    """Problems, or minibatches; 0: not counted."""
    done: Mapping[Part, int] = field(default_factory=dict)
    """At most `total` each."""

    def __str__(self) -> str:
        """Return e.g. `sampling: programs 16, suites 8 of 32`."""
        counts = ", ".join(f"{part} {self.done[part]}" for part in _PARTS.get(self.phase, ()) if part in self.done)
        return f"{self.phase}: {counts} of {self.total}" if counts else str(self.phase)


class Meter:
    """Counts reports and calls `show` with the progress; several threads may report."""

    def __init__(self) -> None:
        self.show: Callable[[Progress], object] = lambda _: None
        self._lock = RLock()
        self._now = Progress(Phase.SAVING)

    def begin(self, phase: Phase, total: int = 0) -> None:
        """Begin a phase. After that, `show` gets nothing of an earlier phase, even if a runner reports late."""
        with self._lock:
            self._now = Progress(phase, total)
            self.show(self._now)

    def report(self, part: Part, n: int) -> None:
        """Count; ignore a late report of another phase."""
        with self._lock:
            now = self._now
            if part in _PARTS.get(now.phase, ()):  # problems of a lost runner are reported again
                count = min(now.done.get(part, 0) + n, now.total)
                self._now = replace(now, done={**now.done, part: count})
                self.show(self._now)


def report_minibatches(learner: Any, report: Report) -> None:
    """Let a learner report each step of its optimisers."""
    for module in learner.module.keys():  # noqa: SIM118  a MultiRLModule is no mapping
        for _, optimizer in learner.get_optimizers_for_module(module):
            optimizer.register_step_post_hook(lambda *_: report(Part.MINIBATCHES, 1))
