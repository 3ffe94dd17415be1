"""`codea1 book show`; `codea1_lab` adds `history`."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from heapq import nsmallest
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from codea1_agents.cli.console import Page, new_table, pluralize
from codea1_agents.cli.options import Options, how_many
from codea1_agents.cli.progress import Progress
from codea1_env import values
from codea1_env.book.store import MistakeBook, StoredEntry
from codea1_env.errors import UnknownName
from codea1_env.rendering import shorten

Top = Annotated[int, how_many("--top", "Number of cases to show, the most frequent first.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class BookOptions(Options):
    """The argument of the commands that read one book."""

    book: Annotated[Path, Argument(help="A book file (.sqlite), or the folder of a run.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOptions(BookOptions):
    """List the cases that a program failed, the most frequent first.

    \b
    Example:
      codea1 book show runs/20260304-050607 --top 10
    """

    problem: Annotated[str | None, Option(help="Show only the cases of this problem.")] = None
    top: Top = 20


_BOOK_OF_RUN = "book.sqlite"


def show_book(options: ShowOptions) -> None:
    """Show the most frequent cases.

    Raises:
        UserError: the book does not exist, or lacks the problem.
    """
    page, problem = Page(as_json=options.as_json), options.problem
    with opened_book(options.book) as book, Progress("reading the book", None, page):
        if problem is not None and problem not in book.problem_ids():
            raise UnknownName.of("problem of this book", problem, book.problem_ids())
        entries = nsmallest(options.top, book.entries(problem), key=lambda stored: -stored.entry.frequency)
        size, version = book.size(problem), book.judge_version
    rows = [_cells(stored, page.width) for stored in entries]
    if not options.as_json:  # the JSON object has the same content
        table = new_table(("problem", "test", "times", "failed", "first program gave"), rows, right=(2, 3), whole=(0,))
        table.columns[-1].max_width = page.width // 5
        page.show(table)
        rest = f" (--top {size} shows all)" if size > len(rows) else ""
        page.say(f"{len(rows)} of {pluralize(size, 'case')}{rest}, judged by version {version} of the judge")
    page.finish(size=size, judge_version=version, entries=[_entry_to_json(stored) for stored in entries])


def opened_book(path: Path) -> MistakeBook:
    """Return the book of a file or of a run folder, opened read-only.

    Raises:
        UserError: the book does not exist.
    """
    return MistakeBook(path / _BOOK_OF_RUN if path.is_dir() else path, read_only=True)


def case_cells(problem_id: str, test: str, width: int) -> tuple[str, str]:
    """Return both for a table of a width. Names longer than a quarter of it lose their middle, so that none is broken.

    Args:
        problem_id: first column.
        test: Python source.
        width: of the page, in columns.
    """
    most = width // 4
    return shorten(problem_id, most), re.sub(rf"[^\W\d]\w{{{most},}}", lambda name: shorten(name[0], most), test)


def _cells(stored: StoredEntry, width: int) -> tuple[str, ...]:
    entry = stored.entry
    return (
        *case_cells(stored.problem_id, f"{entry.key.expression} == {values.describe(entry.key.expected)}", width),
        str(entry.frequency),
        f"{entry.n_failed}/{entry.n_evaluated}",
        entry.provenance.actual,
    )


def _entry_to_json(stored: StoredEntry) -> dict[str, Any]:
    entry = stored.entry
    return {
        "problem_id": stored.problem_id,
        "expression": entry.key.expression,
        "imports": list(entry.key.imports),
        "expected": entry.key.expected.decode(),
        "frequency": entry.frequency,
        "n_failed": entry.n_failed,
        "n_evaluated": entry.n_evaluated,
        "provenance": asdict(entry.provenance),
    }
