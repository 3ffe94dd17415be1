"""`codea1 book`: the options. What they do: `book_commands`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Show, export, merge and import Mistake Books.")

_Book = Annotated[Path, typer.Argument(help="A book file (.sqlite), or the folder of a run.")]
_Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, all else on stderr.")]


@app.command()
def show(
    book: _Book,
    problem: Annotated[str | None, typer.Option(help="Only this problem's cases.")] = None,
    top: Annotated[int, typer.Option(min=1, help="Show so many, the most frequent first.")] = 20,
    as_json: _Json = False,
) -> None:
    """List the cases that beat a program, the most frequent first.

    \b
    Example:
      codea1 book show runs/20260304-050607 --top 10
    """
    from codea1_agents.cli.book_commands import show_book  # noqa: PLC0415  heavy

    show_book(book, problem=problem, top=top, as_json=as_json)


@app.command()
def export(
    book: _Book,
    pytest: Annotated[Path | None, typer.Option(help="Write a pytest file that checks programs you trust.")] = None,
    official: Annotated[Path | None, typer.Option(help="Write the JSON that the Code-A1 release reads.")] = None,
    problems: Annotated[
        str | None, typer.Option("--problems", "-p", help="Source that the cases belong to.", show_default="the run's")
    ] = None,
    as_json: _Json = False,
) -> None:
    """Write a book for others to read: as a pytest file, as the release's JSON, or both.

    \b
    Example:
      codea1 book export runs/20260304-050607 --pytest test_mistakes.py
    """
    from codea1_agents.cli.book_commands import export_book  # noqa: PLC0415  heavy

    export_book(book, pytest=pytest, official=official, problems=problems, as_json=as_json)


@app.command()
def merge(
    books: Annotated[list[Path], typer.Argument(help="Books, or folders of runs.")],
    into: Annotated[Path, typer.Option(help="The new book; it must not be there yet.")],
    as_json: _Json = False,
) -> None:
    """Put several books into a new one: counts of equal cases add up.

    \b
    Example:
      codea1 book merge runs/first runs/second --into both.sqlite
    """
    from codea1_agents.cli.book_commands import merge_books  # noqa: PLC0415  heavy

    merge_books(books, into=into, as_json=as_json)


@app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(help="JSON of the Code-A1 release.")],
    into: Annotated[Path, typer.Option(help="A book file; a new one is made where there is none.")],
    problems: Annotated[
        str | None, typer.Option("--problems", "-p", help="Source that the cases belong to; tells entry points.")
    ] = None,
    as_json: _Json = False,
) -> None:
    """Add the cases of a book that the Code-A1 release has written.

    \b
    Example:
      codea1 book import mistake_book_step_40.json --into book.sqlite
    """
    from codea1_agents.cli.book_commands import import_book  # noqa: PLC0415  heavy

    import_book(source, into=into, problems=problems, as_json=as_json)
