"""Places the processes of a run on GPUs, as Ray does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from codea1_agents.train.sizing.learning import CONTEXT_BYTES, Part

CONTEXT = Part("CUDA context", CONTEXT_BYTES, CONTEXT_BYTES)
"""It stays while a process sleeps."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process, or a part of the driver."""

    kind: str
    """`runner`, `learner` or `driver`."""
    number: int
    gpus: float
    """GPUs that it requests; below 1: a share of one; 0: all its parts are on the host."""
    parts: tuple[Part, ...]
    is_in_driver: bool = False
    """Ray does not place it: it uses the first GPU, whatever else does."""
    sleeps: bool = False
    """Whether it leaves its GPU, but for idle bytes, to processes of another kind while they work."""
    on: tuple[int, ...] = ()
    """Numbers of its GPUs, once it is placed; none: there was no GPU for it, or it requests none."""

    @property
    def device_bytes(self) -> int:
        """Bytes on its GPU."""
        return sum(each.n_bytes for each in self.parts if self.gpus and not each.is_on_host)

    def host_bytes(self, when: Literal["start", "later"]) -> int:
        """Return the bytes on the host while processes start, or later, while the run works."""
        on_host = (each for each in self.parts if each.is_on_host or not self.gpus)
        return sum(each.n_bytes for each in on_host if each.when in ("always", when))

    def bytes_while(self, working: str) -> int:
        """Return the bytes on its GPU while processes of a kind work."""
        if self.sleeps and working != self.kind:
            return sum(each.idle_bytes for each in self.parts if not each.is_on_host)
        return self.device_bytes


@dataclass(frozen=True, slots=True)
class Placement:
    """Processes on some GPUs."""

    processes: tuple[Process, ...]
    n_gpus: int

    @property
    def by_gpu(self) -> tuple[tuple[Process, ...], ...]:
        """Processes of each GPU."""
        return tuple(tuple(each for each in self.processes if n in each.on) for n in range(self.n_gpus))

    @property
    def unplaced(self) -> tuple[Process, ...]:
        """Processes for which no GPU is left."""
        return tuple(each for each in self.processes if each.gpus and not each.on)

    @property
    def host_bytes(self) -> int:
        """Most bytes of all processes on the host at a time: while they start, or later."""
        return max(self.start_bytes, self.work_bytes)

    @property
    def start_bytes(self) -> int:
        """Bytes of all processes on the host while they start."""
        return sum(each.host_bytes("start") for each in self.processes)

    @property
    def work_bytes(self) -> int:
        """The same while they work."""
        return sum(each.host_bytes("later") for each in self.processes)

    def gpu_bytes(self, number: int) -> int:
        """Return the most bytes on one GPU at a time."""
        held = self.by_gpu[number]
        return max((sum(each.bytes_while(working.kind) for each in held) for working in held), default=0)

    def n_gpus_of(self, kind: str) -> int:
        """Return on how many GPUs there are processes of a kind."""
        return len({number for each in self.processes if each.kind == kind for number in each.on})


def with_contexts(processes: Iterable[Process]) -> Iterator[Process]:
    """Yield processes, those on a GPU with `CONTEXT`; the parts of the driver share one."""
    is_driver_on_gpu = False
    for each in processes:
        if not each.gpus or (each.is_in_driver and is_driver_on_gpu):
            yield each
            continue
        is_driver_on_gpu |= each.is_in_driver
        yield replace(each, parts=(*each.parts, CONTEXT))


def placed(processes: Iterable[Process], n_gpus: int) -> Placement:
    """Return where Ray puts processes that start in this order.

    A process that requests a share of a GPU gets the fullest one that has such a share left.
    """
    free = [1.0] * n_gpus
    found = []
    for process in processes:
        found.append(replace(process, on=_numbers(process, free)))
        for number in found[-1].on if not process.is_in_driver else ():
            free[number] -= min(process.gpus, 1.0)
    return Placement(tuple(found), n_gpus)


def _numbers(process: Process, free: Sequence[float]) -> tuple[int, ...]:
    """Return the numbers of the GPUs that a process gets; none: they do not suffice, or it requests none."""
    if not process.gpus or process.is_in_driver:
        return (0,) if process.gpus and free else ()
    wanted = max(1, round(process.gpus))
    possible = [number for number, left in enumerate(free) if left >= min(process.gpus, 1.0) - 1e-9]
    fullest = sorted(possible, key=lambda number: free[number])
    return tuple(sorted(fullest[:wanted])) if len(fullest) >= wanted else ()
