from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from codea1_env.facts.judge_version import JUDGE_VERSION
from tests.support.command_line import codea1, one_object, refused


@pytest.fixture(scope="module")
def played(recorded: Callable[[str], Path]) -> Path:
    return recorded("play -p starter --coder mutant,strength=0.9 --tester boundary --limit 4 -n 6 --show 0")


def contents(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.iterdir()}


def test_the_runs_own_rules_give_back_its_rewards_exactly(run: Path) -> None:
    result = codea1("rescore", run, "--json")
    data = one_object(result.stdout)
    assert result.exit_code == 0
    assert "do not follow" not in result.stderr
    (setting,) = data["settings"]
    for role in ("coder", "tester"):
        assert (setting[role]["difference"]["mean"], setting[role]["order"]["n_reversed"]) == (0.0, 0)


def test_alpha_moves_the_tester_only_and_nothing_is_written(run: Path) -> None:
    before = contents(run)
    result = codea1("rescore", run, "--sweep", "alpha=.3", "--json")
    data = one_object(result.stdout)
    (setting,) = data["settings"]
    assert setting["tester"]["difference"]["mean"] < 0
    assert setting["coder"]["difference"]["mean"] == 0
    shown = codea1("rescore", run, "--sweep", "alpha=.3").stdout
    assert "alpha 0.5" in shown
    assert "alpha .3" in shown
    assert contents(run) == before


def test_a_table_for_people_tells_mean_change_and_order(run: Path) -> None:
    shown = codea1("rescore", run, "--sweep", "rules=zero_sum").stdout
    for word in ("change", "95 % interval", "flipped", "coder", "tester", "zero_sum"):
        assert word in shown


def test_a_run_that_does_not_follow_from_its_rules_is_noted(run: Path) -> None:
    lines = run / "episodes.jsonl"
    first, rest = lines.read_bytes().split(b"\n", 1)
    record = json.loads(first)
    record["rounds"][0]["rewards"]["coder"]["value"] = 0.123
    lines.write_bytes(json.dumps(record).encode() + b"\n" + rest)
    assert "note: 1 recorded episodes do not have the rewards" in codea1("rescore", run).stderr


def test_a_run_that_another_judge_has_judged_is_rescored_with_a_note(run: Path) -> None:
    assert "of the judge" not in codea1("rescore", run).stderr
    lines = run / "episodes.jsonl"
    lines.write_text(lines.read_text().replace(f'"judge_version":{JUDGE_VERSION},', ""))
    result = codea1("rescore", run, "--json")
    assert "version 1 of the judge judged the run" in " ".join(result.stderr.split())
    assert json.loads(result.stdout)["judge_versions"] == [1]


def test_a_corrupted_line_is_named(run: Path) -> None:
    lines = run / "episodes.jsonl"
    lines.write_bytes(lines.read_bytes().replace(b'"schema_version":1', b'"schema_version":9', 1))
    assert "episodes.jsonl line 1: expected schema version 1, got 9" in refused("rescore", run, "--sweep", "alpha=.3")


def test_a_half_written_episode_is_left_out_and_said(run: Path) -> None:
    lines = run / "episodes.jsonl"
    whole = lines.read_bytes()
    lines.write_bytes(whole[:-20])
    result = codea1("rescore", run, "--json")
    assert result.exit_code == 0
    assert "half written" in result.stderr
    lines.write_bytes(whole)
    assert "half written" not in codea1("rescore", run, "--json").stderr
