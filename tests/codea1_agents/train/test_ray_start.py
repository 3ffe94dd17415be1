"""Ray starts for one process, says nothing and leaves nothing in the home directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codea1_agents.ray_sandbox import init_ray
from codea1_agents.train.ray_start import Wanted, require_room, start_ray
from codea1_env.errors import UserError

pytest.importorskip("ray", reason="Ray is not installed")


class Sluggish:
    """A Ray whose first starts fail."""

    def __init__(self, n_failures: int) -> None:
        self.n_failures = n_failures
        self.calls: list[str] = []

    def init(self, **_: Any) -> None:
        self.calls.append("init")
        if self.calls.count("init") <= self.n_failures:
            raise RuntimeError("timed out")

    def shutdown(self) -> None:
        self.calls.append("shutdown")


def test_ray_gets_a_second_chance_to_start() -> None:
    ray = Sluggish(1)
    start_ray(ray, 1)
    assert ray.calls == ["init", "shutdown", "init"]
    with pytest.raises(UserError, match="Ray cannot be started here: timed out"):
        start_ray(Sluggish(2), 1)


@pytest.mark.parametrize(
    ("options", "known", "is_made"),
    [
        ({}, {}, True),
        ({"address": "local"}, {}, True),
        ({"address": "10.0.0.1:6379"}, {}, False),
        ({}, {"RAY_ADDRESS": "10.0.0.1:6379"}, False),
        ({}, {"RAY_AUTH_MODE": "disabled"}, False),
        ({}, {"RAY_AUTH_TOKEN_PATH": "token"}, False),
    ],
)
def test_a_ray_that_starts_has_a_token_in_the_environment(options, known, is_made, monkeypatch, tmp_path):
    """Otherwise it writes one to the home directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.setenv(name, "")  # so that it is restored
        monkeypatch.delenv(name)
    for name, value in known.items():
        monkeypatch.setenv(name, value)
    init_ray(Sluggish(0), **options)
    assert (len(os.environ.get("RAY_AUTH_TOKEN", "")) == 64) is is_made


NODES = [
    {"Alive": True, "Resources": {"CPU": 1.0, "GPU": 1.0, "memory": 1e9}},
    {"Alive": False, "Resources": {"CPU": 99.0, "GPU": 99.0}},
    {"Alive": True, "Resources": {"CPU": 3.0, "GPU": 3.0}},
    {"Alive": True, "Resources": {"CPU": 1.0}},
]


@pytest.mark.parametrize(
    ("wanted", "fault"),
    [
        ([Wanted("runners", 4, 0.1, 0.6), Wanted("learners", 4, 0.1, 0.4)], ""),
        ([Wanted("runners", 5, 1, 0), Wanted("learners", 0, 1, 8)], ""),
        ([Wanted("runners", 2, 0.5, 0), Wanted("learners", 9, 0, 0)], ""),
        ([Wanted("learners", 2, 0, 2)], "2 learners need 0 CPUs and 2 GPUs each, and its nodes have room for 1"),
        ([Wanted("runners", 5, 0.1, 0.6)], "5 runners need 0.1 CPUs and 0.6 GPUs each, and its nodes have room for 4"),
        ([Wanted("runners", 2, 0.5, 0), Wanted("learners", 5, 1, 0)], "all processes need 6 CPUs and 0 GPUs"),
    ],
)
def test_what_nodes_of_unequal_size_cannot_hold_is_refused_in_one_sentence(wanted, fault, monkeypatch):
    monkeypatch.setattr("ray.nodes", lambda: NODES)
    if not fault:
        require_room(wanted)
        return
    with pytest.raises(UserError) as caught:
        require_room(wanted)
    assert str(caught.value).startswith(f"cluster: {fault}")
    assert str(caught.value).endswith("1 CPUs and 1 GPUs; 3 CPUs and 3 GPUs; 1 CPUs and 0 GPUs")


TRAINING = """
import sys
from codea1_agents.train.grpo import GRPOConfig

config = GRPOConfig().problems("starter").llm_agents(coder=sys.argv[1], tester=sys.argv[1])
config.training(problems_per_step=2, n_candidates=2, n_suites=2, max_tokens={"coder": 2, "tester": 2})
config.env_runners(num_env_runners=1).fault_tolerance(restart_failed_env_runners=False)
algorithm = config.build_algo()
for step in range(2):
    print("step", step + 1, "coder_reward", algorithm.train()["env_runners"]["coder_reward"])
"""


@pytest.mark.ray
def test_a_training_from_python_prints_its_own_lines_only(tmp_path: Path, phrase_folders: dict[str, str]) -> None:
    home = tmp_path / "home"
    home.mkdir()
    outer = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    done = subprocess.run(
        [sys.executable, "-c", TRAINING, phrase_folders["coder"]],
        capture_output=True,
        text=True,
        env=outer | {"HOME": str(home), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        timeout=300,
        check=True,
    )
    assert [line.split()[:3] for line in done.stdout.splitlines()] == [
        ["step", str(number), "coder_reward"] for number in (1, 2)
    ]
    assert done.stderr == ""
    assert list(home.iterdir()) == []
