"""Every example runs as it stands, and the README shows the one that the tests run."""

from __future__ import annotations

import json
import re

import pytest

from tests.support import ROOT
from tests.support.command_line import run_python

pytestmark = pytest.mark.slow
WITH_RLLIB = ROOT / "examples" / "train_with_rllib.py"  # Ray and transformers warn of themselves
BANK_PPO = ROOT / "examples" / "bank_game_ppo.py"
WITH_TUNE = ROOT / "examples" / "tune_settings.py"
WITH_TRL = ROOT / "examples" / "coevolve_with_trl.py"  # tests/codea1_agents/adapters/test_trl.py
ONE_FILE = ROOT / "examples" / "grpo_in_one_file.py"  # tests/codea1_agents/train/grpo/test_against_one_file.py
EXAMPLES = sorted(set((ROOT / "examples").glob("*.py")) - {WITH_RLLIB, BANK_PPO, WITH_TUNE, WITH_TRL, ONE_FILE})


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_from_anywhere(example, tmp_path):
    assert run_python("-W", "error", example, folder=tmp_path).strip()


def test_the_notebook_runs_from_top_to_bottom(tmp_path):
    pytest.importorskip("scipy", reason="the extra study is not installed")
    pytest.importorskip("matplotlib", reason="the extra study is not installed")
    cells = json.loads((ROOT / "examples" / "first_game.ipynb").read_text())["cells"]
    code = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    found = run_python("-W", "error", "-c", code, folder=tmp_path)
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    printed = "".join(line for output in outputs for line in output.get("text", ()))
    assert found == printed  # `make notebook` runs the notebook and keeps what it prints and draws
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 1


def run_with_ray(arguments, tmp_path):
    for name in ("ray", "torch", "transformers"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    return run_python(*arguments, folder=tmp_path, RAY_AUTH_MODE="disabled")


@pytest.mark.ray
def test_ppo_plays_the_bank_game(tmp_path):
    assert "equilibrium" in run_with_ray([BANK_PPO], tmp_path)


@pytest.mark.ray
@pytest.mark.long
def test_two_models_are_trained_with_rllib(tmp_path):
    printed = run_with_ray([WITH_RLLIB], tmp_path)
    programs = re.findall(r"^step \d+ .*valid_candidates (\S+)$", printed, re.MULTILINE)
    assert len(programs) == 15
    assert "continues at 16" in printed
    first, last = (sum(map(float, part)) for part in (programs[:5], programs[-5:]))
    assert last > first  # it has learnt to write programs that load


def test_grpo_in_one_file_measures_a_model_that_writes_no_programs(tmp_path, tiny_folder):
    assert len(ONE_FILE.read_text().splitlines()) <= 250
    printed = run_python("-W", "error", ONE_FILE, 0, 1, tiny_folder, folder=tmp_path)
    rows = re.findall(r"^ *(base|trained) coder, +(base|trained) tester  pass@1 0.00  coder", printed, re.MULTILINE)
    assert len(rows) == 4


@pytest.mark.long
def test_both_models_learn_in_one_file(tmp_path):
    printed = run_python("-W", "error", ONE_FILE, folder=tmp_path)
    figures = r"^ *(\w+) coder, +(\w+) tester  pass@1 (\S+)  coder \S+  tester (\S+)"
    rows = re.findall(figures, printed, re.MULTILINE)
    found = {(coder, tester): (float(right), float(reward)) for coder, tester, right, reward in rows}
    assert found["trained", "base"][0] > found["base", "base"][0]
    assert found["base", "trained"][1] > found["base", "base"][1]


@pytest.mark.ray
@pytest.mark.long
def test_tune_finds_the_learning_rate_that_learns(tmp_path):
    printed = run_with_ray([WITH_TUNE], tmp_path)
    shares = dict(re.findall(r"^lr (\S+)  valid_candidates (\S+)$", printed, re.MULTILINE))
    assert set(shares) == {"0.02", "0.0002"}
    assert float(shares["0.02"]) > float(shares["0.0002"])
    assert "best lr 0.02" in printed


@pytest.mark.xdist_group("ray")
def test_the_readmes_training_runs(tmp_path, tiny_folder):
    code = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[-1]
    assert "codea1 pretrain --steps 100 -o models/tiny" in (ROOT / "README.md").read_text()
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "tiny").symlink_to(tiny_folder)
    printed = run_with_ray(["-c", code], tmp_path)
    assert re.findall(r"^step (\d): coder \S+$", printed, re.MULTILINE) == ["1", "2"]


def test_the_readmes_agent_is_the_tested_one():
    text = (ROOT / "examples" / "custom_agent.py").read_text()
    code = text.split('"""\n\n', 1)[1].strip()
    assert code in (ROOT / "README.md").read_text()
