"""`codea1 book history`: how long mistakes stay in a Mistake Book, where they come from, which come back."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import isnan
from pathlib import Path
from statistics import median
from typing import Annotated, Any

from typer import Option

from codea1_agents.cli.book import BookOptions, Top, opened_book
from codea1_agents.cli.console import Page, counted, new_table, number
from codea1_agents.cli.options import how_many
from codea1_agents.statistics import json_number
from codea1_env.book.rows import Leaving, Period
from codea1_env.errors import UnknownName
from codea1_lab.book_history.periods import (
    Difficulty,
    Origin,
    Relapse,
    difficulties,
    origins,
    periods_of,
    relapses,
)
from codea1_lab.book_history.survival import Survival, survival
from codea1_lab.report.material import Panel, Point, Series
from codea1_lab.report.palette import TONES
from codea1_lab.report.writing import write_picture


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsOptions(BookOptions):
    """Show how many cases were fixed, how old cases are, where they come from, and which problems are hard.

    \b
    Example:
      codea1 book history stats runs/20260304-050607
    """

    top: Annotated[int, how_many("--top", "Rows of each table.")] = 5


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
    picture: Annotated[Path | None, Option(help="Also draw the curves into this SVG file.")] = None


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

_ORIGINS: dict[str, Callable[[Period], str]] = {
    "tester": _SOURCES["tester"],
    "coder": _SOURCES["coder"],
    "failure": _SOURCES["verdict"],
    "suite": lambda period: f"{period.provenance.run} {period.provenance.episode_id} round {period.provenance.round}",
    "program": lambda period: period.provenance.program_sha256[:12] or "unknown",
}

_MANY_ROWS = 20


def show_statistics(options: StatsOptions) -> None:
    """Show the statistics of a book's cases.

    Raises:
        UserError: the book does not exist.
    """
    page = Page(as_json=options.as_json)
    with opened_book(options.book) as book:
        periods = periods_of(book)
        rounds = {problem_id: book.round_of(problem_id) for problem_id in book.problem_ids()}
    counts = _counts(periods)
    hard = difficulties(periods, rounds)
    sources = {kind: origins(periods, name) for kind, name in _ORIGINS.items()}
    if not options.as_json:
        _show_counts(page, counts)
        page.show(_difficulty_table(hard[: options.top]))
        for kind, found in sources.items():
            page.show(_origin_table(kind, found[: options.top]))
    page.finish(
        **counts,
        by_problem=[_row_to_json(each) for each in hard],
        origins={kind: [_row_to_json(each) for each in found[: options.top]] for kind, found in sources.items()},
    )


def show_survival(options: SurvivalOptions) -> None:
    """Show how long cases stay until a program passes them.

    Raises:
        MissingExtra: scipy is not installed.
        UserError: the book or the grouping does not exist, or the picture cannot be written.
    """
    by = options.by
    if by is not None and by not in _SOURCES:
        raise UnknownName.of("source", by, _SOURCES)
    page, periods = _opened(options)
    grouped: dict[str, list[Period]] = defaultdict(list)
    for period in periods:
        grouped["all" if by is None else _SOURCES[by](period)].append(period)
    found = {
        name: survival([each.duration for each in periods], [each.is_fixed for each in periods])
        for name, periods in sorted(grouped.items())
    }
    if options.picture is not None:
        write_picture(_survival_panel(found), options.picture)
    if not options.as_json:
        for name, estimate in found.items():
            _show_survival(page, name, estimate)
    page.finish(groups={name: _survival_to_json(estimate) for name, estimate in found.items()})


def show_relapses(options: RelapsesOptions) -> None:
    """Show the mistakes that were fixed and came back.

    Raises:
        UserError: the book does not exist.
    """
    page, periods = _opened(options)
    found, n_fixed = relapses(periods), sum(period.is_fixed for period in periods)
    n = sum(relapse.n_relapses for relapse in found)
    if not options.as_json:
        rows = [_relapse_cells(relapse) for relapse in found[: options.top]]
        if rows:
            heads = ("problem", "test", "times", "rounds in the book", "rounds away")
            page.show(new_table(heads, rows, right=(2,), whole=(0,)))
        share = f" ({n / n_fixed:.1%})" if n_fixed else ""
        page.say(f"{n} of {counted(n_fixed, 'fixed mistake')} came back{share}, of {counted(len(found), 'case')}")
    page.finish(fixed=n_fixed, relapses=n, cases=[_relapse_to_json(relapse) for relapse in found[: options.top]])


def _opened(options: BookOptions) -> tuple[Page, tuple[Period, ...]]:
    """Return the page for the output and the stays of the book's cases."""
    with opened_book(options.book) as book:
        return Page(as_json=options.as_json), periods_of(book)


