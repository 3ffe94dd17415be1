"""The interface of every sandbox back end: `run` takes a batch of jobs and returns one report per job.

A job runs one untrusted program in a process of its own and evaluates expressions against it. An expression runs
either *in the program's process* (only literal calls of the entry point) or *in a harness process*. There, the
program's entry point is a stand-in that calls into the program's process; arguments and results cross as plain data.
A report contains only encoded values and error texts. The caller compares the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, NamedTuple, Protocol, Self, runtime_checkable

from codea1_env.declared import Range, require_declared
from codea1_env.facts.problem_kinds import Script
from codea1_env.facts.verdicts import EntryPointCall, Outcome, OutcomeKind


class Guarantee(StrEnum):
    """What a back end promises about hostile programs.

    In all of them the solution, the tests and the candidate run in separate processes, and values are compared outside.
    So no program can report a pass for itself. But a program that can read the host's files can look up the answers,
    since benchmarks are installed as packages; and where only limits hold, it can forge messages of another job.
    """

    ISOLATED = "isolated"
    """No access to other processes, files outside a read-only Python, or the network."""
    BEST_EFFORT = "best effort"
    """Limits on time, memory, processes and writing; names and metadata of the host's files may be read."""
    TRUSTED_ONLY = "trusted only"
    """Limits only; files of the host, answers included, may be read. For your own programs, not for a learner's."""


BROKEN_HARNESS = "BrokenHarness"
"""Error type of a CRASHED outcome: the harness's process wrote bytes that are not a frame. Not the program's fault."""

OPAQUE_ARGUMENT, OVERSIZED_ARGUMENT, OPAQUE_RESULT_USE = "OpaqueArgument", "OversizedArgument", "OpaqueResultUse"
"""Error types of an OPAQUE outcome: a harness passes to the entry point something that is not plain data; passes plain
data that is too large or nested too deeply; or uses a result that is not plain data. The first is always a fault of the
harness, since passing on an opaque result of the program counts as the third. An oversized argument may have been built
from answers of the program."""

SLEPT = "Slept"
"""Error type of a TIME_LIMIT outcome: a process slept longer than allowed, in all its calls together."""

LOADED_TOO_OFTEN = "LoadedTooOften"
"""Error type of a NOT_RUN outcome: loading before each call (`Job.isolates_calls`) has used up what it may use. Such a
call never counts against a program, whatever rules make of other calls that were not run."""


class Place(StrEnum):
    """The process in which an expression is evaluated."""

    PROGRAM = "program"
    HARNESS = "harness"


MOST_OF_A_LIMIT = 1 << 30
"""Larger numbers overflow in the kernel."""
LEAST_OF_A_LIMIT = 0.001
"""Shorter times end a process before it has begun."""
_Amount = Annotated[float, Range(LEAST_OF_A_LIMIT, MOST_OF_A_LIMIT)]
_Number = Annotated[int, Range(above=0, most=MOST_OF_A_LIMIT)]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one job.

    Raises:
        UserError: a bound is of another type, or out of its range.
    """

    cpu_s: _Amount = 2.0
    """Processor seconds per call (and for loading). Does not depend on the load of the machine."""
    wall_s: _Amount = 3.0
    """Seconds that a process may sleep in all. Time in which it waits for a processor does not count."""
    memory_mb: _Number = 512
    """Address space above that of a bare interpreter, per process."""
    value_bytes: _Number = 262_144
    """Longest encoded value that may cross, in either direction."""
    max_restarts: Annotated[int, Range(0, MOST_OF_A_LIMIT)] = 3
    """How many calls of one job may hang, or take long and then kill their process; after that the rest is NOT_RUN. A
    call that kills its process quickly does not count."""
    job_factor: _Amount = 16.0
    """All calls of a job together may use `job_factor * cpu_s` processor seconds, and loading another `cpu_s`. Where
    each call loads the program (`Job.isolates_calls`), all loading together may use `job_factor * cpu_s` of its own.
    Calls that have not run by then are NOT_RUN."""

    def __post_init__(self) -> None:
        require_declared(self, "limits: ")

    def above(self, most: Limits) -> str:
        """Return the name of the first bound above that of `most`; empty: none is."""
        return next((name for name in Limits.__slots__ if getattr(self, name) > getattr(most, name)), "")


class Call(NamedTuple):
    """One expression to evaluate; every call has a fresh namespace and fresh arguments.

    A tuple, because there are many calls, each is hashed many times, and equal calls run once.
    """

    expression: str = ""
    imports: tuple[str, ...] = ()
    """Import statements executed before it, in its own namespace (harness only)."""
    place: Place = Place.PROGRAM
    arguments: bytes = b""
    """Encoded pair of positional and keyword arguments. If given, the program's process calls the entry point with
    them, and `expression` is ignored. An encoded text is an expression to evaluate."""


@dataclass(frozen=True, slots=True)
class Harness:
    """Trusted or tester-written source, executed once in the harness process before the first call."""

    source: str = ""
    """Its names are visible to harness calls. The entry point and `candidate` name the stand-in."""
    is_trusted: bool = True
    """Whether the source and the expressions come from a benchmark. Then the harness does not see changes that the
    program makes to its arguments, since a benchmark may use them again, and a function of the source may have the
    entry point's name. A tester's source does see these changes, as in ordinary Python."""
    records: tuple[tuple[EntryPointCall, ...], ...] = ()
    """Recorded answers of a program. If given, no program is called: `ENTRY_POINT.changed(record, change)`, with the
    indices of a record and of a change, returns an entry point that gives changed answers (`inside.changes`). Each
    answer must be a value, or have items. Of a script, the words of an output are changed."""
    source_calls: frozenset[str] = frozenset()
    """Expressions that the program's process evaluates for `ENTRY_POINT.source_call(text)`; any other text ends the
    harness. Such a call is recorded with the encoded text as its arguments."""


@dataclass(frozen=True, slots=True)
class Job:
    """One program and the calls to evaluate."""

    program: str
    entry_point: str
    """A function's name, or a method such as `Solution().two_sum`, which is called on a new instance each time."""
    calls: tuple[Call, ...] = ()
    preamble: str = ""
    """Import statements executed before the program in its namespace (a problem's `imports`)."""
    harness: Harness = field(default_factory=Harness)
    limits: Limits = field(default_factory=Limits)
    script: Script | None = None
    """If given, the program runs anew, in a process of its own, for each call. It gets the call's texts, and the value
    is its standard output. An exit status other than 0 is an ERROR."""
    isolates_calls: bool = False
    """Whether each call has a process of its own that has loaded the program anew, so that nothing remains of another
    call. Forking a process that has loaded would not suffice: pipes and shared memory made while loading survive."""
    problem_id: str = field(default="", compare=False)
    """Names the job for people; it changes nothing."""


