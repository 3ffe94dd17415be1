"""Opens and saves matplotlib figures; matplotlib is optional and slow to import."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from codea1_env.errors import MissingExtra, UserError, extra_needed
from codea1_env.records.file_errors import file_errors

_STYLE: Any = {"svg.hashsalt": "codea1", "font.size": 8, "axes.spines.top": False, "axes.spines.right": False}

# Colours that are visible on light and dark.
_COLOURS = ("#1f6fb4", "#d1495b", "#2a9d5c", "#8a5fbf", "#d98c21", "#5b6770", "#17a2a2", "#b5547f")
_DASHES, _MARKERS = ("-", "--", ":", "-.", (0, (9, 3))), "os^D"


def stroke(number: int, n_points: int) -> dict[str, Any]:
    """Return the options of `plot` for a line of a chart: colour, dashes and markers tell it from the others.

    Args:
        number: of the line.
        n_points: of the line.
    """
    return {
        "color": _COLOURS[number % len(_COLOURS)],
        "linestyle": _DASHES[number % len(_DASHES)],
        "marker": _MARKERS[number % len(_MARKERS)],
        "markersize": 3,
        "markevery": n_points // 12 or 1,
    }


def require_drawing() -> None:
    """Raise MissingExtra unless matplotlib is installed, before a long computation whose pictures need it."""
    if find_spec("matplotlib") is None:
        raise MissingExtra.of("drawing pictures", "study")


@contextmanager
def canvas(*paths: Path, size: tuple[float, float], n_rows: int = 1, n_columns: int = 1) -> Iterator[tuple[Any, Any]]:
    """Yield a figure and its axes, (n_rows * n_columns,) row by row; save it to the files at the end of the block.

    The same drawing gives the same bytes of SVG.

    Args:
        paths: one file per format, `.svg` or `.png`.
        size: width and height in inches.
        n_rows: rows of axes.
        n_columns: columns of axes.

    Raises:
        MissingExtra: matplotlib is not installed.
        UserError: a path has another format, or a file cannot be written.
    """
    with extra_needed("drawing", "study"):
        import matplotlib as mpl  # noqa: PLC0415  slow to import, and optional
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
        from matplotlib.figure import Figure  # noqa: PLC0415
    for path in paths:
        if path.suffix not in (".svg", ".png"):
            raise UserError(f"{path}: a picture's name must end in .svg or .png")
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure, figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        for path in paths:
            with file_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else {})
