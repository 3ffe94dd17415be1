from __future__ import annotations

import pytest

from codea1_lab.experiments.declaration import Experiment, System
from codea1_lab.experiments.rules_text import rules_text

SMALL = Experiment(
    name="small",
    set={"game.book.update": "off"},
    systems=(
        System(name="base"),
        System(name="a1", preset="code-a1"),
        System(name="release", preset="code-a1", set={"game.rules": "release", "game.reward.alpha": 0.1}),
        System(name="golden", preset="golden"),
        System(name="first-kill", preset="code-a1", set={"game.rules": "first_kill"}),
        System(name="formulas", preset="code-a1", set={"game.reward.scheme": "paper"}),
        System(name="as-alpha", preset="book-as-alpha", set={"game.book.update": "release"}),
        System(name="parts", preset="code-a1", set={"training.advantages": "decoupled"}),
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
        ("first-kill", "first_kill, alpha 0.1, strict reading, book.update=off"),
        ("formulas", "fixed with the formulas of paper, alpha 0.5, strict reading, book.update=off"),
        ("as-alpha", "fixed, alpha 0.5, strict reading, replays=as_alpha"),
        ("parts", "fixed, alpha 0.5, strict reading, book.update=off, advantages=decoupled"),
        ("sft", "supervised"),
        ("together", "fixed, alpha 0.5, strict reading, book.update=off and supervised"),
    ],
)
def test_rules_are_those_of_the_settings(system: str, text: str) -> None:
    assert rules_text(SMALL, system) == text
