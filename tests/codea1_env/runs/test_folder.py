from __future__ import annotations

import json
import os
import resource
import signal
from datetime import datetime
from pathlib import Path

import pytest

from codea1_env.book.store import MistakeBook
from codea1_env.errors import BrokenInput, UserError
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.facts.verdicts import ProblemReport, Verdict
from codea1_env.judging.judged_round import JudgedRound
from codea1_env.rules.mistake_book import Provenance
from codea1_env.rules.rewards import score
from codea1_env.rules.ruleset import preset
from codea1_env.runs.folder import RunFolder, iter_episodes
from codea1_env.runs.records import EpisodeRecord, RoundRecord
from tests.support.books import FAILED, PASSED, candidate, identity
from tests.support.command_line import entries_of
from tests.support.folders import is_held, powerless
from tests.support.processes import forked, wait_for
from tests.support.runs import run_config

RULES = preset("fixed")
PROBLEM = identity("P/1", "f")
CONFIG = run_config(rules=RULES)


def play(number: int, book: MistakeBook) -> EpisodeRecord:
    """One episode whose candidate fails a case of its own and passes all that is replayed but the first."""
    replayed = [entry.to_valid_case() for entry in book.retrieve(PROBLEM.id, RULES.book)]
    again = {each: PASSED if n else Verdict.RUNTIME_ERROR for n, each in enumerate(replayed)}
    beaten = candidate(again, {number: FAILED})
    report, name = ProblemReport(PROBLEM.id, (beaten,)), f"{number:x}"
    delta = book.record(report, RULES.book, Provenance(CONFIG.run_id, name, 0, "mutant", "fuzz"))
    played = RoundRecord.of(JudgedRound(PROBLEM, name, 0, "c", "t", report, score(beaten, RULES), delta))
    about = {"judge_version": JUDGE_VERSION, "episode": number, "episode_id": name, "problem_id": PROBLEM.id}
    return EpisodeRecord(**about, seed=number, rounds=(played,))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    with RunFolder.create(path, CONFIG) as folder, folder.open_book() as book:
        for number in range(3):
            folder.append(play(number, book))
    return path


def test_what_was_appended_is_read_back_in_order(run: Path) -> None:
    assert [record.episode for record in iter_episodes(run)] == [0, 1, 2]
    with RunFolder.open(run) as folder:
        assert (folder.n_episodes, folder.config, folder.notes) == (3, CONFIG, ())


def test_a_run_without_a_name_gets_a_dated_one_and_two_of_one_second_do_not_meet(tmp_path: Path) -> None:
    now = datetime(2026, 3, 4, 5, 6, 7)  # noqa: DTZ001
    paths = []
    for _ in range(2):
        with RunFolder.create(None, CONFIG, root=tmp_path / "runs", now=now) as folder:
            paths.append(folder.path.relative_to(tmp_path).as_posix())
    assert paths == ["runs/20260304-050607", "runs/20260304-050607-2"]


def test_a_folder_that_holds_something_is_not_taken(run: Path) -> None:
    before = sorted(file.name for file in run.iterdir())
    with pytest.raises(UserError, match=r"is not empty: .* --resume "):
        RunFolder.create(run, CONFIG)
    assert sorted(file.name for file in run.iterdir()) == before


@pytest.mark.parametrize(
    "act", [lambda p: RunFolder.create(p, CONFIG), RunFolder.open, lambda p: next(iter_episodes(p))]
)
def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path, act: object) -> None:
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(UserError, match=f"{path}: a file"):
        act(path)  # type: ignore[operator]


def test_a_file_above_the_folder_is_one_sentence_too(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="Not a directory"):
        RunFolder.create(tmp_path / "file" / "run", CONFIG)
    with pytest.raises(UserError, match="a file with this name exists"):
        RunFolder.create(None, CONFIG, root=tmp_path / "file")


@pytest.mark.parametrize("name", ["config.toml", "episodes.jsonl"])
def test_a_folder_without_its_parts_is_no_run(run: Path, name: str) -> None:
    (run / name).unlink()
    with pytest.raises(BrokenInput, match=f"{name} is missing"):
        RunFolder.open(run)


def test_a_half_written_last_line_is_cut_with_a_note_and_the_run_goes_on(run: Path) -> None:
    lines = run / "episodes.jsonl"
    whole = lines.read_bytes()
    lines.write_bytes(whole + b'{"schema_version":1,"epis')
    assert len(list(iter_episodes(run))) == 3  # readers leave it alone
    with RunFolder.open(run) as folder, folder.open_book() as book:
        assert folder.n_episodes == 3
        assert "cut a half-written last line of 25 bytes" in folder.notes[0]
        folder.append(play(3, book))
    assert len(list(iter_episodes(run))) == 4
    assert lines.read_bytes().startswith(whole)


@pytest.mark.parametrize(
    ("cut", "said"),
    [(-40, "episodes.jsonl line 2 is not JSON"), (0, "episodes.jsonl line 2: expected episode 1, got 2")],
    ids=["damaged", "lost"],
)
def test_a_line_in_the_middle_is_named_and_nothing_is_changed(run: Path, cut: int, said: str) -> None:
    lines = run / "episodes.jsonl"
    first, second, third = lines.read_bytes().splitlines(keepends=True)
    broken = first + (second[:cut] + b"\n" if cut else b"") + third + b"half"
    lines.write_bytes(broken)
    with pytest.raises(BrokenInput, match=said):
        RunFolder.open(run)
    assert lines.read_bytes() == broken


