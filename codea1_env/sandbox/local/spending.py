"""What one job has used up of its limits: processor time, sleep, restarts. Values in, decisions out, no clock."""

from __future__ import annotations

from enum import Enum, auto

from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.sandbox.interface import Limits

_MAX_STRETCH = 10  # a starved process may sleep this many times `wall_s` before the job is run again
_COSTLY = 0.25  # share of the limit


class Sleep(Enum):
    """What a process's sleep says about its program."""

    ALLOWED = auto()
    TOO_LONG = auto()
    """It has slept by its own will."""
    STARVED = auto()
    """The machine gave it no processor, or nobody knows: no fault of the program."""


class Spending:
    """What a job has used so far."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.cpu_us = 0
        """Processor time of the processes that have ended."""
        self._n_costly = 0
        self._idle_s = 0.0
        self._slept_s = 0.0
        """In earlier processes of the program."""
        self._allowed_idle_s = limits.wall_s

    def begin(self) -> None:
        """Begin to measure the sleep of a new process."""
        self._slept_s += self._asleep_s
        self._idle_s, self._allowed_idle_s = 0.0, self._limits.wall_s

    def is_all(self, more_us: int = 0) -> bool:
        """Whether the processor time of all calls together is used up, with that of a process that still runs."""
        return self.cpu_us + more_us > self._limits.cpu_s * (1 + self._limits.job_factor) * 1e6

    def idle(self, seconds: float) -> bool:
        """Add idle time; return whether it must be found out what it was spent on."""
        self._idle_s += seconds
        return self._idle_s > self._allowed_idle_s

    def judge_idle(self, waited_s: float | None, is_retry: bool) -> Sleep:
        """Decide about a process that was idle too long. Time in which it waits for a processor does not count.

        Args:
            waited_s: how long the job's processes waited for a processor; None if unknown.
            is_retry: whether the job was run before and slept too long by the clock.
        """
        wall_s = self._limits.wall_s
        if waited_s is None:
            return Sleep.TOO_LONG if is_retry else Sleep.STARVED
        if self._idle_s > wall_s + waited_s:
            return Sleep.TOO_LONG
        if self._idle_s > wall_s * _MAX_STRETCH:
            return Sleep.STARVED
        self._allowed_idle_s = wall_s + waited_s
        return Sleep.ALLOWED

    def fault(self, outcome: Outcome, used_s: float) -> None:
        """Add a call that has failed, after so much processor time: only a few may have taken long."""
        self._n_costly += outcome.kind is OutcomeKind.TIME_LIMIT or used_s > self._limits.cpu_s * _COSTLY

    def allows_restart(self) -> bool:
        """Whether both the costly faults and the sleep so far are within the limits."""
        n_times = self._limits.max_restarts
        return self._n_costly <= n_times and self._slept_s + self._asleep_s <= self._limits.wall_s * (n_times + 1)

    @property
    def _asleep_s(self) -> float:
        """How long the current process has been idle, without the known waits for a processor."""
        return max(0.0, self._idle_s - (self._allowed_idle_s - self._limits.wall_s))