LENGTHS_OF_EQUALS = 8
"""The encodings of two equal values (such as 0, False and 0.0) differ in length by at most this factor."""

RECORD_FACTOR = 4
"""The record of one harness call may have `RECORD_FACTOR * Limits.value_bytes` bytes; then `TOO_MANY` ends it."""


@dataclass(frozen=True, slots=True)
class JobReport:
    """What one job did. Faults of a program never raise; the report states them."""

    load: Outcome
    """How loading preamble and program ended: VALUE (encoded null) if the module ran and the entry point is callable;
    ERROR with error_type `NoEntryPoint` if it is not; ERROR with error_type `SyntaxError` if it does not parse."""
    outcomes: tuple[Outcome, ...]
    """One per call, same order; NOT_RUN if loading failed."""
    cpu_s: float = 0.0
    """User and system time of the job's processes."""
    tier: str = ""
    """Name of the isolation that was in force, e.g. `rlimits`."""
    call_s: tuple[float, ...] = ()
    """Processor seconds of each call, as the process itself reports them: reliable for trusted programs only, such as
    solutions. Empty if a back end does not measure them."""
    entry_point_calls: tuple[tuple[EntryPointCall, ...], ...] = ()
    """The calls of the entry point that each harness call made, in order; empty for direct calls, and if a back end
    does not record them."""

    @property
    def n_bytes(self) -> int:
        """How many bytes its outcomes and the recorded calls hold, about."""
        recorded = [call for made in self.entry_point_calls for call in made]
        outcomes = (self.load, *self.outcomes, *(call.answer for call in recorded if call.answer))
        return sum(len(call.arguments) for call in recorded) + sum(outcome.n_bytes for outcome in outcomes)

    @property
    def loaded(self) -> bool:
        """Whether the program loaded, so that calls could run."""
        return self.load.kind is OutcomeKind.VALUE


@runtime_checkable
class Sandbox(Protocol):
    """A back end. One instance may serve any number of environments and threads of one process.

    A class of your own that derives from `Closing` closes at the end of a `with` block.
    """

    @property
    def name(self) -> str:
        """Registered name, e.g. `local`."""

    @property
    def guarantee(self) -> Guarantee:
        """What it promises here, on this machine."""

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        """Run all jobs, in parallel where possible; return the reports in the order of the jobs.

        A back end retries a job once after a fault of the infrastructure. If that fails too, the outcomes of the job
        are of kind INTERNAL_ERROR.

        Raises:
            SandboxError: the back end cannot be used at all.
        """

    def close(self) -> None:
        """End every process of the back end; idempotent. A later `run` starts new ones."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...
