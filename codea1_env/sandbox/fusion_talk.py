"""What one request to a SandboxFusion server brought: frames from its output, and how its process ended."""

from __future__ import annotations

import base64
import binascii
import json
import re
import signal
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from codea1_env.outcomes import Outcome, OutcomeKind
from codea1_env.sandbox.fusion_runner import Mark, checksum
from codea1_env.sandbox.fusion_schema import CommandResult, CommandStatus
from codea1_env.sandbox.interface import Limits
from codea1_env.sandbox.wire import HEADER, Frame

__all__ = ["Ending", "Talk", "read_talk", "time_limit"]

_MAX_UNPACKED = 64 << 20  # of all frames of an output together: a program can print what unpacks to anything
_CPU_SIGNALS = (signal.SIGPROF, signal.SIGVTALRM, signal.SIGXCPU)
_SHELL_SIGNALS = 128  # what a shell adds to the number of the signal that ended its child


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a process did not answer what was under way."""

    outcome: Outcome
    is_doubtful: bool = False
    """The machine may be to blame: ask once more before it counts."""


@dataclass(slots=True)
class Talk:
    """What a process said. All of it is claims, and a missing answer is never taken for a value."""

    ending: Ending
    marks: set[bytes] = field(default_factory=set)
    answers: dict[int, Frame] = field(default_factory=dict)
    """By call; of several about the same call the last."""
    counts: dict[int, int] = field(default_factory=dict)
    """By harness call, how often the stand-in had been called at its end; by APPLY, when guessing began."""
    questions: list[str] = field(default_factory=list)
    """Arguments that the stand-in was called with and no answer was recorded for, from the first such call on."""
    cpu_s: float = 0.0
    """Processor seconds that the process has used, by its own account."""
    base_s: float = 0.0
    """How many of them before it did anything for the job."""

    @property
    def has_begun(self) -> bool:
        """Whether anything of ours came back."""
        return bool(self.marks or self.answers)

    def take(self, frame: Frame) -> None:
        """Enter a frame.

        Raises:
            ValueError: it is not of the form that its tag promises.
        """
        self.cpu_s = max(self.cpu_s, frame.cpu_us / 1e6)
        if frame.tag == Mark.COUNT:
            self.counts[frame.call] = int(frame.payload[:10])
        elif frame.tag == Mark.QUESTIONS:
            self.questions += _texts(frame.payload)
        elif frame.tag.islower():
            self.marks.add(frame.tag)
            if frame.tag == Mark.HELLO:
                self.base_s = frame.cpu_us / 1e6
        else:
            self.answers[frame.call] = frame


def read_talk(result: CommandResult | None, nonce: str, limits: Limits) -> Talk:
    """Read an output; what is not a whole line of ours with this nonce is ignored.

    Args:
        result: what the process did; None if it printed more than is read.
        nonce: the request's.
        limits: the job's.
    """
    if result is None:
        flood = Outcome(OutcomeKind.CRASHED, error_type="BrokenChannel", message="printed more than is read")
        return Talk(Ending(flood))
    talk = Talk(_ending(result))
    for frame in _frames(result.stdout, nonce, max(_MAX_UNPACKED, 2 * limits.value_bytes)):
        try:
            talk.take(frame)
        except (ValueError, RecursionError):
            continue
    if Mark.TIME in talk.marks:
        talk.ending = Ending(time_limit(limits))
    elif Mark.WALL in talk.marks:
        talk.ending = _asleep(limits.wall_s)
    elif talk.ending.outcome.kind is OutcomeKind.TIME_LIMIT and not talk.ending.is_doubtful:
        talk.ending = Ending(time_limit(limits))
    return talk


def time_limit(limits: Limits) -> Outcome:
    """Return the outcome of a call that used too much processor time."""
    return Outcome(OutcomeKind.TIME_LIMIT, message=f"more than {limits.cpu_s:g} s of processor time")


def _asleep(wall_s: float) -> Ending:
    outcome = Outcome(OutcomeKind.TIME_LIMIT, message=f"more than {wall_s:g} s, mostly asleep")
    return Ending(outcome, is_doubtful=True)


def _frames(output: str, nonce: str, max_bytes: int) -> Iterator[Frame]:
    pattern = re.compile(rf"^{re.escape(nonce)}:([A-Za-z0-9+/=]*):([0-9a-f]{{8}})$", re.MULTILINE)
    for match in pattern.finditer(output):
        if match[2] != checksum(nonce, match[1]):
            continue
        try:
            unpacker = zlib.decompressobj()
            data = unpacker.decompress(base64.b64decode(match[1], validate=True), max_bytes)
        except (zlib.error, binascii.Error):
            continue
        max_bytes -= len(data)
        if max_bytes <= 0:
            return
        if len(data) < HEADER.size:
            continue
        tag, call, cpu_us, length = HEADER.unpack_from(data)
        if length == len(data) - HEADER.size:
            yield Frame(tag, call, cpu_us, data[HEADER.size :])


def _texts(payload: bytes) -> list[str]:
    texts = json.loads(payload)
    if not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
        raise ValueError("questions that are no texts")
    "".join(texts).encode("latin-1")
    return texts


def _ending(result: CommandResult) -> Ending:
    """Read the process's end, for when it ended without having answered everything."""
    if result.status is not CommandStatus.FINISHED or result.return_code is None:
        message = f"the server's own time limit, after {result.execution_time or 0.0:.0f} s"
        return Ending(Outcome(OutcomeKind.TIME_LIMIT, message=message), is_doubtful=True)
    number = _signal_of(result.return_code)
    if number is None:
        return Ending(Outcome(OutcomeKind.EXITED, message="ended its own process"))
    if number in _CPU_SIGNALS:
        return Ending(Outcome(OutcomeKind.TIME_LIMIT, message="too much processor time"))
    crash = Outcome(OutcomeKind.CRASHED, error_type=number.name, message=f"killed by {number.name}")
    return Ending(crash, is_doubtful=number in (signal.SIGKILL, signal.SIGALRM))


def _signal_of(return_code: int) -> signal.Signals | None:
    number = -return_code if return_code < 0 else return_code - _SHELL_SIGNALS
    try:
        return signal.Signals(number)
    except ValueError:  # an exit code, or a real-time signal
        return None
