"""Measures the time of one round with the Mistake Book, in small and large books.

    python benchmarks/book.py [--quick]

A round is `retrieve` and `record` of 8 candidates, each of which fails 8 new cases, with 8 replayed cases. The script
first builds books of all sizes. These then take turns, so other load of the machine affects all of them. Ratios are to
the smallest book of the same layout in the same turn. A limit on entries keeps the size of each book: 64 entries are
added and 64 removed. A round reads and writes the same number of rows in all books. If all entries belong to one large
problem, each row lies in its own disk page; in a small problem, rows share pages. This explains the remaining
difference.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from measuring import option_parser

from codea1_env.book.store import MistakeBook, ProblemRows, StoredEntry
from codea1_env.facts import verdicts
from codea1_env.facts.submissions import Candidate, TestCase
from codea1_env.rules.mistake_book import BookEntry, BookKey
from codea1_env.rules.ruleset import BookRules

N_CANDIDATES = N_CASES = 8
ENTRIES_PER_PROBLEM = 100
_ROW = "{:<22} {:>9}" + " {:>8}" * 6


@dataclass
class Contestant:
    """One book of the comparison."""

    book: MistakeBook
    size: int
    problem_ids: list[str]

    @property
    def rules(self) -> BookRules:
        """The rules `fixed`, with the size of the book as its limit."""
        return BookRules(n_stalest=1, count_replay_failures=True, max_entries=self.size // len(self.problem_ids))


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="1e3 and 1e4 entries, 50 turns")
    quick = parser.parse_args().quick
    sizes, n_turns = ((1_000, 10_000), 50) if quick else ((1_000, 100_000, 1_000_000), 300)
    print(
        f"{N_CANDIDATES} candidates x {N_CASES} failing cases per round; {n_turns} turns; each is committed to disk\n"
    )
    print(_ROW.format("layout", "entries", *("min", "median", "max") * 2), "(milliseconds, then ratios)")
    with tempfile.TemporaryDirectory(prefix="codea1-benchmark-") as folder:
        for layout, entries_per_problem in (
            ("spread over problems", ENTRIES_PER_PROBLEM),
            ("all in one problem", None),
        ):
            contestants = [contestant(Path(folder), size, entries_per_problem) for size in sizes]
            show(layout, contestants, [[round_ms(one, turn) for one in contestants] for turn in range(n_turns)])


def contestant(folder: Path, size: int, entries_per_problem: int | None) -> Contestant:
    problem_ids = [f"problem {number}" for number in range(size // (entries_per_problem or size))]
    book = MistakeBook(folder / f"{size}-{len(problem_ids)}.sqlite")
    fill(book, filling(problem_ids, size), at_round=1000)
    return Contestant(book, size, problem_ids)


def fill(book: MistakeBook, entries: Iterable[StoredEntry], *, at_round: int) -> None:
    """Append entries in one transaction, and let each problem have had so many rounds."""
    with book._database.writing() as connection:
        problems: dict[str, ProblemRows] = {}
        for stored in entries:
            name, entry = stored.problem_id, stored.entry
            rows = problems.get(name) or problems.setdefault(name, ProblemRows.find_or_add(connection, name))
            rows.round = at_round
            rows.insert(replace(entry, sequence=rows.next_sequence()), entry.key.digest())
        for rows in problems.values():
            rows.save_counts()


def filling(problem_ids: list[str], size: int) -> Iterator[StoredEntry]:
    """Yield entries as in the book of a long run: those of one problem lie far apart in the file."""
    for number in range(size):
        key = BookKey(f"old([{number}, {number + 1}], 'a b c d', key={number})", (), b"[1,2,%d]" % number)
        entry = BookEntry(key, True, 1 + number % 7, 9, 10, 1 + number % 900, number % 1000, 1)
        yield StoredEntry(problem_ids[number % len(problem_ids)], entry)


def round_ms(one: Contestant, turn: int) -> float:
    problem_id = one.problem_ids[turn * 7919 % len(one.problem_ids)]
    new = [[f"new({turn}, {m}, {n}, 'some text')" for n in range(N_CASES)] for m in range(N_CANDIDATES)]
    start = time.perf_counter()
    replayed = tuple(entry.to_valid_case() for entry in one.book.retrieve(problem_id, one.rules))
    retrieved = time.perf_counter() - start
    report = verdicts.ProblemReport(problem_id, tuple(candidate(replayed, expressions) for expressions in new))
    start = time.perf_counter()
    delta = one.book.record(report, one.rules)
    recorded = time.perf_counter() - start
    assert delta.added == N_CANDIDATES * N_CASES
    assert one.book.size() == one.size
    return 1000 * (retrieved + recorded)


def candidate(replayed: tuple[verdicts.ValidCase, ...], expressions: list[str]) -> verdicts.CandidateReport:
    """Return a report in which half of the replayed cases pass and all new cases fail."""
    again = tuple(verdicts.CaseReport(case, list(verdicts.Verdict)[n % 2]) for n, case in enumerate(replayed))
    cases = tuple(verdicts.ValidCase(TestCase(expression, "0", (), True), b"1", False) for expression in expressions)
    failed = tuple(verdicts.CaseReport(case, verdicts.Verdict.WRONG_ANSWER, "2") for case in cases)
    suite = verdicts.SuiteReport(verdicts.ValidSuite(cases, (), 0, 0.0), failed)
    return verdicts.CandidateReport(Candidate("def new(*a): return 2"), verdicts.Verdict.PASSED, "", again, (suite,))


def show(layout: str, contestants: list[Contestant], turns: list[list[float]]) -> None:
    for position, one in enumerate(contestants):
        times = [turn[position] for turn in turns]
        ratios = [turn[position] / turn[0] for turn in turns]
        figures = [f"{of(values):.2f}" for values in (times, ratios) for of in (min, statistics.median, max)]
        print(_ROW.format(layout, f"{one.size:,}", *figures))
        one.book.close()


if __name__ == "__main__":
    main()
