"""What a training writes and sends to its workers when an agent has a key."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.forks import Fork
from tests.support.grpo import ON_RAY

pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.train.grpo import GRPOConfig
from codea1_agents.train.loop import load_training, resume, train
from codea1_env.errors import UserError
from codea1_env.runs.config import to_toml

pytestmark = ON_RAY

KEY = "canary-of-a-training"
AGENT = """\
import os


class Keyed:
    stateless = True

    def __init__(self, *, api_key_env):
        self.variable = api_key_env

    def act(self, observation, info):
        assert os.environ[self.variable].startswith("canary")
        if info["role"] == "coder":
            return "```python\\ndef f(x):\\n    return x\\n```"
        return "assert f(1) == 2"
"""


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "keyed_agents.py").write_text(AGENT)
    monkeypatch.syspath_prepend(tmp_path)
    return "keyed_agents:Keyed"


def with_key(settings: dict[str, Any], agent: str) -> dict[str, Any]:
    spec = f"{agent},api_key_env=OF_A_TRAINING"
    return {
        **settings,
        "run": {"steps": 2},
        "agents": {"coder": {"agent": spec}, "tester": settings["agents"]["tester"]},
        "evaluation": {"every": 2, "problems": settings["game"]["problems"], "opponents": [spec]},
        "logging": {"samples_every": 1, "samples": 1},
    }


def holders(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


def test_a_key_is_in_nothing_that_a_training_writes(settings, agents, tmp_path, monkeypatch):
    monkeypatch.setenv("OF_A_TRAINING", KEY)
    config = load_training(with_key(settings, agents))
    run = train(config, out=tmp_path / "run").folder
    assert holders(run) == []
    assert KEY.encode() not in pickle.dumps(config)
    assert all(list((run / name).iterdir()) for name in ("tensorboard", "checkpoints", "samples"))
    assert resume(run, ["run.steps=3"]).steps == 3
    assert holders(run) == []


@pytest.mark.parametrize(
    "change",
    [
        {"agents.coder.agent": f"keyed_agents:Keyed,api_key={KEY}"},
        {"evaluation.opponents": [f"openai,base_url=http://me:{KEY}@h/v1"]},
        {"agents.coder.api_key": KEY},
        {"agents.coder.engine_options": {"hf_token": KEY}},
    ],
)
def test_a_key_among_the_settings_is_refused_and_not_repeated(settings: dict[str, Any], change: dict[str, Any]) -> None:
    spec = f"openai,model=m,api_key={KEY}"
    for how in (lambda: load_training(settings, change), lambda: GRPOConfig().agents(tester=spec)):
        with pytest.raises(UserError, match="api_key_env=MY_KEY") as caught:
            how()
        assert KEY not in str(caught.value)


def test_the_command_and_its_workers_have_a_key_that_nobody_sees(settings, agents, tmp_path):
    """In a process of its own, whose Ray starts with the variable."""
    changes = ["evaluation.every=1", "run.steps=1", "cluster.env_runners=1"]
    (tmp_path / "mine.toml").write_text(to_toml(load_training(with_key(settings, agents), changes)))
    code = "from codea1_agents.cli import main\nmain()"
    place = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": place, "OF_A_TRAINING": KEY}
    for command in ("train mine.toml --out run", "report run --out page.html"):
        status, said = Fork(code, *command.split(), folder=tmp_path, environment=environment).end()
        assert status == 0, said
        assert KEY not in said
    assert holders(tmp_path) == []
    assert "api_key_env=OF_A_TRAINING" in (tmp_path / "page.html").read_text()
