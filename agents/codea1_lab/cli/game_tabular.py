"""`codea1 game tabular` and `rewards`: the game small enough to be a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from math import isinf
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from typer import Option

from codea1_agents.cli.console import Page, new_table
from codea1_agents.cli.options import NoProgress, Options, output
from codea1_agents.cli.progress import Progress
from codea1_agents.evaluation.canvas import require_drawing
from codea1_agents.statistics import json_number
from codea1_env.errors import UnknownName
from codea1_env.records.whole_files import write_text
from codea1_lab.experiments.grid import Cell
from codea1_lab.experiments.spread import paired_difference
from codea1_lab.games.pictures import draw_maps
from codea1_lab.tabular.learning import Schedule
from codea1_lab.tabular.payments import AIMING, ALPHAS, PAYMENTS_OF, WORLDS, Line, compare
from codea1_lab.tabular.payments import FIRST as FIXED
from codea1_lab.tabular.payments import NAMES as FIGURES
from codea1_lab.tabular.table import FIRST, MAP_READING, MAP_TRIGGERS, STUDIES, Row, crossover, table


@dataclass(frozen=True, slots=True, kw_only=True)
class TabularOptions(Options):
    """Train Code-A1 and other systems in a tabular game, and print by how much Code-A1 leads.

    A program has a bug or none at each of four places. Half of the kinds of bugs are found by any input, the others by
    one trigger of V, drawn anew with each program. A tester that sees the program reads a bug with probability rho. The
    rewards, groups, advantages and the Mistake Book are those of training; the regimes are those of a study, by default
    of docs/tabular-game.md.

    \b
    Example:
      codea1 game tabular --seeds 6
      codea1 game tabular --study map --seeds 3 -o pictures
    """

    study: Annotated[str, Option(help="Systems and regimes: tabular-game, causes, map, deep-rare or long.")] = (
        "tabular-game"
    )
    seeds: Annotated[int, Option(min=1, help="Trainings per system.")] = 6
    out: Annotated[Path | None, output("Folder for the results, and the map's picture.", show_default="none")] = None
    quiet: NoProgress = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardsOptions(Options):
    """Train testers of the tabular game under several rewards, and print which of them aim and which of them lie.

    A test that is answered without care hits its aim and is hardly ever right. A star marks rewards under which the
    tester aims no less than under release, and is no less valid and careful, and the coder no worse, than under
    fixed. The study credit pays single tests, too, and inputs and answers apart.

    \b
    Example:
      codea1 game rewards --seeds 6
      codea1 game rewards --study credit --seeds 12
    """

    study: Annotated[str, Option(help="Ways to pay: suites or credit.")] = "suites"
    steps: Annotated[int, Option(min=1, help="Steps of training.")] = 50
    seeds: Annotated[int, Option(min=1, help="Trainings per world and reward.")] = 6
    out: Annotated[Path | None, output("Folder for rewards.json.", show_default="none")] = None
    quiet: NoProgress = False


def train_tables(options: TabularOptions) -> None:
    """Train all systems and print the table.

    Raises:
        UserError: an unknown study, or a file cannot be written.
    """
    page = Page(as_json=options.as_json, quiet=options.quiet)
    if options.study not in STUDIES:
        raise UnknownName.of("study", options.study, STUDIES)
    study = STUDIES[options.study]
    if options.out is not None and options.study == "map":
        require_drawing()
    with Progress("training tables", len(study.regimes) * len(study.systems) * options.seeds, page) as bar:
        rows = table(study.regimes, options.seeds, systems=study.systems, progress=bar.step)
    page.show(
        new_table(("regime", "right", "aims", "over", "lead"), chain.from_iterable(map(_cells_of, rows)), right=(1, 2))
    )
    page.say(
        "How often programs for held-out problems are right, and how often the tester aims at a bug that it reads, in"
        f" percent; then the lead of {FIRST} over each other system in points, with half of the 95 % interval over"
        f" {options.seeds} seeds."
    )
    facts: dict[str, Any] = {"seeds": options.seeds, "rows": list(map(_document, rows))}
    if options.study == "map":
        facts["crossovers"] = _crossovers(rows)
        for name, triggers in facts["crossovers"].items():
            page.say(
                f"{FIRST} leads {name} from {triggers} triggers on." if triggers else f"{FIRST} never leads {name}."
            )
    if options.out is not None:
        _write(options.out, "result.json", facts)
    page.finish(**facts, out=None if options.out is None else str(options.out), pictures=_draw(options, rows))


def compare_rewards(options: RewardsOptions) -> None:
    """Train testers under all ways to pay them and print the table.

    Raises:
        UserError: an unknown study, or a file cannot be written.
    """
    page = Page(as_json=options.as_json, quiet=options.quiet)
    schedule = Schedule(steps=options.steps)
    if options.study not in PAYMENTS_OF:
        raise UnknownName.of("study", options.study, PAYMENTS_OF)
    payments = PAYMENTS_OF[options.study]
    with Progress("training tables", len(ALPHAS) * len(payments) * len(WORLDS) * options.seeds, page) as bar:
        lines = compare(options.seeds, payments=payments, schedule=schedule, progress=bar.step)
    if is_credit := options.study == "credit":
        headings, others = ("right", "aims", "care", "beats"), f"{FIXED}; in brackets, that over worlds"
    else:
        headings = ("right", "validity", "care", "aims")
        others = f"{FIXED} and, the last one, over {AIMING}"
    documents = list(map(_line_document, lines))
    rows = [credit_cells(line, documents) if is_credit else reward_cells(line) for line in documents]
    page.show(new_table((*_MEANS, *headings), rows, right=range(2, len(_MEANS) + len(headings))))
    page.say(
        f"Means in percent over {len(WORLDS)} worlds and {options.seeds} seeds; then leads in points, with half of the"
        f" 95 % interval, over {others}."
    )
    facts = {
        "seeds": options.seeds,
        "schedule": asdict(schedule),
        "worlds": list(map(asdict, WORLDS)),
        "lines": documents,
    }
    if options.out is not None:
        _write(options.out, "rewards.json", facts)
    page.finish(**facts, out=None if options.out is None else str(options.out))


_MEANS = ("alpha", "reward", "right", "validity", "aims", "care", "beats")


def reward_cells(line: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of a line of rewards.json: five means, then three leads over `fixed` and one over `release`."""
    leads = [line["leads"][name] for name in ("right", "validity", "care")]
    return _cells(line, [*leads, line["over_aiming"]], " *" if line["wins"] else "")


