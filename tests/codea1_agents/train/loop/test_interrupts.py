"""Signals to a real run: what is done is saved, and at most the step in progress is lost."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.forks import Fork
from tests.support.grpo import ON_RAY

ray = pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.train.loop import load_training, resume, train  # noqa: E402
from codea1_agents.train.loop.folder import last_checkpoint, read_metrics, step_of  # noqa: E402
from codea1_env.runs.config import to_toml  # noqa: E402

pytestmark = [*ON_RAY, pytest.mark.slow]

GATED = """
import importlib, sys
from functools import reduce

module, path, number, *command = sys.argv[1:]
*owners, name = path.split(".")
owner = reduce(getattr, owners, importlib.import_module(module))
original, calls = getattr(owner, name), []

def gated(*arguments, **named):
    calls.append(name)
    if len(calls) == int(number):
        print("at the gate", file=sys.stderr, flush=True)
        open("gate").close()  # it waits for a writer
    return original(*arguments, **named)

setattr(owner, name, gated)
sys.argv[1:] = command
from codea1_agents.cli import main
main()
"""
"""Runs a command whose n-th call of a function waits at a gate."""

SAMPLING = ("codea1_agents.train.grpo.env_runner", "TreeEnvRunner.roll_out", "3")
BUILDING = ("codea1_agents.train.grpo.algorithm", "GRPO.setup", "1")
LEARNING = ("codea1_agents.train.grpo.learner", "GRPOTorchLearner._update", "3")
NO_GATE = (*SAMPLING[:2], "0")
WRITING = ("codea1_agents.train.loop.folder", "_sync_files", "2")


AGENT = """
from pathlib import Path

HERE = Path(__file__).parent

def tester(observation):
    if (HERE / "gate").exists():
        (HERE / "arrived").write_bytes(b"")
        (HERE / "gate").read_bytes()
    return "assert f(1) == 2"
"""


class Run:
    """`codea1 train` in a process of its own."""

    def __init__(self, folder: Path, gate: tuple[str, ...], changes: list[str]) -> None:
        self.folder, self._gate = folder / "run", folder / "gate"
        sets = [word for change in changes for word in ("--set", change)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
        command = ["train", "mine.toml", "-o", "run", *sets]
        self._process = Fork(GATED, *gate, *command, folder=folder, environment=environment)

    def wait_for(self, text: str) -> None:
        said = []
        for line in self._process.output:
            said.append(line)
            if text in line:
                return
        raise AssertionError(f"it never said {text!r} but: {''.join(said)}")

    def send(self, number: signal.Signals) -> None:
        os.kill(self._process.pid, number)

    def interrupt(self, number: signal.Signals = signal.SIGINT, *, twice: bool = False) -> None:
        """Send the first signal and wait until the run has noticed it, then the second."""
        self.send(number)
        self.wait_for("interrupted: this step is finished and saved first")
        if twice:
            self.send(number)

    def open_gate(self) -> None:
        self._gate.write_bytes(b"")

    def end(self) -> str:
        status, rest = self._process.end()
        assert status == 130, rest
        return rest

    def kill(self) -> None:
        self._process.kill()

    @property
    def saved(self) -> int:
        return step_of(checkpoint) if (checkpoint := last_checkpoint(self.folder)) else 0


@pytest.fixture
def start(settings: dict[str, Any], tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Start a run of four steps, with no checkpoint before its end; in this session's Ray, or in one of its own."""
    (tmp_path / "mine.toml").write_text(to_toml(load_training(settings, ["checkpoints.every=0"])))
    (tmp_path / "gated_agents.py").write_text(AGENT)
    os.mkfifo(tmp_path / "arrived")
    runs: list[Run] = []

    def begin(gate: tuple[str, ...], *changes: str, until: str = "at the gate", own_ray: bool = False) -> Run:
        if gate != NO_GATE:
            os.mkfifo(tmp_path / "gate")
        address = "" if own_ray else ray.get_runtime_context().gcs_address
        runs.append(Run(tmp_path, gate, [*changes, f"cluster.address={address}"]))
        runs[0].wait_for(until)
        return runs[0]

    yield begin
    for run in runs:
        run.kill()


