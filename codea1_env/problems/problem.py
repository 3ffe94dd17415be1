"""Programming problems and ordered sets of problems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import overload

from codea1_env.errors import UnknownName, UserError, of_type
from codea1_env.facts.answers import EQUAL_ANSWERS, AnswerOrder, AnswerRules, OutputForm
from codea1_env.facts.call_forms import PLAIN_CALLS, CallForms
from codea1_env.facts.problem_kinds import PROGRAMS, SCRIPTS, ProblemKind, Programs, Script


@dataclass(frozen=True, slots=True)
class GoldenCase:
    """A golden test of the form "this expression has this value"."""

    expression: str
    """Python source that calls the entry point, e.g. `f([1, 2])`."""
    expected: str
    """Python source of the value, without calls of the entry point."""
    imports: tuple[str, ...] = ()
    """Import statements that the expression or the value needs."""


@dataclass(frozen=True, slots=True)
class GoldenHarness:
    """A golden test that is a program that defines `check(candidate)`; passed iff `check` returns.

    It runs in a process of its own, where `candidate` (and the entry point's name) is a stand-in that calls into the
    candidate's process.
    """

    source: str


GoldenTest = GoldenCase | GoldenHarness


@dataclass(frozen=True, slots=True)
class WrongProgram:
    """A plausible wrong answer to a problem; fails at least one golden test."""

    program: str
    note: str
    """One sentence about what is wrong."""
    subtlety: int
    """1 (fails on most inputs) to 4 (fails on rare ones only)."""


@dataclass(frozen=True, slots=True, repr=False)
class Problem:
    """One programming problem with its trusted solution."""

    id: str
    """Unique within its set, e.g. `HumanEval/32`."""
    statement: str
    """The text that both agents read: usually a signature with a docstring."""
    entry_point: str
    """Name of the function that candidates must define; `Solution().two_sum` for a method; `run` for a program on
    standard input."""
    solution: str
    """The whole trusted program (the ground truth); secret."""
    golden: tuple[GoldenTest, ...]
    """Hidden tests; secret."""
    imports: str = ""
    """Import statements, and constants of the statement, executed before the solution and before every candidate."""
    examples: tuple[str, ...] = ()
    """The examples in the statement, one assert per string; public."""
    source: str = ""
    """Dataset from which it comes."""
    licence: str = ""
    """Licence of the problem's text and tests."""
    wrong_programs: tuple[WrongProgram, ...] = ()
    """Known wrong answers, for scripted coders; secret."""
    kind: ProblemKind = ProblemKind.FUNCTION
    output: OutputForm = OutputForm.WORDS
    """The parts that count in the output of programs that print it."""
    answers: AnswerRules = EQUAL_ANSWERS
    """The answers that are right besides the solution's. Agents never see this."""
    calls: CallForms = PLAIN_CALLS
    """The rights of tests besides calls with plain data."""

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise UserError(f"problem {self.id!r}: {fault}")

    def __repr__(self) -> str:
        return f"<Problem {self.id}: {self.kind} {self.entry_point}, {len(self.golden)} golden tests>"

    def _faults(self) -> Iterator[str]:
        for name in ("id", "statement", "entry_point", "solution"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name).strip():
                yield f"{name} is empty or not text"
        programs = self.programs
        if not programs.fits(self.entry_point):
            yield f"entry point {self.entry_point!r} is not {programs.entry_point_form}"
        if self.calls != PLAIN_CALLS and not programs.takes_call_forms:
            yield "calls in place or with functions need a problem of one function"
        if self.calls.in_place and self.answers.accepts_others:
            yield "rules of answers are not supported for functions that work in place"
        if programs.scripts and self.answers.order != AnswerOrder.FIXED:
            yield "an order of answers is not supported for printed outputs; a checker is"
        if not programs.scripts and self.output is not OutputForm.WORDS:
            yield "an output is only compared where programs print it"
        if self.calls.functions and self.answers.checker:
            yield "a checker is not supported where arguments are functions"

    @property
    def programs(self) -> Programs:
        """The facts about programs of its kind."""
        return PROGRAMS[self.kind]

    @property
    def script(self) -> Script | None:
        """How programs run that run anew for each call; None for all others."""
        return SCRIPTS.get((self.kind, self.output))

    @property
    def printed(self) -> OutputForm | None:
        """The parts that count in the output of such programs; None for all others."""
        return self.output if self.script else None

    @property
    def defined(self) -> str:
        """The entry point that programs must define; empty if they run anew for each call."""
        return "" if self.script else self.entry_point


class Refusal(StrEnum):
    """The cause for which a row is refused."""

    BROKEN = "broken"
    """It cannot be read: a column is missing or holds something else than its data set publishes."""
    NO_SOLUTION = "no solution"
    """A solution that could be the ground truth is missing."""
    SEVERAL_ANSWERS = "several right answers"
    """Its statement accepts several answers, and its tests state one."""
    SEVERAL_FUNCTIONS = "several functions"
    """Its tests call several functions or a class; a problem has one entry point."""
    OBJECTS = "objects"
    """Its tests pass objects, such as linked lists and trees; only plain data is sent between processes."""
    INTERACTIVE = "interactive"
    """The program would converse with its judge."""
    FILES = "files"
    """The program would read or write files."""
    SEVERAL_MODULES = "several modules"
    """The program would have several modules."""


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """A row that could not be read as a problem."""

    place: str
    """File and row, e.g. `train.jsonl row 17`."""
    reason: str
    cause: Refusal = Refusal.BROKEN


@dataclass(frozen=True, slots=True, repr=False)
class ProblemSet(Sequence[Problem]):
    """An ordered set of problems with unique ids."""

    name: str
    problems: tuple[Problem, ...]
    skipped: tuple[SkippedRow, ...] = ()
    notes: Mapping[str, int] = field(default_factory=dict, compare=False)
    """The columns of the rows that nobody uses, each with the number of rows."""
    _index: dict[str, int] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for position, problem in enumerate(self.problems):
            if self._index.setdefault(problem.id, position) != position:
                raise UserError(f"{self.name}: two problems have the id {problem.id!r}")

    def __repr__(self) -> str:
        skipped = f", {len(self.skipped)} rows skipped" if self.skipped else ""
        return f"<ProblemSet {self.name}: {len(self)} problems{skipped}>"

    @overload
    def __getitem__(self, key: int) -> Problem: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Problem, ...]: ...
    def __getitem__(self, key: int | slice) -> Problem | tuple[Problem, ...]:
        if isinstance(key, str):
            raise UserError(f"problems are indexed by number; use by_id({key!r}) for an id")
        return self.problems[key]

    def __len__(self) -> int:
        return len(self.problems)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.problems)

    def by_id(self, problem_id: str) -> Problem:
        """Return the problem with this id.

        Raises:
            UnknownName: no problem has this id.
            UserError: the id is not text.
        """
        if of_type("problem_id", problem_id, str) not in self._index:
            raise UnknownName.of(f"problem of {self.name}", problem_id, self._index)
        return self.problems[self._index[problem_id]]

    def select(self, problem_ids: Iterable[str]) -> ProblemSet:
        """Return the named problems, in the given order."""
        return ProblemSet(self.name, tuple(self.by_id(problem_id) for problem_id in problem_ids), self.skipped)
