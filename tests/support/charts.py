"""The labels and lines of charts, and the names that docs/figures.md has for them."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import pytest

from tests.support import ROOT


def charts_of_the_page(what: str) -> set[str]:
    """Return the names of `Curves` or `Axes`, without their figures."""
    (names,) = re.findall(rf"(?ms)^- {what}: (.*?)\.$", (ROOT / "docs" / "figures.md").read_text())
    return {" ".join(re.sub(r"`\w+`", "", name).split()) for name in names.split(";")}


def drawn_axes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that gets the axes of every picture that is saved from now on."""
    figures = pytest.importorskip("matplotlib.figure", reason="matplotlib is not installed")
    axes: list[Any] = []
    monkeypatch.setattr(figures.Figure, "savefig", lambda figure, *_, **__: axes.extend(figure.axes))
    return axes


def require_told_apart(axis: Any) -> None:
    """Assert that both axes have names, and any two lines other colours, dashes and markers."""
    assert axis.get_xlabel()
    assert axis.get_ylabel()
    for one, other in combinations(axis.get_lines(), 2):
        for look in ("get_color", "get_linestyle", "get_marker"):
            assert getattr(one, look)() != getattr(other, look)(), look
