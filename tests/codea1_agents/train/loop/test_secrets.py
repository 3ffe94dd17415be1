"""What a training writes and sends to its workers when an agent has a key."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.support.forks import Fork
from tests.support.grpo import ON_RAY

ray = pytest.importorskip("ray", reason="Ray is not installed")
pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from codea1_agents.train.loop import load_training, resume, train  # noqa: E402
from codea1_env.errors import CodeA1Error, UserError  # noqa: E402
from codea1_env.runs.config import to_toml  # noqa: E402

pytestmark = ON_RAY

KEY = "canary-of-a-training"
AGENT = """\
class Keyed:
    stateless = True

    def __init__(self, *, api_key, must_be="", fails=False):
        assert not must_be or api_key.startswith(must_be), api_key
        self.api_key, self.fails = api_key, fails

    def act(self, observation, info):
        if self.fails:
            raise ValueError(f"who is {self.api_key}?")
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
def uploaded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What stand-ins for W&B and MLflow, which are not installed here, are sent."""
    found: list[Any] = []

    def take(*told: Any, **named: Any) -> Any:
        found.append((told, named))
        return SimpleNamespace(log=take, finish=take, info=SimpleNamespace(run_id=""), experiment_id="")

    wandb, mlflow = ModuleType("wandb"), ModuleType("mlflow")
    vars(wandb).update(init=take)
    calls = ("get_experiment_by_name", "create_run", "log_dict", "log_batch", "set_terminated")
    client = SimpleNamespace(**dict.fromkeys(calls, take))
    vars(mlflow).update(MlflowClient=lambda _: client, entities=SimpleNamespace(Metric=take))
    for module in (wandb, mlflow):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return found


def with_key(settings: dict[str, Any], agent: str, key: str = KEY) -> dict[str, Any]:
    spec = f"{agent},api_key={key},must_be=canary"
    held_out = {"every": 2, "problems": settings["game"]["problems"], "opponents": [spec]}
    logging = {"wandb": "mine", "mlflow": "mine", "samples_every": 1, "samples": 1}
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
    settings: dict[str, Any], agents: str, uploaded: list[Any], tmp_path: Path
) -> None:
    config = load_training(with_key(settings, agents))
    run = train(config, out=tmp_path / "run").folder
    assert holders(run, KEY) == []
    assert KEY not in repr(uploaded)
    assert KEY.encode() not in pickle.dumps(config)
    assert "api_key=***" in (run / "config.toml").read_text()
    assert repr(uploaded).count(f"{agents},api_key=***") >= 2 * 2
    assert list((run / "tensorboard").iterdir())
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


def test_an_agent_that_fails_with_its_key_ends_a_training_without_it(
    settings: dict[str, Any], agents: str, tmp_path: Path
) -> None:
    settings = with_key(settings, agents)
    settings["agents"]["coder"]["agent"] += ",fails=true"
    settings["evaluation"] = {"every": 0}
    settings["logging"] = {"tensorboard": False, "samples_every": 0}
    with pytest.raises((CodeA1Error, ValueError)) as caught:
        train(load_training(settings), out=tmp_path / "run")
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_the_command_and_its_workers_have_a_key_that_nobody_sees(
    settings: dict[str, Any], agents: str, tmp_path: Path
) -> None:
    """In a process of its own, whose Ray starts after the key was read."""
    config = load_training(settings)
    (tmp_path / "mine.toml").write_text(to_toml(config))
    spec = f"{agents},api_key=canary-of-the-command,must_be=canary"
    changes = [f"agents.coder.agent={spec}", f'evaluation.opponents=["{spec}"]', "evaluation.every=1", "run.steps=1"]
    changes += [f"evaluation.problems={settings['game']['problems']}", "cluster.env_runners=1"]
    code = "from codea1_agents.cli import main\nmain()"

    def codea1(*arguments: str) -> tuple[int, str]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
        return Fork(code, *arguments, folder=tmp_path, environment=environment).end()

    sets = [part for change in changes for part in ("--set", change)]
    status, said = codea1("train", "mine.toml", *sets, "--out", "run")
    assert status == 0, said
    status, more = codea1("report", "run", "--out", "page.html")
    assert status == 0, more
    assert holders(tmp_path, "canary-of-the-command") == []
    assert "canary-of-the-command" not in said + more
    assert "api_key=***" in (tmp_path / "page.html").read_text()
