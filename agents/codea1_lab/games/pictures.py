"""Pictures of games: payoffs with the equilibrium's support, curves, maps.

The ending of the file's name chooses SVG (the same bytes for the same data) or PNG.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codea1_agents.evaluation.canvas import canvas, stroke
from codea1_lab.games.equilibria import Equilibrium
from codea1_lab.games.matrix_game import MatrixGame

_PLAYED = 1e-6
_MAPS_PER_ROW = 3

Curve = tuple[Sequence[float], Sequence[float]]
"""x and y of one line."""


def draw_payoffs(
    game: MatrixGame,
    equilibrium: Equilibrium,
    path: Path,
    *,
    programs: Sequence[str],
    suites: Sequence[str],
    title: str,
) -> None:
    """Draw both players' payoffs as heat maps, with frames around the equilibrium's support and its probabilities.

    Raises:
        MissingExtra: matplotlib is not installed.
        UserError: the file cannot be written.
    """
    m, n = game.shape
    support = [(i, j) for i in equilibrium.row_support for j in equilibrium.column_support]
    with canvas(path, size=(2.2 + 0.9 * n, 1.7 + 0.34 * m), n_columns=2) as (figure, axes):
        for axis, payoffs, role in ((axes[0], game.row, "coder"), (axes[1], game.column, "tester")):
            rows = _with_probabilities(programs, equilibrium.profile.row)
            columns = _with_probabilities(suites, equilibrium.profile.column)
            shown = draw_matrix(axis, payoffs, rows=rows, columns=columns, framed=support)
            axis.set_title(f"{role} earns", loc="left")
            figure.colorbar(shown, ax=axis, fraction=0.04, pad=0.02, label="reward")
        axes[1].tick_params(labelleft=False)
        earned = ", ".join(f"{value:.3f}" for value in equilibrium.values)
        figure.suptitle(f"{title}: {equilibrium.method}, residual {equilibrium.residual:.1e}, values {earned}")


def draw_matrix(
    axis: Any,
    values: NDArray[np.float64],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    framed: Iterable[tuple[int, int]],
) -> Any:
    """Draw a matrix with its numbers, and return the image.

    Args:
        axis: of matplotlib.
        values: (n_rows, n_columns); nan: no number.
        rows: names of programs or coders.
        columns: names of suites or testers.
        framed: (row, column) of the cells with a frame.
    """
    from matplotlib.patches import Rectangle  # noqa: PLC0415  matplotlib is optional

    shown = axis.imshow(values, aspect="auto", cmap="viridis")
    axis.set(xlabel="tester", ylabel="coder")
    axis.set_xticks(range(len(columns)), columns, rotation=40, ha="right", parse_math=False)
    axis.set_yticks(range(len(rows)), rows, parse_math=False)
    axis.spines[:].set_visible(False)
    known = values[np.isfinite(values)]
    middle = (known.max() + known.min()) / 2 if known.size else 0.0
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            colour = "white" if value <= middle else "black"
            axis.text(j, i, f"{value:.2f}", ha="center", va="center", color=colour, size=6)
    for i, j in framed:
        axis.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, edgecolor="red", linewidth=1.8))
    return shown


def draw_curves(curves: Mapping[str, Curve], path: Path, *, x: str, y: str) -> None:
    """Draw named lines.

    Raises:
        MissingExtra: matplotlib is not installed.
        UserError: the file cannot be written.
    """
    with canvas(path, size=(6.5, 3.2), n_columns=1) as (_, axes):
        axis = axes[0]
        for n, (name, (xs, ys)) in enumerate(curves.items()):
            axis.plot(xs, ys, label=name, **stroke(n, len(xs)))
        axis.set_ylim(bottom=0.0)
        axis.set(xlabel=x, ylabel=y)
        axis.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        axis.grid(alpha=0.2)


def draw_maps(
    maps: Mapping[str, NDArray[np.float64]],
    path: Path,
    *,
    columns: Sequence[float],
    rows: Sequence[float],
    x: str,
    y: str,
) -> None:
    """Draw one heat map per name, whose cells show their numbers; colours have 0 in their middle, in all maps alike.

    Args:
        maps: (n_rows, n_columns) each.
        path: where the picture is written.
        columns: values of x.
        rows: values of y, from below.
        x: what the columns are.
        y: what the rows are.

    Raises:
        MissingExtra: matplotlib is not installed.
        UserError: the file cannot be written.
    """
    n_columns = min(len(maps), _MAPS_PER_ROW)
    n_rows = -(-len(maps) // n_columns)
    most = max(float(np.abs(each).max()) for each in maps.values())
    with canvas(path, size=(2.6 * n_columns, 2.4 * n_rows), n_rows=n_rows, n_columns=n_columns) as (_, axes):
        for axis, (name, values) in zip(axes, maps.items(), strict=False):
            axis.imshow(values, aspect="auto", origin="lower", cmap="RdBu", vmin=-most, vmax=most)
            axis.set(xlabel=x, ylabel=y)
            axis.set_title(name, loc="left")
            axis.set_xticks(range(len(columns)), [f"{column:g}" for column in columns])
            axis.set_yticks(range(len(rows)), [f"{row:g}" for row in rows])
            for (i, j), value in np.ndenumerate(values):
                dark = abs(value) > most / 2
                axis.text(j, i, f"{value:+.1f}", ha="center", va="center", color="white" if dark else "black", size=7)
        for axis in axes[len(maps) :]:
            axis.axis("off")


def _with_probabilities(names: Sequence[str], strategy: NDArray[np.float64]) -> list[str]:
    return [f"{name}  {p:.2f}" if p > _PLAYED else name for name, p in zip(names, strategy, strict=True)]
