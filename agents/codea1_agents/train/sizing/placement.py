"""Places the processes of a run on GPUs, as Ray does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codea1_agents.train.sizing.learning import Part


@dataclass(frozen=True, slots=True)
class Process:
    """A process, or a part of the driver."""

    kind: str
    """`runner`, `learner` or `driver`."""
    number: int
    gpus: float
    """GPUs that it requests; below 1: a share of one."""
    is_in_driver: bool
    """Ray does not place it: it uses the first GPU, whatever else does."""
    parts: tuple[Part, ...]
    """On its GPU; on the host if it requests none."""
    host_parts: tuple[Part, ...] = ()
    idle_bytes: int | None = None
    """Bytes on its GPU while processes of another kind work there; None: as many as when it works."""

    @property
    def device_bytes(self) -> int:
        """Bytes on its GPU."""
        return sum(each.n_bytes for each in self.parts) if self.gpus else 0

    @property
    def host_bytes(self) -> int:
        """Bytes on the host."""
        return sum(each.n_bytes for each in (self.host_parts if self.gpus else (*self.host_parts, *self.parts)))


@dataclass(frozen=True, slots=True)
class Placement:
    """Processes by GPU, those on no GPU, and those for which no GPU is left."""

    by_gpu: tuple[tuple[Process, ...], ...]
    on_host: tuple[Process, ...]
    unplaced: tuple[Process, ...]

    @property
    def processes(self) -> tuple[Process, ...]:
        """All processes, each once."""
        placed = dict.fromkeys(each for held in self.by_gpu for each in held)
        return (*placed, *self.on_host, *self.unplaced)

    @property
    def host_bytes(self) -> int:
        """Bytes of all processes on the host."""
        return sum(each.host_bytes for each in self.processes)

    def gpu_bytes(self, number: int) -> int:
        """Return the most bytes on one GPU at a time."""
        held = self.by_gpu[number]
        return max((sum(_bytes_while(each, kind) for each in held) for kind in {each.kind for each in held}), default=0)

    def n_gpus_of(self, kind: str) -> int:
        """Return on how many GPUs there are processes of a kind."""
        return sum(any(each.kind == kind for each in held) for held in self.by_gpu)


def _bytes_while(process: Process, working: str) -> int:
    """Return the bytes on its GPU while processes of a kind work."""
    is_idle = process.idle_bytes is not None and process.kind != working
    return process.idle_bytes or 0 if is_idle else process.device_bytes


def placed(processes: Sequence[Process], n_gpus: int) -> Placement:
    """Return where Ray puts processes that start in this order.

    A process that requests a share of a GPU gets the fullest one that has such a share left.
    """
    free = [1.0] * n_gpus
    held: list[list[Process]] = [[] for _ in range(n_gpus)]
    unplaced = []
    for process in processes:
        if not process.gpus:
            continue
        numbers = _numbers(process, free)
        if not numbers:
            unplaced.append(process)
        for number in numbers:
            held[number].append(process)
            free[number] -= 0.0 if process.is_in_driver else min(process.gpus, 1.0)
    on_host = tuple(each for each in processes if not each.gpus)
    return Placement(tuple(map(tuple, held)), on_host, tuple(unplaced))


def _numbers(process: Process, free: Sequence[float]) -> list[int]:
    """Return the numbers of the GPUs that a process gets; none: they do not suffice."""
    if process.is_in_driver:
        return list(range(len(free)))[:1]
    wanted = max(1, round(process.gpus))
    possible = [number for number, left in enumerate(free) if left >= min(process.gpus, 1.0) - 1e-9]
    fullest = sorted(possible, key=lambda number: free[number])
    return sorted(fullest[:wanted]) if len(fullest) >= wanted else []
