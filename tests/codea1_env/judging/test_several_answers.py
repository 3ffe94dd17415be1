"""Problems with several right answers (`several_answers.toml`): orders, tolerances and checkers."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env import values
from codea1_env.errors import UserError
from codea1_env.facts.answers import AnswerOrder, AnswerRules
from codea1_env.facts.submissions import RejectionReason
from codea1_env.facts.verdicts import Verdict
from codea1_env.judging.problem_check import CheckStatus, check_problems
from codea1_env.problems import Problem
from codea1_env.problems.layouts import read_row
from codea1_env.problems.own_rows import problem_to_row
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Limits, Sandbox
from tests.support.several_answers import Example, each_of, examples_of, judged, verdicts

EXAMPLES = examples_of(Path(__file__).with_name("several_answers.toml"))
RULES = preset("fixed")

PLAIN = """
import json, math, sys
given = json.loads(sys.stdin.read())
program, checker, rules, call, expected = given
names, tools = {}, {}
exec(program, names)
exec(checker, tools)
asked = []
def entry_point(*args, **kwargs):
    asked.append((args, kwargs))
    return names[rules["name"]](*args, **kwargs)
answer = eval(call, {rules["name"]: entry_point})
right = eval(expected)
def close(one, other):
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(close, one, other))
    tolerance = rules["tolerance"]
    return one == other or (isinstance(one, float) and math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance))
def loose(value, levels):
    if levels == 0 or not isinstance(value, (list, tuple)):
        return value
    return (type(value).__name__, sorted((loose(item, levels - 1) for item in value), key=repr))
if checker and answer != right:
    (args, kwargs), = asked
    print(tools["check"]((*args, *kwargs.values()), right, answer))
else:
    print(loose(answer, rules["levels"]) == loose(right, rules["levels"]) or close(right, answer))
"""


def in_plain_python(example: Example, program: str, test: str) -> bool:
    """Whether plain Python says that a program passes a golden test, in a process of its own."""
    call, expected = test.removeprefix("assert ").split(" == ")
    answers, name = example.problem.answers, example.problem.entry_point
    rules = {"name": name, "tolerance": answers.tolerance, "levels": answers.unordered_levels}
    checker = answers.checker
    if name == "two_that_add_up":  # plain Python does not know the default that the checker gets
        call = call.replace("])", "], 10)")
    given = json.dumps([program, checker, rules, call, expected])
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PLAIN], input=given, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() == "True"


@each_of(EXAMPLES)
def test_right_programs_pass_tests_that_demand_the_solutions_answer(sandbox: Sandbox, example: Example) -> None:
    calls = [test.removeprefix("assert ").split(" == ")[0] for test in example.golden]
    name, wrong = example.problem.entry_point, [each.program for each in example.problem.wrong_programs]
    demanding = [f"assert str({call}) == 'x'" for call in calls]  # corrected by the solution's value
    reports = judged(sandbox, example.problem, [*example.right, *wrong], [*example.golden, *demanding])
    for report in reports[: len(example.right)]:
        assert report.loads
        assert set(verdicts(report)) == {Verdict.PASSED}, name
    for report in reports[len(example.right) :]:
        assert Verdict.WRONG_ANSWER in verdicts(report)


@each_of(EXAMPLES)
def test_predictions_of_other_right_answers_are_right(sandbox: Sandbox, example: Example) -> None:
    calls = [test.removeprefix("assert ").split(" == ")[0] for test in example.golden]
    namespace: dict[str, object] = {}
    exec(example.other, namespace)
    asserts = [f"assert {call} == {eval(call, namespace)!r}" for call in calls]
    (report,) = judged(sandbox, example.problem, [example.problem.solution], [*asserts, f"assert {calls[0]} == 'no'"])
    *right, wrong = [case.case.prediction_right for suite in report.suites for case in suite.cases]
    assert right == [True] * len(calls)
    assert wrong is False
    assert set(verdicts(report)) == {Verdict.PASSED}


@pytest.mark.slow
@each_of(EXAMPLES)
def test_verdicts_are_those_of_plain_python(sandbox: Sandbox, example: Example) -> None:
    wrong = [each.program for each in example.problem.wrong_programs]
    programs = [example.problem.solution, example.other, *wrong]
    reports = judged(sandbox, example.problem, programs, example.golden)
    for program, report in zip(programs, reports, strict=True):
        said = [in_plain_python(example, program, test) for test in example.golden]
        assert [verdict is Verdict.PASSED for verdict in verdicts(report)] == said


SIGN_CHECKER = """
def check(arguments, expected, answer):
    return type(answer) in (int, float) and (answer > 0) - (answer < 0) == expected
