"""`codea1 eval compare`: holds two stored evaluations against each other, problem by problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, isnan
from pathlib import Path
from typing import Annotated, Any

from typer import Argument

from codea1_agents.cli.console import Page, new_table, number
from codea1_agents.cli.options import Options, seed_of
from codea1_agents.evaluation.coder import USUAL_K, avg_by_problem, pass_at_k_by_problem
from codea1_agents.evaluation.comparison import PairedFigure, compare_figure
from codea1_agents.evaluation.folder import read_records, stored_settings
from codea1_agents.evaluation.records import CoderSample, TesterRecord
from codea1_agents.evaluation.repairs import by_turn, name_in_turn
from codea1_agents.evaluation.tester_figures import figure_by_problem, figure_names
from codea1_agents.statistics import estimate_document, json_number
from codea1_env.errors import UserError
from codea1_env.facts.judge_version import judge_version_in


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions(Options):
    """Compare two evaluations problem by problem, and estimate how many problems would show each difference.

    \b
    Example:
      codea1 eval compare runs/base runs/trained
    """

    before: Annotated[Path, Argument(help="Folder that codea1 eval wrote with --out.")]
    after: Annotated[Path, Argument(help="Another such folder, of the same kind.")]
    seed: Annotated[int, seed_of("the intervals")] = 0


_Figures = dict[str, Mapping[str, float]]


def run_compare(options: CompareOptions) -> None:
    """Compare two evaluations' folders.

    Raises:
        UserError: a folder is not an evaluation, or the two differ in kind or in the version of the judge, or have no
            common figure or problem.
    """
    page, before, after = Page(as_json=options.as_json), options.before, options.after
    settings = [stored_settings(path) for path in (before, after)]
    kinds = [setting.get("kind") for setting in settings]
    if kinds[0] != kinds[1] or kinds[0] not in ("coder", "tester"):
        raise UserError(
            f"cannot compare {before} ({kinds[0]}) with {after} ({kinds[1]}): both must be of coders or both of testers"
        )
    judges = [judge_version_in(setting) for setting in settings]
    if judges[0] != judges[1]:
        raise UserError(
            f"cannot compare {before} with {after}: version {judges[0]} of the judge judged the first, version"
            f" {judges[1]} the second; repeat the older evaluation"
        )
    differing = sorted(name for name in settings[0].keys() - {"agent"} if settings[0][name] != settings[1].get(name))
    if differing:
        page.warn(f"the two also differ in other settings: {', '.join(differing)}")
    read = _coder_figures if kinds[0] == "coder" else _tester_figures
    first, second = read(before), read(after)
    pairs = {name: compare_figure(first[name], second[name], seed=options.seed) for name in first if name in second}
    pairs = {name: pair for name, pair in pairs.items() if pair.difference.n_problems}
    if not pairs:
        raise UserError(f"{before} and {after} have no problem with a common figure")
    columns = ("figure", "before", "after", "difference", "95 % interval", "problems", "problems to show it")
    page.show(new_table(columns, [_row(name, pair) for name, pair in pairs.items()], right=(1, 2, 3, 5, 6)))
    differing = [name for name, pair in pairs.items() if pair.is_shown]
    page.say(f"shown by these problems: {', '.join(differing) or 'no difference'}")
    page.finish(
        before=str(before),
        after=str(after),
        seed=options.seed,
        judge_version=judges[0],
        figures={name: _to_json(pair) for name, pair in pairs.items()},
    )


def _coder_figures(path: Path) -> _Figures:
    records = {(each.problem_id, each.sample, each.turn): each for each in read_records(path, CoderSample)}
    figures: _Figures = {}
    for turn, samples in by_turn(records.values()).items():
        figures |= {name_in_turn(f"pass@{k}", turn): pass_at_k_by_problem(samples, k) for k in USUAL_K}
        figures[name_in_turn("avg@n", turn)] = avg_by_problem(samples)
    return figures


def _tester_figures(path: Path) -> _Figures:
    tests = int(stored_settings(path)["task"]["tests"])
    records = list({record.problem_id: record for record in read_records(path, TesterRecord)}.values())
    return {name: figure_by_problem(records, name, tests=tests) for name in figure_names(tests)}


def _row(name: str, pair: PairedFigure) -> tuple[str, ...]:
    difference = pair.difference
    interval = "" if isnan(difference.low) else f"{difference.low:+.3f} to {difference.high:+.3f}"
    needed = f"{pair.problems_needed:.0f}" if isfinite(pair.problems_needed) else "-"
    means = number(pair.before.mean), number(pair.after.mean), f"{difference.mean:+.3f}"
    return (name, *means, interval, str(difference.n_problems), needed)


def _to_json(pair: PairedFigure) -> dict[str, Any]:
    return {
        **{name: estimate_document(getattr(pair, name)) for name in ("before", "after", "difference")},
        "n_unpaired": pair.n_unpaired,
        "problems_needed": json_number(pair.problems_needed),
        "is_shown": pair.is_shown,
    }
