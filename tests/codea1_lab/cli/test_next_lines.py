"""The lines `next: ...` of every command run as pasted."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from codea1_agents.cli.console import NEXT_STEPS
from tests.support.command_line import codea1

FEW = "-p starter --limit 3"
TINY = (
    "--set evaluation.every=0 --set rollout.problems_per_step=1 --set rollout.n_candidates=2 --set rollout.n_suites=2"
)
SAMPLE = {"task_id": "starter/count_carries", "solution": "def count_carries(a, b): return 0", "tests": ["assert 1"]}


def pasted(*printed: object, typed: str = "", shorter: str = "") -> list[str]:
    """Run a command and each next step that it prints; return those, without the names of options' values."""
    result = codea1(*shlex.split(" ".join(map(str, printed))), typed=typed)
    assert result.exit_code == 0, result.stderr
    lines = re.findall(r"^next: (.*)$", result.stdout, re.MULTILINE)
    assert lines
    for line in lines:
        for command in line.split(" && "):
            name, *words = shlex.split(command)
            assert name == "codea1"
            done = codea1(*words, *(shorter.split() if words[0] == "train" else ()), typed=typed)
            assert done.exit_code == 0, (command, done.stderr)
    return lines


@pytest.mark.parametrize("kind", ["problem", "agent", "reward"])
def test_a_template_runs_as_it_is(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    pasted("new", kind, f"my_{kind}")
    assert codea1("new", kind, f"my_{kind}").stderr.endswith(" exists: choose another name\n")
    assert codea1("new", kind, "a/b").exit_code == 2


def test_a_run_is_reported_and_its_book_shown() -> None:
    assert len(pasted("play", FEW, "--episodes 3 -o", "a folder".replace(" ", "-"))) == 2


def test_a_duel_leads_to_the_next() -> None:
    pasted("demo duel", typed="assert 1\n\n" * 9)


@pytest.mark.parametrize("kind", ["coder", "tester"])
def test_an_evaluation_is_stored_and_then_compared(kind: str) -> None:
    Path("samples.jsonl").write_text(json.dumps(SAMPLE) + "\n")
    (stored,) = pasted(f"eval {kind} {FEW} --agent {'mutant' if kind == 'coder' else 'fuzz'} --seed 3")
    (compared,) = pasted(stored.removeprefix("codea1 ").replace(f"evals/{kind}", "first"))
    assert " && codea1 eval compare first-other first" in compared
    pasted(f"eval {kind} {FEW} --generations samples.jsonl -o given")


def test_advice_leads_to_a_training(tiny_folder: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    Path("models").mkdir()
    Path("models/tiny").symlink_to(tiny_folder)
    pasted(f"advise {FEW} --coder mutant -n 2 --inputs 4", shorter=f"--steps 1 {TINY}")


@pytest.mark.ray
def test_a_pretrained_model_plays_and_is_trained(cluster: None) -> None:
    pasted("pretrain --steps 2 -o tiny", shorter=f"--steps 1 -o run {TINY}")
    pasted(f"train --resume run --steps 2 {TINY}", shorter=TINY)


@pytest.mark.ray
def test_an_experiment_goes_on_with_more_seeds(declared: Path) -> None:
    pasted(f"experiment {declared} -o out --seeds 1 --workers 1 --only base")


def test_no_step_is_left_out() -> None:
    text = Path(__file__).read_text()
    assert [name for name in NEXT_STEPS if name.split()[0] not in text] == []
