from __future__ import annotations

import json
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy", reason="scipy is not installed")

from codea1_agents.statistics import Estimate
from codea1_lab.crossplay.cells import FIGURES, Cells, CrossPlay, GameFigures
from codea1_lab.crossplay.pictures import draw_findings
from codea1_lab.crossplay.results import AGENT_COLUMNS, SHOWN, TITLES, Findings, cell_text
from codea1_lab.games.pictures import draw_matrix


@pytest.fixture(scope="module")
def findings() -> Findings:
    def game(share: float, problem: int) -> GameFigures:
        won = float((problem * 7919) % 10 < 10 * share)
        return GameFigures(won, 0.5, 1 - won, nan, won, won, 1 - won)

    shares = [[1.0, 0.1], [0.2, 0.9]]
    cells = Cells.of([[[[game(share, p)] for p in range(30)] for share in row] for row in shares])
    right = np.array([[1.0] * 30, [0.0] * 30])
    play = CrossPlay(("a|b", "mutant"), ("x", "fuzz"), tuple(map(str, range(30))), right, cells, cells, (1,), (1,))
    return Findings.of(play, n_draws=20, seed=2)


def test_the_document_is_plain_json_with_all_that_was_measured(findings: Findings) -> None:
    document = json.loads(json.dumps(findings.document({"seed": 2}), allow_nan=False))
    figures = document["on_policy"]["figures"]
    assert set(figures) == set(FIGURES)
    assert figures["coder_reward"]["mean"] == pytest.approx(np.array([[1.0, 0.1], [0.2, 0.9]]))
    low, value, high = (np.array(figures["beats"][name]) for name in ("low", "mean", "high"))
    assert (low[0, 1], high[1, 0]) < (value[0, 1], 1.0)
    assert (low <= value).all()
    assert (value <= high).all()
    assert figures["caught"]["mean"] == [[None, None], [None, None]]
    assert np.array(document["on_policy"]["per_problem"]["survives"]).shape == (2, 2, 30)
    assert [each["is_yardstick"] for each in document["coders"]] == [False, True]
    assert document["coders"][0]["right"]["mean"] == 1
    assert document["reversals"] == [
        {"first": "a|b", "against_first": "x", "second": "mutant", "against_second": "fuzz"}
    ]
    assert document["on_policy"]["game"]["cycles"]
    assert Findings.of(findings.play, n_draws=20, seed=2).document({}) == findings.document({})


def test_sentences_name_cycles_and_reversals_and_cells_intervals(findings: Findings) -> None:
    text = "\n".join(findings.sentences())
    assert ("Nash equilibrium: " in text, AGENT_COLUMNS[-1]) == (True, "Nash")
    assert "Best responses cycle" in text
    assert "a|b is ahead of mutant against x, and behind it against fuzz (1 such beyond chance)." in text
    assert cell_text(Estimate(0.5, 0.25, 0.75, 4, 4, 0)) == "0.50 (0.25 to 0.75)"
    assert cell_text(Estimate(0.5, nan, nan, 1, 1, 0)) == "0.50"
    assert cell_text(Estimate(nan, nan, nan, 0, 0, 1)) == "-"
    assert cell_text(Estimate(-12.3, -20, 4, 4, 4, 0), 0) == "-12 (-20 to 4)"


def test_every_matrix_is_drawn_and_the_equilibrium_is_framed_in_those_of_rewards(
    findings: Findings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    drawn: list[Any] = []

    def kept(axis: Any, values: Any, **options: Any) -> None:
        draw_matrix(axis, values, **options)
        drawn.append((axis, values, options))

    monkeypatch.setattr("codea1_lab.crossplay.pictures.draw_matrix", kept)
    draw_findings(findings, "on_policy", tmp_path / "on-policy.svg")
    of_title = {axis.get_title(loc="left"): (values, options) for axis, values, options in drawn}
    assert list(of_title) == [TITLES[figure] for figure in SHOWN["on_policy"]]
    values, options = of_title[TITLES["coder_reward"]]
    assert (options["rows"], options["columns"]) == (["a|b", "mutant"], ["x", "fuzz"])
    assert values[1] == pytest.approx((0.2, 0.9))
    assert set(options["framed"]) == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert of_title[TITLES["beats"]][1]["framed"] == []
    assert (tmp_path / "on-policy.svg").stat().st_size > 3000
