"""`codea1 crossplay` from the command line, with scripted agents."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len

from codea1_env.facts.judge_version import JUDGE_VERSION
from tests.support.command_line import codea1, one_object, refused

pytest.importorskip("scipy", reason="scipy is not installed")

QUICK = ["-p", "starter", "--limit", "3", "-n", "1", "--tests", "3"]


@pytest.mark.slow
def test_it_writes_matrices_ratings_and_pictures(folder: Path) -> None:
    asked = ["crossplay", "--coders", "right=reference", *QUICK, "--seed", "1"]
    found = one_object(codea1(*asked, "-o", "crossed", "--json").stdout)
    assert found["judge_version"] == found["versions"]["judge"] == JUDGE_VERSION
    assert [each["name"] for each in found["coders"]] == ["right", "mutant"]
    assert [each["name"] for each in found["testers"]] == ["fuzz", "boundary"]
    assert all(each["is_yardstick"] for each in found["testers"])
    assert found["on_policy"]["figures"]["beats"]["mean"][0] == [0, 0]
    assert found["coders"][0]["right"]["mean"] == 1
    assert found["on_policy"]["game"]["support"][0][0] == 0
    assert found["settings"]["coders"] == {"right": "reference", "mutant": "mutant"}
    written = {path.name for path in (folder / "crossed").iterdir()}
    assert written == {"crossplay.json", "programs.jsonl", "suites.jsonl", "on-policy.svg", "transfer.svg"}
    assert one_object(codea1(*asked, "--json").stdout) == found | {"out": None}


def test_people_read_tables() -> None:
    result = codea1("crossplay", "--coders", "reference", "--testers", "fuzz", "--no-yardsticks", *QUICK)
    assert result.exit_code == 0
    assert "on policy: suites that beat a program that loads and is wrong, with wrong answers, too" in result.stdout
    assert "transfer:" not in result.stdout
    assert "mutant" not in result.stdout
    assert "reference against fuzz" in " ".join(result.stdout.split())


def test_three_by_three_fit_one_screen_and_pictures_that_cannot_be_drawn_are_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("codea1_agents.evaluation.canvas.find_spec", lambda name: None)
    coders = ("mutant,strength=0.8", "reference", "random")
    testers = ("fuzz", "boundary", "a-long-name-of-a-tester=examples")
    players = [word for name in coders for word in ("--coders", name)]
    players += [word for name in testers for word in ("--testers", name)]
    result = codea1("crossplay", *players, "--no-yardsticks", *QUICK, "-o", "crossed")
    assert result.exit_code == 0
    assert sum(max(1, -(-cell_len(line) // 80)) for line in result.stdout.splitlines()) <= 24
    assert "note: no pictures: drawing pictures needs" in result.stderr
    assert {path.name for path in (folder / "crossed").iterdir()} == {
        "crossplay.json",
        "programs.jsonl",
        "suites.jsonl",
    }


def test_the_progress_names_what_it_waits_for(waits: list[str]) -> None:
    players = ["--coders", "watched:coder", "--testers", "watched:tester", "--no-yardsticks"]
    assert codea1("crossplay", *players, *QUICK).exit_code == 0
    for name in ("problem starter/count_carries, sample 0 (tester watched:tester)", "starter/assign_lockers"):
        assert name in waits


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name at least one run or agent"),
        (["mutant", "--no-yardsticks"], "expected at least one tester"),
        (["--coders", "fuzz"], "fuzz does not play the coder"),
        (["mutant", "--coders", "mutant=mutant,strength=1"], "two coders are called mutant"),
        (["mutant", "-o", "my_agents.py"], "exists"),
    ],
)
def test_what_cannot_be_played_is_one_sentence(arguments: list[str], said: str) -> None:
    assert said in refused("crossplay", *arguments, *QUICK)
