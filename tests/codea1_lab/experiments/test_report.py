from __future__ import annotations

import re
from itertools import product
from math import isnan
from pathlib import Path

import pytest

from codea1_env.errors import BrokenInput, UserError
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_lab.experiments.declaration import Experiment, Headline, Picture, System, Table, load_experiment
from codea1_lab.experiments.grid import Cell, cells_of
from codea1_lab.experiments.headlines import compare_headlines
from codea1_lab.experiments.pictures import draw, lines_of
from codea1_lab.experiments.report import pictures_in, text_of, write_report
from codea1_lab.experiments.results import (
    CellResult,
    CurvePoint,
    read_result,
    read_results,
    results_of,
    write_result,
    write_results,
)
from codea1_lab.experiments.tables import at_equal_compute, legend
from tests.support import ROOT
from tests.support.charts import drawn_axes, require_told_apart

pytest.importorskip("scipy", reason="scipy is not installed")

ALPHA = "game.reward.alpha"
SMALL = Experiment(
    name="small",
    seeds=2,
    systems=(
        System(name="base"),
        System(name="a1", preset="code-a1", set={ALPHA: 0.5}),
        System(name="a1-high", preset="code-a1", set={ALPHA: 1.0}),
    ),
    compared_to="a1",
    headlines=(
        Headline(system="a1-high", figure="coder/held-out"),
        Headline(system="base", figure="coder/held-out"),
        Headline(system="a1", figure="coder/held-out", compared_to="0"),
    ),
    tables=(Table(title="Table 1", rows=("base", "a1", "a1-high"), columns={"held-out": "coder/held-out"}),),
    pictures=(
        Picture(title="Figure 4", file="figure-4", systems=("a1", "a1-high"), panels={"passes": "pass_new"}),
        Picture(
            title="Figure 3", file="figure-3", systems=("a1", "a1-high"), panels={"x": "coder/held-out"}, over=ALPHA
        ),
    ),
)


def result(system: str, seed: int, value: float) -> CellResult:
    curve = tuple(
        CurvePoint(step=step, cpu_s=2.0 * step, figures={"pass_new": value, "evaluation/coder_pass_at_1": value * step})
        for step in range(1, 4)
    )
    figures = {"coder/held-out": value, **({} if system == "base" else {"cpu_s": 6.0})}
    return CellResult(system=system, base=0, seed=seed, figures=figures, curve=() if system == "base" else curve)


def results_with(**values: tuple[float, ...]) -> dict[Cell, CellResult]:
    """Results of a1 and a1-high, a value per seed, and those of the base."""
    found = [result("base", 0, 0.25)]
    found += [result(name.replace("_", "-"), seed, each) for name, of in values.items() for seed, each in enumerate(of)]
    return {each.cell: each for each in found}


RESULTS = results_with(a1=(0.5, 0.75), a1_high=(0.625, 0.875))


def test_the_text_holds_means_and_differences_of_the_same_seed_and_says_what_is_missing() -> None:
    text = text_of(SMALL, cells_of(SMALL), RESULTS)
    assert "5 of 5 cells" in text
    assert "Verdicts: version 1 of the judge." in text
    assert "| base | untrained | 1 | 25.0 |" in text
    assert "| a1 | fixed, alpha 0.5, strict reading | 2 | 62.5 [50.0 to 75.0] |" in text
    assert "| a1-high | +12.5 (2 pairs) |" in text
    assert "| base | -37.5 (2 pairs) |" in text  # it has no seeds: its one cell stands beside both
    assert "±" not in text.split("### Headline")[1]
    text = text_of(SMALL, cells_of(SMALL), results_with(a1=(0.5, 0.75), a1_high=(0.625,)))
    assert "| a1-high | +12.5 (1 pair) |" in text
    assert "4 of 5 cells" in text
    assert "of the judge" not in text_of(SMALL, cells_of(SMALL), {})


def test_headlines_have_raw_and_corrected_p_values_from_three_pairs_on() -> None:
    more = results_with(a1=(0.5, 0.75, 0.625, 0.5), a1_high=(0.625, 0.875, 0.75, 0.5))
    small = SMALL.model_copy(update={"seeds": 4})
    text = text_of(small, cells_of(small), more)
    assert "corrected for all 3 comparisons" in text
    high, base, alone = compare_headlines(SMALL, more)
    assert (high.p_corrected, base.p_corrected) == (high.difference.p, 2 * base.difference.p)
    assert (high.survives, base.survives, alone.survives) == (False, True, True)
    assert f"| a1-high minus a1 | `coder/held-out` | +9.4 ± 9.9 (3/4 ahead) | {high.difference.p:.2g} |" in text
    assert "| a1 | `coder/held-out` | **+59.4 ± " in text
    assert compare_headlines(SMALL, RESULTS)[0].p_corrected != compare_headlines(SMALL, RESULTS)[0].p_corrected
    few = text_of(SMALL, cells_of(SMALL), RESULTS)
    assert "| a1-high minus a1 | `coder/held-out` | +12.5 (2 pairs) | - | - | - |" in few


