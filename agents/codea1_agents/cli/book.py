"""`codea1 book`: the options. What they do: `book_commands`, `book_history`, `book_minimising`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli.options import Options, Sandbox

_Into = Annotated[Path, Option(help="The new book; it must not be there yet.")]
_Problems = Annotated[
    str | None, Option("--problems", "-p", help="Source that the cases belong to.", show_default="the run's")
]
_Top = Annotated[int, Option(min=1, help="Show so many, the most frequent first.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class BookOptions(Options):
    """What the commands have that read one book."""

    book: Annotated[Path, Argument(help="A book file (.sqlite), or the folder of a run.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOptions(BookOptions):
    """List the cases that beat a program, the most frequent first.

    \b
    Example:
      codea1 book show runs/20260304-050607 --top 10
    """

    problem: Annotated[str | None, Option(help="Only this problem's cases.")] = None
    top: _Top = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsOptions(BookOptions):
    """Tell what became of a book's cases: how many were fixed, how old they are, whom they come from, what is hard.

    \b
    Example:
      codea1 book stats runs/20260304-050607
    """

    top: Annotated[int, Option(min=1, help="Rows of each table.")] = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SurvivalOptions(BookOptions):
    """Tell how long cases stay until a program passes them (Kaplan-Meier, in rounds of their problem).

    \b
    Example:
      codea1 book survival runs/20260304-050607 --by verdict
    """

    by: Annotated[
        str | None, Option(help="Apart for each tester, coder, verdict, problem or run.", show_default=False)
    ] = None
    picture: Annotated[Path | None, Option(help="Also draw it as SVG.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RelapsesOptions(BookOptions):
    """List the mistakes that were fixed once and came back.

    \b
    Example:
      codea1 book relapses runs/20260304-050607
    """

    top: _Top = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimiseOptions(BookOptions):
    """Make each case's input as small as the same programs still fail it, and drop what then stands there twice.

    \b
    Example:
      codea1 book minimise runs/20260304-050607 --into small.sqlite
    """

    into: _Into
    run: Annotated[
        list[Path] | None, Option(help="Run folders that hold the programs.", show_default="the book's run")
    ] = None
    problems: _Problems = None
    sandbox: Sandbox = "local"
    limit: Annotated[int | None, Option(min=1, help="Only the first so many cases.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions(BookOptions):
    """Write a book for others to read: as a pytest file, as the release's JSON, or both.

    \b
    Example:
      codea1 book export runs/20260304-050607 --pytest test_mistakes.py
    """

    pytest: Annotated[Path | None, Option(help="Write a pytest file that checks programs you trust.")] = None
    official: Annotated[Path | None, Option(help="Write the JSON that the Code-A1 release reads.")] = None
    problems: _Problems = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOptions(Options):
    """Put several books into a new one: counts of equal cases add up.

    \b
    Example:
      codea1 book merge runs/first runs/second --into both.sqlite
    """

    books: Annotated[list[Path], Argument(help="Books, or folders of runs.")]
    into: _Into


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions(Options):
    """Add the cases of a book that the Code-A1 release has written.

    \b
    Example:
      codea1 book import mistake_book_step_40.json --into book.sqlite
    """

    source: Annotated[Path, Argument(help="JSON of the Code-A1 release.")]
    into: Annotated[Path, Option(help="A book file; a new one is made where there is none.")]
    problems: Annotated[
        str | None, Option("--problems", "-p", help="Source that the cases belong to; tells entry points.")
    ] = None
