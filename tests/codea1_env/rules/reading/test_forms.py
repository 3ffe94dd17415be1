"""Suites in the forms that models write them; `forms` is also the page of the documentation."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from codea1_env.facts.call_forms import CallForms
from codea1_env.facts.submissions import COUNTED_AS_INVALID
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Reading
from tests.codea1_env.rules.reading import forms
from tests.support.replies import block, claims, reasons
from tests.support.toys import fenced

PAGE = Path(__file__).parents[4] / "docs" / "suite-forms.md"


@pytest.mark.parametrize("form", forms.FORMS, ids=lambda form: form.title)
def test_a_form_is_read_whole_and_can_be_written_and_read_again(form):
    suite = read_suite(form.suite, Reading.STRICT, entry_point=form.entry_point)
    assert claims(suite) == form.claims.split("\n")
    assert suite.rejections == ()
    written = [case.to_assert() for case in suite.cases]
    again = read_suite(fenced("\n".join(written)), Reading.STRICT, entry_point=form.entry_point)
    assert [case.to_assert() for case in again.cases] == written


def test_the_page_shows_the_forms_as_they_are_read():
    assert PAGE.read_text() == forms.page()


TABLE = "@pytest.mark.parametrize('x, y', {rows})\ndef test(x, y):\n    assert f(x) == y"
MORE = {
    "a row that may not be used costs only itself": (TABLE.format(rows="[(1, 2), (open('a'), 3)]"), "f(1) => 2"),
    "a name of a table": (f"rows = [(1, 2)]\n{TABLE.format(rows='rows')}", "f(1) => 2"),
    "a named table with words of pytest": (
        f"rows = [pytest.param(1, 2, id='one'), (open('a'), 3)]\n{TABLE.format(rows='rows')}",
        "f(1) => 2",
    ),
    "rows made by a comprehension": (TABLE.format(rows="[(i, i + 1) for i in (1, 2)]"), "f(1) => 1 + 1, f(2) => 2 + 1"),
    "a name for one column": (
        "@pytest.mark.parametrize('x', [(1, 2)])\ndef test(x):\n    assert f(x) == 1",
        "f((1, 2)) => 1",
    ),
    "the function as a parameter": (
        "@pytest.mark.parametrize('g, x', [(f, 1)])\ndef test(g, x):\n    assert g(x) == 1",
        "f(1) => 1",
    ),
    "a test that takes the candidate": ("def test_f(candidate):\n    assert candidate(1) == 1", "f(1) => 1"),
    "a default": ("def test(x=1):\n    assert f(x) == 1", "f(1) => 1"),
    "a class that is marked": (
        "@pytest.mark.slow\nclass TestF:\n    def test(self):\n        assert f(1) == 1",
        "f(1) => 1",
    ),
    "members of a class": (
        "class TestF:\n    rows = [1]\n    def test(self):\n        for x in self.rows:\n            assert f(x) == 1",
        "f(1) => 1",
    ),
    "a helper of a class": (
        "class TestF:\n    def test(self):\n        self.run_(1, 2)\n    def run_(self, x, y):\n"
        "        self.assertEqual(f(x), y)",
        "f(1) => 2",
    ),
    "what one test makes of a member stays in it": (
        "class TestF:\n    def setUp(self):\n        self.x = 1\n    def test_a(self):\n        self.x = 2\n"
        "        assert f(self.x) == 2\n"
        "    def test_b(self):\n        assert f(self.x) == 1",
        "f(2) => 2, f(1) => 1",
    ),
    "nested loops": (
        "for a in [1, 2]:\n    for b in 'xy':\n        assert f(a, b) == a",
        "f(1, 'x') => 1, f(1, 'y') => 1, f(2, 'x') => 2, f(2, 'y') => 2",
    ),
    "assertAlmostEqual": (
        "class T:\n    def test(self):\n        self.assertAlmostEqual(f(1), 0.5, places=3)\n"
        "        self.assertAlmostEqual(f(1), 0.5, delta=0.1)",
        "bool(f(1) == pytest.approx(0.5, rel=0.0, abs=0.0005)) => True, bool(f(1) == pytest.approx(0.5, "
        "rel=0.0, abs=0.1)) => True",
    ),
    "a tolerance within a container": (
        "from pytest import approx\nassert f(1) == {'a': approx(1)}",
        "bool(f(1) == {'a': approx(1)}) => True",
    ),
    "the last row stays": (
        "for x in [1, 2]:\n    assert f(x) == 0\nassert f(x, x) == 0",
        "f(1) => 0, f(2) => 0, f(2, 2) => 0",
    ),
    "a key that equals an earlier one": (
        "names = {1: 'a', True: 'b'}\nfor x in [1]:\n    assert f(x) == names[x]",
        "f(1) => 'b'",
    ),
    "an exception in a table": (
        "@pytest.mark.parametrize('x, error', [(1, ValueError), (2, KeyError)])\ndef test(x, error):\n"
        "    with pytest.raises(error):\n        f(x)",
        "raises(ValueError, f, 1) => True, raises(KeyError, f, 2) => True",
    ),
    "an exception with names": (
        "with pytest.raises(ValueError) as e:\n    x = [1]\n    f(x, key=2)",
        "raises(ValueError, f, [1], key=2) => True",
    ),
    "try with else": (
        "try:\n    f(1)\nexcept (ValueError, KeyError):\n    pass\nelse:\n    raise AssertionError('x')",
        "raises((ValueError, KeyError), f, 1) => True",
    ),
    "modules under any spelling": (
        "import src.solution\nfrom pkg import other as o\nassert src.solution.f(1) == 2\n"
        "with pytest.raises(ValueError):\n    o.f(3)",
        "f(1) => 2, raises(ValueError, f, 3) => True",
    ),
    "other functions of numpy.testing": (
        "import numpy.testing as npt\nfrom numpy.testing import assert_string_equal\nassert_string_equal(f(2), 'a')\n"
        "npt.assert_equal(actual=f(4), desired=[1])\nnpt.assert_raises(ValueError, f, 3)",
        "f(2) => 'a', f(4) => [1], raises(ValueError, f, 3) => True",
    ),
    "deep copies": (
        "import copy\nxs = [[3], [1]]\nys = copy.deepcopy(xs)\nf(xs)\nassert xs == ys",
        "(lambda xs: (f(xs), xs)[1])([[3], [1]]) => copy.deepcopy([[3], [1]])",
    ),
    "copies made by hand": (
        "xs = [[3], [1]]\nys = [row[:] for row in xs]\nf(xs)\nassert xs == ys",
        "(lambda xs: (f(xs), xs)[1])([[3], [1]]) => [row[:] for row in [[3], [1]]]",
    ),
    "a copy that is given": (
        "import copy\nxs = [[3]]\nys = copy.deepcopy(xs)\nf(ys)\nassert ys == xs",
        "(lambda ys: (f(ys), ys)[1])(copy.deepcopy([[3]])) => [[3]]",
    ),
    "a try that fails": (
        "try:\n    assert f(1) == 2\nexcept Exception as e:\n    pytest.fail(str(e))\nfinally:\n    print('done')",
        "f(1) => 2",
    ),
    "a call after a call": ("xs = [3, 1]\nf(xs)\nassert f(xs) == 1", "f((lambda xs: (f(xs), xs)[1])([3, 1])) => 1"),
    "two asserts about an argument": (
        "xs = [3, 1]\nr = f(xs)\nassert r == [1, 3]\nassert xs == [3, 1]\nassert len(xs) == 2",
        "f([3, 1]) => [1, 3], (lambda xs: (f(xs), xs)[1])([3, 1]) => [3, 1], len((lambda xs: (f(xs), "
        "xs)[1])([3, 1])) => 2",
    ),
}


@pytest.mark.parametrize(("text", "read"), MORE.values(), ids=MORE)
def test_their_relatives_are_read_too(text, read):
    suite = block(f"import pytest\n{text}")
    assert ", ".join(claims(suite)) == read


NOT_READ = {
    "an argument that is an attribute": (
        "class T:\n    def setUp(self):\n        self.xs = [3, 1]\n    def test(self):\n        f(self.xs)\n"
        "        assert self.xs == [3, 1]"
    ),
    "an argument of something else": "xs = [3, 1]\nr = g.f(xs)\nassert xs == [3, 1]",
    "a loop that may end early": "for x in [1, 2]:\n    if x > 1:\n        break\n    assert f(x) == 1",
    "a loop over something computed": "for x in f(3):\n    assert f(x) == 1",
    "a test that is skipped": "@pytest.mark.skipif(True, reason='')\ndef test():\n    assert f(1) == 1",
    "an unknown decorator": "@patch('os.getcwd')\ndef test(a):\n    assert f(1) == 1",
    "a parameter that nothing gives": "def test(tmp_path):\n    assert f(1) == 1",
    "a fixture with effects": "@pytest.fixture\ndef g():\n    f([].append(1))\n    yield 1\ndef test(g):\n"
    "    assert f(g) == 1",
    "rows for a fixture": "@pytest.fixture\ndef n(request):\n    return 2 * request.param\n"
    "@pytest.mark.parametrize('n', [1], indirect=True)\ndef test(n):\n    assert f(n) == 2",
    "a name of ours": "from operator import is_not as raises\nwith pytest.raises(ValueError):\n    f(raises(1, 2))",
    "a group of exceptions": "with pytest.raises(ExceptionGroup):\n    f(1)",
    "a broad exception": "with pytest.raises(Exception):\n    f(1)",
    "an exception of the file's": "class E(Exception):\n    pass\nwith pytest.raises(E):\n    f(1)",
    "a message": "with pytest.raises(ValueError, match='x'):\n    f(1)",
    "several calls under an exception": "with pytest.raises(ValueError):\n    f(1)\n    f(2)",
    "an exception of an argument": "with pytest.raises(ValueError):\n    f(f(1))",
    "what was caught": "with pytest.raises(ValueError, match='x') as e:\n    f(1)\nassert str(e.value) == 'x'",
    "a failure that is caught": "try:\n    f(1)\n    assert False\nexcept AssertionError:\n    pass",
    "a copy that shares parts": "xs = [[3]]\nys = xs[:]\nf(xs)\nassert xs == ys",
    "what holds a copied argument": "xs = [[3]]\nzs = [xs]\nf(xs)\nassert zs == [[[3]]]",
    "a try that accepts an exception": "try:\n    assert f(1) == 2\nexcept ValueError:\n    pass",
    "an alias of an argument": "xs = [1]\nys = xs\nf(xs)\nassert xs == ys",
    "a result of a helper": "def g(x):\n    return x\nassert g(f(1)) == 1",
    **{
        f"identity: {claim}": f"xs = [1]\nr = f(xs)\nassert {claim}"
        for claim in ("r is not xs", "not (f(xs) is xs)", "f(xs) is f(xs)", "f(xs)[0] is not xs[0]", "id(r) != id(xs)",
                      "r is []", "all(a is not b for a, b in zip(f(1), f(2)))", "operator.is_not(f(1), xs)")
    },
    **{
        f"after {end}": f"def test(self):\n    {end}\n    assert f(1) == 1\n    for x in [1]:\n        assert f(x) == 1"
        for end in ("return", "raise ValueError", "pytest.skip('x')", "pytest.fail()", "pytest.xfail('x')", "skip()",
                    "self.skipTest('x')", "self.fail()", "sys.exit(0)")
    },
}  # fmt: skip


@pytest.mark.parametrize("text", NOT_READ.values(), ids=NOT_READ)
def test_what_is_not_read_has_a_reason_and_is_no_invalid_test(text):
    suite = block(f"import operator\nimport pytest\n{text}")
    assert suite.cases == ()
    assert reasons(suite)
    assert not COUNTED_AS_INVALID & set(reasons(suite))


@pytest.mark.parametrize(
    "text",
    [
        "for f in [len, 2]:\n    assert f([]) == 0\nassert f(1) == 1",
        "for i, (f, x) in enumerate([(len, 1)]):\n    assert f(x) == i",
        "@pytest.mark.parametrize('f, x', [(len, 1)])\ndef test(f, x):\n    assert f(x) == 1",
        "def test(f=len):\n    assert f([]) > 0",
        "def run(f):\n    assert f([]) == 0\n    g = f\n    assert g(1) == 1\nrun(len)",
        "for f in [1]:\n    with pytest.raises(TypeError):\n        f(1)",
    ],
)
def test_a_variable_with_the_name_of_the_function_is_not_the_program(text):
    suite = block(f"import pytest\n{text}")
    assert suite.cases == ()
    assert set(reasons(suite)) & COUNTED_AS_INVALID


@pytest.mark.parametrize("text", ["f = solve", "def f(x):\n    return x", "from other import f", "f = lambda x: x"])
def test_what_defines_the_function_once_more_is_no_part_of_the_tests(text):
    assert claims(block(f"{text}\nassert f(1) == 1")) == ["f(1) => 1"]


def test_a_range_may_be_counted_by_sums_of_integers():
    assert claims(block("for n in range(3 - 1, 2 * 2):\n    assert f(n) == n")) == ["f(2) => 2", "f(3) => 3"]


def test_rows_beyond_the_last_case_are_too_many():
    suite = block(TABLE.format(rows=[(i, i) for i in range(10)]), tests_per_suite=3)
    assert len(suite.cases) == 3
    assert reasons(suite) == ["too_many"] * 7


def test_exceptions_are_tests_only_where_the_reading_says_so():
    text = fenced("import pytest\nwith pytest.raises(ValueError):\n    f(1)\nassert f(2) == 1")
    suite = read_suite(text, Reading.WITHOUT_EXCEPTIONS, entry_point="f")
    assert (claims(suite), reasons(suite)) == (["f(2) => 1"], ["not_an_assert"])


def test_rows_of_a_table_do_not_share_what_a_call_changes():
    text = "rows = [([2, 1], [1, 2]), ([3], [3])]\nfor xs, want in rows:\n    f(xs)\n    assert xs == want"
    suite = read_suite(text, Reading.STRICT, entry_point="f", forms=CallForms(in_place=True))
    assert [case.prediction for case in suite.cases] == ["[1, 2]", "[3]"]
    assert suite.rejections == ()


NUMPY_ASSERTS = (
    *("assert_allclose({}, {})", "assert_allclose({}, {}, 0.1)", "assert_allclose({}, {}, atol=0.5, equal_nan=False)"),
    *("assert_almost_equal({}, {})", "assert_almost_equal({}, {}, decimal=2)", "assert_array_almost_equal({}, {}, 1)"),
    *("assert_approx_equal({}, {})", "assert_approx_equal({}, {}, significant=2)", "assert_array_less({}, {})"),
    *("assert_array_equal({}, {}, err_msg='x')", "assert_equal({}, np.array({}))"),
)
ANSWERS = ("1", "0", "1.004", "-1.04", "np.nan", "np.inf", "[1, 2]", "(1.001, 2.0)", "[1]", "[np.nan, 2]", "[[1, 2]]")


@pytest.mark.parametrize("form", NUMPY_ASSERTS)
def test_an_assert_of_numpy_holds_where_numpy_says_so(form: str) -> None:
    names = {"np": np, "numpy": np, **vars(np.testing)}
    answers = ANSWERS[:6] if "approx" in form else ANSWERS  # of numbers
    with np.errstate(all="ignore"):
        for got, stated in itertools.product(answers, answers):
            text = f"import numpy as np\nnp.testing.{form.format('f(0)', stated)}"
            (case,) = read_suite(text, Reading.STRICT, entry_point="f").cases
            try:
                eval(form.format(got, stated), dict(names))
                holds = True
            except AssertionError:
                holds = False
            answer = eval(got, dict(names))
            assert eval(case.expression, names | {"f": lambda _, answer=answer: answer}) is holds, (got, stated)


def test_options_of_numpy_that_are_not_read_are_named() -> None:
    suite = block("import numpy as np\nnp.testing.assert_array_equal(f(1), [1], strict=True)\nassert f(2) == 2")
    assert claims(suite) == ["f(2) => 2"]
    (rejection,) = suite.rejections
    assert rejection.detail == "numpy.testing.assert_array_equal is not read with these arguments"


HOSTILE = {
    "a million rows": "for a in range(10 ** 6):\n    assert f(a) == 1",
    "a million rows of literals": "for a in range(1000000):\n    assert f(a) == 1",
    "tables of tables": "".join(f"@pytest.mark.parametrize('a{i}', range(1000))\n" for i in range(5))
    + "def test(a0, a1, a2, a3, a4):\n    assert f(a0) == 1",
    "loops within loops": "".join("    " * i + f"for a{i} in range(1000):\n" for i in range(6))
    + "    " * 6
    + "assert f(a0) == 1",
    "helpers within helpers": "def g0(x):\n    assert f(x) == 1\n"
    + "".join(f"def g{i}(x):\n    g{i - 1}(x)\n    g{i - 1}(x)\n" for i in range(1, 30))
    + "g29(1)",
    "a helper that calls itself": "def g(x):\n    assert f(x) == 1\n    g(x)\n    g(x)\n    g(x)\ng(1)",
    "rows that double": "a = [1, 1]\n" + "a = [*a, *a]\n" * 40 + "for x in a:\n    assert f(x) == 1",
    "long sums": "for x in " + "[1] + " * 9000 + "[2]:\n    assert f(x) == 1",
    "deep statements": "a = [1]\nf(a)\nx = " + "-" * 900 + "f(a)\nassert " + "-" * 900 + "f(a)\nassert a == [1]",
    "deep arguments": "g(" + "-" * 900 + "a" + ".b" * 900 + ")\nassert a == [1]",
    "large rows": "a = [" + "1, " * 9000 + "]\nfor x in range(9000):\n    assert f(a) == x",
    "decorators that run code": "@[f(i) for i in range(10 ** 9)]\ndef test():\n    assert f(1) == 1",
    "arguments looked at again and again": "a = [1]\nf(a)\n" + "assert a == [1]\n" * 3000,
    "setups of setups": "class T:\n"
    + "".join(f"    def setUp(self):\n        self.a{i} = [self.a{i - 1}] * 9\n" for i in range(300)),
}


@pytest.mark.parametrize("cap", [8, None])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_forms_are_read_or_dropped_within_the_budget(text, cap):
    suite = read_suite(fenced(text), Reading.STRICT, entry_point="f", tests_per_suite=cap)
    assert len(suite.cases) <= 8 if cap else len(suite.cases) < 100_000
