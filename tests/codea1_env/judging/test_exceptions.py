"""Cases that expect an exception, and cases with a tolerance: what a judge says of programs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codea1_env.facts.submissions import RejectionReason
from codea1_env.facts.verdicts import Verdict
from codea1_env.problems import GoldenCase, Problem
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox.interface import Limits, Sandbox
from tests.support.replies import reasons
from tests.support.several_answers import judged, verdicts

SOLUTION = "def f(x):\n    if x < 0:\n        raise ValueError('negative')\n    return x / 2"
PROBLEM = Problem("p", "def f(x): ...", "f", SOLUTION, (GoldenCase("f(2)", "1.0"),))
RAISES = "import pytest\nwith pytest.raises(ValueError):\n    f(-1)"
PROGRAMS = {
    SOLUTION: Verdict.PASSED,
    # subclasses: of the program's own, built in, and built in with other arguments
    "class Negative(ValueError):\n    pass\ndef f(x):\n    raise Negative(x)": Verdict.PASSED,
    "import json\ndef f(x):\n    return json.loads('')": Verdict.PASSED,
    "def f(x):\n    return b'\\xff'.decode()": Verdict.PASSED,
    # no exception, another one, and none in time
    "def f(x):\n    return x / 2": Verdict.WRONG_ANSWER,
    "def f(x):\n    return ValueError": Verdict.WRONG_ANSWER,
    # as in Python, the call has returned before the first item is asked for
    "def f(x):\n    if x < 0:\n        raise ValueError(x)\n    yield x / 2": Verdict.WRONG_ANSWER,
    "def f(x):\n    return map(int, 'x')": Verdict.WRONG_ANSWER,
    "def f(x):\n    raise KeyError(x)": Verdict.RUNTIME_ERROR,
    "def f(x):\n    raise Exception(x)": Verdict.RUNTIME_ERROR,
    "def f(x):\n    while True:\n        pass": Verdict.TIME_LIMIT,
    "def f(x):\n    return [0] * 10 ** 7": Verdict.OUTPUT_LIMIT,  # what cannot be sent is a ValueError of ours
    "class E(Exception):\n    pass\nE.__name__ = 'ValueError'\ndef f(x):\n    raise E": Verdict.RUNTIME_ERROR,
}


def said(sandbox: Sandbox, program: str, suite: str, problem: Problem = PROBLEM) -> list[Verdict]:
    return verdicts(*judged(sandbox, problem, [program], [suite], Limits(cpu_s=0.5)))


@pytest.mark.parametrize(("program", "verdict"), PROGRAMS.items())
def test_a_program_passes_iff_it_raises_the_exception(sandbox: Sandbox, program: str, verdict: Verdict) -> None:
    assert said(sandbox, program, RAISES) == [verdict]


def test_its_call_may_have_any_keyword_and_a_recursion_without_end_is_no_exception_of_it(sandbox: Sandbox) -> None:
    solution = "def f(self, function, expected):\n    raise RuntimeError"
    suite = "import pytest\nwith pytest.raises(RuntimeError):\n    f(self=1, function=2, expected=3)"
    problem = replace(PROBLEM, solution=solution)
    assert said(sandbox, solution, suite, problem=problem) == [Verdict.PASSED]
    endless = "def f(self, function, expected):\n    return f(self, function, expected)"
    assert said(sandbox, endless, suite, problem=problem) == [Verdict.RUNTIME_ERROR]


@pytest.mark.parametrize(
    "setup",
    ["{} = lambda x: x", "def g(x): return x\n{} = g", "import functools\n@functools.cache\ndef {}(x): return x"],
)
def test_arguments_that_do_not_fit_say_nothing_of_any_function(sandbox: Sandbox, setup: str) -> None:
    problem = replace(PROBLEM, solution=setup.format("f"))
    suite = "import pytest\nwith pytest.raises(TypeError):\n    f()\nwith pytest.raises(TypeError):\n    f(y=1)"
    assert said(sandbox, problem.solution, suite, problem=problem) == []


@pytest.mark.parametrize("rules", ["fixed", "utrl"])
def test_a_tolerance_that_is_missed_is_a_wrong_prediction_and_not_filled(sandbox: Sandbox, rules: str) -> None:
    suite = "import pytest\nassert f(1) == pytest.approx(0.5)\nassert f(3) == pytest.approx(7)\nassert f(5) == 2.5"
    (report,) = judged(sandbox, PROBLEM, [SOLUTION], [suite], rules=preset(rules))
    valid = report.suites[0].suite
    assert [case.case.expression for case in valid.cases] == ["bool(f(1) == pytest.approx(0.5))", "f(5)"]
    assert reasons(valid) == [RejectionReason.WRONG_PREDICTION]


def test_a_program_that_is_near_enough_passes(sandbox: Sandbox) -> None:
    suite = "from pytest import approx\nassert f(1) == approx(0.5, abs=0.1)\nassert f(2) == approx(1)"
    near = "def f(x):\n    return x / 2 + 0.01"
    assert said(sandbox, near, suite) == [Verdict.PASSED, Verdict.WRONG_ANSWER]


@pytest.mark.parametrize("rules", ["fixed", "utrl"])
def test_an_exception_that_the_solution_does_not_raise_is_a_wrong_prediction(sandbox: Sandbox, rules: str) -> None:
    suite = "import pytest\nwith pytest.raises(ValueError):\n    f(1)\nassert f(5) == 2.5"
    (report,) = judged(sandbox, PROBLEM, [SOLUTION], [suite], rules=preset(rules))
    valid = report.suites[0].suite
    assert [case.case.expression for case in valid.cases] == ["f(5)"]
    assert reasons(valid) == [RejectionReason.WRONG_PREDICTION]
