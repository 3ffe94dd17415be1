from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codea1_agents.scripted.oracle import Oracle, subject_of
from codea1_env.facts.verdicts import OutcomeKind
from codea1_env.problems.problem import Problem
from codea1_env.sandbox.interface import Job

if TYPE_CHECKING:
    from codea1_env.sandbox.interface import Sandbox

TWICE = Job("def f(x):\n    return 2 * x", "f")
THRICE = Job("def f(x):\n    return 3 * x", "f")


def test_answers_come_in_the_order_of_the_calls_repeated_ones_included_and_imports_are_there(direct: Any) -> None:
    outcomes = Oracle(direct).outcomes(TWICE, ["f(1)", "f(2)", "f(1)"])
    assert [outcome.value for outcome in outcomes] == [b"2", b"4", b"2"]
    assert direct.asked == ["f(1)", "f(2)"]
    problem = Problem("p", "Square root.", "f", "def f(x):\n    return math.isqrt(x)", (), imports="import math")
    assert Oracle(direct).outcomes(subject_of(problem, problem.solution), ["f(9)"])[0].value == b"3"


def test_a_call_is_run_once_for_each_subject(direct: Any) -> None:
    oracle = Oracle(direct)
    oracle.outcomes(TWICE, ["f(1)"])
    rows = oracle.outcomes_of_each([TWICE, THRICE], ["f(1)", "f(5)"])
    assert [[outcome.value for outcome in row] for row in rows] == [[b"2", b"10"], [b"3", b"15"]]
    assert direct.asked == ["f(1)", "f(5)", "f(1)", "f(5)"]
    assert oracle.outcomes(TWICE, ["f(1)", "f(1)"])[0].value == b"2"
    assert oracle.outcomes(TWICE, []) == []
    assert direct.n_runs == 2


def test_errors_are_answers_and_remembered_but_our_own_failures_are_not(direct: Any, broken_sandbox: Sandbox) -> None:
    oracle = Oracle(direct)
    for _ in range(2):
        assert oracle.outcomes(TWICE, ["f()"])[0].kind is OutcomeKind.ERROR
    assert direct.asked == ["f()"]
    oracle = Oracle(broken_sandbox)
    assert oracle.outcomes(TWICE, ["f(1)"])[0].kind is OutcomeKind.INTERNAL_ERROR
    oracle._sandbox = direct
    assert oracle.outcomes(TWICE, ["f(1)"])[0].value == b"2"


def test_the_memory_is_bounded(direct: Any) -> None:
    oracle = Oracle(direct)
    for n in range(5):
        oracle.outcomes(Job(f"def f():\n    return {n}\n#{'x' * (20 << 20)}", "f"), ["f()"])
    oracle.outcomes(TWICE, ["f(1)", f"f('{'x' * 70_000}')"])
    assert len(oracle._known._known) <= 4
    assert oracle._known.of(TWICE).keys() == {"f(1)"}
