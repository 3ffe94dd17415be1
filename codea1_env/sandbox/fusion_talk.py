"""What one request to a SandboxFusion server brought: frames from its output, and how its process ended."""

from __future__ import annotations

import base64
import binascii
import json
import re
import signal
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from codea1_env.outcomes import Outcome, OutcomeKind
from codea1_env.sandbox.fusion_runner import Mark, line
from codea1_env.sandbox.fusion_schema import CommandResult, CommandStatus
from codea1_env.sandbox.interface import Limits
from codea1_env.sandbox.wire import APPLY, HEADER, Frame

__all__ = ["Ending", "Talk", "read_talk", "time_limit"]

_MAX_EXTRA = 16_384  # over the value: a header, or an error's texts
_CPU_SIGNALS = (signal.SIGPROF, signal.SIGVTALRM, signal.SIGXCPU)


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a process did not answer what was under way."""

    outcome: Outcome
    is_doubtful: bool = False
    """The machine may be to blame: ask once more before it counts."""


@dataclass(frozen=True, slots=True)
class Talk:
    """What a process said."""

    frames: tuple[Frame, ...]
    """Without the marks; of frames about the same call the last."""
    marks: frozenset[bytes]
    counts: dict[int, int]
    """By harness call, how often the stand-in had been called at its end; by APPLY, when guessing began."""
    questions: tuple[str, ...]
    """Arguments that the stand-in was called with while guessing."""
    ending: Ending

    @property
    def has_begun(self) -> bool:
        """Whether the output came back at all."""
        return Mark.HELLO in self.marks

    @property
    def is_full(self) -> bool:
        """Whether the process ended because its next answer did not fit."""
        return Mark.FULL in self.marks

    @property
    def cpu_s(self) -> float:
        """Processor time that the process says it has used."""
        return max((frame.cpu_us for frame in self.frames), default=0) / 1e6


def read_talk(result: CommandResult, nonce: str, limits: Limits) -> Talk:
    """Read an output; what is not whole lines of ours with this nonce is ignored.

    The program shares the process with our runner: frames are claims about its own calls, and a missing one is never
    taken for a value.
    """
    frames: dict[tuple[bytes, int], Frame] = {}
    marks, counts, questions = set(), {}, []
    for frame in _frames(result.stdout, nonce, limits.value_bytes + _MAX_EXTRA):
        if frame.tag == Mark.COUNT:
            counts[frame.call] = _count(frame.payload)
        elif frame.tag == Mark.QUESTIONS:
            questions += _questions(frame.payload)
        elif frame.tag.islower():
            marks.add(frame.tag)
        else:
            frames.pop((b"", frame.call), None)
            frames[b"", frame.call] = frame
    ending = _ending(result, frozenset(marks), limits)
    return Talk(tuple(frames.values()), frozenset(marks), counts, tuple(questions), ending)
