"""Ray starts for one process, says nothing and leaves nothing in the home directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codea1_agents.train.ray_start import start_ray
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
