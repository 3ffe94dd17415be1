"""Benchmarks that only compute print what the docs quote from them; others run at a small size."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT
from tests.support.benchmarks import ENVIRONMENT, printed_by


def printed(*command: str, timeout: float) -> Any:
    return printed_by(*command, "--json", timeout=timeout)


@pytest.mark.slow
def test_the_arithmetic_of_trainings_is_that_of_the_docs() -> None:
    learners = printed("training_arithmetic.py", timeout=120)["learner_gb"]
    lines = (ROOT / "docs" / "training-scale.md").read_text().splitlines()
    row = next(line for line in lines if "sharded over 4" in line)
    for cell, model in zip(row.split("|")[2:6], learners["float32"], strict=True):
        sizes = [learners[f"bfloat16, checkpointing; sharded over {n} learners"][model] for n in (4, 6, 8)]
        assert cell.strip(" *") == "; ".join(f"{sum(each.values()):.0f}" for each in sizes)


@pytest.mark.ray
@pytest.mark.slow
def test_the_driver_at_scale_runs_small_and_names_what_saturates_first() -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    pytest.importorskip("torch", reason="torch is not installed")
    found = printed("at_scale.py", "--trees", "64", "--book", "1000", timeout=600)
    (point,) = found["points"]
    assert point["trees"] == 64
    assert point["book"]["entries"] > 1000 + 64
    parts = "tasks receive plan figures record snapshot pickle"
    assert set(point["cpu_ms_per_tree"]) == set(parts.split())
    assert all(ms > 0 for ms in point["cpu_ms_per_tree"].values())
    # The tokens of replies do not pass through the driver.
    assert point["bytes_per_tree"]["received"] < 60_000 < 100_000 < point["bytes_per_tree"]["checkpoint"]
    assert [each["gpus"] for each in found["scaled"]] == [64, 1024] * 2
    for each in found["scaled"]:
        assert each["trees"] == 32 * each["gpus"]
        assert each["shares"][each["first"]] == max(each["shares"].values())


@pytest.mark.slow
def test_the_first_minutes_on_a_gpu_run_on_a_cpu_without_ray_and_vllm(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    script, figures, page = ROOT / "benchmarks" / "first_gpu.py", tmp_path / "figures.json", tmp_path / "page.md"
    arguments = ["--device", "cpu", "--json", str(figures), "--page", str(page)]
    without = (
        "import runpy, sys; sys.modules['ray'] = sys.modules['vllm'] = None; "
        f"sys.path.insert(0, {str(script.parent)!r}); sys.argv = {[str(script), *arguments]!r}; "
        f"runpy.run_path({str(script)!r}, run_name='__main__')"
    )
    subprocess.run([sys.executable, "-c", without], env=ENVIRONMENT, capture_output=True, timeout=120, check=True)
    sections = json.loads(figures.read_text())["sections"]
    assert {name: each["not_run"] for name, each in sections.items() if "not_run" in each} == {
        "attention": "there are no kernels of a GPU",
        "coevolution": "it needs --model, a folder of `codea1 pretrain`",
        "rllib": "ray is not installed",
        "vllm": "vllm is not installed",
    }
    assert not [each for each in sections.values() if "failed" in each]
    gaps = sections["sampler against learner"]
    assert gaps["float32 sampler, float32 learner (sdpa)"]["max"] < 1e-5
    assert gaps["bfloat16 sampler, float32 learner (sdpa)"]["mean"] > 1e-4
    assert sections["fsdp2"]["sharded"]["loss_differs_by"] < 1e-3
    assert sections["judging"]["without_verdict"] == 0
    assert page.read_text().count("\n## ") == len(sections)


@pytest.mark.slow
def test_a_few_programs_of_each_kind_are_judged_as_plain_python_judges_them() -> None:
    found = printed("differential_fuzz.py", "--programs", "20", timeout=300)
    for kind in ("asserts", "numpy", "in_place", "stdin", "checker"):
        figures = found["about"][kind]
        assert figures["n_programs"] >= 20
        assert figures["n_compared"] > 60
        assert {what.rpartition(", ")[2] for what in figures["agreed"]} >= {"passed"}
    assert all(each["reason"] for each in found["differences"])


@pytest.mark.slow
def test_suites_that_change_their_own_names_are_read_as_plain_python_runs_them() -> None:
    found = printed("suites_fuzz.py", "--files", "200", timeout=200)
    assert found["figures"]["agrees"] > 100
    assert found["differences"] == []


@pytest.fixture(scope="module")
def plain() -> Iterator[Any]:
    """Asks plain Python whether an assert holds: `program, entry point, text, expected, ...`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        module = importlib.import_module("plain_python")
        with module.PlainPython("numpy") as asked:
            yield lambda *parts, **rest: asked.answers([module.Question("assert", *parts, **rest)])[0].ended


CHECKER = "def check(arguments, expected, answer):\n    return answer.real > arguments[0]"


@pytest.mark.parametrize(
    ("program", "text", "expected", "rest", "ended"),
    [
        ("def f(x): return x + 1e-12", "f(1)", "1.0", {}, "passed"),
        ("def f(x): return x + 1e-12", "f(1)", "1", {}, "failed"),
        ("def f(x): return x.y", "f(1)", "1", {}, "raised"),
        ("def f(x):\n  while True: pass", "f(1)", "1", {}, "limit"),
        ("print(len(input()))", "f('ab')", "'2\\n'", {"script": "words"}, "passed"),
        ("print(len(input()))\nexit(1)", "f('ab')", "'2'", {"script": "words"}, "raised"),
        ("def f(x): return 5", "f(1)", "2", {"checker": CHECKER}, "passed"),
        ("def f(x): return 'no'", "f(1)", "2", {"checker": CHECKER}, "failed"),
        ("def f(x): return 'no'", "f(1)", "2", {"checker": "def check(*_): 1 / 0"}, "masked"),
        ("def f(x): x.append(1)", "(lambda x: (f(x), x)[1])([])", "[1]", {}, "passed"),
        ("def f(x): x.append(1)", "(lambda x: (f(x), x)[1])([])", "[1]", {"copies": "arguments"}, "failed"),
        ("def f(x): x.append(1)", "(lambda x: (f(x), x)[1])([])", "[1]", {"copies": "both ways"}, "passed"),
        ("import numpy\ndef f(x): return numpy.float64(x)", "f(1).dtype", None, {}, "passed"),
        ("import numpy\ndef f(x): return numpy.float64(x)", "f(1).dtype", None, {"copies": "results"}, "raised"),
    ],
)  # fmt: skip
def test_what_plain_python_says(plain: Any, program: str, text: str, expected: Any, rest: Any, ended: str) -> None:
    solution = "def f(x): return x + 1"
    assert plain(program, "f", text, expected, solution=solution, cpu_s=0.3, **rest) == ended
