from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codea1_lab.games.pictures import draw_curves, draw_maps, draw_payoffs
from tests.support.charts import drawn_axes, require_told_apart

pytest.importorskip("scipy", reason="scipy is not installed")


def test_pictures_name_their_axes_and_tell_lines_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from codea1_lab.games.equilibria import solve
    from codea1_lab.games.matrix_game import MatrixGame

    axes = drawn_axes(monkeypatch)
    draw_curves({name: ([0, 1], [0.5, 1.0]) for name in "abcd"}, tmp_path / "curves.svg", x="alpha", y="share")
    draw_maps({"lead, points": np.eye(2)}, tmp_path / "maps.svg", columns=[1, 2], rows=[0, 1], x="V", y="rho")
    game = MatrixGame(np.eye(2), -np.eye(2))
    draw_payoffs(game, solve(game), tmp_path / "pay.svg", programs=["a", "b"], suites=["x", "y"], title="t")
    curves, maps, *payoffs = axes
    for axis in (curves, maps, *payoffs[:2]):
        require_told_apart(axis)
    assert [(axis.get_xlabel(), axis.get_ylabel()) for axis in payoffs] == [("tester", "coder")] * 2 + [
        ("", "reward")
    ] * 2
