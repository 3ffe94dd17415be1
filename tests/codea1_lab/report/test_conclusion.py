from __future__ import annotations

from math import nan
from types import SimpleNamespace
from typing import Any

from codea1_agents.statistics import Estimate
from codea1_lab.report.conclusion import of_games, of_training
from codea1_lab.report.training_run import _figures


def line(step: int, coder: float, kills: float = 0.5, **more: Any) -> dict[str, Any]:
    return {"step": step, "figures": {"coder_reward": coder, "tester_reward": 0.5, "right_kill_rate": kills}, **more}


def test_a_training_says_what_moved_from_what_to_what() -> None:
    steps = [line(n, 0.2 + 0.02 * n) for n in range(20)]
    interval = {"coder_pass_at_1_low": 0.4, "coder_pass_at_1_high": 0.6}
    evaluated = [
        {"step": n, "evaluation": {"coder_pass_at_1": p, "problems": 48.0, **interval}}
        for n, p in ((0, 0.3), (9, 0.6), (19, 0.5))
    ]
    lines = [*steps, *evaluated]
    first, second, third = of_training(_figures(steps, lines), steps, lines)
    assert first == (
        "On held-out problems the coder's pass@1 rose from 0.300 to 0.500 (0.400 to 0.600) after 0.600 at step 9 "
        "(steps 0 to 19, 48 problems)."
    )
    assert second.startswith("In training, the coder's reward rose from 0.21 (0.20 to 0.22) to 0.57 (0.56 to 0.58) and")
    assert (
        "the tester's reward hardly moved, from 0.50 (0.50 to 0.50) to 0.50 (0.50 to 0.50) (first and last 2 of"
        in second
    )
    one = [line(0, 0.5)]  # a run that has hardly begun says nothing
    assert of_training({}, [], []) == of_training(_figures(one, one), one, one) == ()
    assert third == (
        "The share of suites that beat a program hardly moved, from 0.50 (0.50 to 0.50) to 0.50 (0.50 to 0.50)."
    )


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
