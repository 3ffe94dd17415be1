"""What `codea1 demo coevolve` says beforehand."""

from __future__ import annotations

import re

import pytest

from codea1_agents.cli.coevolving import time_sentence
from codea1_agents.train.loop.loading import load_training


def minutes(step_s: float, *changes: str) -> list[float]:
    said = time_sentence(step_s, 1600, load_training("coevolve", list(changes)))
    return [float(each) for each in re.findall(r"\d+\.\d", said)]


def test_it_says_how_long_both_parts_take() -> None:
    """docs/coevolution.md: five minutes for all, where pretraining takes 200 s."""
    whole, pretraining, training = minutes(0.125)
    assert whole == pytest.approx(pretraining + training, abs=0.11)
    assert pretraining == pytest.approx(200 / 60, abs=0.1)
    assert whole == pytest.approx(306 / 60, rel=0.1)


def test_the_time_grows_with_the_steps() -> None:
    assert minutes(0.125, "run.steps=120")[2] > 1.8 * minutes(0.125)[2] - 0.5
    assert minutes(0.25)[0] == pytest.approx(2 * minutes(0.125)[0], abs=0.2)
