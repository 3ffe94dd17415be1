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
        "In 2 steps the coder's held-out pass@1 went from 0.25 to 0.50. Without intervals that tell a change, the share"
        " of the tester's tests that are valid went from 0.30 to 0.60, and the share of its suites that beat a mutant"
        " from 0.80 to 0.70."
    )


@pytest.mark.parametrize(
    ("half", "shift", "said"),
    [(0.1, 0.25, "rose"), (0.3, 0.25, "shows no clear change,"), (0.1, -0.2, "fell")],
)
def test_the_sentence_says_what_rose_by_the_reports_rule(half: float, shift: float, said: str) -> None:
    first, last = ({PASS: mean, f"{PASS}_low": mean - half, f"{PASS}_high": mean + half} for mean in (0.5, 0.5 + shift))
    change = change_of([{"step": 0, "evaluation": first}, {"step": 9, "evaluation": last}])
    assert change.pass_direction == said
    assert f"pass@1 {said} from 0.50 to {0.5 + shift:.2f}." in change.sentence()


@pytest.mark.slow
def test_the_picture_is_written_the_same_twice(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        draw_change(LINES, tmp_path / name)
        assert (tmp_path / name / "coevolution.png").stat().st_size > 10_000
    svg = (tmp_path / "one" / "coevolution.svg").read_bytes()
    assert svg == (tmp_path / "two" / "coevolution.svg").read_bytes()
