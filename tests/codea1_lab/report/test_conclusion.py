from __future__ import annotations

from math import nan
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from codea1_agents.statistics import Estimate, _t_quantile
from codea1_lab.report.conclusion import of_games, of_training
from codea1_lab.report.training_run import _figures


def line(step: int, coder: float, kills: float = 0.5, **more: Any) -> dict[str, Any]:
    return {"step": step, "figures": {"coder_reward": coder, "tester_reward": 0.5, "right_kill_rate": kills}, **more}


def told_of(values: list[float]) -> str:
    steps = [{"step": n, "figures": {"right_kill_rate": value}} for n, value in enumerate(values, 1)]
    (sentence,) = of_training(_figures(steps, steps), steps, steps)
    return sentence.removeprefix("The share of suites that beat a program ")


def test_a_training_says_what_moved_from_what_to_what() -> None:
    steps = [line(n, 0.2 + 0.02 * n) for n in range(20)]
    evaluated = [
        {"step": n, "evaluation": {"coder_pass_at_1": p, "problems": 48.0} | interval_of("coder_pass_at_1", p)}
        for n, p in ((0, 0.3), (9, 0.6), (19, 0.5))
    ]
    lines = [*steps, *evaluated]
    first, second, third = of_training(_figures(steps, lines), steps, lines)
    assert first == (
        "On held-out problems the coder's pass@1 rose from 0.300 (0.250 to 0.350) to 0.500 (0.450 to 0.550),"
        " the best being 0.600 at step 9 (steps 0 to 19, 48 problems)."
    )
    assert second == (
        "In training, the coder's reward rose from 0.24 (0.20 to 0.28) to 0.54 (0.50 to 0.58), and the tester's reward"
        " did not change from 0.50 (0.50 to 0.50) (first and last 5 of 20 steps)."
    )
    assert third == ("The share of suites that beat a program did not change from 0.50 (0.50 to 0.50).")
    assert of_training({}, [], []) == ()


def test_rewards_of_programs_that_no_case_speaks_of_say_so() -> None:
    steps = [line(n, 0.1) for n in range(20)]
    for each in steps:
        each["figures"]["untested_share"] = 0.9
    (told, _) = of_training(_figures(steps, steps), steps, steps)
    assert told.endswith(
        "(first and last 5 of 20 steps); no case was evidence about 90% of the last programs that load."
    )


def interval_of(name: str, value: float, half: float = 0.05) -> dict[str, float]:
    return {f"{name}_low": value - half, f"{name}_high": value + half}


@pytest.mark.parametrize(
    ("before", "half", "says"),
    [
        (0.45, 0.05, "shows no clear change, from 0.450 (0.400 to 0.500) to 0.500 (0.450 to 0.550) (steps 0"),
        (0.51, 0.05, "shows no clear change, from 0.510 (0.460 to 0.560) to 0.500 (0.450 to 0.550) (steps 0"),
        (0.5, 0.0, "did not change from 0.500 (0.500 to 0.500) (steps"),
        (0.7, 0.05, "fell from 0.700 (0.650 to 0.750) to 0.500"),
        (0.2, nan, "went from 0.200 to 0.500, too few problems to tell a change"),
    ],
)
def test_held_out_problems_have_the_same_rule(before: float, half: float, says: str) -> None:
    name = "coder_pass_at_1"
    lines = [{"step": n, "evaluation": {name: p} | interval_of(name, p, half)} for n, p in ((0, before), (9, 0.5))]
    (told,) = of_training(_figures([], lines), [], lines)
    assert f"pass@1 {says}" in told


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([0.14 + 0.09 * n for n in range(10)], "rose from 0.32 (0.14 to 0.50) to 0.77 (0.59 to 0.95)."),
        ([0.95 - 0.09 * n for n in range(10)], "fell from 0.77 (0.59 to 0.95) to 0.32 (0.14 to 0.50)."),
        ([0.1] * 13, "did not change from 0.10 (0.10 to 0.10)."),
        ([0.14, 0.95], "went from 0.14 to 0.95, too few steps to tell a change."),
        ([0.1] * 4 + [0.9] * 4, "went from 0.10 to 0.90, too few steps to tell a change."),
        ([nan] * 15 + [0.0] * 5, "is 0.00 (0.00 to 0.00), unknown in the first steps."),
        ([nan, 0.0] * 10, "did not change from 0.00."),
        ([0.5], "is 0.50, too few steps to tell a change."),
        ([nan, 0.1, 0.1, 0.1, 0.1, 0.9, 0.9, 0.9, 0.9, 0.9], "went from 0.10 to 0.90 (0.90 to 0.90), too few"),
    ],
)
def test_a_verdict_comes_from_windows_of_steps(values: list[float], says: str) -> None:
    assert told_of(values).startswith(says)


@pytest.mark.parametrize("n_steps", [10, 24, 120])
def test_noise_moves_at_most_once_in_twenty(n_steps: int) -> None:
    noise = np.random.default_rng(0).normal(0.5, 0.2, size=(1000, n_steps))
    n_wrong = sum(not told_of(row.tolist()).startswith("shows no clear change") for row in noise)
    assert 0 < n_wrong <= 65, "5 % and two standard errors"


def test_the_quantile_is_students() -> None:
    """Published values of t at 0.975."""
    for freedom, expected in ((4, 2.776), (9, 2.262), (30, 2.042)):
        assert _t_quantile(freedom) == pytest.approx(expected, abs=0.01)


def test_games_say_who_wins_and_what_both_earn() -> None:
    def summary(kills: float, low: float, high: float, reward: float = 0.4) -> Any:
        known = {name: Estimate(reward, 0.3, 0.5, 9, 9, 9) for name in ("coder_reward", "tester_reward")}
        return SimpleNamespace(right_kill_rate=Estimate(kills, low, high, 9, 9, 9), **known)

    found = of_games(summary(0.75, 0.6, 0.9), "mutant", "fuzz")
    assert found[0] == "fuzz wins more often: fuzz's suites beat 75% of the programs of mutant that load (60% to 90%)."
    assert found[1:] == ("mutant earns 0.40 (0.30 to 0.50), fuzz earns 0.40 (0.30 to 0.50).",)
    assert of_games(summary(0.25, 0.1, 0.4), "mutant", "fuzz")[0].startswith("mutant wins more often")
    assert of_games(summary(0.5, 0.1, 0.9), "a", "b")[0].startswith("b's suites beat 50%")
    assert of_games(summary(0.0, nan, nan), "a", "b")[0] == "b's suites beat 0% of the programs of a that load."
    assert of_games(summary(nan, nan, nan, nan), "a", "b") == ()
