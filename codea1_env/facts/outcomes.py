"""What happened when one expression was evaluated: the only thing that comes back from a sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class OutcomeKind(StrEnum):
    """How an evaluation ended. Only VALUE carries a value; a missing report is never VALUE."""

    VALUE = "value"
    """Returned plain data within the limits."""
    OPAQUE = "opaque"
    """Returned something that is not plain data, equal to nothing; or, in a harness, used something that cannot cross
    between the harness and the program (`error_type` says what)."""
    ERROR = "error"
    """Raised an exception (`error_type`, `message`)."""
    TIME_LIMIT = "time_limit"
    """Used up its processor time, or the far wall-clock back-stop while using the processor."""
    MEMORY_LIMIT = "memory_limit"
    """Asked for more memory than allowed (MemoryError, or killed for it)."""
    OUTPUT_LIMIT = "output_limit"
    """Returned a value larger than may travel."""
    CRASHED = "crashed"
    """The process died by a signal that we did not send."""
    EXITED = "exited"
    """The process ended itself before it had answered."""
    NOT_RUN = "not_run"
    """Never tried: the program did not load, or its process had to be restarted too often. Says nothing."""
    INTERNAL_ERROR = "internal_error"
    """We failed. Never evidence."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One evaluation."""

    kind: OutcomeKind
    value: bytes | None = None
    """Canonical encoding (`codea1_env.values`) iff kind is VALUE."""
    error_type: str = ""
    """Name of the exception's class, or of the signal."""
    message: str = ""
    """At most 300 characters, printable."""
    items: bytes | None = None
    """OPAQUE only, and only where the call came with encoded arguments: the encoded list of what the result yields, if
    it can be iterated. Of an endless or long one only the first items."""
    arguments: bytes | None = None
    """The encoded arguments as the call left them, where it changed them and the job asks for that; empty where they
    are no longer plain data. Nobody has checked what the bytes encode."""

    def __post_init__(self) -> None:
        if (self.value is not None) != (self.kind is OutcomeKind.VALUE):
            raise ValueError(f"an outcome of kind {self.kind} with value {self.value!r}")

    @property
    def said(self) -> str:
        """What happened, for people; empty for a value."""
        if self.kind is OutcomeKind.VALUE:
            return ""
        if self.error_type:
            return f"{self.error_type}: {self.message}".removesuffix(": ")[:300]
        return (self.message or self.kind.value.replace("_", " "))[:300]


class EntryPointCall(NamedTuple):
    """One call of the entry point by a harness expression. Nobody has checked what the bytes encode."""

    arguments: bytes
    """Encoded pair of positional and keyword arguments."""
    answer: Outcome | None = None
    """What the program answered; None if it gave no answer (it hung, or its process ended)."""


TOO_MANY = EntryPointCall(b"")
"""Stands for the calls that one expression makes after its record has grown too long."""
