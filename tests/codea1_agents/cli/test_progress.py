"""What long work says where there is no terminal."""

from __future__ import annotations

from threading import Event

import pytest

from codea1_agents.cli import progress
from codea1_agents.cli.console import Page
from tests.support.waiting import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(progress, "time", found)
    monkeypatch.setattr(progress, "_FIRST_LINE_S", 1.0)
    return found


def test_plain_lines_say_how_far_and_how_long(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    bar = progress.Progress("pretraining", 800, Page(), done=100)
    for second in range(0, 75, 5):
        clock.now = float(second)
        bar.reach(100 + 2 * second, 800)
        bar.tell()
    assert capsys.readouterr().err.splitlines() == [
        "note: pretraining 110/800, elapsed 0:05, left 5:45",
        "note: pretraining 170/800, elapsed 0:35, left 5:15",
        "note: pretraining 230/800, elapsed 1:05, left 4:45",
    ]
    clock.now = 0.0  # what the first line cannot foretell, a line after ten seconds does
    bar = progress.Progress("training tables", 768, Page())
    for clock.now, done in ((1.0, 0), (9.0, 2), (10.5, 3), (39.0, 9), (41.0, 10)):
        bar.reach(done, 768)
        bar.tell()
    assert capsys.readouterr().err.splitlines() == [
        "note: training tables 0/768, elapsed 0:01",
        "note: training tables 3/768, elapsed 0:10, left 44:38",
        "note: training tables 10/768, elapsed 0:41, left 51:48",
    ]
    clock.now = 0.0
    bar = progress.Progress("playing", 5, Page())
    clock.now = 4_000.0
    bar.reach(0, 5, "a problem")
    bar.tell()
    assert capsys.readouterr().err == "note: playing (a problem) 0/5, elapsed 1:06:40\n"


def test_each_phase_is_named_and_what_runs_for_five_seconds(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    bar = progress.Progress("starting Ray", None, Page())
    for clock.now in (0.5, 1.0, 2.0):
        bar.tell()
    bar.begin("loading models")
    for clock.now in (3.0, 40.0):
        bar.tell()
    assert capsys.readouterr().err.splitlines() == [
        "note: starting Ray, elapsed 0:01",
        "note: loading models, elapsed 0:01",
        "note: loading models, elapsed 0:38",
    ]
    clock.now = 0.0
    bar = progress.Progress("playing", 5, Page())
    bar.running, bar.facts = lambda: ("a/slow_one", 2.0), lambda: "7 replies, 2 cut, 61 tokens/s"
    for clock.now in (6.0, 37.0):
        bar.rest(0.0)
        bar.tell()
    assert capsys.readouterr().err.splitlines() == [
        "note: playing 0/5, 7 replies, 2 cut, 61 tokens/s, elapsed 0:06",
        "note: playing 0/5, 7 replies, 2 cut, 61 tokens/s, elapsed 0:37; waiting 0:35 for a/slow_one",
    ]


def test_the_live_line_names_it_and_keeps_clocks_and_words(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    bar = progress.Progress("playing", 5, Page())
    bar.running = lambda: ("a/problem_with_a_name_of_more_than_forty_columns", 0.0)
    clock.now = 65.0
    bar.tell()
    shown = bar._progress.tasks[0].description  # a live line only exists on a terminal
    assert shown == "waiting 1:05 for a/problem_with_a_name_…"
    bar = progress.Progress("playing", 5, Page())

    def reaches() -> None:
        bar.running = lambda: None
        bar.reach(1, 5, "second")

    bar.running = reaches
    bar.tell()
    bar.tell()
    assert bar._progress.tasks[0].description == "playing (second)"


def test_a_thread_tells_while_the_command_works() -> None:
    told = Event()

    class Told(Page):
        def note(self, text: str, *, even_if_quiet: bool = False) -> None:
            told.set()

    with progress.Progress("solving", None, Told()) as bar:
        bar.rest(0.0)
        assert told.wait(60)


@pytest.mark.parametrize(("page", "hidden"), [(Page(quiet=True), False), (Page(), True)])
def test_quiet_or_hidden_is_silent(clock: Clock, capsys: pytest.CaptureFixture[str], page: Page, hidden: bool) -> None:
    with progress.Progress("playing", 5, page, hidden=hidden) as bar:
        clock.now = 4_000.0
        bar.reach(1, 5)
        bar.tell()
    assert capsys.readouterr().err == ""
