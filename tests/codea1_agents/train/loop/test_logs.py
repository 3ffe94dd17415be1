"""Logs of figures: what each writes, and that one that cannot start is one sentence."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from codea1_agents.train.loop.logs import opened_logs
from codea1_agents.train.settings.loading import load_training
from codea1_env.errors import MissingExtra, UserError

FIGURES = {"figures/coder_reward": 0.5, "evaluation/tester_validity/mutant,strength=1": 0.25}


def write_all(out: Path, *changes: str, step: int = 1) -> None:
    with opened_logs(load_training("", list(changes)), out, 0, print) as logs:
        for log in logs:
            log.write(step, FIGURES)


def test_tensorboard_gets_events(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason="tensorboardX is not installed")
    write_all(tmp_path / "run")
    (events,) = (tmp_path / "run" / "tensorboard").iterdir()
    assert b"figures/coder_reward" in events.read_bytes()


@pytest.mark.skipif(find_spec("wandb") is not None, reason="Weights & Biases is installed")
def test_a_package_that_is_missing_is_named_with_its_extra(tmp_path: Path) -> None:
    with pytest.raises(MissingExtra, match=r"\[wandb\]"):
        write_all(tmp_path / "run", "logging.wandb=mine", "logging.tensorboard=false")
    assert not list(tmp_path.iterdir())


class NoKey(Exception):
    """A stand-in for the error of W&B, which is not installed here."""


def test_a_log_that_cannot_be_opened_is_one_sentence_and_closes_those_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []

    def refuse(**_: Any) -> None:
        raise NoKey("no API key\nconfigured")

    class Board:
        def __init__(self, *_: Any, **__: Any) -> None:
            events.append("opened")

        def close(self) -> None:
            events.append("closed")

    wandb, tensorboard = ModuleType("wandb"), ModuleType("tensorboardX")
    vars(wandb).update(init=refuse, Error=NoKey)
    vars(tensorboard).update(SummaryWriter=Board)
    for module in (wandb, tensorboard):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    config = load_training("", ["game.problems=starter", "logging.wandb=mine", "logging.tensorboard=true"])
    with (
        pytest.raises(UserError, match=r"logging\.wandb: no API key configured$"),
        opened_logs(config, tmp_path, 0, print),
    ):
        raise AssertionError("it cannot be opened")
    assert events == ["opened", "closed"]


def test_a_log_that_fails_later_is_one_sentence_and_gets_no_more_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    notes: list[str] = []

    class Server:
        def log(self, figures: dict[str, float], step: int) -> None:
            written.append(step)
            if step == 2:
                raise OSError("connection\nlost")

        def finish(self) -> None:
            raise AssertionError("it is closed no more")

    wandb = ModuleType("wandb")
    vars(wandb).update(init=lambda **_: Server())
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    config = load_training("", ["logging.wandb=mine", "logging.tensorboard=false"])
    with opened_logs(config, tmp_path, 0, notes.append) as logs:
        for step in (1, 2, 3):
            logs[0].write(step, FIGURES)
    assert written == [1, 2]
    assert notes == ["logging.wandb failed at step 2 and gets no more figures; metrics.jsonl has all: connection lost"]
