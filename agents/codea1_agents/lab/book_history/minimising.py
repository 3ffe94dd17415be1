"""Cases made smaller as long as the solution answers them and the same programs fail them in the same way.

Delta debugging by one literal at a time, through the judge: each attempt is validated on the solution like any test,
twice, and runs against the programs in the sandbox. The expected value is the solution's for the smaller input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from codea1_agents.lab.book_history.programs import Failures
from codea1_agents.lab.book_history.simpler import same_spelling, simpler, size
from codea1_env.book.store import StoredEntry
from codea1_env.facts.submissions import Candidate, Suite, TestCase
from codea1_env.facts.verdicts import CaseReport, ValidCase, Verdict
from codea1_env.problems.problem import Problem
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.trees import SuitesPer, Tree
from codea1_env.rules.mistake_book import BookEntry, BookKey

_AT_ONCE = 24  # attempts of one call of the judge; the first that does is taken, so more would often be wasted
_MOST_PROGRAMS = 4
_MOST_ATTEMPTS = 400


class Why:
    """Why a case stayed as it was."""

    UNKNOWN_PROBLEM = "its problem is not among these"
    NOT_DIRECT = "its expression is more than one call with literal arguments"
    NO_PROGRAM = "no recorded program that failed it"
    NOT_REPEATED = "the recorded programs pass it now, or the solution does not answer it"
    SMALLEST = "nothing smaller does it"


@dataclass(frozen=True, slots=True)
class Minimised:
    """What became of one entry."""

    before: StoredEntry
    after: StoredEntry
    """The same entry where nothing smaller was found."""
    n_attempts: int = 0
    why: str = ""
    """Why it stayed as it was; empty if it became smaller."""

    @property
    def is_smaller(self) -> bool:
        """Whether its input became simpler."""
        return not self.why


def minimise(entries: Iterable[StoredEntry], referee: Referee, failures: Failures) -> Iterator[Minimised]:
    """Yield each entry in the smallest form that was found, in order.

    Args:
        entries: of a book.
        referee: of the problems that they belong to. Its rules compare values; how they validate does not matter,
            since no attempt predicts anything.
        failures: programs that an attempt has to beat, all of them.
    """
    known = {problem.id: problem for problem in referee.problems}
    for stored in entries:
        problem = known.get(stored.problem_id)
        entry = stored.entry
        if problem is None:
            yield Minimised(stored, stored, why=Why.UNKNOWN_PROBLEM)
            continue
        if not entry.direct:
            yield Minimised(stored, stored, why=Why.NOT_DIRECT)
            continue
        first = entry.provenance.program_sha256
        programs = failures.of(stored.problem_id, entry.key, first, most=_MOST_PROGRAMS)
        if not programs:
            yield Minimised(stored, stored, why=Why.NO_PROGRAM)
            continue
        yield _minimised(stored, _Beats(problem, programs, referee))


def without_duplicates(
    entries: Iterable[StoredEntry], combined: Callable[[BookEntry, BookEntry], BookEntry]
) -> list[StoredEntry]:
    """Return entries of which no two of a problem state the same case, however spelt; counts are added up.

    Args:
        entries: in age order within each problem.
        combined: adds the counts of two entries of one case.
    """
    found: dict[tuple[str, bytes], StoredEntry] = {}
    for stored in entries:
        key = stored.entry.key
        spelt = replace(key, expression=same_spelling(key.expression)) if stored.entry.direct else key
        place = (stored.problem_id, spelt.digest())
        older = found.get(place)
        entry = stored.entry if older is None else combined(older.entry, stored.entry)
        found[place] = StoredEntry(stored.problem_id, replace(entry, key=spelt))
    return list(found.values())


class _Beats:
    """Tells which of some expressions the solution answers and every program fails as it failed the case.

    The same kind of failure is asked for, since an input that is simple enough often trips a program over something
    else, and the case would then be another mistake.
    """

    def __init__(self, problem: Problem, programs: tuple[str, ...], referee: Referee) -> None:
        self._problem = problem
        self._candidates = [Candidate(program) for program in programs]
        self._referee = referee
        self._wanted: tuple[Verdict, ...] = ()

    def is_repeated(self, expression: str, imports: tuple[str, ...]) -> bool:
        """Whether every program fails the case itself, now; how it does is what attempts are held to."""
        (found,) = self._verdicts([expression], imports)
        self._wanted = tuple(report.verdict for report in found)
        return bool(found) and all(verdict.is_failure for verdict in self._wanted)

    def first(self, expressions: list[str], imports: tuple[str, ...]) -> ValidCase | None:
        """Return the first expression that does, with the solution's value."""
        for found in self._verdicts(expressions, imports):
            if found and tuple(report.verdict for report in found) == self._wanted:
                return found[0].case
        return None

    def _verdicts(self, expressions: list[str], imports: tuple[str, ...]) -> Iterator[tuple[CaseReport, ...]]:
        """Yield what each program does, for each expression; nothing where the solution does not answer."""
        suites = [Suite((TestCase(expression, None, imports, direct=True),)) for expression in expressions]
        tree = Tree(self._problem, len(self._candidates), len(suites), SuitesPer.PROBLEM)
        rounds = self._referee.open([tree], in_background=False)
        rounds.submit_programs(self._candidates)
        rounds.submit_suites(suites)
        reports = [candidate for judged in rounds.results() if judged.report for candidate in judged.report.candidates]
        for n in range(len(expressions)):
            yield tuple(case for candidate in reports for case in candidate.suites[n].cases)


def _minimised(stored: StoredEntry, beats: _Beats) -> Minimised:
    key = stored.entry.key
    if not beats.is_repeated(key.expression, key.imports):
        return Minimised(stored, stored, n_attempts=1, why=Why.NOT_REPEATED)
    n_attempts, best = 1, None
    expression = key.expression
    while n_attempts < _MOST_ATTEMPTS:
        attempts = simpler(expression)
        found = None
        for start in range(0, len(attempts), _AT_ONCE):
            some = attempts[start : start + _AT_ONCE]
            n_attempts += len(some)
            found = beats.first(some, key.imports)
            if found is not None or n_attempts >= _MOST_ATTEMPTS:
                break
        if found is None:
            break
        best, expression = found, found.case.expression
    if best is None or size(best.case.expression) >= size(same_spelling(key.expression)):
        return Minimised(stored, stored, n_attempts, Why.SMALLEST)
    smaller = BookKey(best.case.expression, key.imports, best.expected)
    return Minimised(stored, StoredEntry(stored.problem_id, replace(stored.entry, key=smaller)), n_attempts)
