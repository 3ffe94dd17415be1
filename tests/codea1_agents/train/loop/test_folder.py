from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path

import pytest

from codea1_agents.train.loop import load_training
from codea1_agents.train.loop.folder import TrainingFolder, last_checkpoint, read_metrics, stored_run
from codea1_agents.train.loop.resuming import differences, facts_of, require_begun, require_same
from codea1_env.errors import UserError
from codea1_env.facts.judge_version import JUDGE_VERSION
from tests.support.folders import powerless

CONFIG = load_training("", ["game.problems=starter"])


def new(path: Path) -> TrainingFolder:
    return TrainingFolder.create(path, CONFIG, {"problems_digest": "x"})


def checkpoint(folder: TrainingFolder, step: int, keep: int = 0) -> None:
    folder.save(step, lambda place: (place / "state").write_text(str(step)), lambda: b"", keep)
    folder.finish()


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(UserError, match="is not empty"):
        new(tmp_path)
    with new(tmp_path / "run") as folder:
        folder.append({"step": 1})
    with pytest.raises(UserError, match="--resume"):
        new(tmp_path / "run")


def test_settings_and_facts_come_back(tmp_path: Path) -> None:
    with new(tmp_path / "run") as folder:
        assert stored_run(folder.path) == (CONFIG, {"problems_digest": "x"})
        with pytest.raises(ValueError, match="not JSON compliant"):
            folder.append({"step": 1, "figures": {"kl": float("nan")}})
    with pytest.raises(UserError, match="not a training run"):
        stored_run(tmp_path)
    with pytest.raises(UserError, match="no such run folder"):
        stored_run(tmp_path / "nowhere")


def test_only_the_newest_checkpoints_stay(tmp_path: Path) -> None:
    with new(tmp_path) as folder:
        for step in (2, 4, 10000, 12):
            checkpoint(folder, step, keep=2)
        assert sorted(each.name for each in (tmp_path / "checkpoints").iterdir()) == ["step-0012", "step-10000"]
        assert last_checkpoint(tmp_path) == tmp_path / "checkpoints" / "step-10000"


def test_a_checkpoint_that_cannot_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    with new(tmp_path) as folder:
        checkpoint(folder, 1)
        former = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, former[1]))
        try:
            with pytest.raises(UserError) as caught:
                folder.save(2, lambda place: (place / "weights").write_bytes(bytes(5000)), lambda: b"", 1)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, former)
        said = str(caught.value)
        assert "step 2 is missing" in said
        assert f"codea1 train --resume {tmp_path}" in said
        assert [each.name for each in (tmp_path / "checkpoints").iterdir()] == ["step-0001"]
        assert (tmp_path / "checkpoints" / "step-0001" / "state").read_text() == "1"


def test_a_checkpoint_waits_for_the_disk_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = threading.Event()
    disk.set()
    monkeypatch.setattr(os, "fsync", lambda _: disk.wait(30))
    with new(tmp_path) as folder:
        checkpoint(folder, 1)
        disk.clear()
        folder.save(2, lambda place: (place / "state").write_text("2"), lambda: b"book", 1)
        folder.check()
        assert last_checkpoint(tmp_path) == tmp_path / "checkpoints" / "step-0001"
        disk.set()
        assert "the checkpoint of step 2 is intact" in folder.recovery_hint()
        assert (tmp_path / "book.sqlite").read_bytes() == b"book"
        assert [each.name for each in (tmp_path / "checkpoints").iterdir()] == ["step-0002"]


def test_a_folder_is_closed_when_its_checkpoint_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []
    monkeypatch.setattr(os, "fsync", lambda _: threads.append(threading.current_thread()))
    with new(tmp_path) as folder:
        threads.clear()
        folder.save(1, lambda place: (place / "state").write_text("1"), lambda: b"", 1)
    assert threading.main_thread() not in threads
    assert len(threads) == 5  # metrics, state, run record, manifest, book
    assert last_checkpoint(tmp_path) == tmp_path / "checkpoints" / "step-0001"


def test_an_error_of_the_disk_is_raised_later_and_leaves_the_checkpoint_before(open_folder: Path) -> None:
    place = open_folder / "run"
    place.mkdir()
    place.chmod(0o777)
    checkpoints = place / "checkpoints"

    def write_and_lock(draft: Path) -> None:
        (draft / "state").write_text("2")
        checkpoints.chmod(0o555)  # the draft cannot be renamed any more

    with powerless(), new(place) as folder:
        checkpoint(folder, 1)
        folder.save(2, write_and_lock, lambda: b"", 1)
        for raises in (folder.finish, folder.check, lambda: checkpoint(folder, 3)):
            with pytest.raises(UserError, match="checkpoint of step 2 is missing; the checkpoint of step 1 is intact"):
                raises()
        checkpoints.chmod(0o755)
    assert last_checkpoint(place) == checkpoints / "step-0001"


