"""Every form of a test that a suite may have, each with an example and what is read of it.

`python -m tests.codea1_env.rules.reading.forms > docs/suite-forms.md` writes the page of forms.
"""

from __future__ import annotations

from typing import NamedTuple


class Form(NamedTuple):
    """One form: a suite of a function `f`, or of the method `Solution().two_sum`, and its cases."""

    title: str
    suite: str
    claims: str
    """One case per line: `expression => prediction`."""
    entry_point: str = "f"
    note: str = ""


FORMS = (
    Form(
        "Asserts", "assert f(1) == 1\nassert 4 == f(2)\nassert f(3) > 8", "f(1) => 1\nf(2) => 4\nbool(f(3) > 8) => True"
    ),
    Form(
        "Names, functions and classes",
        "numbers = [1, 2]\n\ndef test_sum():\n    assert f(numbers) == 3\n\nclass TestF:\n    def test_none(self):\n"
        "        expected = 0\n        assert f([]) == expected",
        "f([1, 2]) => 3\nf([]) => 0",
    ),
    Form(
        "Tables of pytest",
        "import pytest\n\n@pytest.mark.parametrize('n, want', [(1, 1), pytest.param(2, 4, id='even')], ids=str)\n"
        "def test_square(n, want):\n    assert f(n) == want",
        "f(1) => 1\nf(2) => 4",
    ),
    Form(
        "Several tables",
        "import pytest\n\n@pytest.mark.parametrize('a', [1, 2])\n@pytest.mark.parametrize(['b', 'c'], [(3, 4)])\n"
        "def test_all(a, b, c):\n    assert f(a, b) >= c",
        "bool(f(1, 3) >= 4) => True\nbool(f(2, 3) >= 4) => True",
    ),
    Form(
        "Tables of `parameterized`",
        "import unittest\nfrom parameterized import parameterized\n\nclass TestF(unittest.TestCase):\n"
        "    @parameterized.expand([(1, 1), (2, 4)])\n    def test_square(self, n, want):\n"
        "        self.assertEqual(f(n), want)",
        "f(1) => 1\nf(2) => 4",
    ),
    Form(
        "Loops over tables",
        "cases = [([1, 2], 3), ([], 0)]\n\ndef test_sums():\n    for i, (numbers, want) in enumerate(cases, start=1):\n"
        "        assert f(numbers) == want, f'case {i}'\n\nfor n in range(2):\n    assert f([n]) == n",
        "f([1, 2]) => 3\nf([]) => 0\nf([0]) => 0\nf([1]) => 1",
    ),
    Form(
        "Rows taken apart",
        "cases = [{'args': (1, 2), 'want': 3}]\nfor case in cases:\n    assert f(*case['args']) == case['want']\n"
        "for a, b in zip([1, 2], [3, 4]):\n    assert f(a) == b\nfor k, v in {'x': 1}.items():\n    assert f(k) == v",
        "f(1, 2) => 3\nf(1) => 3\nf(2) => 4\nf('x') => 1",
    ),
    Form(
        "HumanEval's `check`",
        "def check(candidate):\n    assert candidate(1) == 1\n    assert candidate(2) == 4\n\ncheck(f)",
        "f(1) => 1\nf(2) => 4",
    ),
    Form(
        "Helpers and other names of the function",
        "from solution import f as square\n\ndef run(n, want=0):\n    assert square(n) == want\n\n"
        "run(1, want=1)\nrun(0)\n"
        "if __name__ == '__main__':\n    run(3, 9)",
        "f(1) => 1\nf(0) => 0\nf(3) => 9",
    ),
    Form(
        "Methods of unittest",
        "import unittest\n\nclass TestF(unittest.TestCase):\n    def setUp(self):\n        self.numbers = [3, 1]\n\n"
        "    def test_all(self):\n        self.assertEqual(f(self.numbers), [1, 3])\n"
        "        self.assertIn(1, f(self.numbers))\n"
        "        self.assertFalse(f([]))\n        self.assertIsNone(f(None), 'nothing')\n"
        "        with self.subTest('one'):\n"
        "            self.assertListEqual(f([1]), [1])",
        "f([3, 1]) => [1, 3]\nbool(1 in f([3, 1])) => True\nbool(not f([])) => True\nf(None) => None\nf([1]) => [1]",
    ),
    Form(
        "Instances made before each test",
        "class TestTwoSum:\n    def setup_method(self, method):\n        self.solution = Solution()\n\n"
        "    def test_pair(self):\n"
        "        assert self.solution.two_sum([2, 7], 9) == [0, 1]",
        "Solution().two_sum([2, 7], 9) => [0, 1]",
        "Solution().two_sum",
        "Each call has a new instance. Classes that keep a state between calls are not read.",
    ),
    Form(
        "Fixtures that return a value",
        "import pytest\n\n@pytest.fixture\ndef solution():\n    return Solution()\n\ndef test_pair(solution):\n"
        "    assert solution.two_sum([2, 7], 9) == [0, 1]",
        "Solution().two_sum([2, 7], 9) => [0, 1]",
        "Solution().two_sum",
    ),
    Form(
        "Tolerances",
        "import pytest\n\ndef test_half():\n    assert f(1) == pytest.approx(0.5)\n"
        "    assert f([3]) == pytest.approx([1.5], abs=1e-3)",
        "bool(f(1) == pytest.approx(0.5)) => True\nbool(f([3]) == pytest.approx([1.5], abs=0.001)) => True",
        note="By pytest's formula: relative to the expected value, with an absolute tolerance of 1e-12. A false one\n"
        "is a wrong prediction under every validation, since the solution's value would not say which tolerance\n"
        "is right. `assertAlmostEqual` becomes the same, with an absolute tolerance only.",
    ),
    Form(
        "Exceptions",
        "import pytest\n\ndef test_errors():\n    with pytest.raises(ValueError):\n        f(-1)\n"
        "    pytest.raises((KeyError, TypeError), f, None)\n"
        "    try:\n        f('')\n        assert False, 'no exception'\n    except IndexError:\n        pass",
        "raises(ValueError, f, -1) => True\nraises((KeyError, TypeError), f, None) => True\n"
        "raises(IndexError, f, '') => True",
        note="Only built-in exceptions, and not those that any fault may raise: `Exception`, `BaseException`,\n"
        "`MemoryError`, `RecursionError` (not as a `RuntimeError` either). Another exception is a runtime\n"
        "error. Messages are not tested. The rules `paper` and `release` do not read this form.",
    ),
    Form(
        "The argument is unchanged",
        "def test_input():\n    numbers = [3, 1]\n    before = numbers.copy()\n    f(numbers)\n"
        "    assert numbers == before",
        "(lambda numbers: (f(numbers), numbers)[1])([3, 1]) => [3, 1].copy()",
    ),
    Form(
        "Functions of `numpy.testing`",
        "import numpy as np\n\ndef test_arrays():\n    np.testing.assert_equal(f(4), {'a': 1})",
        "f(4) => {'a': 1}",
        note="`assert_allclose` and others, and `assert_equal` of an array, are properties that hold where numpy's do.",
    ),
    Form(
        "The program's module",
        "import my_module as m\nassert m.f(2) == 4",
        "f(2) => 4",
        note="Any module that is neither in Python's library nor a tool's.",
    ),
    Form(
        "Under `try`",
        "try:\n    for n in [1, 2]:\n        assert f(n) == n\nexcept AssertionError as error:\n    print(error)",
        "f(1) => 1\nf(2) => 2",
        note="If every handler fails or prints.",
    ),
    Form(
        "Texts in JSON or in lists",
        '{"tests": ["assert f(1) == 1"]}\n[\'assert f(2) == 1\', \'assert f(',
        "f(1) => 1\nf(2) => 1",
    ),
    Form(
        "Lines of the interpreter",
        ">>> for x in [1]:\n...     assert f(x)",
        "bool(f(1)) => True",
    ),
    Form("Lists in prose", "1. `assert f(1) == 1` - smallest\n- assert f(2) == 4", "f(1) => 1\nf(2) => 4"),
)

_HEAD = """# Forms of tests

<!-- Written by tests/codea1_env/rules/reading/forms.py; a test compares it. -->

The strict reading takes these forms of tests from a suite. Left of `=>` is the expression, right of it the
predicted value: True unless the assert is an equality. Anything else is dropped with a reason and is no invalid test.
[rules.md](rules.md) says what follows; `TestCase.written`, where input and answer stand.
"""


def page() -> str:
    """Return the page of forms."""
    parts = [_HEAD]
    for form in FORMS:
        note = f"\n{form.note}\n" if form.note else ""
        parts.append(f"\n## {form.title}\n\n```text\n{form.suite}\n```\n\n```text\n{form.claims}\n```\n{note}")
    return "".join(parts)


if __name__ == "__main__":
    print(page(), end="")
