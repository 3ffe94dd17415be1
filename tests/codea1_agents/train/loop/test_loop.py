"""Whole runs with tiny models: what they write, and that an interruption changes nothing."""

from __future__ import annotations

import errno
import json
import os
import pickle
import re
import shutil
import signal
import threading
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.support.grpo import ON_RAY, distance

pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.train.loop import export_model, folder, load_training, resume, train
from codea1_agents.train.loop.folder import last_checkpoint, read_metrics, require_intact, step_of
from codea1_agents.train.loop.loop import TrainingFailed, Watcher
from codea1_env.book.store import MistakeBook
from codea1_env.errors import BrokenInput, UserError
from codea1_env.rules.rewards import score
from codea1_env.runs.config import to_toml
from codea1_env.runs.folder import iter_episodes, stored_config
from codea1_env.runs.records import RewardsRecord
from tests.codea1_agents.train.loop.conftest import weights_of, without_times
from tests.support.command_line import codea1, refused

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

    place = last_checkpoint(whole.folder) / "learner_group/learner/rl_module/coder/module_state.pkl"
    state = pickle.loads(place.read_bytes())
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


def test_adapters_on_one_base_are_continued_and_exported(settings: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="the extra codea1-env[lora] is not installed")
    import torch
    from transformers import AutoModelForCausalLM

    base = shutil.copytree(settings["agents"]["coder"]["model"], tmp_path / "base")
    roles = {role: {"max_tokens": 2, "lora": {"rank": rank}} for role, rank in (("coder", 4), ("tester", 2))}
    settings |= {"agents": {"base": str(base), **roles}}
    whole = train(load_training(settings), out=tmp_path / "run")
    shutil.rmtree(last_checkpoint(whole.folder))
    again = resume(whole.folder)
    assert without_times(again.lines) == without_times(whole.lines)
    for role in ("coder", "tester"):
        kept = last_checkpoint(whole.folder) / f"learner_group/learner/rl_module/{role}/module_state.pkl"
        assert all(".lora_" in name for name in pickle.loads(kept.read_bytes()))
        out = tmp_path / role
        command = ["export", "model", whole.folder, "--role", role, "--adapter", "-o", out]
        assert codea1(*command).exit_code == 0
        assert {each.name for each in out.glob("adapter*")} == {"adapter_config.json", "adapter_model.safetensors"}
        alone, merged = (AutoModelForCausalLM.from_pretrained(place) for place in (out, whole.models[role]))
        tokens = torch.arange(3, 9)[None]
        assert torch.allclose(alone(tokens).logits, merged(tokens).logits, atol=1e-5)
        assert not torch.allclose(alone(tokens).logits, AutoModelForCausalLM.from_pretrained(base)(tokens).logits)
    player = f"transformers,model={tmp_path / 'coder'},max_tokens=2,prompts=tiny"
    played = ["play", "--coder", player, "--tester", "fuzz", "--problems", settings["game"]["problems"]]
    assert codea1(*played, "-o", tmp_path / "played").exit_code == 0
    stronger = (
        (tmp_path / "coder" / "adapter_config.json").read_bytes().replace(b'"lora_alpha": 32', b'"lora_alpha": 64')
    )
    other = (tmp_path / "coder" / "adapter_model.safetensors").read_bytes()[:-4] + b"\0\0\0\1"
    for name, content in (("adapter_config.json", stronger), ("adapter_model.safetensors", other)):
        edited = tmp_path / "coder" / name
        kept = edited.read_bytes()
        edited.write_bytes(content)
        assert "is an adapter whose weights or adapter_config.json changed" in refused(
            *played, "-o", tmp_path / "other"
        )
        edited.write_bytes(kept)
    file = tmp_path / "mine.toml"
    file.write_text(to_toml(load_training(settings)))
    said = refused("train", file, "--base", tmp_path / "coder", "-o", tmp_path / "other")
    assert "agents.base: " in said
    assert "is an adapter alone" in said
    weights = base / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\1")
    with pytest.raises(BrokenInput, match=r"cannot be continued: agents\.base changed since its start"):
        resume(whole.folder, ["run.steps=5"])
    assert f"is an adapter on another model: '{base}' changed" in refused(*played, "-o", tmp_path / "other")
    shutil.rmtree(base)
    assert "is an adapter, and the model under it is missing" in refused(*played, "-o", tmp_path / "other")


