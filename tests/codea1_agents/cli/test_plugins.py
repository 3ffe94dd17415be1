from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import finished, one_object, run_python

MODULE = '''\
class Quoter:
    """Quotes the statement's examples."""

    plays = "tester"

    def __init__(self, *, times=1):
        self.times = times

    def act(self, observation, info):
        return "\\n".join([observation["examples"]] * self.times)
'''


@pytest.fixture
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as `pip install --target` leaves it, with a distribution that registers an agent called quoter."""
    site = tmp_path_factory.mktemp("site")
    (site / "quoting_agents.py").write_text(MODULE)
    metadata = site / "quoting_agents-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: quoting-agents\nVersion: 1.0\nProvides-Extra: quoter\n"
        'Requires-Dist: surely-not-installed>=1; extra == "quoter"\n'
    )
    (metadata / "entry_points.txt").write_text("[codea1_env.agents]\nquoter = quoting_agents:Quoter\n")
    return site


@pytest.mark.slow
def test_an_agent_of_another_package_is_listed_and_plays(installed: Path) -> None:
    environment = {"PYTHONPATH": str(installed)}
    listed = finished("list", "agents", "--json", env=environment)
    assert listed.returncode == 0, listed.stderr
    (mine,) = [each for each in one_object(listed.stdout)["agents"] if each["name"] == "quoter"]
    assert mine == {
        "name": "quoter",
        "options": [{"name": "times", "type": "any", "default": "1"}],
        "what": "Quotes the statement's examples.",
        "roles": ["tester"],
        "missing": "quoting-agents[quoter]",
    }
    arguments = ["play", "-p", "starter", "--coder", "reference", "--tester", "quoter,times=2", "-n", 4]
    played = finished(*arguments, "--concurrency", 2, "--json", "--out", "run", env=environment)
    assert played.returncode == 0, played.stderr
    assert one_object(played.stdout)["n_masked_rounds"] == 0
    assert json.loads(Path("run/episodes.jsonl").read_text().splitlines()[0])["rounds"][0]["suites"][0]["cases"]
    assert finished("list", "agents").stdout.count("quoter") == 0


UNDER_RAY = """
import ray
from codea1_env.agent import AgentContext, load_agent
from codea1_env.problems import load_problems
from codea1_env.sandbox import load_sandbox

@ray.remote
def reply():
    agent = load_agent("quoter,times=2", AgentContext(load_problems("starter", limit=1), load_sandbox("local")))
    return agent.act({"examples": "assert f(1) == 2"}, {"role": "tester"})

ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False)
print(repr(ray.get(reply.remote())))
"""


@pytest.mark.ray
def test_an_agent_of_another_package_plays_in_ray_workers_too(installed: Path, folder: Path) -> None:
    pytest.importorskip("ray")
    environment = {"PYTHONPATH": str(installed), "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    shown = run_python("-c", UNDER_RAY, folder=folder, **environment)
    assert shown.strip() == repr("assert f(1) == 2\nassert f(1) == 2")
