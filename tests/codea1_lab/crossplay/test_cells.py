from __future__ import annotations

from collections.abc import Callable
from math import isnan, nan
from typing import Any

import numpy as np
import pytest

from codea1_env.facts.submissions import Candidate
from codea1_env.facts.verdicts import CandidateReport, Verdict
from codea1_env.judging.judge import Duel, Judge
from codea1_env.problems import ProblemSet
from codea1_env.rules.replies import read_suite
from codea1_env.sandbox import Sandbox
from codea1_lab.crossplay.cells import Cells, CrossPlay, GameFigures, figures_of, grid_of
from tests.support.toys import RULES

MINUS = "def add(a, b):\n    return a - b\n"


@pytest.fixture
def figures(toys: ProblemSet, sandbox: Sandbox) -> Callable[..., Any]:
    """What a program and suites earn."""

    def judged(program: str, *suites: str, is_right: bool | None = None) -> Any:
        read = [read_suite(each, RULES.reading, entry_point="add", tests_per_suite=2) for each in suites]
        (report,) = Judge(sandbox, RULES).judge([Duel.crossed(toys[0], [Candidate(program)], read)])
        return figures_of(report.candidates[0], RULES, is_right=is_right)

    return judged


def test_figures_of_a_beaten_program_are_means_over_suites(figures: Callable[..., Any]) -> None:
    found = figures(
        MINUS,
        "assert add(1, 0) == 1\nassert add(1, 1) == 2",  # one passes, one fails; both right
        "assert add(2, 0) == 2\nassert add(3, 0) == 5",  # passes; the other one is corrected, and passes
        is_right=False,
    )
    assert (found.beats, found.survives, found.caught) == (0.5, 0.5, 0.5)
    assert found.validity == 0.75
    assert found.pass_rate == pytest.approx(0.75)
    assert found.coder_reward == pytest.approx(0.75)
    assert found.tester_reward == pytest.approx(((0.5 * 1 + 0.5 * 0.5) + 0.5 * 0.5) / 2)
    for is_right in (True, None):  # only what is known to be wrong can be caught
        beaten = figures(MINUS, "assert add(1, 1) == 2", is_right=is_right)
        assert (isnan(beaten.caught), beaten.beats) == (True, 1)


def test_what_does_not_load_or_has_no_valid_case_or_is_our_failure(figures: Callable[..., Any]) -> None:
    found = figures("def add(:", "assert add(1, 1) == 2")
    assert (found.pass_rate, found.survives) == (0.0, 0.0)
    assert found.coder_reward == RULES.reward.invalid_candidate
    assert all(isnan(value) for value in (found.beats, found.validity, found.tester_reward))
    found = figures(MINUS, "assert missing(1) == 2")
    assert isnan(found.pass_rate)
    assert (found.beats, found.validity, found.survives) == (0.0, 0.0, 1.0)
    assert figures_of(CandidateReport(Candidate("x = 1"), Verdict.INTERNAL_ERROR), RULES) is None


def test_cells_leave_masked_games_out_and_count_them() -> None:
    games = [[[[GameFigures(pass_rate=1.0), None, GameFigures(pass_rate=0.5)], [None], []]]]
    cells = Cells.of(games)
    assert cells.pass_rate.shape == (1, 1, 3)
    assert cells.pass_rate[0, 0, 0] == 0.75
    assert np.isnan(cells.pass_rate[0, 0, 1:]).all()
    assert cells.n_masked == 2


def test_a_grid_has_the_mean_over_problems_and_an_interval_around_it() -> None:
    values = [0.0, 1.0, 1.0, nan, 1.0, 0.0, 1.0, 1.0]
    cells = Cells.of([[[[GameFigures(beats=value)] for value in values]]])
    play = CrossPlay(("c",), ("t",), tuple("abcdefgh"), np.ones((1, 8)), cells, None)
    (estimate,) = grid_of(play, cells, "beats", seed=1)[0]
    assert estimate.mean == pytest.approx(5 / 7)
    assert estimate.n_problems == 7
    assert estimate.low < estimate.mean < estimate.high
    assert play.right_intervals()[0].mean == 1
