from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.runs.folder import iter_episodes, stored_config


@pytest.fixture(scope="module")
def played(recorded: Callable[[str], Path]) -> Path:
    return recorded("play -p starter --coder mutant,strength=0.9 --tester boundary --limit 4 -n 6 --show 0")


def contents(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.iterdir()}


def test_the_runs_own_rules_give_back_its_rewards_exactly(
    codea1: Callable[..., Any], one_object: Any, run: Path
) -> None:
    result = codea1("rescore", run, "--json")
    data = one_object(result.stdout)
    assert result.exit_code == 0
    assert "do not follow" not in result.stderr
    (setting,) = data["settings"]
    for role in ("coder", "tester"):
        assert (setting[role]["difference"]["mean"], setting[role]["order"]["n_reversed"]) == (0.0, 0)


def test_alpha_moves_the_tester_only_and_nothing_is_written(
    codea1: Callable[..., Any], one_object: Any, run: Path
) -> None:
    before = contents(run)
    result = codea1("rescore", run, "--alpha", 0.3, "--json")
    data = one_object(result.stdout)
    (setting,) = data["settings"]
    assert setting["tester"]["difference"]["mean"] < 0
    assert setting["coder"]["difference"]["mean"] == 0
    shown = codea1("rescore", run, "--alpha", 0.3).stdout
    assert "alpha 0.5" in shown
    assert "alpha 0.3" in shown
    assert contents(run) == before


def test_a_table_for_people_tells_mean_change_and_order(codea1: Callable[..., Any], run: Path) -> None:
    shown = codea1("rescore", run, "--rules", "zero_sum").stdout
    for word in ("change", "95 % interval", "flipped", "coder", "tester", "zero_sum"):
        assert word in shown


def test_the_rescored_run_can_be_written_as_a_run_of_its_own(codea1: Callable[..., Any], run: Path) -> None:
    before = contents(run)
    assert codea1("rescore", run, "--alpha", 0.3, "--tests", 4, "--out", "other").exit_code == 0
    config = stored_config(Path("other"))
    assert (config.rules.reward.alpha, config.rules.tests_per_suite) == (0.3, 4)
    old, new = list(iter_episodes(run)), list(iter_episodes(Path("other")))
    assert [record.rounds[0].suites for record in old] == [record.rounds[0].suites for record in new]
    assert [record.rounds[0].rewards.testers for record in old] != [record.rounds[0].rewards.testers for record in new]
    assert json.loads(Path("other/metrics.json").read_text())["summary"]["n_episodes"] == 6
    assert (Path("other") / "book.sqlite").exists()
    assert contents(run) == before
    assert "do not follow" not in codea1("rescore", "other").stderr


def test_a_run_that_does_not_follow_from_its_rules_is_noted(codea1: Callable[..., Any], run: Path) -> None:
    lines = run / "episodes.jsonl"
    first, rest = lines.read_bytes().split(b"\n", 1)
    record = json.loads(first)
    record["rounds"][0]["rewards"]["coder"]["value"] = 0.123
    lines.write_bytes(json.dumps(record).encode() + b"\n" + rest)
    assert "note: 1 recorded episodes do not have the rewards" in codea1("rescore", run).stderr


def test_a_run_that_another_judge_has_judged_is_rescored_with_a_note(codea1: Callable[..., Any], run: Path) -> None:
    assert "of the judge" not in codea1("rescore", run).stderr
    lines = run / "episodes.jsonl"
    lines.write_text(lines.read_text().replace(f'"judge_version":{JUDGE_VERSION},', ""))
    assert "version 1 of the judge judged the run" in " ".join(codea1("rescore", run).stderr.split())
    result = codea1("rescore", run, "--alpha", 0.3, "--out", "other", "--json")
    assert json.loads(result.stdout)["judge_versions"] == [1]
    assert json.loads(Path("other/metrics.json").read_text())["judge_version"] == 1
    assert {record.judge_version for record in iter_episodes(Path("other"))} == {1}
    refused = codea1("play", "--resume", "other")
    assert refused.exit_code == 2
    assert "verdicts may differ; begin a new run" in " ".join(refused.stderr.split())


def test_a_corrupted_line_is_named(codea1: Callable[..., Any], run: Path) -> None:
    lines = run / "episodes.jsonl"
    lines.write_bytes(lines.read_bytes().replace(b'"schema_version":1', b'"schema_version":9', 1))
    result = codea1("rescore", run, "--alpha", 0.3)
    assert result.exit_code == 2
    assert "episodes.jsonl line 1: expected schema version 1, got 9" in result.stderr


def test_fewer_tests_per_suite_than_were_played_pay_at_most_1(
    codea1: Callable[..., Any], one_object: Any, run: Path
) -> None:
    assert max(len(suite.cases) for each in iter_episodes(run) for r in each.rounds for suite in r.suites) > 2
    for rules in ("fixed", "zero_sum", "release"):
        out = f"rescored-{rules}"
        one_object(codea1("rescore", run, "--rules", rules, "--tests", 2, "--out", out, "--json").stdout)
        rewards = [r.rewards for each in iter_episodes(Path(out)) for r in each.rounds]
        paid = [one.value for each in rewards for one in (each.coder, *each.testers)]
        assert all(-1 <= value <= 1 for value in paid if value is not None)


def test_a_half_written_episode_is_left_out_and_said(codea1: Callable[..., Any], one_object: Any, run: Path) -> None:
    lines = run / "episodes.jsonl"
    whole = lines.read_bytes()
    lines.write_bytes(whole[:-20])
    result = codea1("rescore", run, "--json")
    assert result.exit_code == 0
    assert "half written" in result.stderr
    lines.write_bytes(whole)
    assert "half written" not in codea1("rescore", run, "--json").stderr