"""
SAME_SIGN = AnswerRules(checker=SIGN_CHECKER)
SIGN = Problem(
    "toy/sign", "Return a number of x's sign.", "f", "def f(x): return (x > 0) - (x < 0)", (), answers=SAME_SIGN
)
ODD = {
    "huge": "def f(x): return -x * 10 ** 200_000",
    "long": "def f(x): return [0] * 10_000_000",
    "deep": "def f(x):\n    found = []\n    for _ in range(10_000):\n        found = [found]\n    return found",
    "cyclic": "def f(x):\n    found = []\n    found.append(found)\n    return found",
    "always equal": "class A(int):\n    __eq__ = __lt__ = __gt__ = lambda *_: True\n    __hash__ = None\n"
    "def f(x): return A(-x)",
    "object": "class A:\n    __eq__ = __gt__ = __sub__ = lambda *_: 1\ndef f(x): return A()",
    "posing class": "class A(float):\n    __class__ = int\n    __gt__ = lambda *_: True\ndef f(x): return A(-x)",
    "nan": "def f(x): return float('nan')",
    "text": "def f(x): return '1'",
    "nothing": "def f(x): return None",
    "patched builtins": "import builtins\nbuiltins.type = lambda *_: int\nbuiltins.check = lambda *_: True\n"
    "def f(x): return []",
    "own checker": "def check(*_): return True\nchecked_answer = check\ndef f(x): return 'x'",
}


def test_any_answer_of_the_right_kind_passes(sandbox: Sandbox) -> None:
    programs = ["def f(x): return 7 * x", "def f(x): return x / 2", "def f(x): return abs(x)"]
    reports = judged(sandbox, SIGN, programs, ["assert f(3) == 1", "assert f(-3) == -5"])
    passed = [Verdict.PASSED] * 2
    assert [verdicts(each) for each in reports] == [passed, passed, [Verdict.PASSED, Verdict.WRONG_ANSWER]]


@pytest.mark.parametrize("program", ODD.values(), ids=ODD)
def test_hostile_answers_fail_and_mask_nothing(sandbox: Sandbox, program: str) -> None:
    tests = ("assert f(3) == 1", "assert f(-3) == -1", "assert f(2) + 0 == 1")
    (report,) = judged(sandbox, SIGN, [program], tests)
    assert not report.has_internal_error
    assert all(verdict.is_failure for verdict in verdicts(report))


FORGED = """
import os, struct

def f(x):
    answer = {answer!r}
    os.write(3, struct.pack("<cIQI", b"V", 0, 1000, len(answer)) + answer)
    os._exit(0)
