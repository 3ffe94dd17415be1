"""What every sandbox back end offers: batches of jobs in, one report per job out.

A job runs one untrusted program in a process of its own and evaluates expressions against it. An expression runs
either *in the program's process* (only literal calls of the entry point) or *in a harness process*, where the
program's entry point is a stand-in that calls into the program's process and where arguments and results cross as
plain data. Nothing but encoded values and error texts comes back, and whoever asked compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol, runtime_checkable

from codea1_env.facts.outcomes import EntryPointCall, Outcome, OutcomeKind


class Guarantee(StrEnum):
    """What a back end promises about hostile programs.

    Under all of them the solution, the tests and the candidate are apart and values are compared outside, so that no
    program can report a pass that it did not earn from inside. But where it can read the host's files, it can look the
    answers up: benchmarks are installed as packages; and where only limits hold, it can speak for another job.
    """

    ISOLATED = "isolated"
    """No access to other processes, files outside a read-only Python, or the network."""
    BEST_EFFORT = "best effort"
    """Limits on time, memory, processes and writing; names and metadata of the host's files may be read."""
    TRUSTED_ONLY = "trusted only"
    """Limits only; files of the host, answers included, may be read. For your own programs, not for learners'."""


BROKEN_HARNESS = "BrokenHarness"
"""Error type of a CRASHED outcome where the harness's process wrote what is no frame; says nothing of the program."""

OPAQUE_ARGUMENT, OVERSIZED_ARGUMENT, OPAQUE_RESULT_USE = "OpaqueArgument", "OversizedArgument", "OpaqueResultUse"
"""Error types of an OPAQUE outcome where a harness passes to the entry point what is not plain data, or too much of it,
or nested too deeply, or where it uses such a result. The first is the harness's doing: a program answers plain data, or
what counts as the last. The second may be made of a program's answers."""

SLEPT = "Slept"
"""Error type of a TIME_LIMIT outcome where a process slept for longer than it may, over all its calls."""


class Place(StrEnum):
    """The process in which an expression is evaluated."""

    PROGRAM = "program"
    HARNESS = "harness"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one job; each must be positive."""

    cpu_s: float = 2.0
    """Processor seconds per call (and for loading). The same on an idle and on a loaded machine."""
    wall_s: float = 3.0
    """Seconds that a process may sleep in all. Time in which the machine keeps it waiting does not count."""
    memory_mb: int = 512
    """Address space above that of a bare interpreter, per process."""
    value_bytes: int = 262_144
    """Longest encoded value that may cross, in either direction."""
    max_restarts: int = 3
    """How many calls of one job may hang, or take long and then kill their process, before the rest is NOT_RUN. Quick
    deaths cost little and end only themselves."""
    job_factor: float = 16.0
    """Times `cpu_s` that all calls of a job may use together, and once more for loading; what has not run by then is
    NOT_RUN."""

    def __post_init__(self) -> None:
        positive = (self.cpu_s, self.wall_s, self.memory_mb, self.value_bytes, self.job_factor)
        if min(positive) <= 0 or self.max_restarts < 0:
            raise ValueError(f"limits must be positive: {self}")


class Call(NamedTuple):
    """One expression to evaluate; every call has a fresh namespace and fresh arguments.

    A tuple, since there are many, each is hashed many times, and equal ones are asked once.
    """

    expression: str = ""
    imports: tuple[str, ...] = ()
    """Import statements executed before it, in its own namespace (harness only)."""
    place: Place = Place.PROGRAM
    arguments: bytes = b""
    """Encoded pair of positional and keyword arguments. If given, the call is one of the entry point with them, made in
    the program's process, and `expression` is not read."""


@dataclass(frozen=True, slots=True)
class Harness:
    """Trusted or tester-written source, executed once in the harness process before the first call."""

    source: str = ""
    """Its names are visible to harness calls. The entry point and `candidate` name the stand-in."""
    is_trusted: bool = True
    """Whether the source and the expressions are a benchmark's own. Then what the program does to its arguments stays
    unseen, since a benchmark may use them again, and a function of the source may have the entry point's name. What a
    tester wrote sees its arguments changed, as in Python."""
    records: tuple[tuple[EntryPointCall, ...], ...] = ()
    """Answers of a program. If given, no program is called: `ENTRY_POINT.changed(record, change)`, with the positions
    of a record and of a change, is the entry point as it would be with changed answers (`inside.changes`). Each answer
    must be a value, or have items."""


@dataclass(frozen=True, slots=True)
class Job:
    """One program and what to ask it."""

    program: str
    entry_point: str
    calls: tuple[Call, ...] = ()
    preamble: str = ""
    """Import statements executed before the program in its namespace (a problem's `imports`)."""
    harness: Harness = field(default_factory=Harness)
    limits: Limits = field(default_factory=Limits)


LENGTHS_OF_EQUALS = 8
"""Times as long as another may be the encoding of an equal value: 0, False and 0.0."""

RECORD_FACTOR = 4
"""Times `Limits.value_bytes` that the record of one harness call may hold; then `TOO_MANY` stands in it."""


@dataclass(frozen=True, slots=True)
class JobReport:
    """What one job did. A program's misdeeds never raise; they stand here."""

    load: Outcome
    """Loading preamble and program: kind VALUE (encoded null) if the module body ran and the entry point is a
    callable; ERROR with error_type `NoEntryPoint` if it is missing; ERROR `SyntaxError` if it does not parse."""
    outcomes: tuple[Outcome, ...]
    """One per call, same order; NOT_RUN if loading failed."""
    cpu_s: float = 0.0
    """User and system time of the job's processes."""
    tier: str = ""
    """Name of the isolation that held, e.g. `rlimits`."""
    call_s: tuple[float, ...] = ()
    """Processor seconds of each call by the process's own account: to be believed of trusted programs only, such as
    solutions. Empty where a back end does not tell."""
    entry_point_calls: tuple[tuple[EntryPointCall, ...], ...] = ()
    """The calls of the entry point that each harness call has made, in order; none for direct calls, and where a back
    end does not record them."""

    @property
    def loaded(self) -> bool:
        """True iff calls could be tried."""
        return self.load.kind is OutcomeKind.VALUE


@runtime_checkable
class Sandbox(Protocol):
    """A back end. One instance may serve any number of environments and threads of one process."""

    @property
    def name(self) -> str:
        """Name by which it is chosen, e.g. `local`."""

    @property
    def guarantee(self) -> Guarantee:
        """What it promises here, on this machine."""

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        """Run all jobs, in parallel where possible; reports in the order of the jobs.

        Infrastructure faults are retried once inside; what still fails has outcomes of kind INTERNAL_ERROR.

        Raises:
            SandboxError: the back end cannot be used at all.
        """

    def close(self) -> None:
        """End every process of the back end; idempotent. A later `run` starts afresh."""
