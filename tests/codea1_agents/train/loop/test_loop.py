"""Whole runs with tiny models: what they write, and that an interruption changes nothing."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import threading
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.support.grpo import ON_RAY

ray = pytest.importorskip("ray", reason="Ray is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")

from codea1_agents.train.loop import export_model, folder, load_training, resume, train  # noqa: E402
from codea1_agents.train.loop.folder import last_checkpoint, read_metrics, require_intact, step_of  # noqa: E402
from codea1_agents.train.loop.loop import TrainingFailed, Watcher  # noqa: E402
from codea1_env.book.store import MistakeBook  # noqa: E402
from codea1_env.errors import BrokenInput, UserError  # noqa: E402
from codea1_env.rules.rewards import score  # noqa: E402
from codea1_env.runs.config import to_toml  # noqa: E402
from codea1_env.runs.folder import iter_episodes, stored_config  # noqa: E402
from codea1_env.runs.records import RewardsRecord  # noqa: E402
from tests.codea1_agents.train.loop.conftest import without_times  # noqa: E402
from tests.support.command_line import codea1, refused  # noqa: E402

pytestmark = ON_RAY


def with_evaluation(settings: dict[str, Any], **changes: Any) -> dict[str, Any]:
    held_out = {"every": 2, "problems": settings["game"]["problems"], "samples": 8, "suites": 2}
    return {**settings, "evaluation": held_out, **changes}


def test_a_run_that_is_cut_off_gives_the_same_as_one_that_is_not(settings: dict[str, Any], tmp_path: Path) -> None:
    settings = with_evaluation(settings, logging={"samples_every": 3, "samples": 2})
    whole = train(load_training(settings), out=tmp_path / "run")
    assert [line["step"] for line in whole.lines] == [0, 1, 2, 3, 4]
    assert ["evaluation" in line for line in whole.lines] == [True, False, True, False, True]
    assert without_times(read_metrics(whole.folder)) == without_times(whole.lines)
    assert list((whole.folder / "tensorboard").glob("events.*"))

    # As if the power had gone during step 4.
    shutil.rmtree(last_checkpoint(whole.folder))
    again = resume(whole.folder, ["logging.tensorboard=false"])
    assert without_times(again.lines) == without_times(whole.lines)
    assert (again.steps, again.interrupted) == (4, False)

    # Models and samples of the end.
    from transformers import AutoModelForCausalLM, AutoTokenizer

    state = weights(whole.folder, "coder")
    for place in (again.models["coder"], export_model(whole.folder, "coder", tmp_path / "coder")):
        model = AutoModelForCausalLM.from_pretrained(place)
        assert AutoTokenizer.from_pretrained(place).vocab_size == model.config.vocab_size
        assert all(np.array_equal(value.numpy(), state[name]) for name, value in model.state_dict().items())
    moved = AutoModelForCausalLM.from_pretrained(settings["agents"]["coder"]["model"]).state_dict()
    assert any(not np.array_equal(value.numpy(), state[name]) for name, value in moved.items())

    book = MistakeBook(whole.folder / "book.sqlite", read_only=True)
    assert book.size() == whole.lines[-1]["figures"]["book_size"]
    book.close()

    samples = whole.folder / "samples" / "step-0003"
    duels = list(iter_episodes(samples))
    rules = stored_config(samples).rules
    assert duels
    for played in (played for duel in duels for played in duel.rounds):
        assert RewardsRecord.model_validate(score(played.to_report(), rules)) == played.rewards
    with pytest.raises(UserError, match="role with a model"):
        export_model(whole.folder, "judge", tmp_path / "judge")


def weights(run: Path, module: str) -> dict[str, np.ndarray]:
    import pickle

    checkpoint = last_checkpoint(run)
    assert checkpoint is not None
    path = checkpoint / "learner_group" / "learner" / "rl_module" / module / "module_state.pkl"
    found: dict[str, np.ndarray] = pickle.loads(path.read_bytes())
    return found


class Impatient(Watcher):
    """Sends a signal during the first step."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.notes: list[str] = []

    def step(self, line: dict[str, Any]) -> None:
        signal.raise_signal(self.number)

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_golden_rules_need_golden_tests(settings: dict[str, Any], tmp_path: Path) -> None:
    bare = {"id": "a", "statement": "Same.", "entry_point": "f", "solution": "def f(x):\n    return x\n"}
    (tmp_path / "bare.jsonl").write_text(json.dumps(bare) + "\n")
    settings["game"] = {"problems": str(tmp_path / "bare.jsonl"), "rules": "golden"}
    with pytest.raises(UserError, match="pay for golden tests"):
        train(load_training(settings), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_end_the_step_save_and_can_be_continued(
    settings: dict[str, Any], tmp_path: Path, number: signal.Signals
) -> None:
    watcher = Impatient(number)
    before = signal.getsignal(number)
    stopped = train(load_training(settings), out=tmp_path / "run", watcher=watcher)
    assert (stopped.interrupted, stopped.steps, stopped.models) == (True, 1, {})
    assert "finished and saved first" in watcher.notes[0]
    assert signal.getsignal(number) == before
    with pytest.raises(UserError, match=r"run\.seed was 0, now 3"):
        resume(stopped.folder, ["run.seed=3"])
    done = resume(stopped.folder, ["run.steps=2"])
    with pytest.raises(UserError, match=r"run\.steps must be at least 2 .*, got 1"):
        resume(stopped.folder, ["run.steps=1"])
    assert (done.interrupted, done.steps) == (False, 2)
    assert [line["step"] for line in read_metrics(done.folder)] == [1, 2]
    assert load_training(done.folder / "config.toml").run.steps == 2


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_last_checkpoint(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    config = load_training(settings, ["training.lr=1e36", "checkpoints.every=1", "training.weight_decay=0"])
    with pytest.raises(TrainingFailed) as caught:
        train(config, out=tmp_path / "run")
    said = str(caught.value)
    assert "the loss of" in said
    assert "codea1 train --resume" in said
    checkpoint = last_checkpoint(tmp_path / "run")
    assert checkpoint is not None
    assert len(read_metrics(tmp_path / "run")) == int(checkpoint.name[-4:])


def test_an_evaluation_is_the_same_whoever_plays_it(settings: dict[str, Any], tmp_path: Path) -> None:
    told = with_evaluation(settings, run={"steps": 1}, checkpoints={"every": 0, "export": False})
    alone = train(load_training(told), out=tmp_path / "alone").lines[0]["evaluation"]
    shared = train(load_training(told, ["cluster.env_runners=1"]), out=tmp_path / "shared").lines[0]["evaluation"]
    assert alone == pytest.approx(shared)
    assert {
        "coder_pass_at_1",
        "coder_pass_at_8",
        "tester_validity/mutant,strength=1",
        "tester_aim/mutant,strength=1",
    } <= alone.keys()


class Unblocking(Watcher):
    """Lets the disk write from a step on."""

    def __init__(self, disk: threading.Event, step: int) -> None:
        self.disk, self.at = disk, step

    def step(self, line: dict[str, Any]) -> None:
        if line["step"] == self.at:
            self.disk.set()


def test_the_next_step_does_not_wait_for_the_disk(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = threading.Event()
    monkeypatch.setattr(folder, "_sync_files", lambda _: disk.wait(60) or pytest.fail("no step followed"))
    done = train(load_training(settings), out=tmp_path / "run", watcher=Unblocking(disk, step=3))
    assert done.steps == 4
    assert last_checkpoint(done.folder) == done.folder / "checkpoints" / "step-0004"


def test_an_error_of_the_disk_ends_the_run_after_the_step_in_which_it_comes(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sync(draft: Path) -> None:
        if draft.name == ".step-0002.new":
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(folder, "_sync_files", sync)
    config = load_training(settings, ["checkpoints.every=1"])
    with pytest.raises(UserError, match="step 2 is missing; the checkpoint of step 1 is intact; continue with"):
        train(config, out=tmp_path / "run")
    assert [each.name for each in (tmp_path / "run" / "checkpoints").iterdir()] == ["step-0001"]
    assert len(read_metrics(tmp_path / "run")) in (2, 3)


def by_time(settings: dict[str, Any], minutes: float) -> Any:
    checkpoints = {"every": 0, "every_minutes": minutes, "keep": 0, "export": False}
    return load_training({**settings, "checkpoints": checkpoints})


def checkpoints_of(run: Path) -> dict[int, Path]:
    return {step_of(path): path for path in sorted((run / "checkpoints").iterdir())}


def test_a_run_continues_exactly_from_a_checkpoint_by_time(settings: dict[str, Any], tmp_path: Path) -> None:
    whole = train(by_time(settings, 1e-9), out=tmp_path / "run")
    found = checkpoints_of(whole.folder)
    assert list(found) == [1, 2, 3, 4]
    for step in (2, 3, 4):
        shutil.rmtree(found[step])
    assert without_times(resume(whole.folder).lines) == without_times(whole.lines)


def test_before_the_time_there_is_no_checkpoint_but_the_last(settings: dict[str, Any], tmp_path: Path) -> None:
    assert list(checkpoints_of(train(by_time(settings, 1e9), out=tmp_path / "run").folder)) == [4]


def test_the_command_trains_and_exports(settings: dict[str, Any], tmp_path: Path) -> None:
    file, run = tmp_path / "mine.toml", tmp_path / "run"
    file.write_text(to_toml(load_training(settings)))
    result = codea1("train", file, "--set", "run.steps=1", "-o", run, "--json")
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert (told["out"], told["steps"], told["interrupted"]) == (str(run), 1, False)
    assert told["figures"] == read_metrics(run)[-1]["figures"]
    assert "step 1/1" in result.stderr
    out = tmp_path / "tester"
    assert codea1("export", "model", run, "--role", "tester", "-o", out, "--json").exit_code == 0
    assert (out / "model.safetensors").is_file()
    refused("train", file, "-o", run)
    assert "the run had its 1 step already" in codea1("train", "--resume", run).stderr


def test_a_flipped_byte_anywhere_in_a_checkpoint_is_refused_by_name(settings: dict[str, Any], tmp_path: Path) -> None:
    settings["run"]["steps"] = 2
    run = train(load_training(settings), out=tmp_path / "run").folder
    checkpoint = last_checkpoint(run)
    assert checkpoint is not None
    files = sorted(path for path in checkpoint.rglob("*") if path.is_file() and path.stat().st_size)
    draws = Random(0)
    for number in range(100):
        path = files[number % len(files)] if number < len(files) else draws.choice(files)
        whole = path.read_bytes()
        place, bits = draws.randrange(len(whole)), draws.randrange(1, 256)
        path.write_bytes(whole[:place] + bytes([whole[place] ^ bits]) + whole[place + 1 :])
        named = str(path) if path.name != "manifest.json" else str(checkpoint)
        with pytest.raises(BrokenInput, match=re.escape(named)):
            require_intact(checkpoint)
        if number == 0:
            with pytest.raises(BrokenInput, match="is not as it was written"):
                resume(run, ["run.steps=3"])
            with pytest.raises(BrokenInput, match="is not as it was written"):
                export_model(run, "coder", tmp_path / "coder")
        path.write_bytes(whole)
    require_intact(checkpoint)
    assert resume(run, ["run.steps=3"]).steps == 3