"""
NOT_CHECKED = {
    "long": "def f(x): return [0] * 2000",
    "array": "import numpy\ndef f(x): return numpy.zeros(3)",
    "signalling nan": "from decimal import Decimal\ndef f(x): return [Decimal('sNaN')]",
    "a class that cannot exist": FORGED.format(answer=b'{"k":["a b",[["x y",1]]]}'),
    "a set that cannot exist": FORGED.format(answer=b'{"s":[{"D":"sNaN"}]}'),
}


@pytest.mark.parametrize("program", NOT_CHECKED.values(), ids=NOT_CHECKED)
def test_answers_that_break_ordinary_checkers_are_wrong_and_mask_nothing(sandbox: Sandbox, program: str) -> None:
    if "numpy" in program:
        pytest.importorskip("numpy", reason="the program makes an array")
    checker = (
        "def check(arguments, expected, answer):\n"
        "    if isinstance(answer, list) and any(x == y and len(answer) > 999 for x in answer for y in answer):\n"
        "        while True: pass\n"
        "    return answer == expected"
    )
    problem = replace(SIGN, answers=AnswerRules(checker=checker))
    (report,) = judged(sandbox, problem, [program], ["assert f(3) == 1"])
    assert verdicts(report) == [Verdict.WRONG_ANSWER]


FAILING = {
    "raises on what is no number": "import math\n  return math.isclose(answer, expected, rel_tol=1e-3)",
    "overflows": "return abs(1.0 + 2.0 * answer + float(answer) ** 3) < 1e-4 or answer == expected",
    "compares": "return bool(answer[0] < 3) if answer != expected else True",
    "returns no bool": "return answer == expected or answer",
    "hangs on long answers": "while answer != expected and len(str(answer)) > 300: pass\n  return answer == expected",
    "exits": "import os\n  return answer == expected or (os._exit(0) if answer == 10**400 else False)",
}
ANSWERS = [
    *("10 ** 400", "1e300", "None", "'x'", "[]", "{}", "float('nan')", "1j", "[[1]]", "(x for x in ())", "b'x'", "f"),
]


@pytest.mark.parametrize("checker", FAILING.values(), ids=FAILING)
def test_an_answer_on_which_a_checker_fails_that_knows_the_solutions_is_wrong(sandbox: Sandbox, checker: str) -> None:
    problem = replace(SIGN, answers=AnswerRules(checker=f"def check(arguments, expected, answer):\n  {checker}\n"))
    programs = [f"def f(x): return {answer}" for answer in ANSWERS]
    tests = ["assert f(3) == 1", "assert f(-3) + 0 == -1"]
    reports = judged(sandbox, problem, [SIGN.solution, *programs], tests, Limits(cpu_s=0.4))
    assert verdicts(reports[0]) == [Verdict.PASSED] * 2
    for answer, report in zip(ANSWERS, reports[1:], strict=True):
        assert all(verdict.is_failure for verdict in verdicts(report)), answer
        assert not report.has_internal_error, answer


def test_answers_after_those_that_use_up_a_checker_are_asked_again(sandbox: Sandbox) -> None:
    hangs = "def check(arguments, expected, answer):\n  while answer == 7: pass\n  return answer % 2 == expected % 2\n"
    problem = replace(SIGN, answers=AnswerRules(checker=hangs))
    program = "def f(x): return 7 if x < 10 else 3"
    tests = [f"assert f({x}) == 1" for x in (*range(1, 5), 11, 12)]
    (report,) = judged(sandbox, problem, [program], tests, Limits(cpu_s=0.3))
    assert verdicts(report) == [Verdict.WRONG_ANSWER] * 4 + [Verdict.PASSED] * 2


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise KeyError('x')", "the checker failed: KeyError"),
        ("return 1", "the checker returned 1, not True or False"),
        pytest.param("while True: pass", "the checker failed: ", marks=pytest.mark.slow),
        ("import os; os._exit(0)", "the checker failed: "),
    ],
)
def test_a_checker_that_fails_is_masked(sandbox: Sandbox, body: str, said: str) -> None:
    checker = f"def check(arguments, expected, answer):\n    {body}"
    problem, limits = replace(SIGN, answers=AnswerRules(checker=checker)), Limits(cpu_s=0.4)
    reports = judged(sandbox, problem, [SIGN.solution, "def f(x): return 2 * x"], ["assert f(3) == 1"], limits)
    assert verdicts(reports[0]) == [Verdict.PASSED]  # an equal answer needs no checker
    assert verdicts(reports[1]) == [Verdict.INTERNAL_ERROR]
    assert reports[1].suites[0].cases[0].actual.startswith(said)
    # A test that depends on the answer, and a prediction, are masked, too.
    (report,) = judged(sandbox, problem, ["def f(x): return 2 * x"], ["assert f(3) < 2"], limits)
    assert report.has_internal_error
    (report,) = judged(sandbox, problem, [SIGN.solution], ["assert f(3) == 5"], limits)
    assert report.suites[0].suite.internal_error


@pytest.mark.parametrize(
    ("checker", "said"),
    [
        ("def check(arguments, expected, answer): return answer > 0", "the checker failed: TypeError"),
        ("def check(arguments, expected, answer): return True", "the checker accepts every answer"),
        ("def check(arguments, expected, answer): return False", "the checker rejects the solution's answer 1"),
        ("def check(arguments, expected): return False", "the checker failed: TypeError"),
        ("import nothing_like_this\ndef check(*_): return True", "the checker does not load: ModuleNotFoundError"),
        ("def check(*_): return type(_[2]) is int and -2 < _[2] < 2", "a wrong program passes all golden tests: note"),
    ],
)
def test_the_check_of_problems_names_what_is_wrong_with_a_checker(sandbox: Sandbox, checker: str, said: str) -> None:
    row = problem_to_row(replace(SIGN, answers=AnswerRules(checker=checker)))
    wrong = {"program": "def f(x): return -1", "note": "note", "subtlety": 1}
    problem = read_row(row | {"golden": ["assert f(3) == 1", "assert f(-2) == -1"], "wrong_programs": [wrong]})
    (found,) = check_problems([problem], sandbox)
    assert found.status is CheckStatus.WRONG
    assert found.detail.startswith(said)


def test_the_arguments_have_the_order_of_the_solutions_parameters(sandbox: Sandbox) -> None:
    rules = AnswerRules(checker="def check(arguments, expected, answer): return answer == list(arguments)")
    solution = "def f(a, b: int = 2, *rest, c=None, d=[1], **more) -> int: return 0"
    program = "def f(a, b=2, *rest, c=None, d=[1], **more): return [a, b, c, d, *rest, *more.values()]"
    tests = ("assert f(1) == 0", "assert f(b=5, a=4) == 0", "assert f(1, 2, 3, d=4, e=5) == 0")
    (report,) = judged(sandbox, replace(SIGN, solution=solution, answers=rules), [program], tests)
    assert verdicts(report) == [Verdict.PASSED] * 3


def test_a_call_whose_arguments_no_checker_can_get_is_rejected(sandbox: Sandbox) -> None:
    solution = "def f(xs, x): return xs.index(x)"
    checker = "def check(arguments, expected, answer): return arguments[0][answer] == arguments[1]"
    problem = replace(SIGN, solution=solution, answers=AnswerRules(checker=checker))
    other = "def f(xs, x): return max(n for n, each in enumerate(xs) if each == x)"
    (report,) = judged(sandbox, problem, [other], ["assert f([..., 1, 1], 1) == 1", "assert f([2, 1, 1], 1) == 1"])
    assert [each.reason for each in report.suites[0].suite.rejections] == [RejectionReason.OPAQUE_VALUE]
    assert verdicts(report) == [Verdict.PASSED]


ACCEPTS_ALL = "def check(a, e, x): return True"


@pytest.mark.parametrize(
    ("answers", "calls", "said"),
    [
        ({"order": "unorderd"}, {}, "unknown order of answers 'unorderd': did you mean 'unordered'?"),
        ({"tolerance": -1}, {}, "the tolerance of answers must be a number in [0, 1), got -1"),
        ({"tolerance": 1.0}, {}, "the tolerance of answers must be a number in [0, 1), got 1.0"),
        ({"tolerance": "1"}, {}, "the tolerance of answers must be a number in [0, 1), got '1'"),
        ({"checker": ACCEPTS_ALL, "tolerance": 0.5}, {}, "a checker decides alone"),
        ({"checker": "def chek(a, e, x): return True"}, {}, "does not define check"),
        ({"chekcer": "x"}, {}, "unknown field 'chekcer': did you mean 'checker'?"),
        ({"checker": 3}, {}, "must be text, got int"),
        ({}, {"functions": 1}, "functions must be true or false, got 1"),
        ({}, {"inplace": True}, "unknown field 'inplace': did you mean 'in_place'?"),
        ({"checker": ACCEPTS_ALL}, {"functions": True}, "a checker is not supported where arguments"),
        ({"order": "unordered"}, {"in_place": True}, "are not supported for functions that work in place"),
    ],
)
def test_broken_rules_of_answers_and_calls_are_refused(
    answers: dict[str, object], calls: dict[str, object], said: str
) -> None:
    with pytest.raises(UserError) as caught:
        read_row(problem_to_row(SIGN) | {"answers": answers, "calls": calls})
    assert said in str(caught.value)


def test_a_row_without_rules_is_what_it_was() -> None:
    plain = replace(SIGN, answers=AnswerRules())
    assert "answers" not in problem_to_row(plain)
    for problem in (SIGN, plain, *(each.problem for each in EXAMPLES)):
        assert read_row(json.loads(json.dumps(problem_to_row(problem)))) == problem


items = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "ab"]) | st.floats(-2, 2),
    lambda inner: st.lists(inner, max_size=4) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=8,
)
levels = st.integers(0, 2)


def same(one: object, other: object, n_levels: int, tolerance: float = 0.0) -> bool:
    encoded = values.encode(one), values.encode(other)
    return values.equal(*encoded, unordered_levels=n_levels, rel_tol=tolerance, abs_tol=tolerance)


@given(items, levels)
def test_equal_values_are_equal_in_any_order(value: object, n_levels: int) -> None:
    assert same(value, value, n_levels)


@given(items, items, levels)
def test_a_comparison_without_tolerance_is_symmetric(one: object, other: object, n_levels: int) -> None:
    assert same(one, other, n_levels) == same(other, one, n_levels)


@given(st.lists(items, max_size=5), st.randoms(use_true_random=False))
def test_a_shuffled_list_is_equal_unless_order_matters(value: list[object], random) -> None:
    shuffled = random.sample(value, len(value))
    assert same(value, shuffled, 1)
    assert same(value, shuffled, 2)
    assert same(value, shuffled, 0) == (value == shuffled)
    assert same(tuple(value), tuple(shuffled), 1)
    assert not same(value, tuple(shuffled), 1)


@given(st.lists(st.lists(st.integers(-2, 2), max_size=3), max_size=4), st.lists(st.integers(-2, 2), max_size=3))
def test_an_item_more_makes_a_difference(rows: list[list[int]], row: list[int]) -> None:
    assert not same(rows, [*rows, row], 2)
    assert same([*rows, row], [row[::-1], *rows[::-1]], 2)
    assert same([*rows, row], [row[::-1], *rows[::-1]], 1) == (sorted([*rows, row]) == sorted([*rows, row[::-1]]))


@given(st.lists(st.floats(-1e3, 1e3), max_size=5), st.floats(-1e-3, 1e-3))
def test_a_tolerance_applies_to_each_float(numbers: list[float], difference: float) -> None:
    near = [number + difference for number in numbers]
    assert same(numbers, near, 0, 2e-3)
    assert same(numbers, near[::-1], 1, 2e-3)
    assert same(numbers, [number + 10 for number in near], 0, 1e-9) == (not numbers)


def test_each_order_has_its_number_of_levels() -> None:
    assert [AnswerRules(order=order).unordered_levels for order in AnswerOrder] == [0, 1, 2]
    assert not AnswerRules().accepts_others


@pytest.mark.parametrize("kind", ["fractions.Fraction", "decimal.Decimal"])
def test_a_tolerance_applies_to_exact_numbers(sandbox: Sandbox, kind: str) -> None:
    module = kind.partition(".")[0]
    solution = f"import {module}\ndef f(x): return {kind}('0.5')"
    problem = Problem("toy/half", "Half.", "f", solution, (), answers=AnswerRules(tolerance=1e-3))
    programs = [solution.replace("0.5", text) for text in ("0.5", "0.5001", "0.6")]
    found = [verdicts(each)[0] for each in judged(sandbox, problem, programs, ["assert f(1) == 0.5"])]
    assert found == [Verdict.PASSED, Verdict.PASSED, Verdict.WRONG_ANSWER]
