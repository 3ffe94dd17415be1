"""`codea1 game solve` and `codea1 game dynamics`: equilibria and learning on a bank's matrix game."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from typer import Argument, Option

from codea1_agents.cli.console import Page, counted, estimate_cells, new_table, number
from codea1_agents.cli.options import Alpha, Limit, NoProgress, Options, Rules, SandboxName, adjusted_rules, output
from codea1_agents.cli.progress import Progress
from codea1_agents.evaluation.canvas import require_drawing
from codea1_agents.statistics import estimate_document, mean_interval
from codea1_env.bank import BankRecipe, JudgedBank, load_bank
from codea1_env.errors import UserError
from codea1_env.records.file_errors import file_errors
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import load_sandbox
from codea1_lab.games.alpha_rank import alpha_rank
from codea1_lab.games.bank_game import BankGame, WhiteBoxSolution
from codea1_lab.games.dynamics import Trajectory, run_dynamics
from codea1_lab.games.equilibria import Equilibrium
from codea1_lab.games.matrix_game import Vector
from codea1_lab.games.pictures import draw_curves, draw_payoffs, draw_trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions(Options):
    """The source of the game, and the folder for pictures."""

    source: Annotated[
        str, Argument(help="Problems by name or path, a run folder, or a bank (a file ending in .bank.jsonl).")
    ] = "starter"
    limit: Limit = None
    sandbox: SandboxName = "local"
    out: Annotated[Path | None, output("Folder for pictures (SVG).", show_default="none")] = None
    quiet: NoProgress = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BankOptions(SourceOptions):
    """The options that define the game."""

    rules: Rules = "fixed"
    alpha: Alpha = None
    problem: Annotated[str | None, Option(help="Use only this problem.", show_default="all")] = None
    solution: Annotated[
        bool | None,
        Option(help="Whether the coder can choose the right program.", show_default="yes, except in a run's bank"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveOptions(BankOptions):
    """Find an equilibrium of every problem's game, and its residual.

    In the matrix game, the tester does not see the program; the output also has the solution for a tester that does.

    \b
    Example:
      codea1 game solve starter --no-solution --problem starter/free_gaps -o pictures
    """

    save: Annotated[
        Path | None, Option(help="Also write the bank into this file (.bank.jsonl).", show_default="none")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicsOptions(BankOptions):
    """Simulate learning players, and show how exploitable they are over time.

    \b
    Example:
      codea1 game dynamics starter --no-solution --method replicator -o pictures
    """

    method: Annotated[str, Option(help="fictitious, regret or replicator.")] = "fictitious"
    steps: Annotated[int, Option(min=1, help="Steps in each problem's game.")] = 10_000


_MAX_PICTURED = 8
_MAX_SHOWN = 20


def solve_game(options: SolveOptions) -> None:
    """Solve every problem's game.

    Raises:
        UserError: a source, preset or problem does not exist, or a file cannot be written.
        SandboxError: a problem could not be judged.
    """
    page = Page(as_json=options.as_json, quiet=options.quiet)
    if options.out is not None:
        require_drawing()
    bank = _loaded_bank(options, page)
    if options.save is not None:
        if not options.save.name.endswith(".bank.jsonl"):
            raise UserError(f"{options.save}: a bank's name must end in .bank.jsonl")
        bank.bank.save(options.save)
    game = BankGame.of(bank.payoffs())
    with Progress("solving", None, page):
        equilibria, seen = game.solve(), game.solve_white_box()
    ids = [each.bank.problem.id for each in bank.problems]
    rows = [_solved_cells(name, e, w) for name, e, w in zip(ids, equilibria, seen, strict=True)]
    headings = ("problem", "method", "mixes", "coder, tester", "in a white box")
    page.show(new_table(headings, rows[:_MAX_SHOWN], right=(2, 3, 4), whole=(1, 2, 3, 4)))
    if len(rows) > _MAX_SHOWN:
        page.say(f"... and {len(rows) - _MAX_SHOWN} more problems")
    found = {
        "black_box": _estimates(ids, [each.values for each in equilibria]),
        "white_box": _estimates(ids, [each.values for each in seen]),
    }
    cells = [
        (view.replace("_", " "), role, *estimate_cells(found[view][role])) for view in found for role in found[view]
    ]
    page.show(new_table(("tester's view", "value", "mean", "95 % interval", "problems"), cells, right=(2, 4)))
    worst = max(each.residual for each in equilibria)
    methods = ", ".join(f"{n} {name}" for name, n in Counter(each.method for each in equilibria).items())
    page.say(f"{_named(bank)}: {methods}; largest residual regret {worst:.1e}")
    pictures = _payoff_pictures(bank, game, equilibria, options.out)
    page.finish(
        problems=_problems_document(options.source, bank),
        out=None if options.out is None else str(options.out),
        rules=bank.rules.name,
        alpha=bank.rules.reward.alpha,
        n_programs=bank.bank.n_programs,
        n_suites=bank.bank.n_suites,
        figures={view: {role: estimate_document(e) for role, e in of.items()} for view, of in found.items()},
        largest_residual=worst,
        by_problem=[_solved_to_json(*each) for each in zip(bank.problems, game.games, equilibria, seen, strict=True)],
        pictures=pictures,
    )


def follow_dynamics(options: DynamicsOptions) -> None:
    """Simulate one learning method on every problem's game.

    Raises:
        UserError: a source, preset, problem or method does not exist, or a file cannot be written.
        SandboxError: a problem could not be judged.
    """
    page = Page(as_json=options.as_json, quiet=options.quiet)
    if options.out is not None:
        require_drawing()
    bank = _loaded_bank(options, page)
    game = BankGame.of(bank.payoffs())
    ways: list[Trajectory] = []
    with Progress("learning", len(game.games), page) as progress:
        for each in game.games:
            ways.append(run_dynamics(options.method, each, n_steps=options.steps))
            progress.reach(len(ways), len(game.games))
    at = ways[0].steps
    now = np.mean([way.exploitability for way in ways], axis=0)
    average = np.mean([way.average_exploitability for way in ways], axis=0)
    shown = sorted({int(i) for i in np.linspace(0, len(at) - 1, 8)})
    rows = [(str(int(at[i])), number(float(now[i])), number(float(average[i]))) for i in shown]
    page.show(new_table(("step", "NashConv", "of the averages"), rows, right=(0, 1, 2)))
    page.say(f"{_named(bank)}: {options.method}, mean over {counted(len(ways), 'problem')}")
    pictures = _dynamics_pictures(bank, ways, options.method, options.out)
    page.finish(
        problems=_problems_document(options.source, bank),
        out=None if options.out is None else str(options.out),
        rules=bank.rules.name,
        method=options.method,
        steps=at.tolist(),
        exploitability=now.tolist(),
        average_exploitability=average.tolist(),
        by_problem=[
            {
                "problem": each.bank.problem.id,
                "coder": _by_label(way.average_row[-1], each.bank.programs),
                "tester": _by_label(way.average_column[-1], each.bank.suites),
            }
            for each, way in zip(bank.problems, ways, strict=True)
        ],
        pictures=pictures,
    )


def _loaded_bank(options: BankOptions, page: Page) -> JudgedBank:
    rules = adjusted_rules(preset(options.rules), alpha=options.alpha, tests_per_suite=None)
    recipe = None if options.solution is None else BankRecipe(solution=options.solution)  # None: the source decides
    with closing(load_sandbox(options.sandbox)) as backend, Progress("judging", None, page) as progress:
        bank = load_bank(
            options.source, rules=rules, recipe=recipe, limit=options.limit, sandbox=backend, progress=progress.reach
        )
    return bank if options.problem is None else bank.select([options.problem])


def picture_folder(out: Path) -> Path:
    """Return the folder; create it if it does not exist.

    Raises:
        UserError: it cannot be created.
    """
    with file_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    return out


def _payoff_pictures(
    bank: JudgedBank, game: BankGame, equilibria: tuple[Equilibrium, ...], out: Path | None
) -> list[str]:
    if out is None:
        return []
    folder, drawn = picture_folder(out), []
    for each, table, found in list(zip(bank.problems, game.games, equilibria, strict=True))[:_MAX_PICTURED]:
        path = folder / f"payoffs-{each.bank.problem.id.replace('/', '-')}.svg"
        draw_payoffs(
            table,
            found,
            path,
            programs=[entry.label for entry in each.bank.programs],
            suites=[entry.label for entry in each.bank.suites],
            title=each.bank.problem.id,
        )
        drawn.append(str(path))
    return drawn


def _dynamics_pictures(bank: JudgedBank, ways: list[Trajectory], method: str, out: Path | None) -> list[str]:
    if out is None:
        return []
    folder, drawn = picture_folder(out), []
    at = ways[0].steps[1:].tolist()
    curves = {
        "strategies": (at, np.mean([way.exploitability[1:] for way in ways], axis=0).tolist()),
        "averages": (at, np.mean([way.average_exploitability[1:] for way in ways], axis=0).tolist()),
    }
    path = folder / f"exploitability-{method}.svg"
    draw_curves(curves, path, x="step", y="NashConv")
    drawn.append(str(path))
    for each, way in list(zip(bank.problems, ways, strict=True))[:_MAX_PICTURED]:
        path = folder / f"{method}-{each.bank.problem.id.replace('/', '-')}.svg"
        programs = [entry.label for entry in each.bank.programs]
        draw_trajectory(way, path, programs=programs, suites=[entry.label for entry in each.bank.suites])
        drawn.append(str(path))
    return drawn


def _solved_cells(name: str, found: Equilibrium, seen: WhiteBoxSolution) -> tuple[str, ...]:
    mixes = f"{len(found.row_support)} x {len(found.column_support)}"
    return name, found.method, mixes, *(", ".join(number(float(v)) for v in each.values) for each in (found, seen))


def _estimates(ids: list[str], values: list[Vector]) -> dict[str, Any]:
    return {
        role: mean_interval({name: [float(both[k])] for name, both in zip(ids, values, strict=True)})
        for k, role in enumerate(("coder", "tester"))
    }


def _named(bank: JudgedBank) -> str:
    shape = f"{counted(len(bank.problems), 'problem')} of {bank.bank.n_programs} programs x {bank.bank.n_suites} suites"
    return f"{bank.bank.name}, {shape}, rules {bank.rules.name} (alpha {bank.rules.reward.alpha:g})"


def _problems_document(source: str, bank: JudgedBank) -> dict[str, Any]:
    return {"source": source, "name": bank.bank.name, "n": len(bank.problems)}


def _solved_to_json(judged: Any, game: Any, found: Equilibrium, seen: WhiteBoxSolution) -> dict[str, Any]:
    ranked = alpha_rank(game)
    return {
        "problem": judged.bank.problem.id,
        "method": found.method,
        "residual": found.residual,
        "values": found.values.tolist(),
        "coder": _by_label(found.profile.row, judged.bank.programs),
        "tester": _by_label(found.profile.column, judged.bank.suites),
        "alpha_rank": {
            "coder": _by_label(ranked.row, judged.bank.programs),
            "tester": _by_label(ranked.column, judged.bank.suites),
        },
        "white_box_values": seen.values.tolist(),
        "coder_payoffs": game.row.tolist(),
        "tester_payoffs": game.column.tolist(),
    }


def _by_label(chances: Vector, entries: Any) -> dict[str, float]:
    return {entry.label: float(p) for entry, p in zip(entries, chances, strict=True) if p > 0}