def test_equal_compute_is_on_the_line_between_two_evaluations_and_nowhere_else() -> None:
    figure = "evaluation/coder_pass_at_1"
    evaluated = {2.0: 0.5, 3.0: None, 4.0: 1.0, 6.0: 1.5}
    curve = [
        CurvePoint(step=n, cpu_s=cpu_s, figures={"loss": 0.0} | ({} if value is None else {figure: value}))
        for n, (cpu_s, value) in enumerate(evaluated.items())
    ]
    found = [at_equal_compute(curve, figure, cpu_s) for cpu_s in (2.0, 3.5, 4.0, 4.5, 6.0)]
    assert found == pytest.approx([0.5, 0.875, 1.0, 1.125, 1.5])
    assert all(isnan(at_equal_compute(curve, figure, cpu_s)) for cpu_s in (1.9, 6.1))
    assert at_equal_compute(curve[:1], figure, 2.0) == 0.5
    assert isnan(at_equal_compute([], figure, 2.0))


def test_leads_at_equal_compute_are_those_of_cells_that_still_run() -> None:
    text = text_of(SMALL, cells_of(SMALL), RESULTS).partition("### Equal compute")[2]
    assert "| a1 | - | 93.8 | 187.5 | 187.5 | 6 |" in text
    assert "| a1-high | - | -18.8 (2 pairs) | -37.5 (2 pairs) |" in text
    declared = text_of(SMALL.model_copy(update={"read_at_s": (3, 7)}), cells_of(SMALL), RESULTS)
    assert "| system | 3 s | 7 s | whole run |" in declared
    ended = {
        cell: each.model_copy(update={"curve": each.curve[:2] if cell.seed else each.curve})
        for cell, each in RESULTS.items()
    }
    text = text_of(SMALL, cells_of(SMALL), ended).partition("### Equal compute")[2]
    assert "| a1 | - | 93.8 | - | " in text
    assert "| a1-high | - | -18.8 (2 pairs) | -37.5 (1 pair) |" in text


def test_leads_at_common_cost_ignore_the_load_of_a_cell_and_a_taken_tester_costs_its_training() -> None:
    curves = {"a1": (2.0, 0.5), "a1-high": (4.0, 0.25)}  # seconds per step, pass@1 per step
    results = {}
    for (system, (step_s, per_step)), seed in product(curves.items(), range(2)):
        points = [
            CurvePoint(step=n, cpu_s=n * step_s * (seed + 1) / 2, figures={"evaluation/coder_pass_at_1": n * per_step})
            for n in range(9)
        ]
        one = result(system, seed, 0.5).model_copy(update={"curve": tuple(points)})
        results[one.cell] = one
    shown = SMALL.model_copy(update={"read_at_s": (4,), "compared_to": "a1"})
    _, own, common = text_of(shown, cells_of(shown), results).split("| a1 minus | 4 s |")
    assert "| a1-high | +112.5 (2 pairs) |" in own
    assert "| a1-high | +100.0 (2 pairs) |" in common  # steps of 1.5 and 3 s
    high = shown.system("a1-high")
    taking = shown.system("a1").model_copy(update={"tester_from": "a1-high", "from_first_base": True})
    text = text_of(shown.model_copy(update={"systems": (shown.system("base"), high, taking)}), cells_of(shown), results)
    assert "training of the tester (16.0 s), shared" in text
    assert "| 1 | - |" in text  # 16 s are not over
    assert "| 2 | - |" in text


def test_lines_over_steps_and_over_a_setting() -> None:
    over_steps, over_alpha = SMALL.pictures
    (a1, high) = lines_of(over_steps, "passes", SMALL, RESULTS)
    assert (a1.system, a1.x, a1.mean) == ("a1", (1, 2, 3), (0.625,) * 3)
    assert (high.low, high.high) == ((0.625,) * 3, (0.875,) * 3)
    (line,) = lines_of(over_alpha, "x", SMALL, RESULTS)
    assert (line.x, line.mean) == ((0.5, 1.0), (0.625, 0.75))
    split = over_alpha.model_copy(update={"by": "run.seed"})
    systems = (*SMALL.systems[:2], SMALL.systems[2].model_copy(update={"set": {ALPHA: 1.0, "run.seed": 7}}))
    found = lines_of(split, "x", SMALL.model_copy(update={"systems": systems}), RESULTS)
    assert [(each.system, each.x) for each in found] == [("", (0.5,)), ("7", (1.0,))]


