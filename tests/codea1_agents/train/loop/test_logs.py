"""The log of figures: what it writes, and that its failure is one sentence."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from codea1_agents.train.loop.logs import TensorBoard
from codea1_agents.train.settings.loading import load_training

FIGURES = {"figures/coder_reward": 0.5, "evaluation/tester_validity/mutant,strength=1": 0.25}


def write_all(out: Path, *changes: str, step: int = 1) -> None:
    with TensorBoard(load_training("", list(changes)), out, 0, print) as log:
        log.write(step, FIGURES)


def test_tensorboard_gets_events(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason="tensorboardX is not installed")
    write_all(tmp_path / "run")
    (events,) = (tmp_path / "run" / "tensorboard").iterdir()
    assert b"figures/coder_reward" in events.read_bytes()


def test_a_log_that_fails_is_one_sentence_and_gets_no_more_figures(tmp_path, monkeypatch):
    written: list[int] = []
    notes: list[str] = []

    class FullDisk:
        def __init__(self, *_: Any, **__: Any) -> None: ...

        def add_scalar(self, name: str, value: float, step: int) -> None:
            written.append(step)
            if step == 2:
                raise OSError("no space\nleft")

        def close(self) -> None:
            raise AssertionError("it is closed no more")

    tensorboard = ModuleType("tensorboardX")
    vars(tensorboard).update(SummaryWriter=FullDisk)
    monkeypatch.setitem(sys.modules, "tensorboardX", tensorboard)
    with TensorBoard(load_training("", []), tmp_path, 0, notes.append) as log:
        for step in (1, 2, 3):
            log.write(step, {"figures/coder_reward": 0.5})
    assert written == [1, 2]
    said = "logging.tensorboard failed at step 2 and gets no more figures; metrics.jsonl has all: no space left"
    assert notes == [said]
