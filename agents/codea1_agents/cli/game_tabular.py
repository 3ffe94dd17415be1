"""Runs `codea1 game tabular` and `codea1 game aim`."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from itertools import product
from math import isnan
from typing import Any

from codea1_agents.cli.console import Page, new_table
from codea1_agents.cli.game import AimOptions, TabularOptions
from codea1_agents.cli.game_commands import picture_folder
from codea1_agents.cli.progress import Progress
from codea1_agents.lab.games.pictures import draw_curves
from codea1_agents.lab.tabular.criterion import Skill, least_kill_rate
from codea1_agents.lab.tabular.learning import Schedule
from codea1_agents.lab.tabular.table import FIRST, STUDIES, Regime, Row, Study, table
from codea1_agents.lab.tabular.world import World
from codea1_agents.statistics import json_number
from codea1_agents.train.experiments.spread import Difference
from codea1_env.errors import UnknownName, UserError
from codea1_env.records.whole_files import write_text
from codea1_env.rules.reward_parts import alpha_with_book
from codea1_env.rules.ruleset import preset

_WITHOUT_REGIME = TabularOptions(study="", seeds=0, out=None, rules="", quiet=False, as_json=False)


def train_tables(options: TabularOptions) -> None:
    """Train all systems and print the table.

    Raises:
        UserError: an unknown preset, or a file cannot be written.
    """
    page = Page(as_json=options.as_json, quiet=options.quiet)
    reward = preset(options.rules).reward
    if reward.needs_golden or not reward.pays_tester:
        raise UserError(f"rules {options.rules} need golden tests or pay no tester: here only golden systems have them")
    study = _study(options)
    n_trainings = len(study.regimes) * len(study.systems) * options.seeds
    done = 0
    with Progress("training tables", n_trainings, page) as bar:

        def advance() -> None:
            nonlocal done
            done += 1
            bar.reach(done, n_trainings)

        rows = table(study.regimes, options.rules, options.seeds, systems=study.systems, progress=advance)
    others = [system.name for system in study.systems if system.name != FIRST]
    headings = ("regime", "right", "aims", *others)
    cells = [
        (
            row.regime.name,
            _points(row.accuracy.mean),
            _points(row.aims.mean),
            *(_lead(row.leads[name]) for name in others),
        )
        for row in rows
    ]
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


def _study(options: TabularOptions) -> Study:
    if options.study not in STUDIES:
        raise UnknownName.of("study", options.study, STUDIES)
    study = STUDIES[options.study]
    if not (options.triggers or options.reading):
        if replace(options, study="", seeds=0, out=None, rules="", quiet=False, as_json=False) != _WITHOUT_REGIME:
            raise UserError("the declared regimes have their own alpha, steps and skill: name --triggers or --reading")
        return study
    schedule = Schedule(steps=options.steps)
    world = World(right_naive=options.right_naive, right_aimed=options.right_aimed)
    regimes = (
        Regime(replace(world, n_triggers=triggers, reading=reading), schedule, options.alpha)
        for triggers, reading in product(options.triggers or [world.n_triggers], options.reading or [world.reading])
    )
    return Study(tuple(regimes), study.systems)


def _points(share: float) -> str:
    return f"{100 * share:.1f}"


def _lead(lead: Difference) -> str:
    width = "" if isnan(lead.half_width) else f" ±{100 * lead.half_width:.1f}"
    return f"{100 * lead.mean:+.1f}{width}"


def _document(row: Row) -> dict[str, Any]:
    def known(each: Any) -> dict[str, Any]:
        fields = asdict(each).items()
        return {name: json_number(value) if isinstance(value, float) else value for name, value in fields}

    return {
        "regime": row.regime.name,
        "world": asdict(row.regime.world),
        "schedule": asdict(row.regime.schedule),
        "alpha": row.regime.alpha,
        "accuracy": known(row.accuracy),
        "aims": known(row.aims),
        "leads": {name: known(each) for name, each in row.leads.items()},
    }


def _kept(options: TabularOptions, rows: list[Row]) -> list[str]:
    """Write the table and a picture; return the names of pictures."""
    if options.out is None:
        return []
    folder = picture_folder(options.out)
    result = json.dumps({"rules": options.rules, "seeds": options.seeds, "rows": list(map(_document, rows))}, indent=1)
    write_text(folder / "result.json", result + "\n")
    places = list(range(len(rows)))
    curves = {name: (places, [100 * row.leads[name].mean for row in rows]) for name in rows[0].leads}
    draw_curves(curves, folder / "tabular.svg", x="regime", y="lead of code-a1 (points)", log=False)
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
