"""The release's reading of test replies: every claim of method.md 1.2 that was verified by running it."""

import pytest

from codea1_env.facts.submissions import COUNTED_AS_INVALID, RejectionReason, Suite
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Reading


def read(reply: str, **options: int) -> Suite:
    return read_suite(reply, Reading.RELEASE, entry_point="f", **options)


def block(text: str, **options: int) -> Suite:
    return read(f"```python\n{text}\n```", **options)


def claims(suite: Suite) -> list[str]:
    return [f"{case.expression} == {case.prediction}" for case in suite.cases]


def n_invalid(suite: Suite) -> int:
    return sum(rejection.reason in COUNTED_AS_INVALID for rejection in suite.rejections)


CLAIMS = {
    # Every operator counts as equality, and only the first comparator of a chain is kept (D7).
    **{
        f"assert f(1) {operator} [2]": ["f(1) == [2]"]
        for operator in ("==", "!=", "<", ">", "<=", ">=", "in", "not in", "is", "is not")
    },
    "assert f(1) < 2 < 3": ["f(1) == 2"],
    "assert abs(f(1)-2.5) < 1e-6": ["abs(f(1) - 2.5) == 1e-06"],
    # Asserts are found line by line; one may span lines, and another one ends it.
    "def test_f():\n    x = 1\n    assert f(x) == 2\n    for i in range(2):\n        assert f(i) == i": [
        *("f(1) == 2", "f(i) == i")
    ],
    "assert f([1,\n  2]) == 3\nassert f([4,\nassert f(5) == 6\nassert f(7) \\\n  == 8": [
        *("f([1, 2]) == 3", "f(5) == 6", "f(7) == 8")
    ],
    # Brackets in strings and comments do not count.
    "assert f('([{') == 1  # ((\nassert f(\"it's (\") == 2": ["f('([{') == 1", 'f("it\'s (") == 2'],
    # Names are replaced one level deep, as whole arguments of the outermost call.
    "x = 1\nassert f(x) == x": ["f(1) == x"],
    "x = 1\nassert f(k=x) == 2": ["f(k=1) == 2"],
    "x = 1\nassert f([x]) == 2": ["f([x]) == 2"],
    "x = [1]\nassert f(*x) == 2": ["f(*x) == 2"],
    "y=1;x=y\nassert f(x) == 2": ["f(y) == 2"],
    "x, y = 1, 2\nassert f(x) == 2": ["f(x) == 2"],
    "x = 1\nassert len(f(x)) == 2": ["len(f(x)) == 2"],
    "def t():\n    x = 1\ndef u():\n    assert f(x) == 2": ["f(1) == 2"],
}


@pytest.mark.parametrize(("text", "found"), CLAIMS.items(), ids=CLAIMS)
def test_what_the_release_makes_of_asserts(text, found):
    assert claims(block(text)) == found


def test_calls_of_anything_are_accepted_d5():
    suite = block("assert len('aa') == 2\nassert print('x') == None\nassert globals().update(f=abs) == None")
    assert claims(suite) == ["len('aa') == 2", "print('x') == None", "globals().update(f=abs) == None"]
    assert not any(case.direct for case in suite.cases)


DROPPED = {
    RejectionReason.NO_COMPARISON: (
        *("assert f(x)", "assert not f(x)", "assert 2 == f(1)", "assert f(1) == 1 and f(2) == 2"),
        *("r = f(1)\nassert r == 2", "assert math.isclose(f(1), 2)"),
    ),
    RejectionReason.NOT_AN_ASSERT: (
        *("self.assertEqual(f(1), 2)", "import math", "a, b = 1, 2", "a = b = 1"),
        *("assert f(1) ==", "assert f(1, == 2", "assert f(1)) == 2"),
    ),
}


@pytest.mark.parametrize(("text", "reason"), [(text, reason) for reason in DROPPED for text in DROPPED[reason]])
def test_what_the_release_drops_silently_is_reported_but_not_counted(text, reason):
    suite = block(f"{text}\nassert f(7) == 8")
    assert [rejection.reason for rejection in suite.rejections] == [reason]
    assert n_invalid(suite) == 0
    # A bracket too many costs nothing more: the count starts anew with the next line.
    assert claims(suite) == ["f(7) == 8"]


def test_try_and_except_around_a_call_give_nothing():
    suite = block("try:\n    f(1)\n    assert False\nexcept ValueError:\n    pass")
    assert (suite.cases, n_invalid(suite)) == ((), 0)


def test_an_answer_that_needs_brackets_is_cut_short_or_counted_as_invalid():
    suite = block(
        "assert f(1) == (1 < 2)\nassert f(2) == (1 or 2)\nassert f(3) == (1 if f else 2)\nassert f(4) == (lambda: 1)"
    )
    assert claims(suite) == ["f(1) == 1"]
    assert n_invalid(suite) == 3


def test_all_labelled_blocks_are_joined():
    suite = read(
        "```python\nx = 1\nassert f([1,\n```\nand\n```python\n2]) == 2\nassert f(x) == 1\n```\n"
        "```py\nassert f(3) == 3\n```"
    )
    assert claims(suite) == ["f([1, 2]) == 2", "f(1) == 1"]
    assert [case.line for case in suite.cases] == [3, 8]


def test_without_a_labelled_block_each_line_that_begins_with_assert_is_read_alone():
    fenced = "Tests:\n```\n  assert f(1) == 1\nx = 2\nassert f(x) == 2\n```\n"
    suite = read(f"{fenced}assert f([3,\n 4]) == 4\nassert f(5)\nassertion\n")
    assert claims(suite) == ["f(1) == 1", "f(x) == 2"]
    assert [(r.reason, r.line) for r in suite.rejections] == [(RejectionReason.SYNTAX_ERROR, n) for n in (7, 9, 10)]
    assert n_invalid(suite) == 3


def test_there_is_no_cap_and_duplicates_stay():
    assert len(block("assert f(1) == 1\n" * 40, tests_per_suite=8).cases) == 40


def test_direct_calls_are_still_told_apart():
    suite = block("assert f(1) == 1\nassert f(x) == 1\nassert g(1) == 1")
    assert [case.direct for case in suite.cases] == [True, False, False]


def test_every_non_ascii_character_counts_as_non_printable_d23():
    assert read("é—😀a").nonprintable_share == 0.75
    assert block("assert f('é') == 'ß'").nonprintable_share > 0


def test_a_reply_without_asserts_is_no_code():
    assert [r.reason for r in read("Sorry").rejections] == [RejectionReason.NO_CODE]
    assert [r.reason for r in block("# nothing").rejections] == [RejectionReason.NO_CODE]


def test_names_cannot_make_a_suite_of_unbounded_size():
    suite = block(f"x = {list(range(1000))}\n" + "assert f(x) == 1\n" * 20)
    assert {r.reason for r in suite.rejections} == {RejectionReason.TOO_LONG}
    assert 8 < len(suite.cases) < 14


@pytest.mark.parametrize("argument", ["0x" + "f" * 6000, "[" * 300 + "]" * 300, "-" * 9000 + "1", "\0", "'\ud800'"])
def test_what_the_parser_refuses_is_dropped(argument):
    suite = block(f"assert f({argument}) == 1\nassert f(2) == 2")
    assert claims(suite) == ["f(2) == 2"]
    assert n_invalid(suite) == 0
