"""Minimises cases: each smaller case must have a value of the solution, and the same programs must fail it as before.

This is delta debugging of one literal at a time. The judge validates each attempt on the solution, twice as for any
test, and runs it against the programs in the sandbox. The expected value is the solution's value for the smaller input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from codea1_env.book.store import StoredEntry
from codea1_env.facts.submissions import Candidate, Suite, TestCase
from codea1_env.facts.verdicts import CaseReport, ValidCase, Verdict
from codea1_env.problems.problem import Problem
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.trees import SuitesPer, Tree
from codea1_env.rules.mistake_book import BookEntry, BookKey
from codea1_lab.book_history.programs import Failures
from codea1_lab.book_history.simpler import normalised, simpler, size

_BATCH = 24  # attempts per call of the judge, which takes the first success, so a larger batch would waste runs
_MOST_PROGRAMS = 4
_MOST_ATTEMPTS = 400


@dataclass(frozen=True, slots=True)
class Minimised:
    """One entry before and after."""

    before: StoredEntry
    smaller: BookKey | None = None
    """The smaller case; None if the entry stays unchanged."""
    n_attempts: int = 0
    why: str = ""
    """Why it stays unchanged, see `Unchanged`; empty if it became smaller."""

    @property
    def is_smaller(self) -> bool:
        """Whether its input became smaller."""
        return self.smaller is not None

    @property
    def after(self) -> StoredEntry:
        """The entry with the smaller case; the same entry if it stays unchanged."""
        if self.smaller is None:
            return self.before
        return replace(self.before, entry=replace(self.before.entry, key=self.smaller))


class Unchanged:
    """Reasons why a case stays unchanged."""

    UNKNOWN_PROBLEM = "its problem is not in this problem set"
    NOT_DIRECT = "its expression is not a single call with literal arguments"
    NO_PROGRAM = "no recorded program failed it"
    NOT_REPEATED = "a recorded program passes it now, or the solution does not return a value for it"
    SMALLEST = "no smaller case beats the same programs"


def minimise(entries: Iterable[StoredEntry], referee: Referee, failures: Failures) -> Iterator[Minimised]:
    """Yield each entry, in order, with the smallest case found.

    Args:
        entries: what to minimise, from a Mistake Book.
        referee: it knows the entries' problems. Its rules compare values; their validation has no effect, since the
            attempts do not contain predictions.
        failures: the recorded programs; an attempt must beat all of a case's programs.
    """
    known = {problem.id: problem for problem in referee.problems}
    for stored in entries:
        problem = known.get(stored.problem_id)
        entry = stored.entry
        if problem is None:
            yield Minimised(stored, why=Unchanged.UNKNOWN_PROBLEM)
            continue
        if not entry.direct:
            yield Minimised(stored, why=Unchanged.NOT_DIRECT)
            continue
        first = entry.provenance.program_sha256
        programs = failures.of(stored.problem_id, entry.key, first, most=_MOST_PROGRAMS)
        if not programs:
            yield Minimised(stored, why=Unchanged.NO_PROGRAM)
            continue
        yield _minimised(stored, _Attempts(problem, programs, referee))


def without_duplicates(
    entries: Iterable[StoredEntry], combined: Callable[[BookEntry, BookEntry], BookEntry]
) -> list[StoredEntry]:
    """Merge entries of one problem with equal cases, up to the notation of literals.

    Args:
        entries: ordered by age within each problem.
        combined: merges two entries of one case by adding their counts.
    """
    found: dict[tuple[str, bytes], StoredEntry] = {}
    for stored in entries:
        key = stored.entry.key
        normal = replace(key, expression=normalised(key.expression)) if stored.entry.direct else key
        case = (stored.problem_id, normal.digest())
        older = found.get(case)
        entry = stored.entry if older is None else combined(older.entry, stored.entry)
        found[case] = StoredEntry(stored.problem_id, replace(entry, key=normal))
    return list(found.values())


class _Attempts:
    """Runs attempts; one succeeds if the solution has a value for it and every program fails it with the same verdict.

    The verdicts must be the same, since very simple inputs often reveal another mistake of the program.
    """

    def __init__(self, problem: Problem, programs: tuple[str, ...], referee: Referee) -> None:
        self._problem = problem
        self._candidates = [Candidate(program) for program in programs]
        self._referee = referee
        self._required: tuple[Verdict, ...] = ()

    def is_repeated(self, expression: str, imports: tuple[str, ...]) -> bool:
        """Return whether every program still fails the case itself; store the verdicts that attempts must repeat."""
        (found,) = self._reports([expression], imports)
        self._required = tuple(report.verdict for report in found)
        return bool(found) and all(verdict.is_failure for verdict in self._required)

    def first_success(self, expressions: list[str], imports: tuple[str, ...]) -> ValidCase | None:
        """Return the first expression that succeeds, with the solution's value; None: no expression does."""
        for found in self._reports(expressions, imports):
            if found and tuple(report.verdict for report in found) == self._required:
                return found[0].case
        return None

    def _reports(self, expressions: list[str], imports: tuple[str, ...]) -> Iterator[tuple[CaseReport, ...]]:
        """Yield for each expression one report per program; none if the solution does not return a value."""
        suites = [Suite((TestCase(expression, None, imports, direct=True),)) for expression in expressions]
        tree = Tree(self._problem, len(self._candidates), len(suites), SuitesPer.PROBLEM)
        rounds = self._referee.open([tree])
        rounds.submit_programs(self._candidates)
        rounds.submit_suites(suites)
        reports = [candidate for judged in rounds.results() if judged.report for candidate in judged.report.candidates]
        for n in range(len(expressions)):
            yield tuple(case for candidate in reports for case in candidate.suites[n].cases)


def _minimised(stored: StoredEntry, attempts: _Attempts) -> Minimised:
    key = stored.entry.key
    if not attempts.is_repeated(key.expression, key.imports):
        return Minimised(stored, n_attempts=1, why=Unchanged.NOT_REPEATED)
    n_attempts, best = 1, None
    expression = key.expression
    while n_attempts < _MOST_ATTEMPTS:
        expressions = simpler(expression)
        found = None
        for start in range(0, len(expressions), _BATCH):
            batch = expressions[start : start + _BATCH]
            n_attempts += len(batch)
            found = attempts.first_success(batch, key.imports)
            if found is not None or n_attempts >= _MOST_ATTEMPTS:
                break
        if found is None:
            break
        best, expression = found, found.case.expression
    if best is None or size(best.case.expression) >= size(normalised(key.expression)):
        return Minimised(stored, n_attempts=n_attempts, why=Unchanged.SMALLEST)
    smaller = BookKey(best.case.expression, key.imports, best.expected)
    return Minimised(stored, smaller, n_attempts)
