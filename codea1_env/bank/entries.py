"""A bank before it is judged: the replies that agents can choose, by problem; and its file format.

An entry is a raw reply, which is read by the same rules as a model's reply. Every problem of a bank has N programs and
M suites. If a problem has fewer, empty replies are added; they are ordinary actions and earn the reward of an empty
reply.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from codea1_env.errors import BrokenInput, UserError
from codea1_env.problems.own_rows import problem_from_row, problem_to_row
from codea1_env.problems.problem import Problem, ProblemSet
from codea1_env.records.faults import read_file, read_json
from codea1_env.records.whole_files import write_text


@dataclass(frozen=True, slots=True)
class BankEntry:
    """One reply that an agent can choose."""

    label: str
    """For people and pictures, e.g. `wrong 2`; unique among its problem's programs or suites."""
    reply: str
    """Raw text, as a model would write it."""


NOTHING = BankEntry("nothing", "")
"""Added to problems that have fewer entries than others."""


@dataclass(frozen=True, slots=True)
class ProblemBank:
    """One problem with the replies that agents can choose for it."""

    problem: Problem
    programs: tuple[BankEntry, ...]
    """(N,)"""
    suites: tuple[BankEntry, ...]
    """(M,)"""

    def __post_init__(self) -> None:
        for what, entries in (("programs", self.programs), ("suites", self.suites)):
            if not entries:
                raise UserError(f"bank of {self.problem.id}: it contains no {what}")


@dataclass(frozen=True, slots=True)
class Bank:
    """Replies by problem; all problems have the same number of programs (N) and of suites (M)."""

    name: str
    problems: tuple[ProblemBank, ...]
    """(P,)"""

    def __post_init__(self) -> None:
        if not self.problems:
            raise UserError(f"bank {self.name}: it contains no problems")
        n_programs = max(len(problem.programs) for problem in self.problems)
        n_suites = max(len(problem.suites) for problem in self.problems)
        filled = tuple(
            replace(each, programs=_fill(each.programs, n_programs), suites=_fill(each.suites, n_suites))
            for each in self.problems
        )
        object.__setattr__(self, "problems", filled)

    def __iter__(self) -> Iterator[ProblemBank]:
        return iter(self.problems)

    @property
    def n_programs(self) -> int:
        """N, equal for all problems."""
        return len(self.problems[0].programs)

    @property
    def n_suites(self) -> int:
        """M, equal for all problems."""
        return len(self.problems[0].suites)

    @property
    def problem_set(self) -> ProblemSet:
        """The problems without their banks."""
        return ProblemSet(self.name, tuple(problem.problem for problem in self.problems))

    def save(self, path: Path) -> None:
        """Write the bank as JSON lines, one problem a line; `load_bank_file` reads it back.

        Raises:
            UserError: the file cannot be written.
        """
        write_text(path, "".join(f"{bank_to_line(each)}\n" for each in self.problems))


def load_bank_file(path: Path) -> Bank:
    """Return the bank in a file.

    Raises:
        BrokenInput: the file cannot be read, or a line is not a problem's bank.
    """
    try:
        lines = read_file(path).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BrokenInput(f"{path}: it cannot be read ({error})") from error
    return Bank(path.stem, tuple(bank_from_line(line, f"{path} line {n}") for n, line in enumerate(lines, 1)))


def _fill(entries: tuple[BankEntry, ...], size: int) -> tuple[BankEntry, ...]:
    gap = (replace(NOTHING, label=f"{NOTHING.label} {n}") for n in range(len(entries), size))
    return (*entries, *gap)


def bank_to_line(bank: ProblemBank) -> str:
    """Return a problem's bank as one line of ASCII."""
    row: dict[str, Any] = {
        "problem": problem_to_row(bank.problem),
        "programs": [asdict(entry) for entry in bank.programs],
        "suites": [asdict(entry) for entry in bank.suites],
    }
    return json.dumps(row)


def bank_from_line(line: str, place: str) -> ProblemBank:
    """Return the bank in a line.

    Raises:
        BrokenInput: the line is not JSON, or does not have the form that `bank_to_line` writes.
    """
    match read_json(place, line.encode("utf-8", "surrogatepass")):
        case {"problem": dict(problem), "programs": list(programs), "suites": list(suites), **rest} if not rest:
            try:
                return ProblemBank(problem_from_row(problem), _entries(programs), _entries(suites))
            except UserError as error:
                raise BrokenInput(f"{place}: {error}") from error
    raise BrokenInput(f"{place}: expected an object with exactly the fields problem, programs and suites")


def _entries(rows: Iterable[object]) -> tuple[BankEntry, ...]:
    return tuple(_entry(row) for row in rows)


def _entry(row: object) -> BankEntry:
    if isinstance(row, Mapping) and row.keys() == {"label", "reply"} and all(isinstance(v, str) for v in row.values()):
        return BankEntry(**row)
    raise UserError("an entry must have exactly the fields label and reply, both text")