@pytest.mark.slow
def test_a_system_has_one_colour_in_all_panels_and_the_report_is_written_the_same_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    panels = {"a": "coder_reward", "b": "pass_new"}
    picture = Picture(title="x", file="x", systems=("base", "a1"), panels=panels, over="step")
    point = CurvePoint(step=1, cpu_s=1.0, figures={"coder_reward": 1.0})
    first = RESULTS[Cell("base", 0, 0)].model_copy(update={"curve": (point, point.model_copy(update={"step": 2}))})
    with monkeypatch.context() as patch:
        axes = drawn_axes(patch)
        draw(picture, SMALL, RESULTS | {first.cell: first}, tmp_path / "x.svg")
        assert [axis.get_ylabel() for axis in axes] == ["reward", "share"]
        for axis in axes:
            require_told_apart(axis)
    draw(picture, SMALL, RESULTS | {first.cell: first}, tmp_path / "x.svg")
    line = r'<path d="[^"]*" clip-path="[^"]*" style="fill: none;[^"]* stroke: (#[0-9a-f]{6})'
    assert {"#1f6fb4", "#d1495b"} <= set(re.findall(line, (tmp_path / "x.svg").read_text()))
    for name in ("one", "two"):
        write_report(SMALL, cells_of(SMALL), RESULTS, tmp_path / name)
    for file in ("report.md", "figure-3.svg", "figure-4.svg"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def written(folder: Path, result: CellResult, **changes: object) -> None:
    """Write the result of a cell, changed."""
    place = folder / "cells" / result.cell.name
    place.mkdir(parents=True)
    write_result(place, result.model_copy(update=changes))


def test_results_come_back_from_their_files(tmp_path: Path) -> None:
    for each in RESULTS.values():
        written(tmp_path, each)
    assert results_of(tmp_path, SMALL, cells_of(SMALL)) == RESULTS
    assert read_result(tmp_path) is None
    (tmp_path / "result.json").write_text('{"system": "a1"}')
    with pytest.raises(BrokenInput):
        read_result(tmp_path)


def test_results_of_two_versions_of_the_judge_are_not_put_together(tmp_path: Path) -> None:
    first, second = result("a1", 0, 0.5), result("a1", 1, 0.5)
    for each, version in ((first, 1), (second, JUDGE_VERSION)):
        written(tmp_path, each, judge_version=version)
    assert results_of(tmp_path, SMALL, [first.cell])[first.cell].judge_version == 1
    with pytest.raises(UserError, match=f"judge versions 1 and {JUDGE_VERSION}"):
        results_of(tmp_path, SMALL, [first.cell, second.cell])


def test_a_file_of_results_makes_the_same_text_and_has_no_curves_of_training(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    write_results(path, RESULTS.values())
    found = read_results(path, SMALL)
    assert text_of(SMALL, cells_of(SMALL), found) == text_of(SMALL, cells_of(SMALL), RESULTS)
    assert all(each.is_thinned == (cell.system != "base") for cell, each in found.items())
    assert not any(each.is_thinned for each in RESULTS.values())
    write_results(tmp_path / "again.jsonl", found.values())
    assert (tmp_path / "again.jsonl").read_bytes() == path.read_bytes()


def test_results_of_other_cells_are_kept_and_not_shown(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    others = {each.cell: each for each in (result("a1", 9, 0.9), result("dropped", 0, 0.9))}
    report = write_report(SMALL, cells_of(SMALL), RESULTS, tmp_path, others=others)
    text = report.read_text()
    assert read_results(tmp_path / "results.jsonl", SMALL).keys() == RESULTS.keys() | others.keys()
    write_report(SMALL, cells_of(SMALL), RESULTS | others, tmp_path)
    assert report.read_text() == text


def test_cells_that_were_declared_otherwise_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    write_results(path, [RESULTS[Cell("base", 0, 0)].model_copy(update={"declared": "other"})])
    with pytest.raises(UserError, match=r"results.jsonl, line 1: base was declared otherwise"):
        read_results(path, SMALL)
    written(tmp_path, RESULTS[Cell("base", 0, 0)], declared="other")
    with pytest.raises(UserError, match=r"seed-0: base was declared otherwise when it ran: choose another folder"):
        results_of(tmp_path, SMALL, cells_of(SMALL))
    for broken in (b"\xff\n", b'{"system": "a1"}\n'):
        path.write_bytes(broken)
        with pytest.raises(BrokenInput, match="line 1"):
            read_results(path, SMALL)


@pytest.mark.parametrize("folder", sorted(path.parent for path in (ROOT / "docs/experiments").glob("*/results.jsonl")))
def test_the_committed_reports_are_made_of_the_committed_results(folder: Path) -> None:
    experiment = load_experiment(folder.name)
    results = read_results(folder / "results.jsonl", experiment)
    text = text_of(experiment, cells_of(experiment), results, pictures_in(folder, experiment))
    assert (folder / "report.md").read_text("utf-8") == text


def test_the_figures_of_models_have_a_legend() -> None:
    declared = [load_experiment(path.stem) for path in (ROOT / "agents/codea1_lab/experiments/declared").glob("*.toml")]
    shown = {figure for experiment in declared for table in experiment.tables for figure in table.columns.values()}
    shown |= {each.figure for experiment in declared for each in experiment.headlines}
    assert {name for name in shown if not name.startswith("training/") and not legend({name: name})} == set()
    assert legend({"Mul": "tester/Mul_fixed", "cpu": "cpu_s"}) == ["", "*Mul*: `pass@K` times `mut_fixed@K`."]
