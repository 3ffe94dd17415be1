"""What a test makes of an answer does not tell it from an equal one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codea1_env.facts.answers import Comparison
from codea1_env.facts.verdicts import TOO_MANY, CandidateReport, EntryPointCall, Outcome, OutcomeKind, Verdict
from codea1_env.judging.equal_answers import answers_equal, can_be_repeated, is_equal_so_far, yields_equal_items
from codea1_env.problems import Problem
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Sandbox
from codea1_env.values import encode
from tests.support.several_answers import judged, verdicts

SUM = "def f(x): return 0.1 * x + 0.2 * x"
NEAR, FAR = "def f(x): return 0.3 * x", "def f(x): return 0.4 * x"


def report_on(solution: str, program: str, text: str, sandbox: Sandbox, rules: str = "fixed") -> CandidateReport:
    problem = Problem("toy", "def f(x): ...", "f", solution, ())
    (report,) = judged(sandbox, problem, [program], [text], rules=replace(preset(rules), drop_vacuous=False))
    return report


def verdicts_on(solution: str, program: str, text: str, sandbox: Sandbox, rules: str = "fixed") -> list[Verdict]:
    report = report_on(solution, program, text, sandbox, rules)
    assert report.suites[0].suite.rejections == ()
    return verdicts(report)


@pytest.mark.parametrize(
    "condition",
    [
        *("repr(f(1)) == '0.30000000000000004'", "str(f(1)) == '0.30000000000000004'"),
        *("f'{f(1)}' == '0.30000000000000004'", "f(1) != 0.3", "f(1) > 0.3", "f(1) in (0.30000000000000004, 7)"),
        *("{0.30000000000000004: True}.get(f(1)) is True", "[f(1)].count(0.3) == 0"),
        *("int(f(1) * 1e17) > int(0.3 * 1e17)", "f(1) - 0.3 > 0 and f(2) > 0.1"),
        # nor where arguments are computed
        *("str([f(x) for x in [1]]) == '[0.30000000000000004]'", "repr(f(*[1])) == '0.30000000000000004'"),
        *("(lambda a: repr(f(a)))(1) == '0.30000000000000004'", "str(f(f(1))) == '0.09000000000000002'"),
        "all(f(x) * 10 > 3 for x in [1])",
    ],
)
def test_d15_no_expression_tells_equal_answers_apart_in_fixed(condition: str, sandbox: Sandbox) -> None:
    report = report_on(SUM, NEAR, f"assert {condition}", sandbox)
    assert verdicts(report) == [Verdict.PASSED]
    assert report.rechecks.equal_answers == 1
    assert verdicts_on(SUM, NEAR, f"assert {condition}", sandbox, "paper") == [Verdict.WRONG_ANSWER]


def test_other_answers_still_fail(sandbox: Sandbox) -> None:
    text = "assert str(f(1)) == '0.30000000000000004'\nassert f(2) < 0.7\nassert f(0) == 0 and f(1) < 0.35"
    assert verdicts_on(SUM, NEAR, text, sandbox) == [Verdict.PASSED] * 3
    assert verdicts_on(SUM, FAR, text, sandbox) == [Verdict.WRONG_ANSWER] * 3


SQUARE = "def f(x): return x * x"
WRITES = """
import os, struct
def frame(call, payload): return struct.pack("<cIQI", b"V", call, 0, len(payload)) + payload
"""


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("def f(x): return 1 + 1e-12 if x == 1 else -7", id="noise_ends_the_expression"),
        pytest.param("def f(x): return 1 + 1e-12 if x < 3 else -7", id="noise_later"),
        pytest.param(f"{WRITES}\ndef f(x): os.write(3, frame(0xFFFFFFFE, b'1') + b'junk' * 9)", id="junk_frame"),
        pytest.param(f"{WRITES}\ndef f(x): os.write(3, frame(0xFFFFFFFE, b'1') + b'j')", id="junk_byte"),
        pytest.param(f"{WRITES}\ndef f(x): os.write(3, frame(0xFFFFFFFE, b'1')); os._exit(0)", id="answer_and_exit"),
        pytest.param(f"{WRITES}\ndef f(x): os.write(3, frame(0xFFFFFFFE, b'1')); os.abort()", id="answer_and_abort"),
        pytest.param("n = 0\ndef f(x):\n  global n; n += 1\n  return x * x if n == 1 else 1 / 0", id="right_once"),
        pytest.param("def f(x): raise IndexError", id="raises"),
        pytest.param("def f(x): return (x * x,)", id="tuple"),
    ],
)
def test_what_was_said_before_the_end_proves_nothing(program: str, sandbox: Sandbox) -> None:
    (verdict,) = verdicts_on(SQUARE, program, "assert all(f(i) == i * i for i in range(1, 50))", sandbox)
    assert verdict.is_failure


def test_a_program_that_writes_what_nobody_asked_for_fails_all_its_cases(sandbox: Sandbox) -> None:
    program = f"{WRITES}\ndef f(x):\n  if x == 3: os.write(3, b'junk' * 9)\n  return x * x"
    text = "assert f(1) == 1\nassert f(2) + 0 == 4\nassert f(3) + 0 == 9\nassert f(4) == 16"
    assert verdicts_on(SQUARE, program, text, sandbox) == [Verdict.RUNTIME_ERROR] * 4


def test_exceptions_of_one_class_are_equal_answers(sandbox: Sandbox) -> None:
    solution = "def f(x):\n  if x < 0: raise ValueError('negative')\n  return {'a': x, 'b': 1}"
    same = "def f(x):\n  if x < 0: raise ValueError('no')\n  return {'b': 1, 'a': x}"
    other = same.replace("ValueError", "KeyError")
    text = "assert str([f(n) for n in [1, 2]]) == \"[{'a': 1, 'b': 1}, {'a': 2, 'b': 1}]\""
    assert verdicts_on(solution, same, text, sandbox) == [Verdict.PASSED]
    assert verdicts_on(solution, other, text, sandbox) == [Verdict.PASSED]
    raised, expected = Outcome(OutcomeKind.ERROR, error_type="KeyError"), Outcome(OutcomeKind.ERROR, error_type="E")
    assert answers_equal(expected, expected, EXACT)
    assert not answers_equal(expected, raised, EXACT)


def test_what_a_program_does_to_its_arguments_counts_where_a_test_can_see_it(sandbox: Sandbox) -> None:
    copies, sorts = "def f(x): return sorted(x)", "def f(x):\n  x.sort()\n  return list(x)"
    text = "assert (lambda x: (f(x), x))([3, 1, 2]) == ([1, 2, 3], [3, 1, 2])\nassert f([2, 1]) == [1, 2]"
    assert verdicts_on(copies, sorts, text, sandbox) == [Verdict.WRONG_ANSWER, Verdict.PASSED]
    text = "assert (lambda x: [f(x), x])([[3], [1], [2]]) == [[[1], [2], [3]]] * 2"
    assert verdicts_on(sorts, sorts.replace("x.sort()", "x[:] = sorted(x)"), text, sandbox) == [Verdict.PASSED]
    assert verdicts_on(sorts, copies, text, sandbox) == [Verdict.WRONG_ANSWER]


FORGIVING, EXACT = Comparison(rel_tol=1e-9), Comparison()


def call(argument: object, answer: object) -> EntryPointCall:
    return EntryPointCall(encode(((argument,), {})), Outcome(OutcomeKind.VALUE, encode(answer)))


ONE, TWO, NEARLY_ONE = call(1, 1.0), call(2, 2.0), call(1, 1 + 1e-12)
BROKEN = EntryPointCall(b"[", Outcome(OutcomeKind.VALUE, b"{"))


def test_answers_must_be_equal_up_to_where_the_test_goes_another_way() -> None:
    assert is_equal_so_far([ONE, TWO], [ONE, TWO], EXACT)
    assert is_equal_so_far([ONE, TWO], [NEARLY_ONE], FORGIVING)
    assert not is_equal_so_far([ONE, TWO], [NEARLY_ONE], EXACT)
    assert not is_equal_so_far([ONE, ONE], [ONE, call(1, None)], FORGIVING)  # the second time
    assert not is_equal_so_far([ONE, TWO], [ONE, TWO._replace(answer=None)], FORGIVING)
    assert not is_equal_so_far([ONE, TWO], [ONE, TOO_MANY], FORGIVING)
    assert is_equal_so_far([ONE], [TWO], FORGIVING)
    assert not is_equal_so_far([ONE], [BROKEN._replace(arguments=ONE.arguments)], FORGIVING)


def test_only_a_whole_record_of_calls_can_be_repeated() -> None:
    assert can_be_repeated([ONE, TWO])
    assert not can_be_repeated([])
    assert not can_be_repeated([ONE, TOO_MANY])
    assert not can_be_repeated([ONE._replace(answer=None)])


def test_an_answer_is_its_value_and_what_is_left_of_its_arguments() -> None:
    value, items = Outcome(OutcomeKind.VALUE, b"1"), Outcome(OutcomeKind.OPAQUE, items=b"[1]")
    for answer in (value, items):
        changed = Outcome(answer.kind, answer.value, items=answer.items, arguments=b"[1]")
        assert answers_equal(answer, answer, EXACT)
        assert answers_equal(changed, changed, EXACT)
        assert not answers_equal(answer, changed, EXACT)
        assert not answers_equal(changed, answer, EXACT)
    assert not answers_equal(items, Outcome(OutcomeKind.OPAQUE, items=b"[2]"), EXACT)
    assert not answers_equal(Outcome(OutcomeKind.OPAQUE), Outcome(OutcomeKind.OPAQUE), EXACT)
    assert not answers_equal(BROKEN.answer or value, value, EXACT)


@pytest.mark.parametrize("expected", [[1, 2], (1, 2), {1, 2}, frozenset({2, 1})])
def test_an_iterator_of_the_right_items_is_neither_right_nor_wrong(expected: object) -> None:
    value = Outcome(OutcomeKind.VALUE, encode(expected))
    assert yields_equal_items(value, Outcome(OutcomeKind.OPAQUE, items=b"[1,2]"), EXACT)
    assert not yields_equal_items(value, Outcome(OutcomeKind.OPAQUE, items=b"[1,3]"), EXACT)
    assert not yields_equal_items(value, Outcome(OutcomeKind.OPAQUE), EXACT)


def test_a_result_that_cannot_be_sent_is_used_as_in_python_or_doubted(sandbox: Sandbox) -> None:
    solution, yields = "def f(x): return [x, x + 1]", "def f(x):\n  yield x\n  yield x + 1"
    text = "assert list(f(3)) == [3, 4]\nassert sorted(f(4)) == [4, 5]\nassert f(5) == [5, 6]\nassert f(6)[0] == 6"
    computed = "\nassert f(3 + 4) == [7, 8]"  # what it returns cannot be sent: it fails as a direct call does
    report = report_on(solution, yields, text + computed, sandbox)
    passed, failed = Verdict.PASSED, Verdict.WRONG_ANSWER
    assert verdicts(report) == [passed, passed, failed, Verdict.RUNTIME_ERROR, failed]
    shelf = "class S:\n  def __init__(self, items): self.items = items\n  __iter__ = lambda self: iter(self.items)\n"
    shelf += "  __getitem__ = lambda self, n: self.items[n]\ndef f(x): return S([x, x + 1])"
    report = report_on(solution, shelf, text, sandbox)
    assert verdicts(report) == [passed, passed, failed]
    assert [rejection.reason.value for rejection in report.suites[0].suite.rejections] == ["unknowable"]
    assert report.suites[0].suite.n_invalid == 0
    assert report.rechecks.undecided == 1
    wrong = report_on(solution, shelf.replace("x + 1", "x"), text, sandbox)
    assert [verdict.is_failure for verdict in verdicts(wrong)] == [True] * 4


def test_dicts_in_another_order_are_equal_answers_under_any_rules(sandbox: Sandbox) -> None:
    solution = "def f(s): return {c: s.count(c) for c in s}"
    other = "def f(s): return {c: s.count(c) for c in sorted(s)}"
    assert verdicts_on(solution, other, "assert list(f('b' + 'a')) == ['b', 'a']", sandbox, "paper") == [Verdict.PASSED]


def test_an_answer_that_changes_when_it_is_asked_again_is_none(sandbox: Sandbox) -> None:
    forgets = "def f(x, seen=set()):\n    if x in seen: return None\n    seen.add(x)\n    return x + 1\n"
    text = "assert f(3) + f(3) == 8"
    assert verdicts_on("def f(x): return x + 1", forgets, text, sandbox) == [Verdict.RUNTIME_ERROR]
