"""What is known about one job while requests about it are made: shared by its direct and its harness calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from codea1_env.outcomes import Outcome, OutcomeKind
from codea1_env.sandbox.fusion_script import Script
from codea1_env.sandbox.fusion_talk import Ending, Talk, time_limit
from codea1_env.sandbox.interface import Job, JobReport, Place
from codea1_env.sandbox.process import as_outcome
from codea1_env.sandbox.wire import LOAD, Frame, Tag, WireError
from codea1_env.values import encode

__all__ = ["SAFE_OUTPUT_BYTES", "TIER", "Ask", "Bounds", "Ledger", "claim"]

TIER = "the server's own"
SAFE_OUTPUT_BYTES = 131_072
"""That much comes back from every server."""

_FRAME_EXTRA_BYTES = 4096  # of a printed frame, over its payload in base64

Ask = Callable[[Script, Job], Talk]
"""Sends a request and reads what comes back; raises Unanswered where nothing usable does."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one request may carry, and how many one job may take."""

    max_output_bytes: int = SAFE_OUTPUT_BYTES
    """Printed by one process. Servers cut what is longer without saying so: at 1 MiB, older ones at about 160,000."""
    max_rounds: int = 64
    """Replays of a harness: each question that depends on another one's answer takes one."""


class Ledger:
    """Outcomes, faults and doubts of one job."""

    def __init__(self, job: Job, ask: Ask, bounds: Bounds) -> None:
        self.job = job
        self.bounds = bounds
        self.load: Outcome | None = None
        self.outcomes: list[Outcome | None] = [None] * len(job.calls)
        self._ask = ask
        self._cpu_s = 0.0
        self._longest_call_s = 0.0
        self._n_faults = 0
        self._is_stopped = False
        self._doubted: set[tuple[str, int]] = set()

    @property
    def is_open(self) -> bool:
        """Whether more requests may be made."""
        return not self._is_stopped and self._n_faults <= self.job.limits.max_restarts

    def positions(self, place: Place) -> deque[int]:
        """Return the positions of the calls of a place, in order."""
        return deque(index for index, call in enumerate(self.job.calls) if call.place is place)

    def ask(self, script: Script) -> Talk:
        """Make a request."""
        talk = self._ask(script, self.job)
        self._cpu_s += talk.cpu_s
        return talk

    def doubts(self, what: str, index: int, ending: Ending) -> bool:
        """Whether to ask once more before an ending counts; true at most once for each thing."""
        if not ending.is_doubtful or (what, index) in self._doubted:
            return False
        self._doubted.add((what, index))
        return True

    def lose(self, index: int, outcome: Outcome) -> None:
        """Enter a call that has cost its process; only those that took long are limited in number."""
        self.outcomes[index] = outcome
        self._n_faults += outcome.kind is OutcomeKind.TIME_LIMIT

    def overflow(self) -> Outcome:
        """Return the outcome of a call about which a process says that it has no room to answer it.

        That is our failure, unless whatever may travel would have fitted: then the process has been tampered with.
        """
        longest = self.job.limits.value_bytes * 4 // 3 + _FRAME_EXTRA_BYTES
        if longest > self.bounds.max_output_bytes:
            message = "one answer is more than the server lets a process print"
            return Outcome(OutcomeKind.INTERNAL_ERROR, message=message)
        return _tampered("no room for an answer that would fit")

    def fail_to_load(self, outcome: Outcome) -> None:
        """Enter that the program does not load; one that loads only the first time has loaded."""
        self.load = self.load or outcome
        self._is_stopped = True

    def within_time(self, outcome: Outcome, used_s: float, is_load: bool = False) -> Outcome:
        """Replace an outcome that took too long, so that it does not depend on when a timer fired."""
        if not is_load:
            self._longest_call_s = max(self._longest_call_s, used_s)
        return outcome if used_s <= self.job.limits.cpu_s else time_limit(self.job.limits)

    def report(self, missing: Outcome) -> JobReport:
        """Return what is known, and `missing` for what is not."""
        outcomes = tuple(outcome or missing for outcome in self.outcomes)
        call_s = (self._longest_call_s,) * len(outcomes)  # an upper bound on each
        return JobReport(self.load or missing, outcomes, self._cpu_s, TIER, call_s)


def claim(frame: Frame, max_bytes: int) -> Outcome:
    """Return what a frame says about loading, if it is about that, or about a call.

    What only a tampered process sends counts as one that has died.
    """
    try:
        if frame.call == LOAD and frame.tag in (Tag.LOADED, Tag.VALUE):
            if frame.tag == Tag.LOADED:
                return Outcome(OutcomeKind.VALUE, encode(None))
            raise WireError("a value of loading")
        if frame.tag == Tag.VALUE and len(frame.payload) > max_bytes:
            raise WireError(f"a value of {len(frame.payload)} bytes")
        return as_outcome(frame)
    except WireError as error:
        return _tampered(str(error))


def _tampered(what: str) -> Outcome:
    message = f"wrote to the sandbox's channel: {what}"[:300]
    return Outcome(OutcomeKind.CRASHED, error_type="BrokenChannel", message=message)