def test_continuing_cuts_what_the_last_checkpoint_does_not_know(tmp_path: Path) -> None:
    with new(tmp_path) as folder:
        for step in range(4):
            folder.append({"step": step})
            if step == 2:
                checkpoint(folder, step)
    with (tmp_path / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 4, "fig')
    # Half written, half removed, moved aside for one that came, and for one that did not.
    (tmp_path / "models").mkdir()
    for left in (".step-0003.new", ".step-0001.old", ".step-0002.before", "../models/.coder.before"):
        (tmp_path / "checkpoints" / left).mkdir()
        (tmp_path / "checkpoints" / left / "state").touch()
    assert [line["step"] for line in read_metrics(tmp_path)] == [0, 1, 2, 3]
    with TrainingFolder.open(tmp_path) as folder:
        assert [line["step"] for line in read_metrics(tmp_path)] == [0, 1, 2]
        folder.append({"step": 3})
    assert [line["step"] for line in read_metrics(tmp_path)] == [0, 1, 2, 3]
    assert [each.name for each in (tmp_path / "checkpoints").iterdir()] == ["step-0002"]
    assert (tmp_path / "models" / "coder" / "state").is_file()


def test_copies_beside_checkpoints_and_damaged_lines_are_not_taken_for_ours(tmp_path: Path) -> None:
    with new(tmp_path) as folder:
        checkpoint(folder, 1)
        folder.append({"step": "one"})
    (tmp_path / "checkpoints" / "step-0001.bak").mkdir()
    (tmp_path / "checkpoints" / "step-last").mkdir()
    assert last_checkpoint(tmp_path) == tmp_path / "checkpoints" / "step-0001"
    with (tmp_path / "metrics.jsonl").open("ab") as file:
        file.write(b"garbage\n")
    with TrainingFolder.open(tmp_path), pytest.raises(UserError, match="line 1: step: expected a valid integer"):
        read_metrics(tmp_path)
    whole = (tmp_path / "metrics.jsonl").read_text()
    (tmp_path / "metrics.jsonl").write_text(whole.replace('"one"', "1"))
    with TrainingFolder.open(tmp_path), pytest.raises(UserError, match="line 2: not a JSON object"):
        read_metrics(tmp_path)


def test_what_never_began_leaves_nothing_and_without_a_checkpoint_a_run_begins_again(tmp_path: Path) -> None:
    with new(tmp_path / "run") as folder:
        (tmp_path / "run" / "tensorboard" / "latest").mkdir(parents=True)  # as loggers do
        folder.discard_if_unused()
    assert not (tmp_path / "run").exists()
    with new(tmp_path / "run") as folder:
        folder.append({"step": 1})
        folder.discard_if_unused()
    assert len(read_metrics(tmp_path / "run")) == 1
    with TrainingFolder.open(tmp_path / "run"):
        assert read_metrics(tmp_path / "run") == []


HOLDER = """
import sys, time
from pathlib import Path
from codea1_agents.train.loop.folder import TrainingFolder
with TrainingFolder.open(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(100)
"""


@pytest.mark.slow
def test_two_runs_in_one_folder_are_refused_and_a_dead_ones_lock_is_free(tmp_path: Path) -> None:
    new(tmp_path).close()
    other = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "held\n"
    with pytest.raises(UserError, match="another process is writing"):
        TrainingFolder.open(tmp_path)
    os.kill(other.pid, signal.SIGKILL)
    other.wait()
    other.stdout.close()
    TrainingFolder.open(tmp_path).close()


def test_only_what_cannot_change_the_result_may_change() -> None:
    told = ["cluster.learners=2", "logging.tensorboard=false", "checkpoints.keep=5", "run.steps=300", "run.name=b"]
    assert differences(CONFIG, load_training("", ["game.problems=starter", *told])) == ()
    found = differences(CONFIG, load_training("", ["game.problems=x", "run.seed=3", "game.reward.alpha=0.1"]))
    assert found == ("run.seed was 0, now 3", "game.reward.alpha was unset, now 0.1")
    cosine, shorter = (load_training("", ["training.lr_schedule=cosine", f"run.steps={n}"]) for n in (111, 9))
    assert differences(cosine, shorter) == ("run.steps was 111, now 9",)


def run_with_checkpoints(path: Path) -> Path:
    """A run with the steps 0 to 5, of which checkpoints hold those until 2 and until 4."""
    with new(path) as folder:
        for step in range(6):
            folder.append({"step": step, "figures": {"loss": float(step)}})
            if step in (2, 4):
                checkpoint(folder, step)
    return path


LINES = {
    "step 2 is missing": lambda lines: lines[:2] + lines[3:],
    "step 3 is missing": lambda lines: lines[:3],
    "step 0 is missing": lambda lines: [],
    "step 4 is missing": lambda lines: [*lines[:4], lines[4].rstrip()],
    "step 2 is there 2 times": lambda lines: [*lines[:3], *lines[2:]],
    "step 1 was changed": lambda lines: [lines[0], lines[1].replace(b"1.0", b"9.0"), *lines[2:]],
    "step 1 is not in its place": lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
    "line 2: not a JSON object": lambda lines: [lines[0], b"garbage\n", *lines[1:]],
}


@pytest.mark.parametrize(("said", "edit"), LINES.items(), ids=LINES)
def test_a_run_whose_lines_are_not_those_of_its_checkpoint_is_not_continued(said, edit, tmp_path):
    file = run_with_checkpoints(tmp_path) / "metrics.jsonl"
    require_begun(tmp_path, CONFIG)
    file.write_bytes(b"".join(edit(file.read_bytes().splitlines(keepends=True))))
    before = file.read_bytes()
    with pytest.raises(UserError, match=said):
        require_begun(tmp_path, CONFIG)
    assert file.read_bytes() == before


def test_lines_are_compared_up_to_the_last_checkpoint_that_is_there(tmp_path: Path) -> None:
    file = run_with_checkpoints(tmp_path) / "metrics.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:5]))
    require_begun(tmp_path, CONFIG)
    file.write_bytes(b"".join(lines[:3]))
    shutil.rmtree(tmp_path / "checkpoints" / "step-0004")
    require_begun(tmp_path, CONFIG)
    with TrainingFolder.open(tmp_path) as folder:  # as after a restart, lines are added to those that were read
        folder.append({"step": 3})
        checkpoint(folder, 3)
    require_begun(tmp_path, CONFIG)
    file.unlink()
    with pytest.raises(UserError, match="step 0 is missing"):
        require_begun(tmp_path, CONFIG)


@pytest.mark.parametrize("step", [1, 2])
def test_a_checkpoint_of_an_earlier_version_knows_only_the_steps(step: int, tmp_path: Path) -> None:
    file, place = run_with_checkpoints(tmp_path) / "metrics.jsonl", tmp_path / "checkpoints" / "step-0004"
    manifest = json.loads((place / "manifest.json").read_bytes())
    for name, said in (("manifest.json", "No such file"), ("run_record.json", "it is not as it was written")):
        (whole := (place / name)).rename(aside := tmp_path / name)
        with pytest.raises(UserError, match=rf"{name}: {said}"):
            require_begun(tmp_path, CONFIG)
        aside.rename(whole)
    (place / "run_record.json").unlink()
    (place / "manifest.json").write_text(json.dumps({k: v for k, v in manifest.items() if k != "run_record.json"}))
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[1:]))  # a run without an evaluation before its first step
    require_begun(tmp_path, CONFIG)
    file.write_bytes(b"".join(lines[:step] + lines[step + 1 :]))
    with pytest.raises(UserError, match=f"step {step} is missing"):
        require_begun(tmp_path, CONFIG)


