from __future__ import annotations

import pytest

from codea1_agents.adapters.scoring import named_referee
from codea1_agents.adapters.skyrl import dataset, register_envs
from codea1_env import Referee, load_problems
from codea1_env.errors import UserError

skyrl_gym = pytest.importorskip("skyrl_gym", reason="the extra skyrl is not installed")

PROBLEM = load_problems("starter")[0]


def made(row: dict, rules: str):
    register_envs()
    extras = {name: row[name] for name in ("reward_spec", "extra_info")}
    env = skyrl_gym.make(row["env_class"], env_config={"problems": "starter", "rules": rules}, extras=extras)
    assert env.init(row["prompt"])[0] == row["prompt"]
    return env


@pytest.mark.parametrize(("reply", "reward"), [(PROBLEM.solution, 1.0), ("nothing", 0.0)])
def test_a_coder_plays_one_step(reply, reward):
    (row,) = dataset("coder", [PROBLEM])
    step = made(row, "golden").step(reply)
    assert (step["reward"], step["done"], step["metadata"]["masked"]) == (reward, True, False)


def test_a_tester_plays_against_the_program_of_its_row():
    row = dataset("tester", [PROBLEM])[0]
    step = made(row, "fixed").step("nothing")
    assert (step["reward"], step["done"]) == (0.0, True)
    assert "validity" in step["metadata"]


def test_a_masked_reply_says_so(broken_sandbox, monkeypatch):
    broken = Referee([PROBLEM], "golden", sandbox=broken_sandbox)
    monkeypatch.setattr("codea1_agents.adapters.skyrl.named_referee", lambda *_: broken)
    (row,) = dataset("coder", [PROBLEM])
    step = made(row, "golden").step(PROBLEM.solution)
    assert (step["reward"], step["metadata"]["masked"]) == (0.0, True)


def test_what_is_missing_is_named():
    (row,) = dataset("coder", [PROBLEM])
    with pytest.raises(UserError, match="the configuration of the environment needs 'problems'"):
        skyrl_gym.make(row["env_class"], env_config={"rules": "golden"}, extras=row)
    with pytest.raises(UserError, match="its extra_info needs 'given', got 'index'"):
        made({**row, "extra_info": {"index": 0}}, "golden")


def test_environments_of_one_process_share_a_referee():
    assert named_referee("starter", "golden") is named_referee("starter", "golden")
