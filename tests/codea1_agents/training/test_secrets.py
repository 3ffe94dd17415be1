"""What a training writes and sends to its workers when an agent has a key."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ray = pytest.importorskip("ray", reason="Ray is not installed")
pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from codea1_agents.training import load_training, resume, train  # noqa: E402
from codea1_env.errors import CodeA1Error, UserError  # noqa: E402

pytestmark = [
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings("default"),  # Ray's own
    pytest.mark.usefixtures("cluster"),
]

KEY = "canary-of-a-training"
AGENT = """\
import os


class Keyed:
    stateless = True

    def __init__(self, *, api_key, must_be=""):
        assert not must_be or api_key.startswith(must_be), api_key
        self.api_key = api_key

    def act(self, observation, info):
        if info["role"] == "coder":
            return f"```python\\ndef f(x):\\n    return x  # {self.api_key}\\n```"
        return "assert f(1) == 2"
"""


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "keyed_agents.py").write_text(AGENT)
    monkeypatch.syspath_prepend(tmp_path)
    return "keyed_agents:Keyed"


@pytest.fixture
def uploaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What a stand-in for W&B, which is not installed here, is sent."""
    found: list[Any] = []

    class Run:
        def log(self, figures: Any, step: int) -> None:
            found.append(figures)

        def finish(self) -> None:
            pass

    wandb = ModuleType("wandb")
    wandb.init = lambda **told: (found.append(told), Run())[1]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    return iter([found])


def with_key(settings: dict[str, Any], agent: str, key: str = KEY) -> dict[str, Any]:
    spec = f"{agent},api_key={key},must_be=canary"
    held_out = {"every": 2, "problems": settings["game"]["problems"], "opponents": [spec]}
    logging = {"wandb": "mine", "samples_every": 1, "samples": 1}
    return {
        **settings,
        "run": {"steps": 2},
        "agents": {"coder": {"agent": spec}, "tester": settings["agents"]["tester"]},
        "evaluation": held_out,
        "logging": logging,
    }


def holders(folder: Path, canary: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and canary.encode() in path.read_bytes()]


def test_a_key_is_in_nothing_that_a_training_writes(
    settings: dict[str, Any], agents: str, uploaded: Any, tmp_path: Path
) -> None:
    sent = next(uploaded)
    config = load_training(with_key(settings, agents))
    run = train(config, out=tmp_path / "run").folder
    assert holders(run, KEY) == []
    assert KEY not in repr(sent)
    assert KEY.encode() not in pickle.dumps(config)
    assert "api_key=***" in (run / "config.toml").read_text()
    assert "api_key=***" in repr(sent)
    assert list((run / "checkpoints").iterdir())
    assert list((run / "samples").iterdir())


def test_a_run_is_continued_with_its_key_given_again(settings: dict[str, Any], agents: str, tmp_path: Path) -> None:
    settings = with_key(settings, agents)
    settings["logging"] = {"tensorboard": False, "samples_every": 0}
    config = load_training(settings)
    run = train(config, out=tmp_path / "run").folder
    with pytest.raises(UserError, match="records hold no secrets"):
        resume(run, ["run.steps=3"])
    assert resume(run, ["run.steps=3"], config=config).steps == 3
    again = [f"agents.coder.agent={agents},api_key={KEY},must_be=canary", "run.steps=4"]
    again.append(f'evaluation.opponents=["{agents},api_key={KEY},must_be=canary"]')
    assert resume(run, again).steps == 4
    assert holders(run, KEY) == []


def test_a_worker_without_the_variable_ends_in_one_sentence(
    settings: dict[str, Any], agents: str, tmp_path: Path
) -> None:
    settings = with_key(settings, agents, "canary-after-ray-began")
    settings["logging"] = {"tensorboard": False, "samples_every": 0}
    settings["cluster"] = {"env_runners": 1, "cpus_per_env_runner": 0.5, "torch_threads": 1}
    with pytest.raises(CodeA1Error, match="environment variable CODEA1_SECRET_") as caught:
        train(load_training(settings), out=tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert "canary-after-ray-began" not in str(caught.value)
