"""`codea1 book history`: how long mistakes stay in a Mistake Book, and which come back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import isnan
from typing import Annotated, Any

from typer import Option

from codea1_agents.cli.book import BookOptions, Top, case_cells, opened_book
from codea1_agents.cli.console import Page, new_table, number, pluralize
from codea1_agents.cli.progress import Progress
from codea1_agents.statistics import json_number
from codea1_env.book.store import Period
from codea1_env.errors import UnknownName
from codea1_lab.book_history.periods import (
    Relapse,
    periods_of,
    relapses,
)
from codea1_lab.book_history.survival import Survival, survival


@dataclass(frozen=True, slots=True, kw_only=True)
class SurvivalOptions(BookOptions):
    """Show how long cases stay in the book until a program passes them (Kaplan-Meier, in rounds of their problem).

    \b
    Example:
      codea1 book history survival runs/20260304-050607 --by verdict
    """

    by: Annotated[
        str | None, Option(help="Group the cases by tester, coder, verdict, problem or run.", show_default=False)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RelapsesOptions(BookOptions):
    """List the mistakes that were fixed and came back.

    \b
    Example:
      codea1 book history relapses runs/20260304-050607
    """

    top: Top = 20


_SOURCES: dict[str, Callable[[Period], str]] = {
    "tester": lambda period: period.provenance.tester or "unknown",
    "coder": lambda period: period.provenance.coder or "unknown",
    "verdict": lambda period: period.provenance.verdict.replace("_", " ") or "unknown",
    "problem": lambda period: period.problem_id,
    "run": lambda period: period.provenance.run or "unknown",
}

_MANY_ROWS = 20


def show_survival(options: SurvivalOptions) -> None:
    """Show how long cases stay until a program passes them.

    Raises:
        MissingExtra: scipy is not installed.
        UserError: there is no book or no such grouping.
    """
    by = options.by
    if by is not None and by not in _SOURCES:
        raise UnknownName.of("grouping", by, _SOURCES)
    page, periods = _read_periods(options)
    grouped: dict[str, list[Period]] = defaultdict(list)
    for period in periods:
        grouped["all" if by is None else _SOURCES[by](period)].append(period)
    curves = {
        name: survival([period.duration for period in periods], [period.is_fixed for period in periods])
        for name, periods in sorted(grouped.items())
    }
    if not options.as_json:
        for name, estimate in curves.items():
            _show_survival(page, name, estimate)
    page.finish(groups={name: _survival_to_json(estimate) for name, estimate in curves.items()})


def show_relapses(options: RelapsesOptions) -> None:
    """Show the mistakes that were fixed and came back.

    Raises:
        UserError: the book does not exist.
    """
    page, periods = _read_periods(options)
    cases, n_fixed = relapses(periods), sum(period.is_fixed for period in periods)
    n = sum(relapse.n_relapses for relapse in cases)
    if not options.as_json:
        rows = [_relapse_cells(relapse, page.width) for relapse in cases[: options.top]]
        if rows:
            heads = ("problem", "test", "times", "rounds in the book", "rounds away")
            page.show(new_table(heads, rows, right=(2,), whole=(0,)))
        share = f" ({n / n_fixed:.1%})" if n_fixed else ""
        page.say(f"{n} of {pluralize(n_fixed, 'fixed mistake')} came back{share}, of {pluralize(len(cases), 'case')}")
    page.finish(fixed=n_fixed, relapses=n, cases=[_relapse_to_json(relapse) for relapse in cases[: options.top]])


def _read_periods(options: BookOptions) -> tuple[Page, tuple[Period, ...]]:
    """Return the page for the output and the stays of the book's cases."""
    page = Page(as_json=options.as_json)
    with opened_book(options.book) as book, Progress("reading the book", None, page):
        return page, periods_of(book)


def _show_survival(page: Page, name: str, estimate: Survival) -> None:
    middle = "not reached" if isnan(estimate.median) else f"{estimate.median:g} rounds"
    page.say(
        f"{name}: {pluralize(estimate.n, 'stay')}, {estimate.n_fixed} fixed,"
        f" {estimate.n - estimate.n_fixed} censored; median {middle}"
    )
    rows = [
        (
            str(step.time),
            str(step.n_at_risk),
            str(step.n_fixed),
            number(step.share),
            "" if isnan(step.low) else f"{number(step.low)} to {number(step.high)}",
        )
        for step in estimate.steps[:_MANY_ROWS]
    ]
    if rows:
        heads = ("rounds", "at risk", "fixed", "still there", "95 % interval")
        page.show(new_table(heads, rows, right=(0, 1, 2, 3)))
    if len(estimate.steps) > _MANY_ROWS:
        page.say(f"and {len(estimate.steps) - _MANY_ROWS} later times; --json prints all")


def _survival_to_json(estimate: Survival) -> dict[str, Any]:
    steps = [{name: json_number(value) for name, value in asdict(step).items()} for step in estimate.steps]
    return {"n": estimate.n, "fixed": estimate.n_fixed, "median": json_number(estimate.median), "steps": steps}


def _relapse_cells(relapse: Relapse, width: int) -> tuple[str, ...]:
    periods = ", ".join(f"{period.duration}{'+' if period.how is None else ''}" for period in relapse.periods)
    gaps = ", ".join(map(str, relapse.gaps))
    return (*case_cells(relapse.problem_id, relapse.expression, width), str(relapse.n_relapses), periods, gaps)


def _relapse_to_json(relapse: Relapse) -> dict[str, Any]:
    return {
        "problem_id": relapse.problem_id,
        "expression": relapse.expression,
        "relapses": relapse.n_relapses,
        "gaps": list(relapse.gaps),
        "spells": [
            {
                "added_round": period.added_round,
                "last_round": period.last_round,
                "how": "there" if period.how is None else period.how.value,
                "program_sha256": period.provenance.program_sha256,
                "episode_id": period.provenance.episode_id,
            }
            for period in relapse.periods
        ],
    }
