from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from codea1_env.errors import BrokenInput
from codea1_env.problems import GoldenCase, GoldenHarness
from codea1_env.problems.snippets import read_snippet, read_test


def passes(snippet: str, candidate: Callable[..., Any], entry_point: str = "f") -> bool:
    (harness,) = read_snippet(snippet, entry_point)
    assert isinstance(harness, GoldenHarness)
    namespace: dict[str, Any] = {}
    exec(harness.source, namespace)
    try:
        namespace["check"](candidate)
    except AssertionError:
        return False
    return True


def double(x: int) -> int:
    return 2 * x


def triple(x: int) -> int:
    return 3 * x


def test_asserts_of_literals_become_one_case_each() -> None:
    snippet = "from solution import f\nassert f(1) == 2\nassert sorted(f([3,\n 1])) == [1,\n 3], 'why'"
    assert read_snippet(snippet, "f") == (GoldenCase("f(1)", "2"), GoldenCase("sorted(f([3, 1]))", "[1, 3]"))


SET_UP = "def {}:\n    self.n = 2\n  def test_one(self):\n    "
OF_A_CLASS = f"class TestIt:\n  {SET_UP.format('setup_method(self, method)')}assert f(1) == self.n\n"
OF_UNITTEST = (
    f"import unittest\nclass Cases(unittest.TestCase):\n  {SET_UP.format('setUp(self)')}"
    'self.assertEqual(f(1), self.n)\nif __name__ == "__main__":\n    unittest.main()\n'
)
WITH_A_HELPER = (
    "def twice(x):\n    return f(x)\ndef test_it():\n    text = '''\nkept\n'''\n"
    "    assert twice(1) == 2 and text == '\\nkept\\n'\n"
)


@pytest.mark.parametrize(
    "snippet",
    [
        "from solution import f\ndef test_it():\n    assert f(1) == 2\n    assert f(2) == 4",
        "def test_it(times=2):\n    assert f(1) == times",
        "from solution import f as g\nassert g(1) == 2",
        "for i in range(3):\n    assert f(i) == 2 * i",
        "import math\nassert math.isclose(f(1), 2.0)",
        "assert f(1) == 1 + 1",
        OF_A_CLASS,
        OF_UNITTEST,
        WITH_A_HELPER,
        "def f(x):\n    return 3 * x\ndef test_it():\n    assert f(1) == 2",
    ],
)
def test_any_other_test_becomes_a_harness_that_tells_right_from_wrong(snippet: str) -> None:
    assert passes(snippet, double)
    assert not passes(snippet, triple)


def test_a_check_function_stays_as_it_is() -> None:
    snippet = "def check(candidate):\n    assert candidate(1) == 2  # kept\n"
    assert read_snippet(snippet, "f") == (GoldenHarness(snippet),)


@pytest.mark.parametrize(
    ("snippet", "reason"),
    [
        ("", "tests nothing"),
        ("from solution import f", "tests nothing"),
        ("def helper():\n    assert f(1) == 2", "tests nothing"),
        ("x = 1", "tests nothing"),
        ("f(1) == 2", "compares and does not assert: expected 'assert f\\(1\\) == 2'"),
        ("assert f(1) == 2\nf(2) == 4", "expected 'assert f\\(2\\) == 4'"),
        ("import pytest\n@pytest.mark.parametrize('x', [1])\ndef test_it(x):\n    assert f(x)", "needs arguments"),
        ("class TestIt:\n    def test_one(self, tmp_path):\n        assert f(1)", "needs arguments"),
        ("assert f(1) ==", "is not Python"),
        (f"assert g({'-' * 900}f(1)) == 1", "nested"),  # and not a crash
    ],
)
def test_a_snippet_that_cannot_test_anything_is_refused(snippet: str, reason: str) -> None:
    with pytest.raises(BrokenInput, match=reason):
        read_snippet(snippet, "f")


def test_a_harness_gets_the_helpers_of_the_statement() -> None:
    statement = "import math\ndef helper(x):\n    return x\n\ndef f(x):\n    ..."
    test = "def check(candidate):\n    assert candidate(1) == helper(2) == math.floor(2.5)"
    (harness,) = read_test(test, statement, "f")
    assert isinstance(harness, GoldenHarness)
    namespace: dict[str, Any] = {}
    exec(harness.source, namespace)
    namespace["check"](double)
    assert "f" not in namespace


def test_a_statement_of_one_word_is_not_taken_for_a_program() -> None:
    (harness,) = read_test("def check(candidate): ...", "Factorial", "f")
    assert harness == GoldenHarness("def check(candidate): ...")
