"""What long work says where there is no terminal."""

from __future__ import annotations

import pytest

from codea1_agents.cli import progress
from codea1_agents.cli.console import Page


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(progress, "time", found)
    return found


def test_a_plain_line_every_half_minute_says_how_far_and_how_long(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress.Progress("pretraining", 800, Page(), done=100) as bar:
        for second in range(0, 75, 5):
            clock.now = float(second)
            bar.reach(100 + 2 * second, 800)
    assert capsys.readouterr().err.splitlines() == [
        "note: pretraining 120/800, elapsed 0:10, left 5:40",
        "note: pretraining 180/800, elapsed 0:40, left 5:10",
        "note: pretraining 240/800, elapsed 1:10, left 4:40",
    ]


@pytest.mark.parametrize(("page", "hidden"), [(Page(quiet=True), False), (Page(), True)])
def test_quiet_and_hidden_work_says_nothing(
    clock: Clock, capsys: pytest.CaptureFixture[str], page: Page, hidden: bool
) -> None:
    with progress.Progress("playing", 5, page, hidden=hidden) as bar:
        clock.now = 4_000.0
        bar.reach(1, 5)
    assert capsys.readouterr().err == ""


def test_hours_are_told_and_nothing_is_foretold_from_nothing(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.Progress("playing", 5, Page()) as bar:
        clock.now = 4_000.0
        bar.reach(0, 5)
    assert capsys.readouterr().err == "note: playing 0/5, elapsed 1:06:40\n"


def test_a_pipe_has_the_width_that_columns_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Page().width == 100
    monkeypatch.setenv("COLUMNS", "72")
    assert Page().width == 72
