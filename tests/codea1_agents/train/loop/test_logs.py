from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from codea1_agents.train.loop import load_training
from codea1_agents.train.loop.logs import opened_logs
from codea1_env.errors import UserError


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
    with pytest.raises(UserError, match=r"logging\.wandb: no API key configured$"), opened_logs(config, tmp_path, 0):
        raise AssertionError("it cannot be opened")
    assert events == ["opened", "closed"]
