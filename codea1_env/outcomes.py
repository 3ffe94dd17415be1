"""What happened when one expression was evaluated: the only thing that comes back from a sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Outcome", "OutcomeKind"]


class OutcomeKind(StrEnum):
    """How an evaluation ended. Only VALUE carries a value; a missing report is never VALUE."""

    VALUE = "value"
    """Returned plain data within the limits."""
    OPAQUE = "opaque"
    """Returned something that is not plain data; equal to nothing."""
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
