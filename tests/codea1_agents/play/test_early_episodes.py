from __future__ import annotations

from pathlib import Path

import pytest

from codea1_agents.play.early_episodes import EarlyEpisodes
from codea1_env.errors import BrokenInput, UserError
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.runs.records import EpisodeRecord


def record(number: int) -> EpisodeRecord:
    return EpisodeRecord(judge_version=JUDGE_VERSION, episode=number, episode_id="1", problem_id="t", seed=0, rounds=())


def kept(folder: Path, *numbers: int) -> EarlyEpisodes:
    with EarlyEpisodes(folder) as early:
        for number in numbers:
            early.keep(record(number))
    return EarlyEpisodes(folder)


def test_what_is_kept_in_any_order_is_read_by_number_from_where_the_run_is(tmp_path: Path) -> None:
    early = kept(tmp_path, 4, 3, 1)
    assert early.read(start_at=3, n_problems=10) == {3: record(3), 4: record(4)}


def test_an_episode_whose_predecessor_on_its_problem_is_missing_is_left_out(tmp_path: Path) -> None:
    early = kept(tmp_path, 1, 4, 5, 7)  # on three problems: 1, 4, 7 and 5, which follows 2
    assert list(early.read(start_at=0, n_problems=3)) == [1, 4, 7]


def test_a_half_written_line_is_cut_and_the_file_goes_on(tmp_path: Path) -> None:
    early = kept(tmp_path, 2)
    path = tmp_path / "early.jsonl"
    path.write_bytes(path.read_bytes() + b'{"epis')
    assert list(early.read(start_at=0, n_problems=9)) == [2]
    early.keep(record(3))
    early.close()
    assert list(early.read(start_at=0, n_problems=9)) == [2, 3]


def test_no_file_is_made_where_nothing_is_early(tmp_path: Path) -> None:
    with EarlyEpisodes(tmp_path) as early:
        assert early.read(start_at=0, n_problems=9) == {}
        early.remove()
    assert list(tmp_path.iterdir()) == []


def test_episodes_of_another_version_of_the_judge_are_refused_and_a_corrupted_line_is_named(tmp_path: Path) -> None:
    with EarlyEpisodes(tmp_path) as early:
        early.keep(record(1).model_copy(update={"judge_version": JUDGE_VERSION - 1}))
    with pytest.raises(UserError, match="verdicts may differ; begin a new run"):
        EarlyEpisodes(tmp_path).read(start_at=0, n_problems=10)
    (tmp_path / "early.jsonl").write_bytes(b"{}\n")
    with pytest.raises(BrokenInput, match=r"early\.jsonl line 1"):
        EarlyEpisodes(tmp_path).read(start_at=0, n_problems=9)