def test_a_run_whose_settings_or_facts_were_edited_is_not_continued(tmp_path: Path) -> None:
    run_with_checkpoints(tmp_path)
    other = load_training(CONFIG.model_dump(exclude_none=True), ["training.lr=0.5", "run.name=b"])
    with TrainingFolder.open(tmp_path) as folder:
        folder.store(other)
    with pytest.raises(UserError, match=r"training\.lr was \S+, now 0\.5$"):
        require_begun(tmp_path, other)
    require_begun(tmp_path, CONFIG)  # typed as it was
    (tmp_path / "run.json").write_text('{"problems_digest": "y", "judge_version": 9}')
    with pytest.raises(UserError, match=r"run\.json .* problems_digest was x, now y; judge_version was unset, now 9"):
        require_begun(tmp_path, CONFIG)


@pytest.mark.parametrize(("before", "now", "is_same"), [("hub:a/b", "hub:a/c", False), ("hub:a/b", "12", True)])
def test_another_model_of_the_hub_is_another_model(before: str, now: str, is_same: bool, tmp_path: Path) -> None:
    facts = facts_of(CONFIG)
    TrainingFolder.create(tmp_path, CONFIG, {**facts, "models": {"coder": before}}).close()
    with nullcontext() if is_same else pytest.raises(UserError, match=r"agents\.coder\.model changed"):
        require_same(tmp_path, {**facts, "models": {"coder": now}})


def test_a_run_of_another_version_of_the_judge_is_not_continued(tmp_path: Path) -> None:
    facts = facts_of(CONFIG)
    assert facts["judge_version"] == JUDGE_VERSION
    TrainingFolder.create(tmp_path / "now", CONFIG, facts).close()
    require_same(tmp_path / "now", facts)
    older = {name: value for name, value in facts.items() if name != "judge_version"}
    TrainingFolder.create(tmp_path / "before", CONFIG, older).close()
    with pytest.raises(UserError, match="version 1 of the judge"):
        require_same(tmp_path / "before", facts)
