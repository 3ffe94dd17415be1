from __future__ import annotations

from pathlib import Path

import pytest

from codea1_agents.evaluation.comparison import compare_figure
from codea1_agents.evaluation.folder import EvaluationFolder, read_records
from codea1_agents.evaluation.records import CoderSample
from codea1_env.errors import BrokenInput, UserError
from codea1_env.facts.judge_version import JUDGE_VERSION
from tests.support.folders import is_held

SETTINGS = {"kind": "coder", "seed": 1, "task": {"tests": (1, 2)}}


def sample(number: int, reply: str = "x") -> CoderSample:
    return CoderSample(problem_id="a", sample=number, reply=reply, passed=True)


def test_what_was_appended_is_known_when_the_folder_is_opened_again(tmp_path: Path) -> None:
    with EvaluationFolder(tmp_path / "e", SETTINGS, CoderSample) as folder:
        folder.append([sample(0), sample(1, "\ud800")])
    with EvaluationFolder(tmp_path / "e", SETTINGS, CoderSample) as folder:
        assert [each.sample for each in folder.known] == [0, 1]


def test_a_half_written_line_is_cut_and_a_corrupted_one_is_named(tmp_path: Path) -> None:
    with EvaluationFolder(tmp_path, SETTINGS, CoderSample) as folder:
        folder.append([sample(0)])
    with (tmp_path / "records.jsonl").open("ab") as file:
        file.write(b'{"problem_id": "a", "sam')
    with EvaluationFolder(tmp_path, SETTINGS, CoderSample) as folder:
        assert folder.known == [sample(0)]
        folder.append([sample(1)])
    assert list(read_records(tmp_path, CoderSample)) == [sample(0), sample(1)]
    with (tmp_path / "records.jsonl").open("ab") as file:
        file.write(b"{}\n")
    with pytest.raises(BrokenInput, match=r"records\.jsonl line 3"):
        EvaluationFolder(tmp_path, SETTINGS, CoderSample)


def test_other_settings_or_another_version_of_the_judge_are_refused_by_name(tmp_path: Path) -> None:
    with EvaluationFolder(tmp_path, SETTINGS, CoderSample):
        pass
    with pytest.raises(UserError, match="other settings: seed 1, now 2"):
        EvaluationFolder(tmp_path, {**SETTINGS, "seed": 2}, CoderSample)
    with pytest.raises(UserError, match="version 1 of the judge"):
        EvaluationFolder(tmp_path, {**SETTINGS, "judge_version": JUDGE_VERSION}, CoderSample)


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(UserError, match="it does not contain an evaluation"):
        EvaluationFolder(tmp_path, SETTINGS, CoderSample)
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.slow
def test_two_writers_are_told_apart(tmp_path: Path) -> None:
    with EvaluationFolder(tmp_path, SETTINGS, CoderSample):
        assert is_held(tmp_path)
    assert not is_held(tmp_path)


def test_a_comparison_is_of_the_problems_that_both_have_and_shown_if_its_interval_does_not_hold_zero() -> None:
    nan = float("nan")
    before = {"a": 0.0, "b": 0.5, "c": nan, "d": 1.0}
    after = {"a": 0.5, "b": 1.0, "c": 1.0, "e": 1.0}
    found = compare_figure(before, after)
    assert (found.before.mean, found.after.mean, found.difference.mean) == (0.25, 0.75, 0.5)
    assert (found.difference.n_problems, found.n_unpaired) == (2, 3)
    assert found.is_shown
    found = compare_figure({"a": 0.0, "b": 1.0, "c": 0.5}, {"a": 1.0, "b": 0.0, "c": 0.6})
    assert not found.is_shown
    assert found.problems_needed > 100
