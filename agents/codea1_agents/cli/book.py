"""The options of `codea1 book`; `book_commands`, `book_history` and `book_minimising` run its commands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli import completing
from codea1_agents.cli.options import NoProgress, Options, Sandbox, how_many, only_first, output, problem_source

_Out = Annotated[Path, output("File of the new book; it must not exist.")]
_Problems = Annotated[str | None, problem_source("Problem source of the cases.", show_default="the run's")]
_Top = Annotated[int, how_many("--top", "Number of cases to show, the most frequent first.")]


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
    top: _Top = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsOptions(BookOptions):
    """Show how many cases were fixed, how old cases are, where they come from, and which problems are hard.

    \b
    Example:
      codea1 book stats runs/20260304-050607
    """

    top: Annotated[int, how_many("--top", "Rows of each table.")] = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SurvivalOptions(BookOptions):
    """Show how long cases stay in the book until a program passes them (Kaplan-Meier, in rounds of their problem).

    \b
    Example:
      codea1 book survival runs/20260304-050607 --by verdict
    """

    by: Annotated[
        str | None, Option(help="Group the cases by tester, coder, verdict, problem or run.", show_default=False)
    ] = None
    picture: Annotated[Path | None, Option(help="Also draw the curves into this SVG file.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RelapsesOptions(BookOptions):
    """List the mistakes that were fixed and came back.

    \b
    Example:
      codea1 book relapses runs/20260304-050607
    """

    top: _Top = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimiseOptions(BookOptions):
    """Shrink each case's input as far as the same programs still fail it, and remove duplicates.

    \b
    Example:
      codea1 book minimise runs/20260304-050607 --out small.sqlite
    """

    out: _Out
    run: Annotated[
        list[Path] | None,
        Option(
            help="Run folders with the recorded programs.",
            show_default="the book's run",
            autocompletion=completing.runs,
        ),
    ] = None
    problems: _Problems = None
    sandbox: Sandbox = "local"
    limit: Annotated[int | None, only_first("cases", show_default="all")] = None
    quiet: NoProgress = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions(BookOptions):
    """Export a book as a pytest file, as the release's JSON, or both.

    \b
    Example:
      codea1 book export runs/20260304-050607 --pytest test_mistakes.py
    """

    pytest: Annotated[Path | None, Option(help="Write a pytest file that checks programs you trust.")] = None
    official: Annotated[Path | None, Option(help="Write the JSON that the Code-A1 release reads.")] = None
    problems: _Problems = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOptions(Options):
    """Merge several books into a new one; counts of equal cases add up.

    \b
    Example:
      codea1 book merge runs/first runs/second --out both.sqlite
    """

    books: Annotated[list[Path], Argument(help="Book files (.sqlite), or run folders.", autocompletion=completing.runs)]
    out: _Out


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
