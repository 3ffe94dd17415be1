"""Runs whose learners are killed or stopped end by themselves, with the figures of a run that nobody disturbed."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.grpo import ON_RAY, distance

pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.train.grpo.algorithm import GRPO
from codea1_agents.train.grpo.learner_group import LearnerCalls
from codea1_agents.train.grpo.progress import Phase, Progress
from codea1_agents.train.loop import load_training, train
from codea1_agents.train.loop.folder import read_restarts
from codea1_agents.train.loop.loop import Watcher
from codea1_env.runs.config import to_toml
from tests.codea1_agents.train.loop.conftest import weights_of, without_times
from tests.support.command_line import codea1
from tests.support.waiting import wait_until

pytestmark = ON_RAY


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes of the present learners, by rank."""
    found: list[int] = []
    begin = LearnerCalls.__init__

    def noted(self: Any, *arguments: Any) -> None:
        begin(self, *arguments)
        found[:] = [int(re.findall(r"process (\d+)", place)[0]) for place in self._places]

    monkeypatch.setattr(LearnerCalls, "__init__", noted)
    return found


class Saboteur(Watcher):
    """Sends signals to learners: each once, when a phase of a step begins."""

    def __init__(self, processes: list[int], *plan: tuple[Phase, int, int], number: int = signal.SIGKILL) -> None:
        """Take a plan of phases, steps and ranks."""
        self.processes, self.plan, self.number = processes, list(plan), number
        self.sent: list[int] = []
        self.notes: list[str] = []
        self._step = 1

    def begin(self, folder: Path, config: Any, lines: Any) -> None:
        self._step = len(lines) + 1

    def step(self, line: dict[str, Any]) -> None:
        self._step = line["step"] + 1

    def progress(self, progress: Progress) -> None:
        step = self._step - (progress.phase is Phase.SAVING)
        if self.plan and self.plan[0][:2] == (progress.phase, step):
            self.sent.append(self.processes[self.plan.pop(0)[2]])
            os.kill(self.sent[-1], self.number)

    def note(self, text: str) -> None:
        self.notes.append(text)


def with_learners(settings: dict[str, Any], **cluster: Any) -> Any:
    cluster = {**settings["cluster"], "learners": 2, "cpus_per_learner": 0.5, **cluster}
    return load_training({**settings, "cluster": cluster})


@pytest.mark.parametrize("sharding", [pytest.param("none", marks=pytest.mark.long), "full"])
def test_learners_killed_while_they_learn_and_save_change_nothing(settings, processes, tmp_path, sharding):
    config = with_learners(settings, sharding=sharding)
    saboteur = Saboteur(processes, (Phase.LEARNING, 4, 1), (Phase.SAVING, 4, 0))
    done = train(config, out=tmp_path / "run", watcher=saboteur)
    assert len(saboteur.sent) == 2
    assert (done.steps, done.interrupted, len(done.lines)) == (4, False, 4)
    again = r"died; starting again from the checkpoint of step 2 \(restart \d of 3\)"
    for note, said in zip(saboteur.notes, ["rank 1", "rank 0"], strict=True):
        assert re.fullmatch(rf"step \d: the learner of {said} \(process \d+ on [\d.]+\) {again}", note)
    assert [(line["step"], line["from"]) for line in read_restarts(done.folder)] == [(4, 2), (5, 2)]
    whole = train(config, out=tmp_path / "whole")
    assert without_times(done.lines) == without_times(whole.lines)
    assert distance(weights_of(done), weights_of(whole)) == 0


@pytest.mark.slow
def test_a_learner_that_hangs_is_named_and_the_run_goes_on(settings, processes, tmp_path):
    settings["run"]["steps"] = 2
    config = with_learners(settings, sharding="full", learner_timeout_s=3.0)
    saboteur = Saboteur(processes, (Phase.LEARNING, 2, 1), number=signal.SIGSTOP)
    done = train(config, out=tmp_path / "run", watcher=saboteur)
    assert done.steps == 2
    (note,) = saboteur.notes
    said = r"step 2: the learner of rank 1 \(process \d+ on .*\) did not answer \(cluster.learner_timeout_s is 3\); "
    assert re.match(said, note)
    (stopped,) = saboteur.sent
    assert wait_until(lambda: not Path(f"/proc/{stopped}").exists(), 60)


def test_a_run_that_dies_each_time_stops_with_one_sentence(settings, processes, tmp_path, monkeypatch):
    restored = GRPO.watch

    def killed(self: Any, show: Any) -> None:
        restored(self, show)
        os.kill(processes[0], signal.SIGKILL)

    monkeypatch.setattr(GRPO, "watch", killed)
    (tmp_path / "mine.toml").write_text(to_toml(with_learners(settings, max_restarts=1)))
    result = codea1("train", tmp_path / "mine.toml", "-o", tmp_path / "run")
    assert result.exit_code == 3
    assert "step 1: the learner of rank 0 (process " in result.stderr
    assert "died; starting again from the first step (restart 1 of 1)" in result.stderr
    assert "died; restart 1 of 1 brought no new checkpoint; there is no checkpoint yet" in result.stderr
    assert "Traceback" not in result.stderr
    assert [line["from"] for line in read_restarts(tmp_path / "run")] == [0], "the folder stays, to be continued"