def test_the_second_signal_discards_the_step_in_progress_and_saves_those_before(start, settings, tmp_path):
    run = start(SAMPLING)
    run.interrupt(twice=True)
    assert "continue with: codea1 train --resume run" in run.end()
    assert run.saved == 2
    assert [line["step"] for line in read_metrics(run.folder)] == [1, 2]
    whole = train(load_training(settings), out=tmp_path / "whole")
    again = resume(run.folder)
    assert [each["figures"] for each in again.lines] == [each["figures"] for each in whole.lines]


def test_rollouts_of_a_remote_runner_are_discarded_too(start: Callable[..., Run], tmp_path: Path) -> None:
    changes = ["run.steps=1000", "cluster.env_runners=1", "agents.tester.agent=gated_agents:tester"]
    run = start(NO_GATE, *changes, until="step 2 of 1000")
    os.mkfifo(tmp_path / "gate")
    (tmp_path / "arrived").read_bytes()
    run.interrupt(twice=True)
    run.end()
    assert run.saved == len(read_metrics(run.folder)) >= 2


@pytest.mark.parametrize("all_are_saved", [False, True])
def test_learning_is_discarded_if_all_steps_before_it_are_saved(start: Callable[..., Run], all_are_saved: bool) -> None:
    run = start(LEARNING, f"checkpoints.every={int(all_are_saved)}")
    run.interrupt(signal.SIGTERM if all_are_saved else signal.SIGINT, twice=True)
    if not all_are_saved:
        run.wait_for("interrupted again: this step is finished and saved first")
        run.open_gate()
    run.end()
    assert run.saved == len(read_metrics(run.folder)) == (2 if all_are_saved else 3)


def test_a_checkpoint_in_progress_is_completed(start: Callable[..., Run]) -> None:
    run = start(WRITING, "checkpoints.every=1")
    run.interrupt()
    run.send(signal.SIGTERM)
    run.open_gate()
    run.end()
    assert run.saved == len(read_metrics(run.folder)) >= 2
    assert not list((run.folder / "checkpoints").glob(".*"))


def test_a_run_killed_during_a_sharded_checkpoint_continues_from_the_one_before(start, settings, tmp_path):
    sharded = ["cluster.learners=2", "cluster.cpus_per_learner=0.5", "cluster.sharding=full"]
    run = start(WRITING, "checkpoints.every=1", *sharded)
    run.kill()
    assert run.saved == 1
    assert list((run.folder / "checkpoints").glob(".step-0002*"))
    again = resume(run.folder)
    whole = train(load_training(settings, sharded), out=tmp_path / "whole")
    assert [each["figures"] for each in again.lines] == [each["figures"] for each in whole.lines]
    assert not list((run.folder / "checkpoints").glob(".*"))


def test_the_third_signal_stops_the_run_at_once(start: Callable[..., Run]) -> None:
    run = start(LEARNING, own_ray=True)
    run.interrupt(twice=True)
    run.wait_for("press Ctrl-C once more to stop at once")
    run.send(signal.SIGINT)
    assert "there is no checkpoint yet; continue with: codea1 train --resume run" in run.end()
    assert run.saved == 0


@pytest.mark.parametrize("gate", [(*SAMPLING[:2], "1"), BUILDING], ids=["sampling", "building"])
def test_a_run_whose_first_step_is_discarded_leaves_nothing(start: Callable[..., Run], gate: tuple[str, ...]) -> None:
    run = start(gate, own_ray=gate == BUILDING)
    assert run.folder.exists()
    if gate == BUILDING:
        run.send(signal.SIGTERM)
    else:
        run.interrupt(twice=True)
    said = run.end()
    assert "continue" not in said
    assert "no step was done, so nothing is kept" in said
    assert not run.folder.exists()


def test_an_interrupted_first_evaluation_is_called_so_and_kept(start: Callable[..., Run]) -> None:
    gate = ("codea1_agents.train.grpo.algorithm", "GRPO.evaluate", "1")
    run = start(gate, "evaluation.every=10", "evaluation.at_start=true", "evaluation.problems=tiny:held-out-eval")
    run.send(signal.SIGTERM)
    run.wait_for("interrupted: the first evaluation is finished and saved first")
    run.open_gate()
    run.end()
    assert [line["step"] for line in read_metrics(run.folder)] == [0]
