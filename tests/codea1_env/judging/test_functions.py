"""Problems with functions as arguments and results (`functions.toml`)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codea1_env.facts.answers import AnswerRules
from codea1_env.facts.call_forms import PLAIN_CALLS, CallForms
from codea1_env.facts.submissions import RejectionReason
from codea1_env.facts.verdicts import Verdict
from codea1_env.judging.golden import run_golden
from codea1_env.problems import Problem
from codea1_env.problems.layouts import read_row
from codea1_env.problems.own_rows import problem_to_row
from codea1_env.rules.reading.function_calls import SentExpression, with_source_calls
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.sandbox.interface import BROKEN_HARNESS, Call, Harness, Job, Place
from tests.support.replies import block, reasons
from tests.support.several_answers import judged, verdicts

FUNCTIONS = CallForms(functions=True)


def read(text: str, forms: CallForms = FUNCTIONS) -> list[tuple[str, bool]]:
    """Each case with whether it is direct, and the reasons of the rejections."""
    suite = block(text, forms=forms)
    return [(case.expression, case.direct) for case in suite.cases] + [(each, False) for each in reasons(suite)]


@pytest.mark.parametrize(
    ("expression", "is_direct"),
    [
        *(("f(lambda x: x + 1, 3)", True), ("f([3, 1], key=len)", True), ("f(f(len), str)", True)),
        *(("f([lambda x: x, (len, str.upper)], {'a': abs})", True), ("[f(lambda x: x + k)(3) for k in [1]]", False)),
        *(("f(list(range(3)))", False), ("f(lambda x, seen=[]: seen, 3)", False)),
        *(("f(lambda x: x.pop(), [[1]])", False), ("f(list.pop, [[1]])", False)),
    ],
)
def test_closed_calls_are_direct(expression: str, is_direct: bool) -> None:
    assert read(f"assert {expression} == 4") == [(expression, is_direct)]


@pytest.mark.parametrize(
    ("test", "found"),
    [
        ("g = lambda x: x\nassert f(g)(2) == 2", ("f(lambda x: x)(2)", True)),
        ("h = f(2)\nassert h(3) == 5", ("f(2)(3)", True)),
        ("assert f(lambda x: x)(3) > 5", ("bool(f(lambda x: x)(3) > 5)", False)),
        ("import operator\nassert f(operator.add, 3) == 5", ("f(operator.add, 3)", False)),
        *(
            (f"assert f({argument}) == 5", ("forbidden_name", False))
            for argument in ("open", "lambda x: x.__class__", "lambda x: eval(x)", "lambda: f", "{lambda x: x}")
        ),
        ("assert f(lambda x: (yield)) == 5", ("syntax_error", False)),
        ("def g(x): return x\nassert f(g) == 5", ("not_an_assert", False)),
    ],
)
def test_tests_with_functions_are_read_or_rejected(test: str, found: tuple[str, bool]) -> None:
    assert found in read(test)


def test_other_problems_are_read_as_before() -> None:
    tests = "assert f(lambda x: x + 1, 3) == 4\nassert f(2)(3) == 5\nassert f([lambda x: x]) == 5"
    found = [("f(lambda x: x + 1, 3)", False), ("f(2)(3)", False), ("forbidden_name", False)]
    assert read(tests, PLAIN_CALLS) == found


def test_closed_calls_in_an_expression_are_sent_as_text() -> None:
    expression = "bool(f(lambda x: x)(3) > f(1) and g(f(k) for k in [f(len)]))"
    text = "bool(f.source_call('f(lambda x: x)(3)') > f(1) and g((f(k) for k in [f.source_call('f(len)')])))"
    assert with_source_calls(expression, (), "f") == SentExpression(text, ("f(lambda x: x)(3)", "f(len)"))
    for unchanged, imports in (("f(len)", ("from math import floor as len",)), ("f([1], k=2)", ())):
        assert with_source_calls(unchanged, imports, "f") == SentExpression(unchanged)


ADDER = Problem("toy/adder", "Add.", "f", "def f(n): return lambda x: x + n", (), calls=FUNCTIONS)


def test_what_cannot_be_sent_is_rejected_and_does_not_count(sandbox: Sandbox) -> None:
    tests = ["assert f(2) == 3", "assert [f(k)(3) for k in [1]] == [4]"]
    (report,) = judged(sandbox, ADDER, [ADDER.solution], tests)
    found = [each.reason for suite in report.suites for each in suite.suite.rejections]
    assert found == [RejectionReason.OPAQUE_VALUE] * 2
    assert sum(suite.suite.n_invalid for suite in report.suites) == 0


def test_functions_that_change_their_arguments_are_rejected(sandbox: Sandbox) -> None:
    solution = "def f(g, xs): return [x for x in xs if g(x)]"
    counting = "def f(g, xs):\n    any(g(x) for x in xs)\n    return [x for x in xs if g(x)]"
    tests = ["assert f(lambda x: x.pop() > 1, [[1, 2]]) == [[1]]", "assert f(lambda x: x[-1] > 1, [[3]]) == [[3]]"]
    (report,) = judged(sandbox, replace(ADDER, solution=solution), [counting], tests)
    assert reasons(report.suites[0].suite) == [RejectionReason.OPAQUE_VALUE]
    assert report.suites[0].suite.n_invalid == 0
    assert verdicts(report) == [Verdict.PASSED]


def test_a_relation_of_the_same_calls_is_a_duplicate(sandbox: Sandbox) -> None:
    text = "assert f(2)(3) == 5\nassert f(2)(3) > 4\nassert f(n=2)(4) == 6\nassert f(1)(4) >= 5"
    (suite,) = judged(sandbox, ADDER, [ADDER.solution], [text])[0].suites
    expressions = [case.case.case.expression for case in suite.cases]
    assert expressions == ["f(2)(3)", "f(n=2)(4)", "bool(f(1)(4) >= 5)"]
    assert reasons(suite.suite) == [RejectionReason.DUPLICATE]


def test_a_test_of_a_returned_function_that_always_holds_is_vacuous(sandbox: Sandbox) -> None:
    tests = ["assert f(2)(3) < 9 or f(2)(3) >= 9", "assert f(2)(3) != 'xy'"]
    (report,) = judged(sandbox, ADDER, [ADDER.solution], tests)
    assert [s.suite.rejections[0].reason for s in report.suites] == [RejectionReason.VACUOUS] * 2


@pytest.mark.parametrize(
    "program",
    [
        *("def f(n): return n + 3", "def f(n): return lambda x: (lambda: x + n)"),
        "class A:\n    __eq__ = __gt__ = __call__ = lambda *_: A()\ndef f(n): return A()",
        pytest.param("def f(n):\n    def g(x):\n        while True: pass\n    return g", marks=pytest.mark.slow),
        "import builtins\nbuiltins.len = lambda _: 0\ndef f(n): return len",
        *("def f(n): return lambda x: [0] * 10_000_000", "def f(n): raise SystemExit"),
    ],
)
def test_hostile_functions_fail(sandbox: Sandbox, program: str) -> None:
    tests = ["assert f(2)(3) == 5", "assert f(2)(3) > 4", "assert f(1)(8) == 9"]
    (report,) = judged(sandbox, ADDER, [program], tests, Limits(cpu_s=0.4))
    assert all(verdict.is_failure for verdict in verdicts(report))


def test_equal_answers_pass_whatever_a_test_does_with_them(sandbox: Sandbox) -> None:
    program = "def f(n): return lambda x: float(x + n)"
    (report,) = judged(sandbox, ADDER, [program, program], ["assert str(f(2)(3)) == '5'", "assert f(2)(3) == 5"])[:1]
    assert verdicts(report) == [Verdict.PASSED] * 2
    assert report.rechecks.equal_answers == 1


def test_orders_apply_to_answers_of_functions(sandbox: Sandbox) -> None:
    answers = AnswerRules(order="unordered")
    solution = "def f(g, xs): return [g(x) for x in xs]"
    row = problem_to_row(replace(ADDER, solution=solution, answers=answers))
    problem = read_row(row | {"golden": ["assert f(lambda x: x + 1, [1, 2]) == [2, 3]", "assert f(abs, [1]) == [1]"]})
    program = "def f(g, xs): return [g(x) for x in reversed(xs)]"
    tests = ["assert f(lambda x: x + 1, [1, 2]) == [3, 2]", "assert f(abs, [4, -5])[0] == 4"]
    (report,) = judged(sandbox, problem, [program], tests)
    assert verdicts(report) == [Verdict.PASSED] * 2
    assert report.suites[0].cases[0].case.prediction_right
    assert run_golden([(problem, program)], sandbox, preset("fixed").comparison)[0].passed


def test_a_harness_may_send_only_the_texts_of_its_job(sandbox: Sandbox) -> None:
    calls = (Call("f.source_call('f(1)')", (), Place.HARNESS), Call("f.source_call('f(2)')", (), Place.HARNESS))
    harness = Harness(is_trusted=False, source_calls=frozenset({"f(1)"}))
    (report,) = sandbox.run([Job("def f(x): return x", "f", calls, harness=harness)])
    first, second = report.outcomes
    assert first.value == b"1"
    assert second.error_type == BROKEN_HARNESS
