"""The matrices of a cross-play as pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from codea1_agents.evaluation.canvas import canvas
from codea1_env.rendering import shorten
from codea1_lab.crossplay.results import SHOWN, TITLES, Findings
from codea1_lab.games.pictures import draw_matrix

_MAPS_PER_ROW = 3
_MOST_SHOWN = 32  # characters of a name: a whole specification would leave no room for the map


def draw_findings(findings: Findings, mode: str, path: Path) -> None:
    """Draw the matrices of a mode, those of rewards with frames around the support of the empirical game's equilibrium.

    Raises:
        MissingExtra: matplotlib is not installed.
        UserError: the file cannot be written.
    """
    play, game = findings.play, findings.games[mode]
    coders, testers = ([shorten(name, _MOST_SHOWN) for name in names] for names in (play.coders, play.testers))
    framed = [(i, j) for i in game.equilibrium.row_support for j in game.equilibrium.column_support] if game else []
    n_rows = -(-len(SHOWN[mode]) // _MAPS_PER_ROW)
    size = (_MAPS_PER_ROW * (1.8 + 0.5 * len(testers)), n_rows * (1.6 + 0.34 * len(coders)))
    with canvas(path, size=size, n_rows=n_rows, n_columns=_MAPS_PER_ROW) as (_, axes):
        for axis in axes[len(SHOWN[mode]) :]:
            axis.axis("off")
        for axis, figure in zip(axes, SHOWN[mode], strict=False):
            means = np.array([[estimate.mean for estimate in line] for line in findings.grids[mode][figure]])
            of_rewards = framed if figure.endswith("reward") else []
            draw_matrix(axis, means, rows=coders, columns=testers, framed=of_rewards)
            axis.set_title(TITLES[figure], loc="left", fontsize=6)
