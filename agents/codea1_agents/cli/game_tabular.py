"""Runs `codea1 game tabular`, `codea1 game rewards` and `codea1 game aim`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import count, product
from pathlib import Path
from typing import Any

from codea1_agents.cli.console import Page, new_table
from codea1_agents.cli.game import AimOptions, RewardsOptions, TabularOptions
from codea1_agents.cli.game_commands import picture_folder
from codea1_agents.cli.progress import Progress
from codea1_agents.lab.games.pictures import draw_curves
from codea1_agents.lab.tabular.criterion import Skill, alpha_with_book, least_kill_rate
from codea1_agents.lab.tabular.learning import SYSTEMS, Schedule
from codea1_agents.lab.tabular.payments import AIMING, ALPHAS, PAYMENTS, WORLDS, Line, compare
from codea1_agents.lab.tabular.payments import FIRST as FIXED
from codea1_agents.lab.tabular.payments import NAMES as FIGURES
from codea1_agents.lab.tabular.table import DECLARED, FIRST, Regime, Row, table
from codea1_agents.lab.tabular.world import World
from codea1_agents.statistics import json_number
from codea1_env.errors import UserError
from codea1_env.records.whole_files import write_text
from codea1_env.rules.ruleset import preset

_WITHOUT_REGIME = TabularOptions(seeds=0, out=None, rules="", quiet=False, as_json=False)


def train_tables(options: TabularOptions) -> None:
    """Train all systems and print the table.

    Raises:
        UserError: an unknown preset, or a file cannot be written.
    """
    page = Page(as_json=options.as_json, quiet=options.quiet)
    reward = preset(options.rules).reward
    if reward.needs_golden or not reward.pays_tester:
        raise UserError(f"rules {options.rules} need golden tests or pay no tester: here only golden systems have them")
    regimes = _regimes(options)
    with _counting(len(regimes) * len(SYSTEMS) * options.seeds, page) as advance:
        rows = table(regimes, options.rules, options.seeds, progress=advance)
    headings = ("regime", "right", "aims", *(name for name in SYSTEMS if name != FIRST))
    cells = [lead_cells(_document(row)) for row in rows]
    page.show(new_table(headings, cells, right=tuple(range(1, len(headings))), whole=tuple(range(1, len(headings)))))
    page.say(
        "How often programs for held-out problems are right, and how often the tester aims at a bug that it reads, in"
        f" percent; then the lead of {FIRST} over other systems in points, with half of the 95 % interval over"
        f" {options.seeds} seeds."
    )
    found = {
        "rules": options.rules,
        "seeds": options.seeds,
        "rows": [_document(row) for row in rows],
        "out": None if options.out is None else str(options.out),
        "pictures": _kept(options, rows),
    }
    page.finish(**found)


@contextmanager
def _counting(n_trainings: int, page: Page) -> Iterator[Callable[[], None]]:
    """Show the progress of trainings; yield what is called after each."""
    numbers = count(1)
    with Progress("training tables", n_trainings, page) as bar:
        yield lambda: bar.reach(next(numbers), n_trainings)


def compare_rewards(options: RewardsOptions) -> None:
    """Train testers under all ways to pay them and print the table.

    Raises:
        UserError: a file cannot be written.
    """
    page = Page(as_json=options.as_json, quiet=options.quiet)
    schedule = Schedule(steps=options.steps)
    with _counting(len(ALPHAS) * len(PAYMENTS) * len(WORLDS) * options.seeds, page) as advance:
        lines = compare(options.seeds, schedule=schedule, progress=advance)
    page.show(new_table(REWARD_HEADINGS, [reward_cells(_line_document(line)) for line in lines], right=range(2, 10)))
    page.say(
        f"Means in percent over {len(WORLDS)} worlds and {options.seeds} seeds; then leads in points, with half of the"
        f" 95 % interval, over {FIXED} and, the last one, over {AIMING}."
    )
    found = {
        "seeds": options.seeds,
        "schedule": asdict(schedule),
        "worlds": list(map(asdict, WORLDS)),
        "lines": list(map(_line_document, lines)),
    }
    if options.out is not None:
        _write(options.out, "rewards.json", found)
    page.finish(**found, out=None if options.out is None else str(options.out))


REWARD_HEADINGS = ("alpha", "reward", "right", "validity", "aims", "care", "beats", "right", "validity", "care", "aims")


def reward_cells(line: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of a line of rewards.json: five means, then three leads over `fixed` and one over `release`."""
    leads = [line["leads"][name] for name in ("right", "validity", "care")]
    return (
        f"{line['alpha']:g}",
        line["payment"] + (" *" if line["wins"] else ""),
        *(_points(line["spreads"][name]["mean"]) for name in FIGURES),
        *map(_lead, (*leads, line["over_aiming"])),
    )