def test_golden_rules_need_golden_tests(settings: dict[str, Any], tmp_path: Path) -> None:
    bare = {"id": "a", "statement": "Same.", "entry_point": "f", "solution": "def f(x):\n    return x\n"}
    (tmp_path / "bare.jsonl").write_text(json.dumps(bare) + "\n")
    settings["game"] = {"problems": str(tmp_path / "bare.jsonl"), "rules": "golden"}
    with pytest.raises(UserError, match="pay for golden tests"):
        train(load_training(settings), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_end_the_step_save_and_can_be_continued(settings, tmp_path, number):
    watcher, notes = Watcher(), []
    watcher.step, watcher.note = lambda _: signal.raise_signal(number), notes.append  # during the first step
    before = signal.getsignal(number)
    stopped = train(load_training(settings), out=tmp_path / "run", watcher=watcher)
    assert (stopped.interrupted, stopped.steps, stopped.models) == (True, 1, {})
    assert "finished and saved first" in notes[0]
    assert signal.getsignal(number) == before
    with pytest.raises(UserError, match=r"run\.seed was 0, now 3"):
        resume(stopped.folder, ["run.seed=3"])
    done = resume(stopped.folder, ["run.steps=2"])
    with pytest.raises(UserError, match=r"run\.steps must be at least 2 .*, got 1"):
        resume(stopped.folder, ["run.steps=1"])
    assert (done.interrupted, done.steps) == (False, 2)
    assert [line["step"] for line in read_metrics(done.folder)] == [1, 2]
    assert load_training(done.folder / "config.toml").run.steps == 2


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_last_checkpoint(settings, tmp_path):
    changes = ["training.lr=1e36", "training.weight_decay=0", "rollout.keep_zero_std_groups=true"]  # or nothing learns
    config = load_training(settings, [*changes, "checkpoints.every=1"])
    with pytest.raises(TrainingFailed, match=r"the loss of .* codea1 train --resume"):
        train(config, out=tmp_path / "run")
    assert len(read_metrics(tmp_path / "run")) == step_of(last_checkpoint(tmp_path / "run"))


def test_a_coder_that_earns_nothing_for_long_ends_the_run_unless_it_is_to_go_on(settings, tmp_path):
    out, changes = tmp_path / "run", ["game.problems=starter", "run.steps=4"]  # its programs define other functions
    with pytest.raises(TrainingFailed, match=r"step 2: no_reward: the coder earned nothing in 2 steps .* --resume"):
        train(load_training(settings, [*changes, "run.give_up_after=2"]), out=out)
    assert step_of(last_checkpoint(out)) == 2
    assert resume(out, {"run.give_up_after": 0}).steps == 4


def test_an_evaluation_is_the_same_whoever_plays_it(settings: dict[str, Any], tmp_path: Path) -> None:
    told = with_evaluation(settings, run={"steps": 1}, checkpoints={"every": 0, "export": False})
    alone = train(load_training(told), out=tmp_path / "alone").lines[0]["evaluation"]
    shared = train(load_training(told, ["cluster.env_runners=1"]), out=tmp_path / "shared").lines[0]["evaluation"]
    assert alone == pytest.approx(shared)
    of_tester = {f"tester_{name}/mutant,strength=1" for name in ("validity", "aim")}
    assert {"coder_pass_at_1", "coder_pass_at_8"} | of_tester <= alone.keys()


def test_the_next_step_does_not_wait_for_the_disk(settings, tmp_path, monkeypatch):
    disk, watcher = threading.Event(), Watcher()
    watcher.step = lambda line: line["step"] == 3 and disk.set()
    monkeypatch.setattr(folder, "_sync_files", lambda _: disk.wait(60) or pytest.fail("no step followed"))
    done = train(load_training(settings), out=tmp_path / "run", watcher=watcher)
    assert done.steps == 4
    assert last_checkpoint(done.folder) == done.folder / "checkpoints" / "step-0004"


def test_an_error_of_the_disk_ends_the_run_after_the_step_in_which_it_comes(settings, tmp_path, monkeypatch):
    def sync(draft: Path) -> None:
        if draft.name == ".step-0002.new":
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(folder, "_sync_files", sync)
    config = load_training(settings, ["checkpoints.every=1"])
    with pytest.raises(UserError, match="step 2 is missing; the checkpoint of step 1 is intact; continue with"):
        train(config, out=tmp_path / "run")
    assert [each.name for each in (tmp_path / "run" / "checkpoints").iterdir()] == ["step-0001"]
    assert len(read_metrics(tmp_path / "run")) in (2, 3)


def test_a_run_continues_exactly_from_a_checkpoint_by_time(settings: dict[str, Any], tmp_path: Path) -> None:
    """Before the time there is none but the last."""
    settings["checkpoints"] = {"every": 0, "every_minutes": 1e-9, "keep": 0, "export": False}
    whole = train(load_training(settings), out=tmp_path / "run")
    others = train(load_training(settings, ["checkpoints.every_minutes=1e9"]), out=tmp_path / "other").folder
    first, *later = sorted((whole.folder / "checkpoints").iterdir())
    assert [step_of(each) for each in (first, *later, *(others / "checkpoints").iterdir())] == [1, 2, 3, 4, 4]
    for each in later:
        shutil.rmtree(each)
    assert without_times(resume(whole.folder).lines) == without_times(whole.lines)


def test_the_command_trains_and_exports(settings: dict[str, Any], tmp_path: Path) -> None:
    file, run = tmp_path / "mine.toml", tmp_path / "run"
    file.write_text(to_toml(load_training(settings)))
    result = codea1("train", file, "--set", "run.steps=1", "-o", run, "--json")
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert (told["out"], told["steps"], told["interrupted"]) == (str(run), 1, False)
    assert told["figures"] == read_metrics(run)[-1]["figures"]
    assert "step 1 of 1" in result.stderr
    out = tmp_path / "tester"
    assert codea1("export", "model", run, "--role", "tester", "-o", out, "--json").exit_code == 0
    assert (out / "model.safetensors").is_file()
    refused("train", file, "-o", run)
    assert "the run had its 1 step already" in codea1("train", "--resume", run).stderr


def test_a_flipped_byte_anywhere_in_a_checkpoint_is_refused_by_name(settings: dict[str, Any], tmp_path: Path) -> None:
    settings["run"]["steps"] = 2
    run = train(load_training(settings), out=tmp_path / "run").folder
    checkpoint = last_checkpoint(run)
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
        uses = (lambda: resume(run, ["run.steps=3"]), lambda: export_model(run, "coder", tmp_path / "coder"))
        for use in uses if number == 0 else ():
            with pytest.raises(BrokenInput, match="is not as it was written"):
                use()
        path.write_bytes(whole)
    require_intact(checkpoint)
    assert resume(run, ["run.steps=3"]).steps == 3


def test_a_sharded_run_is_continued_and_exported(settings: dict[str, Any], tmp_path: Path) -> None:
    """It gives the same as one that learns in the driver."""
    settings["run"]["steps"] = 3
    whole = train(load_training(settings), out=tmp_path / "whole")
    settings["run"]["steps"] = 2
    settings["cluster"] |= {"learners": 2, "cpus_per_learner": 0.5, "sharding": "full"}
    first = train(load_training(settings), out=tmp_path / "sharded")
    done = resume(first.folder, ["run.steps=3"])
    for line, expected in zip(done.lines, whole.lines, strict=True):
        assert line["figures"] == pytest.approx(expected["figures"], rel=1e-3, abs=1e-4)
    for role in ("coder", "tester"):
        exported = export_model(done.folder, role, tmp_path / role)
        assert (exported / "model.safetensors").read_bytes() == (done.models[role] / "model.safetensors").read_bytes()
    assert distance(weights_of(done), weights_of(whole)) < 1e-5
    with pytest.raises(UserError, match=r"cannot be continued with these learners: set cluster\.sharding=full"):
        resume(done.folder, ["run.steps=4", "cluster.sharding=none"])
    for part in (last_checkpoint(done.folder) / "learner_group" / "shards").glob("*.distcp"):
        part.write_bytes(part.read_bytes()[:2000])
    said = r"shards/.*\.distcp: .* cannot be restored; without its folder the run continues"
    with pytest.raises(BrokenInput, match=said):
        resume(done.folder, ["run.steps=4", "cluster.sharding=full"])
    assert not (done.folder / "restarts.jsonl").exists()
