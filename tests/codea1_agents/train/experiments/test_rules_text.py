"""The rules of each system in words."""

from __future__ import annotations

import pytest

from codea1_agents.train.experiments.declaration import Experiment, System
from codea1_agents.train.experiments.rules_text import rules_text

SMALL = Experiment(
    name="small",
    set={"game.book.update": "off"},
    systems=(
        System(name="base"),
        System(name="a1", preset="code-a1"),
        System(name="release", preset="code-a1", set={"game.rules": "release", "game.reward.alpha": 0.1}),
        System(name="golden", preset="golden"),
        System(name="as-alpha", preset="book-as-alpha", set={"game.book.update": "release"}),
        System(name="sft", sft=True),
        System(name="together", coder_from="a1", tester_from="sft"),
    ),
)


@pytest.mark.parametrize(
    ("system", "text"),
    [
        ("base", "untrained"),
        ("a1", "fixed, alpha 0.5, strict reading, book.update=off"),
        ("release", "release, alpha 0.1, release reading, book.update=off"),
        ("golden", "golden, strict reading"),
        ("as-alpha", "fixed, alpha 0.5, strict reading, replays=as_alpha"),
        ("sft", "supervised"),
        ("together", "a1 and sft"),
    ],
)
def test_rules_are_those_of_the_settings(system: str, text: str) -> None:
    assert rules_text(SMALL, system) == text