def _line_document(line: Line) -> dict[str, Any]:
    return {
        "payment": line.payment,
        "alpha": line.alpha,
        "wins": line.wins,
        "spreads": {name: _known(each) for name, each in line.spreads.items()},
        "leads": {name: _known(each) for name, each in line.leads.items()},
        "over_aiming": _known(line.over_aiming),
    }


def _regimes(options: TabularOptions) -> list[Regime]:
    if not (options.triggers or options.reading):
        if replace(options, seeds=0, out=None, rules="", quiet=False, as_json=False) != _WITHOUT_REGIME:
            raise UserError("the declared regimes have their own alpha, steps and skill: name --triggers or --reading")
        return list(DECLARED)
    schedule = Schedule(steps=options.steps)
    world = World(right_naive=options.right_naive, right_aimed=options.right_aimed)
    return [
        Regime(replace(world, n_triggers=triggers, reading=reading), schedule, options.alpha)
        for triggers, reading in product(options.triggers or [world.n_triggers], options.reading or [world.reading])
    ]


def _points(share: float) -> str:
    return f"{100 * share:.1f}"


def _lead(lead: dict[str, Any]) -> str:
    width = "" if lead["half_width"] is None else f" ±{100 * lead['half_width']:.1f}"
    return f"{100 * lead['mean']:+.1f}{width}"


def _known(each: Any) -> dict[str, Any]:
    fields = asdict(each).items()
    return {name: json_number(value) if isinstance(value, float) else value for name, value in fields}


def _write(folder: Path, name: str, document: dict[str, Any]) -> None:
    write_text(picture_folder(folder) / name, json.dumps(document, indent=1) + "\n")


def lead_cells(row: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of a row of result.json."""
    means = [_points(row[name]["mean"]) for name in ("accuracy", "aims")]
    return (row["regime"], *means, *map(_lead, row["leads"].values()))


def _document(row: Row) -> dict[str, Any]:
    return {
        "regime": row.regime.name,
        "world": asdict(row.regime.world),
        "schedule": asdict(row.regime.schedule),
        "alpha": row.regime.alpha,
        "accuracy": _known(row.accuracy),
        "aims": _known(row.aims),
        "leads": {name: _known(each) for name, each in row.leads.items()},
    }


def _kept(options: TabularOptions, rows: list[Row]) -> list[str]:
    """Write the table and a picture; return the names of pictures."""
    if options.out is None:
        return []
    found = {"rules": options.rules, "seeds": options.seeds, "rows": list(map(_document, rows))}
    _write(options.out, "result.json", found)
    places = list(range(len(rows)))
    curves = {name: (places, [100 * row.leads[name].mean for row in rows]) for name in rows[0].leads}
    draw_curves(curves, options.out / "tabular.svg", x="regime", y="lead of code-a1 (points)", log=False)
    return ["tabular.svg"]


def say_whether_to_aim(options: AimOptions) -> None:
    """Print h* and what follows from it.

    Raises:
        UserError: a number out of its range, or an unknown formula.
    """
    page = Page(as_json=options.as_json)
    alpha = alpha_with_book(options.alpha) if options.book else options.alpha
    skill = Skill(options.right_naive, options.right_aimed)
    least = least_kill_rate(skill, options.kills_naive, alpha, options.formula)
    page.say(f"Aiming pays if an aimed test fails the program in at least {least:.3f} of cases (alpha {alpha:.3f}).")
    kills = options.kills_aimed
    pays = least <= 1 if kills is None else kills >= least
    if least > 1:
        page.say("So it never pays: the tester retreats to safe inputs.")
    elif kills is not None:
        page.say(f"With {kills:g} the tester {'aims' if pays else 'retreats to safe inputs'}.")
    page.finish(least_kill_rate=least, alpha=alpha, pays=pays)
