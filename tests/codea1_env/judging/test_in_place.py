"""Problems whose functions change their arguments (`in_place.toml`)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codea1_env.facts.call_forms import PLAIN_CALLS, CallForms
from codea1_env.facts.submissions import RejectionReason
from codea1_env.facts.verdicts import Verdict
from codea1_env.problems import Problem
from codea1_env.sandbox import Sandbox
from tests.support.replies import block, reasons
from tests.support.several_answers import judged, verdicts

IN_PLACE = CallForms(in_place=True)


def read(text: str, forms: CallForms = IN_PLACE) -> list[str]:
    """The asserts of a suite, as the cases state them, and the reasons of its rejections."""
    suite = block(text, forms=forms)
    return [case.to_assert() for case in suite.cases] + reasons(suite)


AFTER = "(lambda xs: (f(xs), xs)[1])([3, 1])"
SORTED, ALL = f"assert {AFTER} == [1, 3]", "assert bool(all((f([3, 1]) for _ in [0]))) == True"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("xs = [3, 1]\nf(xs)\nassert xs == [1, 3]", [SORTED]),
        ("xs = [3, 1]\nr = f(xs)\nassert xs == [1, 3]\nassert r == 2", [SORTED, "assert f([3, 1]) == 2"]),
        ("xs = [3, 1]\nassert f(xs) is None\nassert xs == [1, 3]", ["assert f([3, 1]) == None", SORTED]),
        ("xs = [3, 1]\nold = xs[:]\nf(xs)\nassert xs == sorted(old)", [f"assert {AFTER} == sorted([3, 1][:])"]),
        ("xs = [3, 1]\nsame = xs\nf(xs)\nassert same == [1, 3]", ["not_an_assert"]),
        ("xs = [3, 1]\nheld = [xs, 1]\nf(xs)\nassert f(held) == 1", ["not_an_assert"]),
        ("xs = [[3], [1]]\nold = list(xs)\nf(xs)\nassert f(old) == 1", ["not_an_assert"]),
        ("xs = [3, 1]\nassert all(f(xs) for _ in [0])\nassert f(xs) == 1", [ALL, "not_an_assert"]),
        ("f([1])\nassert f([2]) == 1", ["assert f([2]) == 1"]),
        ("xs = [1]\nf(xs)\nassert (f(xs), 5)[1] == 5", ["no_entry_point_call"]),
        ("assert (lambda xs: (f([1]), xs)[1])([2]) == [2]", ["no_entry_point_call"]),
        ("open = [1]\nf(open)\nassert open == [1]", ["assert (lambda open: (f(open), open)[1])([1]) == [1]"]),
        ("f(__import__)\nassert f([1]) == 1", ["assert f([1]) == 1"]),
    ],
)
def test_reading_turns_statements_into_cases(text: str, found: list[str]) -> None:
    assert read(text) == found


def test_other_problems_have_tests_of_arguments_too() -> None:
    text = "xs = [3, 1]\nf(xs)\nassert xs == [1, 3]\nassert f([1]) == 1\nassert (lambda x: (f(x), x)[1])([1]) == [1]"
    after = ["assert (lambda xs: (f(xs), xs)[1])([3, 1]) == [1, 3]", "assert (lambda x: (f(x), x)[1])([1]) == [1]"]
    assert read(text, PLAIN_CALLS) == [after[0], "assert f([1]) == 1", after[1]]


SORT = Problem("toy/sort", "Sort xs in place.", "f", "def f(xs): xs.sort()", (), calls=IN_PLACE)


def verdict_on(program: str, sandbox: Sandbox) -> Verdict:
    (report,) = judged(sandbox, SORT, [program], ["xs = [3, 1, 2]\nf(xs)\nassert xs == [1, 2, 3]"])
    (found,) = verdicts(report)
    return found


@pytest.mark.parametrize(
    ("program", "verdict"),
    [
        ("def f(xs):\n    xs.sort()\n    return xs", Verdict.PASSED),
        ("def f(xs): xs[:] = [float(x) for x in sorted(xs)]", Verdict.PASSED),
        ("def f(xs): return sorted(xs)", Verdict.WRONG_ANSWER),  # a result is not a change
        pytest.param("def f(xs):\n    while True: xs += [1] * 1_000_000", Verdict.MEMORY_LIMIT, marks=pytest.mark.slow),
    ],
)
def test_a_verdict_is_one_on_the_change(sandbox: Sandbox, program: str, verdict: Verdict) -> None:
    assert verdict_on(program, sandbox) is verdict


@pytest.mark.parametrize("claim", ["f(xs) is None", "f([3, 1]) == None", "f([1]) == [1]"])
def test_that_nothing_is_returned_is_no_test(sandbox: Sandbox, claim: str) -> None:
    returning = "def f(xs):\n    xs.sort()\n    return xs"
    (report,) = judged(sandbox, SORT, [returning], [f"xs = [3, 1, 2]\nassert {claim}\nassert xs == [3, 1, 2]"])
    (suite,) = report.suites
    (rejection,) = (each for each in suite.suite.rejections if each.reason is RejectionReason.VACUOUS)
    assert "assert what the argument is" in rejection.detail
    assert all(case.verdict is Verdict.PASSED for case in suite.cases)


def test_a_result_of_none_is_a_test_elsewhere(sandbox: Sandbox) -> None:
    (report,) = judged(sandbox, replace(SORT, calls=PLAIN_CALLS), ["def f(xs): return 1"], ["assert f([1]) is None"])
    assert verdicts(report) == [Verdict.WRONG_ANSWER]


@pytest.mark.parametrize(
    "program",
    [
        *("def f(xs): xs[:] = [0] * 1_000_000", "def f(xs): xs.append(xs)"),
        "class A:\n    __eq__ = lambda *_: True\ndef f(xs): xs[:] = [A(), A(), A()]",
        "class A(int):\n    __eq__ = lambda *_: True\ndef f(xs): xs[:] = [A(), A(), A()]",
    ],
)
def test_hostile_changes_fail(sandbox: Sandbox, program: str) -> None:
    assert verdict_on(program, sandbox).is_failure


def test_effects_are_tests_beside_results_and_no_duplicates(sandbox: Sandbox) -> None:
    problem = replace(SORT, solution="def f(xs):\n    xs.sort()\n    return len(xs)")
    text = "xs = [3, 1]\nassert f(xs) == 2\nassert xs == [1, 3]\nassert xs[0] == 1\nassert len(xs) < 10 ** 9"
    (report,) = judged(sandbox, problem, ["def f(xs): return len(xs)"], [text])
    assert verdicts(report) == [Verdict.PASSED, Verdict.WRONG_ANSWER]
    assert reasons(report.suites[0].suite) == [RejectionReason.DUPLICATE, RejectionReason.VACUOUS]