def credit_cells(line: dict[str, Any], lines: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """Return the cells of a line of the study `credit`: five means, then four leads over `fixed`.

    The second interval of a lead takes the mean of a world's seeds as one value, as they share the world.

    Args:
        line: of `lines`.
        lines: all lines of rewards.json.
    """
    (fixed,) = [each for each in lines if (each["payment"], each["alpha"]) == (FIXED, line["alpha"])]
    cells = _cells(line, [line["leads"][name] for name in _CREDIT])
    over_worlds = [_worlds_text(line["spreads"][name], fixed["spreads"][name]) for name in _CREDIT]
    return (
        *cells[: -len(_CREDIT)],
        *(f"{lead} {text}" for lead, text in zip(cells[-len(_CREDIT) :], over_worlds, strict=True)),
    )


_CREDIT = ("right", "aims", "care", "subtle")


def _worlds_text(spread: dict[str, Any], other: dict[str, Any]) -> str:
    first, second = ({Cell("", base, 0): mean for base, mean in enumerate(e["by_base"])} for e in (spread, other))
    return f"(±{100 * paired_difference(first, second).half_width:.1f})"


def _cells(line: dict[str, Any], leads: Iterable[dict[str, Any]], mark: str = "") -> tuple[str, ...]:
    means = [_points(line["spreads"][name]["mean"]) for name in FIGURES]
    return (f"{line['alpha']:g}", line["payment"] + mark, *means, *map(_lead, leads))


def _line_document(line: Line) -> dict[str, Any]:
    return {
        "payment": line.payment,
        "alpha": line.alpha,
        "wins": line.wins,
        "spreads": {name: _to_json(each) for name, each in line.spreads.items()},
        "leads": {name: _to_json(each) for name, each in line.leads.items()},
        "over_aiming": _to_json(line.over_aiming),
    }


def _points(share: float) -> str:
    return f"{100 * share:.1f}"


def _lead(lead: dict[str, Any]) -> str:
    width = "" if lead["half_width"] is None else f" ±{100 * lead['half_width']:.1f}"
    return f"{100 * lead['mean']:+.1f}{width}"


def _to_json(each: Any) -> dict[str, Any]:
    fields = asdict(each).items()
    return {name: json_number(value) if isinstance(value, float) else value for name, value in fields}


def _write(folder: Path, name: str, document: dict[str, Any]) -> None:
    write_text(folder / name, json.dumps(document, indent=1) + "\n")


def lead_cells(row: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of a row of result.json."""
    means = [_points(row[name]["mean"]) for name in ("accuracy", "aims")]
    return (row["regime"], *means, *map(_lead, row["leads"].values()))


def _cells_of(row: Row) -> Iterator[tuple[str, ...]]:
    """Yield the lines of a regime: its means with the first lead, and one line per further system."""
    regime, right, aims, *leads = lead_cells(_document(row))
    for n, (name, lead) in enumerate(zip(row.leads, leads, strict=True)):
        yield (*((regime, right, aims) if not n else ("", "", "")), name, lead)


def _document(row: Row) -> dict[str, Any]:
    return {
        "regime": row.regime.name,
        "world": asdict(row.regime.world),
        "schedule": asdict(row.regime.schedule),
        "alpha": row.regime.alpha,
        "accuracy": _to_json(row.accuracy),
        "aims": _to_json(row.aims),
        "leads": {name: _to_json(each) for name, each in row.leads.items()},
    }


def _on_map(numbers: Iterable[float]) -> NDArray[np.float64]:
    """Return one number per regime of the map as an array (reading, triggers)."""
    return np.reshape(list(numbers), (len(MAP_TRIGGERS), len(MAP_READING))).T


def _crossovers(rows: list[Row]) -> dict[str, float | None]:
    """Return, by other system, from how many triggers on it is behind where most bugs are read; None: it never is."""
    leads = {name: _on_map(row.leads[name].mean for row in rows)[-1] for name in rows[0].leads}
    crossings = {name: crossover(MAP_TRIGGERS, line.tolist()) for name, line in leads.items()}
    return {name: None if isinf(number) else round(number, 1) for name, number in crossings.items()}


def _draw(options: TabularOptions, rows: list[Row]) -> list[str]:
    """Draw the map; return the names of pictures."""
    if options.out is None or options.study != "map":
        return []
    maps = {f"lead over {name}, points": _on_map(100 * row.leads[name].mean for row in rows) for name in rows[0].leads}
    draw_maps(
        maps, options.out / "tabular-map.svg", columns=MAP_TRIGGERS, rows=MAP_READING, x="triggers (V)", y="read (rho)"
    )
    return ["tabular-map.svg"]
