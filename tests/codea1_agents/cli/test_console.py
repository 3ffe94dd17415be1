from __future__ import annotations

import json
from math import nan

import pytest
from rich.text import Text

from codea1_agents.cli.console import Page, estimate_cells, new_table, number
from codea1_agents.statistics import Estimate


def test_people_read_stdout_unless_a_machine_does(capsys: pytest.CaptureFixture[str]) -> None:
    Page().show(Text("for people"))
    Page().finish(a=1)
    assert capsys.readouterr() == ("for people\n", "")
    Page(as_json=True).show(Text("for people"))
    Page(as_json=True).finish(a=1)
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found.pop("versions").keys(), found) == ({"codea1-env", "judge"}, {"a": 1})
    assert err == "for people\n"


def test_notes_go_to_stderr_sentences_stay_on_one_line_and_markup_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    Page().note("a [red] note")
    Page(quiet=True).note("another")
    assert capsys.readouterr() == ("", "note: a [red] note\n")
    Page().say("word " * 100)
    Page().note("word " * 100)
    out, err = capsys.readouterr()
    assert out.count("\n") == err.count("\n") == 1
    Page().show(new_table(("a",), [("[bold]x[/bold]\x1b[2J",)]))
    out = capsys.readouterr().out
    assert "[bold]x[/bold]" in out
    assert "\x1b" not in out


def test_without_a_terminal_the_page_is_100_wide_or_as_columns_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Page().width == 100
    monkeypatch.setenv("COLUMNS", "72")
    assert Page().width == 72


def test_numbers_have_three_digits_no_negative_zero_and_a_dash_for_nothing_and_json_no_nan() -> None:
    assert [number(value) for value in (0.5, -1e-18, -0.25, nan)] == ["0.500", "0.000", "-0.250", "-"]
    assert estimate_cells(Estimate(0.5, 0.25, 0.75, 8, 4, 0)) == ("0.500", "0.250 to 0.750", "8")
    assert estimate_cells(Estimate(0.5, nan, nan, 1, 1, 0)) == ("0.500", "", "1")
    with pytest.raises(ValueError, match="JSON"):
        Page(as_json=True).finish(a=nan)
