from __future__ import annotations

import json
import re

import pytest

from codea1_agents.cli.demo import time_sentence
from codea1_agents.train.settings.loading import load_training
from codea1_agents.train.tiny.demonstration import Change
from tests.support.command_line import check_document


def minutes(step_s: float, *changes: str) -> list[float]:
    said = time_sentence(step_s, 1600, load_training("coevolve", list(changes)))
    return [float(each) for each in re.findall(r"\d+\.\d", said)]


def test_it_says_how_long_both_parts_take() -> None:
    """Two runs took 306 and 338 s in all, with 200 and 180 s of pretraining."""
    whole, pretraining, training = minutes(0.125)
    assert whole == pytest.approx(pretraining + training, abs=0.11)
    assert pretraining == pytest.approx(200 / 60, abs=0.1)
    assert whole == pytest.approx(322 / 60, rel=0.1)
    assert minutes(0.125, "run.steps=120")[2] > 1.8 * training - 0.5  # it grows with the steps
    assert minutes(0.25)[0] == pytest.approx(2 * whole, abs=0.2)


def test_its_document_has_a_schema() -> None:
    figures = Change(60, 0.25, 0.59, 0.38, 0.57, 0.81, 0.73).to_dict()
    document = {"out": "run", "picture": "p.svg", "versions": {"codea1-env": "0.1.0", "judge": 4}, **figures}
    check_document(["demo", "coevolve"], json.dumps(document))
