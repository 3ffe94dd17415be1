"""`codea1 book`: the options. What they do: `book_commands`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codea1_agents.cli.options import Json

app = typer.Typer(no_args_is_help=True, help="Show, study, minimise, export, merge and import Mistake Books.")

_Book = Annotated[Path, typer.Argument(help="A book file (.sqlite), or the folder of a run.")]


@app.command()
def show(
    book: _Book,
    problem: Annotated[str | None, typer.Option(help="Only this problem's cases.")] = None,
    top: Annotated[int, typer.Option(min=1, help="Show so many, the most frequent first.")] = 20,
    as_json: Json = False,
) -> None:
    """List the cases that beat a program, the most frequent first.

    \b
    Example:
      codea1 book show runs/20260304-050607 --top 10
    """
    from codea1_agents.cli.book_commands import show_book  # noqa: PLC0415  heavy

    show_book(book, problem=problem, top=top, as_json=as_json)


@app.command()
def stats(
    book: _Book,
    top: Annotated[int, typer.Option(min=1, help="Rows of each table.")] = 5,
    as_json: Json = False,
) -> None:
    """Tell what became of a book's cases: how many were fixed, how old they are, whom they come from, what is hard.

    \b
    Example:
      codea1 book stats runs/20260304-050607
    """
    from codea1_agents.cli.book_history import show_statistics  # noqa: PLC0415  heavy

    show_statistics(book, top=top, as_json=as_json)


@app.command()
def survival(
    book: _Book,
    by: Annotated[
        str | None, typer.Option(help="Apart for each tester, coder, verdict, problem or run.", show_default=False)
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="Also draw it as SVG.")] = None,
    as_json: Json = False,
) -> None:
    """Tell how long cases stay until a program passes them (Kaplan-Meier, in rounds of their problem).

    \b
    Example:
      codea1 book survival runs/20260304-050607 --by verdict
    """
    from codea1_agents.cli.book_history import show_survival  # noqa: PLC0415  heavy

    show_survival(book, by=by, picture=picture, as_json=as_json)


@app.command()
def relapses(
    book: _Book,
    top: Annotated[int, typer.Option(min=1, help="Show so many, the most frequent first.")] = 20,
    as_json: Json = False,
) -> None:
    """List the mistakes that were fixed once and came back.

    \b
    Example:
      codea1 book relapses runs/20260304-050607
    """
    from codea1_agents.cli.book_history import show_relapses  # noqa: PLC0415  heavy

    show_relapses(book, top=top, as_json=as_json)


@app.command()
def minimise(
    book: _Book,
    into: Annotated[Path, typer.Option(help="The new book; it must not be there yet.")],
    run: Annotated[
        list[Path] | None, typer.Option(help="Run folders that hold the programs.", show_default="the book's run")
    ] = None,
    problems: Annotated[
        str | None, typer.Option("--problems", "-p", help="Source that the cases belong to.", show_default="the run's")
    ] = None,
    sandbox: Annotated[str, typer.Option(help="Where programs run.")] = "local",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many cases.")] = None,
    as_json: Json = False,
) -> None:
    """Make each case's input as small as the same programs still fail it, and drop what then stands there twice.

    \b
    Example:
      codea1 book minimise runs/20260304-050607 --into small.sqlite
    """
    from codea1_agents.cli.book_minimising import minimise_book  # noqa: PLC0415  heavy

    minimise_book(book, into=into, runs=run or [], problems=problems, sandbox=sandbox, limit=limit, as_json=as_json)


@app.command()
def export(
    book: _Book,
    pytest: Annotated[Path | None, typer.Option(help="Write a pytest file that checks programs you trust.")] = None,
    official: Annotated[Path | None, typer.Option(help="Write the JSON that the Code-A1 release reads.")] = None,
    problems: Annotated[
        str | None, typer.Option("--problems", "-p", help="Source that the cases belong to.", show_default="the run's")
    ] = None,
    as_json: Json = False,
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
    as_json: Json = False,
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
    as_json: Json = False,
) -> None:
    """Add the cases of a book that the Code-A1 release has written.

    \b
    Example:
      codea1 book import mistake_book_step_40.json --into book.sqlite
    """
    from codea1_agents.cli.book_commands import import_book  # noqa: PLC0415  heavy

    import_book(source, into=into, problems=problems, as_json=as_json)