def test_an_episode_out_of_turn_is_not_written(run: Path) -> None:
    with RunFolder.open(run) as folder, folder.open_book() as book, pytest.raises(ValueError, match="cannot follow"):
        folder.append(play(5, book))


def play_ahead(path: Path) -> None:
    with RunFolder.open(path.parent) as folder, folder.open_book() as book:
        play(3, book)  # its line is never written


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"no database"), play_ahead])
def test_a_book_that_is_lost_damaged_or_ahead_of_the_lines_is_built_again(run: Path, damage: object) -> None:
    as_recorded = entries_of(run)
    damage(run / "book.sqlite")  # type: ignore[operator]
    with RunFolder.open(run) as folder:
        folder.rebuild_book()
    assert entries_of(run) == as_recorded


def test_a_recorded_change_of_the_book_that_does_not_follow_is_named(run: Path) -> None:
    lines = run / "episodes.jsonl"
    lines.write_bytes(lines.read_bytes().replace(b'"added":1', b'"added":3', 2))
    with RunFolder.open(run) as folder, pytest.raises(BrokenInput, match=r"line 1 round 0: the recorded change"):
        folder.rebuild_book()


def test_nothing_in_the_folder_names_the_host_or_a_place(run: Path) -> None:
    with RunFolder.open(run) as folder:
        folder.write_metrics({"games": 3})
    for name in ("config.toml", "episodes.jsonl", "metrics.json", "book.sqlite"):
        content = (run / name).read_bytes()
        assert str(run).encode() not in content
        assert os.uname().nodename.encode() not in content


def test_a_moved_run_goes_on_with_more_episodes(run: Path, tmp_path: Path) -> None:
    moved = run.rename(tmp_path / "elsewhere")
    with RunFolder.open(moved) as folder:
        folder.rebuild_book()
        folder.extend(9)
        with folder.open_book() as book:
            folder.append(play(3, book))
    with RunFolder.open(moved) as folder:
        assert (folder.n_episodes, folder.config.episodes) == (4, 9)


def test_metrics_are_replaced_as_a_whole_and_never_hold_nan(run: Path) -> None:
    with RunFolder.open(run) as folder:
        folder.write_metrics({"games": 3})
        with pytest.raises(ValueError, match="JSON"):
            folder.write_metrics({"games": float("nan")})
    assert json.loads((run / "metrics.json").read_text()) == {"games": 3}


def test_a_folder_without_permission_is_one_sentence(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    with powerless(), pytest.raises(UserError, match="Permission denied"):
        RunFolder.create(open_folder / "run", CONFIG)


@pytest.mark.slow
def test_a_second_process_is_kept_out_until_the_first_has_closed(run: Path) -> None:
    with RunFolder.open(run):
        assert is_held(run)
    assert not is_held(run)


def test_a_full_disk_is_one_sentence_and_loses_no_finished_episode(run: Path) -> None:
    size = (run / "episodes.jsonl").stat().st_size

    def write_until_full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with RunFolder.open(run) as folder, MistakeBook() as book:
            for record in iter_episodes(run):
                book.record(record.to_problem_report(record.rounds[0]), RULES.book)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, size + 100))
            with pytest.raises(UserError, match=r"too large.*; the episodes recorded before are safe$"):
                folder.append(play(3, book))
            os._exit(0)  # a file that is too large cannot be closed either

    wait_for(forked(write_until_full))
    with RunFolder.open(run) as folder:
        assert folder.n_episodes == 3
        assert "half-written" in folder.notes[0]


def judged_before(run: Path) -> Path:
    """The same run as a version of this program has written it that stated no judge."""
    lines = run / "episodes.jsonl"
    lines.write_text(lines.read_text().replace(f'"judge_version":{JUDGE_VERSION},', ""))
    return run


def test_a_run_that_another_version_of_the_judge_has_judged_is_read_but_not_continued(run: Path) -> None:
    with RunFolder.open(run) as folder:
        assert folder.n_episodes == 3
    judged_before(run)
    assert {record.judge_version for record in iter_episodes(run)} == {1}
    with pytest.raises(UserError, match=f"version 1 of the judge, but this is version {JUDGE_VERSION}.*new run"):
        RunFolder.open(run)


def test_a_book_that_is_built_again_states_the_judge_of_its_episodes(run: Path, tmp_path: Path) -> None:
    with RunFolder.create(tmp_path / "copy", CONFIG) as folder:
        for record in iter_episodes(judged_before(run)):
            folder.append(record)
        folder.rebuild_book()
        with folder.open_book() as book:
            assert (book.judge_version, book.size()) == (1, 2)


def test_a_book_never_goes_on_under_an_earlier_judge(run: Path, tmp_path: Path) -> None:
    *others, last = iter_episodes(run)
    with RunFolder.create(tmp_path / "copy", CONFIG) as folder:
        for record in (*others, last.model_copy(update={"judge_version": 1})):
            folder.append(record)
        with pytest.raises(UserError, match="cannot take new ones"):
            folder.rebuild_book()
