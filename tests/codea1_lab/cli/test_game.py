from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from codea1_lab.tabular.table import FIRST, STUDIES
from tests.support.command_line import codea1, document, refused

pytestmark = pytest.mark.slow

pytest.importorskip("scipy", reason="scipy is not installed")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests of this module share a cache, and leave the user's alone."""
    folder = tmp_path_factory.getbasetemp() / "banks-of-the-command-line"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))


def test_solve_prints_residuals_and_writes_pictures_and_the_bank(folder: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    asked = ["game", "solve", "starter", "--limit", "1", "--no-solution", "--json"]
    found = json.loads(codea1(*asked, "--save", "one.bank.jsonl", "-o", "pictures").stdout)
    assert found["largest_residual"] < 1e-8
    assert (found["n_programs"], len(found["by_problem"])) == (4, 1)
    assert sum(found["by_problem"][0]["coder"].values()) == pytest.approx(1.0)
    assert all((folder / path).stat().st_size > 3000 for path in found["pictures"])
    again = json.loads(codea1("game", "solve", "one.bank.jsonl", "--json").stdout)
    assert again["by_problem"][0]["coder_payoffs"] == found["by_problem"][0]["coder_payoffs"]


def test_no_number_is_broken_at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rows = codea1("game", "solve", "starter", "--limit", "1").stdout.splitlines()[:4]
    assert [row.split()[0] for row in rows[2:3]] == ["starter/assign_lockers"]
    assert rows[2].count(",") == 2
    assert max(map(len, rows)) <= 80


def test_questions_are_answered() -> None:
    found = document("game", "questions", "starter", "--limit", "1", "--rounds", "2")
    assert {each["rules"] for each in found["alpha"]} == {"fixed", "first_kill", "paper", "release"}
    assert set(found["book"]) == {"with", "without"}
    assert {each["rules"] for each in found["schemes"]} == {"fixed", "first_kill", "paper", "zero_sum"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["solve", "nothing"], "unknown problem source"),
        (["solve", "starter", "--limit", "1", "--problem", "starter/none"], "unknown problem"),
        (["solve", "starter", "--limit", "1", "--save", "bank.txt"], "must end in .bank.jsonl"),
        (["solve", "starter", "--rules", "unfair"], "unknown rules"),
        (["tabular", "--study", "deep"], "deep"),
        (["rewards", "--study", "deep"], "deep"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], told: str) -> None:
    assert told in refused("game", *arguments)


def test_the_tabular_game_prints_and_keeps_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = STUDIES["tabular-game"].regimes[0]
    small = replace(first, schedule=replace(first.schedule, steps=1))
    monkeypatch.setitem(STUDIES, "tabular-game", replace(STUDIES["tabular-game"], regimes=(small,)))
    out = tmp_path / "table"
    found = json.loads(codea1("game", "tabular", "--seeds", "2", "-o", out, "--json").stdout)
    (row,) = found["rows"]
    assert row["regime"] == small.name
    assert row["accuracy"]["n"] == 2
    assert "black-box" in row["leads"]
    assert json.loads((out / "result.json").read_text())["rows"] == found["rows"]
    assert found["pictures"] == []
    assert "black-box" in codea1("game", "tabular", "--seeds", "2").stdout


def test_the_map_has_a_picture_and_says_where_a_tester_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    small = tuple(replace(each, schedule=replace(each.schedule, steps=1)) for each in STUDIES["map"].regimes)
    monkeypatch.setitem(STUDIES, "map", replace(STUDIES["map"], regimes=small))
    found = json.loads(codea1("game", "tabular", "--study", "map", "--seeds", "1", "-o", tmp_path, "--json").stdout)
    assert found["crossovers"].keys() == {system.name for system in STUDIES["map"].systems} - {FIRST}
    assert len(json.loads((tmp_path / "result.json").read_text())["rows"]) == len(small)
    assert (tmp_path / "tabular-map.svg").exists()
    assert found["pictures"] == ["tabular-map.svg"]


@pytest.mark.parametrize(("study", "one"), [("suites", "rare kills"), ("credit", "block")])
def test_rewards_of_the_tabular_game_are_compared(study: str, one: str, tmp_path: Path) -> None:
    asked = ("game", "rewards", "--study", study, "--steps", "1", "--seeds", "1")
    found = json.loads(codea1(*asked, "-o", tmp_path, "--json").stdout)
    kept = json.loads((tmp_path / "rewards.json").read_text())
    assert kept["lines"] == found["lines"]
    assert {line["payment"] for line in kept["lines"]} >= {"fixed", "release", "first kill", one}
    assert all(line["leads"]["right"]["mean"] == 0 for line in kept["lines"] if line["payment"] == "fixed")


@pytest.mark.parametrize("command", ["solve", "questions"])
def test_pictures_that_cannot_be_drawn_are_refused_at_once(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setattr("codea1_agents.evaluation.canvas.find_spec", lambda name: None)
    monkeypatch.setattr("codea1_lab.cli.game.load_sandbox", None)
    monkeypatch.setattr("codea1_lab.cli.game_questions.load_sandbox", None)
    assert "drawing pictures needs an optional package" in refused("game", command, "starter", "-o", "pictures")
