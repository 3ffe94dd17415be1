"""The outcome of one evaluated expression: the only information that a sandbox returns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class OutcomeKind(StrEnum):
    """How an evaluation ended. Only VALUE carries a value; a missing report is never VALUE."""

    VALUE = "value"
    """Returned plain data within the limits."""
    OPAQUE = "opaque"
    """Returned a value that is not plain data, which equals no value; or, in a harness, used a value that cannot cross
    between the harness and the program (`error_type` says which kind)."""
    ERROR = "error"
    """Raised an exception (`error_type`, `message`)."""
    TIME_LIMIT = "time_limit"
    """Used up its processor time, or reached the much larger wall-clock limit while it used the processor."""
    MEMORY_LIMIT = "memory_limit"
    """Needed more memory than allowed (MemoryError, or the process was killed for it)."""
    OUTPUT_LIMIT = "output_limit"
    """Returned a value larger than the limit."""
    CRASHED = "crashed"
    """A signal that the sandbox did not send ended the process."""
    EXITED = "exited"
    """The process exited before it returned an answer."""
    NOT_RUN = "not_run"
    """Never tried: the program did not load, or its process had to be restarted too often. No evidence."""
    INTERNAL_ERROR = "internal_error"
    """The sandbox itself failed. Never evidence."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one evaluation."""

    kind: OutcomeKind
    value: bytes | None = None
    """Canonical encoding (`codea1_env.values`) iff kind is VALUE."""
    error_type: str = ""
    """Name of the exception's class, or of the signal; with `items`, of the exception that follows them."""
    message: str = ""
    """At most 300 characters, printable."""
    items: bytes | None = None
    """OPAQUE only, and only for a call with encoded arguments: the encoded list of the items of the result, if it can
    be iterated. Only the first items of a long or endless one."""
    arguments: bytes | None = None
    """The encoded arguments after the call, if it changed them and the job records that; each that is no longer plain
    data is replaced by its length. The bytes are not checked."""

    def __post_init__(self) -> None:
        if (self.value is not None) != (self.kind is OutcomeKind.VALUE):
            raise ValueError(f"an outcome of kind {self.kind} with value {self.value!r}")

    @property
    def summary(self) -> str:
        """One line for people; empty for a value."""
        if self.kind is OutcomeKind.VALUE:
            return ""
        if self.error_type:
            return f"{self.error_type}: {self.message}".removesuffix(": ")[:300]
        return (self.message or self.kind.value.replace("_", " "))[:300]


class EntryPointCall(NamedTuple):
    """One call of the entry point by a harness expression. The bytes are not checked."""

    arguments: bytes
    """Encoded pair of positional and keyword arguments."""
    answer: Outcome | None = None
    """The program's outcome; None if it gave none (it hung, or its process ended)."""


TOO_MANY = EntryPointCall(b"")
"""Replaces the calls that one expression makes after its record has reached the limit."""
