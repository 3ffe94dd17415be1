"""What a run has changed: the sentence and the picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codea1_agents.train.tiny.demonstration import KILLS, PASS, VALIDITY, Change, change_of, draw_change

LINES: list[dict[str, Any]] = [
    {"step": 0, "evaluation": {PASS: 0.25, VALIDITY: 0.3, KILLS: 0.8}},
    {"step": 1, "figures": {"pass_new": 0.5, "book_size": 12.0}},
    {"step": 2, "figures": {"pass_new": 0.75, "book_size": 30.0}, "evaluation": {PASS: 0.5, VALIDITY: 0.6, KILLS: 0.7}},
]


def test_the_sentence_tells_first_and_last() -> None:
    assert change_of([*LINES, {"step": 3, "figures": {}}]).steps == 2  # of the last evaluation
    with pytest.raises(ValueError, match="at least two"):
        change_of(LINES[:2])
    found = change_of(LINES)
    assert found == Change(2, 0.25, 0.5, 0.3, 0.6, 0.8, 0.7)
    assert found.sentence() == (
        "In 2 steps the coder's held-out pass@1 went from 0.25 to 0.50, the share of the tester's tests that are valid"
        " from 0.30 to 0.60, and the share of its suites that beat a mutant from 0.80 to 0.70."
    )


@pytest.mark.slow
def test_the_picture_is_written_the_same_twice(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        draw_change(LINES, tmp_path / name)
        assert (tmp_path / name / "coevolution.png").stat().st_size > 10_000
    svg = (tmp_path / "one" / "coevolution.svg").read_bytes()
    assert svg == (tmp_path / "two" / "coevolution.svg").read_bytes()