def _counts(periods: Sequence[Period]) -> dict[str, Any]:
    how = Counter(period.how for period in periods)
    ages = [period.duration for period in periods if period.how is None]
    returned = relapses(periods)
    return {
        "there": how[None],
        "fixed": how[Leaving.FIXED],
        "evicted": how[Leaving.EVICTED],
        "denied": how[Leaving.DENIED],
        "distinct_cases": len({(period.problem_id, period.digest) for period in periods}),
        "relapses": sum(relapse.n_relapses for relapse in returned),
        "median_age": median(ages) if ages else None,
        "oldest_age": max(ages, default=None),
    }


def _row_to_json(row: Difficulty | Origin) -> dict[str, Any]:
    fields = asdict(row)
    return {"n_spells" if name == "n_periods" else name: value for name, value in fields.items()}  # the documented key


def _show_counts(page: Page, counts: dict[str, Any]) -> None:
    page.say(
        f"{counted(counts['there'], 'case')} in the book; {counts['fixed']} left because a program passed them,"
        f" {counts['evicted']} because the book was full, {counts['denied']} because the solution denies them;"
        f" {counts['relapses']} came back"
    )
    if counts["median_age"] is not None:
        page.say(
            f"age of the cases in the book, in rounds of their problem: median {counts['median_age']:g},"
            f" oldest {counts['oldest_age']}"
        )


def _difficulty_table(rows: Sequence[Difficulty]) -> Any:
    cells = []
    for each in rows:
        counts = (each.n_rounds, each.n_periods, each.n_there, each.n_fixed, each.n_relapses)
        cells.append((each.problem_id, *map(str, counts), number(each.fail_rate)))
    heads = ("hardest problems", "rounds", "entered", "there", "fixed", "came back", "fail rate")
    return new_table(heads, cells, right=(1, 2, 3, 4, 5, 6), whole=(0,))


def _origin_table(kind: str, rows: Sequence[Origin]) -> Any:
    cells = [(o.name, str(o.n_periods), str(o.n_fixed), str(o.n_there), str(o.n_problems)) for o in rows]
    return new_table((f"by {kind}", "entered", "fixed", "there", "problems"), cells, right=(1, 2, 3, 4))


def _show_survival(page: Page, name: str, estimate: Survival) -> None:
    middle = "not reached" if isnan(estimate.median) else f"{estimate.median:g} rounds"
    page.say(
        f"{name}: {counted(estimate.n, 'stay')}, {estimate.n_fixed} fixed,"
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


def _survival_panel(found: dict[str, Survival]) -> Panel:
    series = []
    for position, (name, estimate) in enumerate(list(found.items())[: len(TONES)]):
        points = [Point(0.0, 1.0)]
        for step in estimate.steps:
            before = points[-1]
            points.append(Point(step.time, before.mean, before.low, before.high))  # draws a step, not a slope
            points.append(Point(step.time, step.share, step.low, step.high, step.n_at_risk))
        series.append(Series(name, tuple(points), TONES[position]))
    note = "Share of cases that are not fixed yet; the band is the 95 % interval."
    return Panel("survival", "Survival in the Mistake Book", note, tuple(series), "rounds of the problem", 0.0, 1.0)


def _survival_to_json(estimate: Survival) -> dict[str, Any]:
    steps = [{name: json_number(value) for name, value in asdict(step).items()} for step in estimate.steps]
    return {"n": estimate.n, "fixed": estimate.n_fixed, "median": json_number(estimate.median), "steps": steps}


def _relapse_cells(relapse: Relapse) -> tuple[str, ...]:
    periods = ", ".join(f"{period.duration}{'+' if period.how is None else ''}" for period in relapse.periods)
    gaps = ", ".join(map(str, relapse.gaps))
    return (relapse.problem_id, relapse.expression, str(relapse.n_relapses), periods, gaps)


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
