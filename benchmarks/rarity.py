"""Draws from which rarity on a trained tester pays: the tabular game and `codea1 experiment rarity-8`, `rarity-32`.

    python benchmarks/rarity.py [--seeds 12] [--picture docs/experiments/rarity-32/rarity.svg]

Both sides compare `block` (a tester that learns, paid by blocks) with the same arms at the same three times. In the
tabular game a step costs what it cost the language models, by the results of `rarity-32`; its worlds are that of
`codea1 game tabular --study deep-rare` with other V. Prints one table.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from measuring import option_parser

from codea1_lab.experiments.declaration import load_experiment
from codea1_lab.experiments.grid import Cell
from codea1_lab.experiments.results import RESULTS, CellResult, read_results
from codea1_lab.experiments.spread import paired_difference
from codea1_lab.experiments.tables import at_equal_compute
from codea1_lab.tabular.learning import SYSTEMS, System, train
from codea1_lab.tabular.table import STUDIES, Regime

DOCS = Path(__file__).parents[1] / "docs" / "experiments"
TIMES = (33.0, 71.0, 150.0)
"""Processor seconds of training."""
FIGURE = "evaluation/coder_pass_at_1"
RIVALS = ("golden", "fresh-16", "all-inputs", "fuzz-hunt", "frozen")
RARITIES = (8, 16, 32, 64, 128)
"""Of the tabular game."""
MEASURED = (8, 32)


def arms(n_triggers: int) -> dict[str, System]:
    """Return the tabular arms. Half of the golden tests aim, as in the problems; a fuzzer's inputs are fresh ones."""
    return {
        "block": replace(SYSTEMS["code-a1"], credit="block"),
        "frozen": SYSTEMS["frozen-tester"],
        "golden": System("golden", n_golden=8, n_naive=8),
        "fresh-16": System("fresh-16", n_golden=16, is_fresh=True),
        "all-inputs": System("all-inputs", n_golden=4 * n_triggers),
        "fuzz-hunt": System("fuzz-hunt", n_golden=64, is_fresh=True),
    }


def regime_of(n_triggers: int) -> Regime:
    """Return the regime of `game tabular --study deep-rare` with V triggers."""
    regime = STUDIES["deep-rare"].regimes[0]
    return replace(regime, world=replace(regime.world, n_triggers=n_triggers), alpha=0.5)


def tabular(n_triggers: int, seconds: dict[str, float], seed: int) -> dict[str, list[float]]:
    """Return, by arm, the accuracy on held-out problems at each time."""
    regime, found = regime_of(n_triggers), dict[str, list[float]]()
    for name, system in arms(n_triggers).items():
        at = [round(time / seconds[name]) for time in TIMES]
        schedule = replace(regime.schedule, steps=at[-1])
        steps = train(replace(system, alpha=regime.alpha), regime.world, schedule, regime.rules, seed)
        found[name] = [steps[number].accuracy for number in at]
    return found


def measured(name: str) -> tuple[list[CellResult], dict[str, float]]:
    """Return the cells of an experiment, and by arm the median of its seconds per step."""
    cells = [*read_results(DOCS / name / RESULTS, load_experiment(name)).values()]
    paces: dict[str, list[float]] = {}
    for cell in cells:
        paces.setdefault(cell.system, []).append(cell.curve[-1].cpu_s / cell.curve[-1].step)
    return cells, {system: median(each) for system, each in paces.items()}


def played(n_triggers: int, seconds: dict[str, float], n_seeds: int) -> dict[str, list[dict[Cell, float]]]:
    """Return what `leads` takes, of tables."""
    found: dict[str, list[dict[Cell, float]]] = {}
    for seed in range(n_seeds):
        for name, figures in tabular(n_triggers, seconds, seed).items():
            for at_time, figure in zip(found.setdefault(name, [{} for _ in TIMES]), figures, strict=True):
                at_time[Cell(name, 0, seed)] = figure
    return found


def read(results: list[CellResult]) -> dict[str, list[dict[Cell, float]]]:
    """Return what `leads` takes, of results."""
    found: dict[str, list[dict[Cell, float]]] = {}
    for each in results:
        for at_time, time in zip(found.setdefault(each.system, [{} for _ in TIMES]), TIMES, strict=True):
            at_time[each.cell] = at_equal_compute(each.curve, FIGURE, time)
    return found


def leads(found: dict[str, list[dict[Cell, float]]]) -> dict[str, list[tuple[float, float]]]:
    """Return, by rival and time, the lead of `block` over pairs and half of its 95 % interval, in points.

    Args:
        found: by arm and time, the figure of each cell; nan where it had ended.
    """
    of_pairs = {
        rival: [paired_difference(*each) for each in zip(found["block"], found[rival], strict=True)] for rival in RIVALS
    }
    return {rival: [(100 * each.mean, 100 * each.half_width) for each in row] for rival, row in of_pairs.items()}


def draw(path: Path, sides: dict[str, dict[int, dict[str, list[tuple[float, float]]]]]) -> None:
    """Draw leads over V, one row of panels per side, one panel per time."""
    import matplotlib.pyplot as plt  # noqa: PLC0415  heavy

    plt.rcParams["svg.hashsalt"] = "rarity"
    figure, axes = plt.subplots(len(sides), len(TIMES), figsize=(9, 5.4), sharey="row", sharex=True, squeeze=False)
    for row, (side, by_rarity) in zip(axes, sides.items(), strict=True):
        for number, (panel, time) in enumerate(zip(row, TIMES, strict=True)):
            for rival in RIVALS:
                means = [by_rarity[rarity][rival][number] for rarity in by_rarity]
                panel.errorbar([*by_rarity], [m for m, _ in means], [h for _, h in means], label=rival, capsize=2, lw=1)
            panel.axhline(0, color="gray", lw=0.5)
            panel.set(xscale="log", title=f"{side}, {time:g} s", xticks=RARITIES, xticklabels=RARITIES)
            panel.minorticks_off()
        row[0].set_ylabel("lead of block, points")
    for panel in axes[-1]:
        panel.set_xlabel("V, inputs of a step of which one triggers")
    axes[0][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Train the tables, read the results, print and draw both."""
    parser = option_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    cells = {rarity: measured(f"rarity-{rarity}") for rarity in MEASURED}
    sides: dict[str, dict[int, Any]] = {}
    sides["tabular"] = {rarity: leads(played(rarity, cells[32][1], options.seeds)) for rarity in RARITIES}
    sides["measured"] = {rarity: leads(read(results)) for rarity, (results, _) in cells.items()}
    print(f"| side | V | block minus | {' | '.join(f'{time:g} s' for time in TIMES)} |\n|---|---|---|---|---|---|")
    for side, by_rarity in sides.items():
        for rarity, rows in by_rarity.items():
            for rival, found in rows.items():
                print(f"| {side} | {rarity} | {rival} | {' | '.join(f'{m:+.1f} ± {h:.1f}' for m, h in found)} |")
    if options.picture:
        draw(options.picture, sides)
        print(json.dumps({"picture": str(options.picture)}))


if __name__ == "__main__":
    main()
