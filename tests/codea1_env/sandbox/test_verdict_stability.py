"""The benchmark that asks whether verdicts depend on the load: what it counts as a difference."""

from __future__ import annotations

import runpy
import sys
from typing import Any

import pytest

from codea1_env.facts.verdicts import Verdict
from codea1_env.problems.problem import GoldenHarness, Problem
from tests.support import ROOT

BENCHMARKS = ROOT / "benchmarks"
LARGER = "def larger(a, b):\n    return a if a > b else b\n"
CHECK = GoldenHarness("def check(candidate):\n    assert candidate(1, 2) == 2\n    assert candidate(3, 2) == 3\n")
ROW = Problem("row/0", "Return the larger number.", "larger", LARGER, (CHECK,))


@pytest.fixture
def benchmark_script(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    pytest.importorskip("codea1_agents")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return runpy.run_path(str(BENCHMARKS / "verdict_stability.py"))


@pytest.mark.skipif(sys.platform != "linux", reason="its clocks read /proc")
def test_solutions_pass_mutants_do_not_and_neighbours_change_nothing(benchmark_script: dict[str, Any]) -> None:
    found, about = benchmark_script["stability"]([ROW], n_mutants=3, n_neighbours=1, times=1)
    assert found == []
    assert (about["rows"], about["mutants"]) == (1, 3)
    assert about["verdicts"]["passed"] >= 1
    assert about["verdicts"].get("wrong_answer", 0) >= 1


def test_a_program_with_another_verdict_in_any_run_is_named(benchmark_script: dict[str, Any]) -> None:
    those = benchmark_script["subjects"]([ROW], 1)
    assert [subject.is_mutant for subject in those] == [False, True]
    judged = benchmark_script["Judged"]
    same, other = judged((Verdict.PASSED,), 0.1), judged((Verdict.TIME_LIMIT,), 2.0)
    (difference,) = benchmark_script["differences"](those, [[same, same], [same, other]])
    assert difference.name == those[1].name
    assert difference.verdicts == [["passed"], ["time_limit"]]
    assert benchmark_script["differences"](those, [[same, other], [same, other]]) == []
