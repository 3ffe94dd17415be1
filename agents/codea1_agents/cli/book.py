"""`codea1 book show`, `export`, `merge` and `import`; `codea1_lab` adds `history` and `minimise`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from heapq import nsmallest
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from codea1_agents.cli import completing
from codea1_agents.cli.console import Page, counted, new_table
from codea1_agents.cli.options import Options, how_many, output, problem_source
from codea1_env import values
from codea1_env.book.files import export_official, import_official, merge
from codea1_env.book.store import MistakeBook, StoredEntry
from codea1_env.errors import BrokenInput, UnknownName, UserError
from codea1_env.problems import load_problems
from codea1_env.records.file_errors import mode_of
from codea1_env.runs.folder import stored_config

NewBook = Annotated[Path, output("File of the new book; it must not exist.")]
BookProblems = Annotated[str | None, problem_source("Problem source of the cases.", show_default="the run's")]
Top = Annotated[int, how_many("--top", "Number of cases to show, the most frequent first.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class BookOptions(Options):
    """The argument of the commands that read one book."""

    book: Annotated[
        Path, Argument(help="A book file (.sqlite), or the folder of a run.", autocompletion=completing.runs)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOptions(BookOptions):
    """List the cases that a program failed, the most frequent first.

    \b
    Example:
      codea1 book show runs/20260304-050607 --top 10
    """

    problem: Annotated[str | None, Option(help="Show only the cases of this problem.")] = None
    top: Top = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions(BookOptions):
    """Export a book as the JSON that the Code-A1 release reads.

    \b
    Example:
      codea1 book export runs/20260304-050607 --out mistake_book.json
    """

    out: Annotated[Path, output("The JSON file.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOptions(Options):
    """Merge several books into a new one; counts of equal cases add up.

    \b
    Example:
      codea1 book merge runs/first runs/second --out both.sqlite
    """

    books: Annotated[list[Path], Argument(help="Book files (.sqlite), or run folders.", autocompletion=completing.runs)]
    out: NewBook


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions(Options):
    """Import the cases of a book that the Code-A1 release wrote.

    \b
    Example:
      codea1 book import mistake_book_step_40.json --out book.sqlite
    """

    source: Annotated[Path, Argument(help="JSON of the Code-A1 release.")]
    out: Annotated[Path, output("A book file; created if it does not exist.")]
    problems: Annotated[str | None, problem_source("Problem source of the cases, for their entry points.")] = None


_BOOK_OF_RUN = "book.sqlite"


def show_book(options: ShowOptions) -> None:
    """Show the most frequent cases.

    Raises:
        UserError: there is no book, or no such problem in it.
    """
    page, problem = Page(as_json=options.as_json), options.problem
    with opened_book(options.book) as book:
        if problem is not None and problem not in book.problem_ids():
            raise UnknownName.of("problem of this book", problem, book.problem_ids())
        entries = nsmallest(options.top, book.entries(problem), key=lambda stored: -stored.entry.frequency)
        size, version = book.size(problem), book.judge_version
    rows = [_cells(stored) for stored in entries]
    if not options.as_json:  # the JSON object has the same content
        headings = ("problem", "test", "solution", "times", "failed", "first program gave")
        page.show(new_table(headings, rows, right=(3, 4), whole=(0,)))
        page.say(f"{len(rows)} of {counted(size, 'case')}, judged by version {version} of the judge")
    page.finish(size=size, judge_version=version, entries=[_entry_to_json(stored) for stored in entries])


def export_book(options: ExportOptions) -> None:
    """Write a book as the release does.

    Raises:
        UserError: there is no book, or the file cannot be written.
    """
    page = Page(as_json=options.as_json)
    with opened_book(options.book) as book:
        done = export_official(book, options.out)
    page.say(f"{options.out}: {counted(done.written, 'case')} written")
    if done.n_nan:
        page.note(f"{done.n_nan} of them expect a nan, which no value equals")
    page.note_skipped(done.skipped)
    page.finish(out=str(options.out), **asdict(done))


def merge_books(options: MergeOptions) -> None:
    """Merge books into a new one.

    Raises:
        UserError: the new book exists already, or one of the others does not.
    """
    page, into = Page(as_json=options.as_json), options.out
    if _exists(into):
        raise UserError(f"{into} exists already: merging twice would count every case twice")
    seen: set[Path | None] = set()
    for path in options.books:  # check all books before the first write
        with opened_book(path) as book:
            if book.path in seen:
                raise UserError(f"{path} is named twice: its cases would count twice")
            seen.add(book.path)
    with target_book(into) as target:
        for path in options.books:
            with opened_book(path) as book:
                report = merge(target, book)
            page.say(f"{path}: {counted(report.added, 'case')} added, {report.combined} existed already")
        size, version = target.size(), target.judge_version
    page.say(f"{into}: {counted(size, 'case')}")
    page.finish(out=str(into), size=size, judge_version=version)


def import_book(options: ImportOptions) -> None:
    """Add the cases of the release's JSON to a book.

    Raises:
        UserError: the JSON or the book cannot be read or written.
    """
    page, into = Page(as_json=options.as_json), options.out
    known = None if options.problems is None else load_problems(options.problems)
    if not _exists(options.source):
        raise BrokenInput(f"{options.source}: no such file")
    with target_book(into) as book:
        report = import_official(book, options.source, known)
        size = book.size()
    page.say(f"{into}: {counted(report.added, 'case')} added, {report.combined} existed already; {size} in total")
    page.note_skipped(report.skipped)
    page.finish(out=str(into), size=size, **asdict(report))


def opened_book(path: Path) -> MistakeBook:
    """Return the book of a file or of a run folder, opened read-only.

    Raises:
        BrokenInput: there is no book.
    """
    with _path_errors(path):
        place = path / _BOOK_OF_RUN if path.is_dir() else path
    return MistakeBook(place, read_only=True)


@contextmanager
def target_book(path: Path) -> Iterator[MistakeBook]:
    """Yield a book to write to. If the block raises, a book that it created is deleted."""
    is_new = not _exists(path)
    try:
        with MistakeBook(path) as book:
            yield book
    except BaseException:
        if is_new:
            for suffix in ("", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
        raise


def _exists(path: Path) -> bool:
    with _path_errors(path):
        return bool(mode_of(path))


@contextmanager
def _path_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:  # such as a folder without permission, or a name that is too long
        raise BrokenInput(f"{path}: {error.strerror or error}") from error


def problems_of_run(path: Path) -> str:
    """Return the problem source of the run in a folder.

    Raises:
        UserError: the path is not a folder, or has no run.
    """
    if not path.is_dir():  # a book file
        raise UserError(f"{path} does not say which problems its cases belong to: name them with --problems")
    return stored_config(path).problems


def _cells(stored: StoredEntry) -> tuple[str, ...]:
    entry = stored.entry
    return (
        stored.problem_id,
        entry.key.expression,
        values.describe(entry.key.expected),
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
