"""`codea1 game solve`: equilibria of a bank's matrix games."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from codea1_agents.cli.console import Page, estimate_cells, new_table, number, pluralize
from codea1_agents.cli.options import Alpha, Limit, NoProgress, Options, Rules, SandboxName, adjusted_rules, output
from codea1_agents.cli.progress import Progress
from codea1_agents.evaluation.canvas import require_drawing
from codea1_agents.statistics import estimate_document, mean_interval
from codea1_env.bank import BankRecipe, JudgedBank, load_bank
from codea1_env.errors import UserError, extra_needed
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import load_sandbox
from codea1_lab.games.bank_game import BankGame, WhiteBoxSolution
from codea1_lab.games.equilibria import Equilibrium
from codea1_lab.games.matrix_game import Vector
from codea1_lab.games.pictures import draw_payoffs
from codea1_lab.report.writing import file_names


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
class SolveOptions(SourceOptions):
    """Find an equilibrium of every problem's game, and its residual.

    In the matrix game, the tester does not see the program; the output also has the solution for a tester that does.

    \b
    Example:
      codea1 game solve starter --no-solution --problem starter/free_gaps -o out
    """

    rules: Rules = "fixed"
    alpha: Alpha = None
    problem: Annotated[str | None, Option(help="Use only this problem.", show_default="all")] = None
    solution: Annotated[
        bool | None,
        Option(help="Whether the coder can choose the right program.", show_default="yes, except in a run's bank"),
    ] = None
    save: Annotated[
        Path | None,
        output("Also write the bank into this file (.bank.jsonl).", "--save", is_file=True, show_default="none"),
    ] = None


_MAX_PICTURED = 8
_MAX_SHOWN = 20


def solve_game(options: SolveOptions) -> None:
    """Solve every problem's game.

    Raises:
        UserError: a source, rules or problem does not exist, or a file cannot be written.
        SandboxError: a problem could not be judged.
    """
    page = Page(as_json=options.as_json, quiet=options.quiet)
    if options.out is not None:
        require_drawing()
    if options.save is not None and not options.save.name.endswith(".bank.jsonl"):
        raise UserError(f"{options.save}: a bank's name must end in .bank.jsonl")
    if options.solution is False:  # else the right program mostly is an equilibrium, which needs no solver
        with extra_needed("solving a game", "study"):
            import scipy  # noqa: F401, PLC0415  now rather than after all that is judged
    bank = _loaded_bank(options, page)
    if options.save is not None:
        bank.bank.save(options.save)
    game = BankGame.of(bank.payoffs())
    with Progress("solving", None, page):
        equilibria, seen = game.solve(), game.solve_white_box()
    ids = [problem.bank.problem.id for problem in bank.problems]
    rows = [_solution_cells(name, e, w) for name, e, w in zip(ids, equilibria, seen, strict=True)]
    headings = ("problem", "method", "mixes", "coder, tester", "in a white box")
    page.show(new_table(headings, rows[:_MAX_SHOWN], right=(2, 3, 4), whole=(1, 2, 3, 4)))
    if len(rows) > _MAX_SHOWN:
        page.say(f"... and {len(rows) - _MAX_SHOWN} more problems")
    facts = {
        "black_box": _estimates(ids, [equilibrium.values for equilibrium in equilibria]),
        "white_box": _estimates(ids, [solution.values for solution in seen]),
    }
    cells = [
        (view.replace("_", " "), role, *estimate_cells(facts[view][role])) for view in facts for role in facts[view]
    ]
    page.show(new_table(("tester's view", "value", "mean", "95 % interval", "problems"), cells, right=(2, 4)))
    worst = max(equilibrium.residual for equilibrium in equilibria)
    methods = ", ".join(f"{n} {name}" for name, n in Counter(equilibrium.method for equilibrium in equilibria).items())
    shape = f"{pluralize(len(ids), 'problem')} of {bank.bank.n_programs} programs x {bank.bank.n_suites} suites"
    rules = f"rules {bank.rules.name} (alpha {bank.rules.reward.alpha:g})"
    page.say(f"{bank.bank.name}, {shape}, {rules}: {methods}; largest residual regret {worst:.1e}")
    pictures = _payoff_pictures(bank, game, equilibria, options.out)
    page.finish(
        problems={"source": options.source, "name": bank.bank.name, "n": len(bank.problems)},
        out=None if options.out is None else str(options.out),
        rules=bank.rules.name,
        alpha=bank.rules.reward.alpha,
        n_programs=bank.bank.n_programs,
        n_suites=bank.bank.n_suites,
        figures={view: {role: estimate_document(e) for role, e in of.items()} for view, of in facts.items()},
        largest_residual=worst,
        by_problem=[_solution_to_json(*each) for each in zip(bank.problems, game.games, equilibria, seen, strict=True)],
        pictures=pictures,
    )


def _loaded_bank(options: SolveOptions, page: Page) -> JudgedBank:
    rules = adjusted_rules(preset(options.rules), alpha=options.alpha, tests_per_suite=None)
    recipe = None if options.solution is None else BankRecipe(solution=options.solution)  # None: the source decides
    with closing(load_sandbox(options.sandbox)) as backend, Progress("judging", None, page) as progress:
        bank = load_bank(
            options.source, rules=rules, recipe=recipe, limit=options.limit, sandbox=backend, progress=progress.reach
        )
    return bank if options.problem is None else bank.select([options.problem])


def _payoff_pictures(
    bank: JudgedBank, game: BankGame, equilibria: tuple[Equilibrium, ...], out: Path | None
) -> list[str]:
    if out is None:
        return []
    paths = []
    names = file_names(problem.bank.problem.id.replace("/", "-") for problem in bank.problems)
    games = [*zip(bank.problems, game.games, equilibria, names, strict=True)]
    for each, table, solution, name in games[:_MAX_PICTURED]:
        path = out / f"payoffs-{name}.svg"
        draw_payoffs(
            table,
            solution,
            path,
            programs=[entry.label for entry in each.bank.programs],
            suites=[entry.label for entry in each.bank.suites],
            title=each.bank.problem.id,
        )
        paths.append(str(path))
    return paths


def _solution_cells(name: str, equilibrium: Equilibrium, seen: WhiteBoxSolution) -> tuple[str, ...]:
    mixes = f"{len(equilibrium.row_support)} x {len(equilibrium.column_support)}"
    values = (", ".join(number(float(v)) for v in each.values) for each in (equilibrium, seen))
    return (name, equilibrium.method, mixes, *values)


def _estimates(ids: list[str], values: list[Vector]) -> dict[str, Any]:
    return {
        role: mean_interval({name: [float(both[k])] for name, both in zip(ids, values, strict=True)})
        for k, role in enumerate(("coder", "tester"))
    }


def _solution_to_json(judged: Any, game: Any, equilibrium: Equilibrium, seen: WhiteBoxSolution) -> dict[str, Any]:
    return {
        "problem": judged.bank.problem.id,
        "method": equilibrium.method,
        "residual": equilibrium.residual,
        "values": equilibrium.values.tolist(),
        "coder": _by_label(equilibrium.profile.row, judged.bank.programs),
        "tester": _by_label(equilibrium.profile.column, judged.bank.suites),
        "white_box_values": seen.values.tolist(),
        "coder_payoffs": game.row.tolist(),
        "tester_payoffs": game.column.tolist(),
    }


def _by_label(chances: Vector, entries: Any) -> dict[str, float]:
    return {entry.label: float(p) for entry, p in zip(entries, chances, strict=True) if p > 0}
