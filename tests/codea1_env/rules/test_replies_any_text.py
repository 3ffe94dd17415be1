"""Both readings accept any text, and what the strict one accepts keeps its promises."""

import ast
import builtins
import sys
import threading
import time
import warnings
from functools import partial

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from codea1_env.facts.answers import Comparison
from codea1_env.facts.call_forms import CallForms
from codea1_env.facts.submissions import MAX_LISTED, Candidate, RejectionReason, Suite, TestCase
from codea1_env.rules.reading.direct_calls import is_direct_call
from codea1_env.rules.replies import MAX_CHARACTERS, read_candidate, read_suite
from codea1_env.rules.ruleset import Reading, Validation
from codea1_env.rules.validation import SuiteRules, validate
from tests.support.replies import bare, block

SURROGATES_TOO = st.characters(blacklist_categories=())
FENCES = ["```", "```python", "```py\n", "~~~", "````python", "```bash"]
SNIPPETS = [
    *("<think>", "</think>", "\n<thinking>", "f(1) is f(1)", " or ", " in [", "bool(", "range(", "len("),
    *("assert ", "f(", "f(1)", " == ", "!=", " is ", " and ", "not "),
    *("(", ")", "[", "]", "{", "}", ":", ",", "=", ".", ";", "*", "**", ":=", "\\", "#", "@"),
    *("x", "x = ", "y", "1", "-1.5", "0x", "e9", "j", "'a'", '"', "'", '"""', "'''", "f'{x}'"),
    *("lambda x: ", "for x in ", "if ", "def t():", "class T:", "try:", "else:", "async ", "await ", "yield "),
    *("import math", "from os import *", "math.pi", "\n", "\n", "\n    ", "\t", "\r\n"),
    *("\0", "\ud800", "😀", "é", "\f", "\x0b", "\u2028", "\ufeff"),
    *FENCES,
]


def reading_of(reply: str) -> tuple[Candidate, Suite, Candidate, Suite]:
    return (
        read_candidate(reply, Reading.STRICT, entry_point="f"),
        bare(reply, tests_per_suite=8),
        read_candidate(reply, Reading.RELEASE, entry_point="f"),
        read_suite(reply, Reading.RELEASE, entry_point="f"),
    )


def check_shape(reply: str) -> None:
    n_lines = reply.count("\n") + reply.count("\r") + 1
    for item in reading_of(reply):
        if isinstance(item, Candidate):
            assert bool(item.program) is (item.rejection is None)
            continue
        assert item.cases or item.rejections
        assert 0.0 <= item.nonprintable_share <= 1.0
        assert all(len(rejection.source) <= 200 and rejection.detail for rejection in item.rejections)
        assert all(0 <= piece.line <= n_lines for piece in (*item.cases, *item.rejections))


@given(st.text(SURROGATES_TOO))
@example("")
@example("\0")
@example("\ud800")
@example("```python\n\ud800\n```")
@example("assert f('\ud800') == '\udfff'")
def test_any_text_is_read(reply):
    check_shape(reply)


@given(st.lists(st.sampled_from(SNIPPETS), max_size=40).map("".join))
def test_any_mixture_of_python_and_markdown_is_read(reply):
    check_shape(reply)
    check_shape(f"```python\n{reply}\n```")


# Each grows some loop or recursion of a parser; all are read within a second or two, most in milliseconds.
HOSTILE = {
    "round brackets": "(" * 20_000,
    "mixed brackets": "([{" * 7_000,
    "calls": "assert " + "f(" * 10_000,
    "closed brackets": "assert f(" + "[" * 180 + "]" * 180 + ") == 1",
    "signs": "assert f(" + "-" * 20_000 + "1) == 1",
    "sums": "assert f(" + "1+" * 20_000 + "1) == 1",
    "nots": "assert " + "not " * 5_000 + "f(1)",
    "powers": "assert f(1)" + "**1" * 10_000,
    "comparisons": "assert f(1)" + "<1" * 10_000,
    "attributes": "assert f(1)" + ".a" * 10_000,
    "subscripts": "assert f(1)" + "[0]" * 10_000,
    "lambdas": "assert f(" + "lambda:" * 3_000 + "1) == 1",
    "conditionals": "assert f(" + "1 if 1 else " * 3_000 + "1) == 1",
    "comprehensions": "assert f(" + "[x for x in " * 80 + "y" + "]" * 80 + ") == 1",
    "elifs": "if 1: pass\n" + "elif 1: pass\n" * 3_000,
    "indentation": "".join(" " * i + "if 1:\n" for i in range(150)),
    "nested functions": "".join(" " * i + "def t():\n" for i in range(150)) + "assert f(1) ==",
    "semicolons": "assert f(1)==1;" * 300,
    "semicolons behind non-ASCII": "assert f('é')==1;" + "g();" * 2_000,
    "open lines": "assert f(\n" * 1_000,
    "stray lines": "x y\n" * 2_000,
    "words": "x\n" * 2_000,
    "escaped triple quotes": '"""\\' * 5_000,
    "escaped quotes": '"\\' * 10_000,
    "apostrophes": "it's\n" * 1_000,
    "fences": "```python\n" * 2_000,
    "fences in a line": "``` " * 5_000,
    "fences without ends": "```python" * 3_000,
    "decorators": "@a\n" * 1_000,
    "backslashes": "\\\n" * 2_000,
    "digits": "assert f(" + "9" * 20_000 + ") == 1",
    "hexadecimal digits": "assert f(0x" + "f" * 20_000 + ") == 1",
    "aliases": "x0 = []\n" + "".join(f"x{i} = x{i - 1}\n" for i in range(1, 1_000)) + "x9.y()\nassert f(x999) == 1",
    "spoilt names": "".join(f"x{i} = [0]\n" for i in range(500)) + "x1()\n" * 500,
    "NUL": "\0" * 20_000,
    "surrogates": "\ud800" * 20_000,
    "emoji": "😀" * 20_000,
    "spaces": " " * 20_000 + "x",
    "thinking": "<think>\n</think>" * 2_000,
    "thinking without ends": "<think>\n" * 4_000,
    "thoughts that were never begun": "</think>\n" * 4_000,
    "tests that are equal to themselves": "assert f(1) in (" + "f(1 + 1), " * 2_000 + ")",
    "long things in long lists": "assert [f(1)" + ", 1" * 5_000 + "] in (" + "[1], " * 5_000 + ")",
    "nested choices": "assert " + "(f(1) if " * 50 + "f(1)" + " else f(2))" * 50,
    "nested lambdas": "x = " + "lambda: " * 1500 + "1\nassert f(x) == 1",
    "nested loops": "assert " + "[" * 50 + "f(1)" + " for i in [[1]]]" * 50 + " == 1",
    "carriage returns": "assert f(1)==1\r" * 200,
}


SLOW = (
    *("nots", "elifs", "semicolons behind non-ASCII", "tests that are equal to themselves"),
    *("long things in long lists", "thoughts that were never begun", "subscripts", "conditionals"),
)
"""Texts that take some tenths of a second."""


@pytest.mark.parametrize(
    "text", [pytest.param(text, id=name, marks=[pytest.mark.slow] * (name in SLOW)) for name, text in HOSTILE.items()]
)
def test_hostile_text_is_read_in_bounded_time(text):
    before = time.process_time()
    check_shape(text)
    check_shape(f"```python\n{text}\nassert f(1) == 1\n```")
    assert time.process_time() - before < 5.0  # quadratic behaviour anywhere would take minutes


def test_a_reply_of_ten_megabytes_is_refused_at_once():
    before = time.process_time()
    for item in reading_of("assert f(1) == 1\n" * 600_000):
        rejection = item.rejection if isinstance(item, Candidate) else item.rejections[0]
        assert rejection.reason is RejectionReason.TOO_LONG
    assert time.process_time() - before < 5.0


@pytest.mark.parametrize("reading", Reading)
@pytest.mark.parametrize(
    "reply",
    [
        "assert f(1) == 1\n" * (MAX_CHARACTERS // 17 + 1),
        f"assert f(f'{'{a}' * 15_000}') == 1",
        f"```python\nassert f(rF'{'{a}' * 13_000}{' ' * 20_000}') == 1\n```",
    ],
    ids=["tests", "fields", "a long text of fields"],
)
def test_a_reply_beyond_the_budget_is_not_parsed(reply, reading, monkeypatch):
    parse = ast.parse

    def refuse(text, *args, **kwargs):
        assert "{a}{a}" not in text
        return parse(text, *args, **kwargs)

    monkeypatch.setattr("ast.parse", refuse)
    suite = read_suite(reply, reading, entry_point="f")
    assert {rejection.reason for rejection in suite.rejections} <= {
        RejectionReason.TOO_LONG,
        RejectionReason.NOT_AN_ASSERT,
    }
    assert suite.cases == ()
    read_candidate(reply, reading, entry_point="f")


@pytest.mark.parametrize(
    "reply",
    [
        "assert f(1) == 1\n" * (MAX_CHARACTERS // 17),
        "x = 1\n" + "prose, of a kind. " * 3_000 + "\nassert f(1) == 1",
        "assert f({}, {}, {}) == {}\n" * (MAX_CHARACTERS // 27),
        "assert f(f'" + "{1}" * 900 + "') == 1",
    ],
    ids=["tests", "prose", "dicts", "fields"],
)
def test_a_reply_within_the_budget_is_read(reply):
    assert bare(reply).cases


@pytest.mark.parametrize(
    ("reply", "reading", "counted"),
    [
        ("assert f(1\n" * 5_000, Reading.STRICT, 5_000),
        ("assert f(1\n" * 5_000, Reading.RELEASE, 5_000),
        ("x.y\n" * 5_000 + "assert 1 == 1\n" * 3_000, Reading.STRICT, 3_000),
        ("assert g(1) == 1\n" * 3_000, Reading.STRICT, 3_000),
    ],
)
def test_rejections_beyond_the_listed_ones_are_counted(reply, reading, counted):
    suite = read_suite(reply, reading, entry_point="f")
    assert len(suite.rejections) == MAX_LISTED
    made = validate(suite, [], SuiteRules(Validation.DROP_WRONG, Comparison()))
    assert made.n_invalid == counted


def test_reading_works_on_a_nearly_full_stack():
    reply = "```python\n" + "x = [[[[[1]]]]]\nassert f([[[[[x]]]]]) == [[[[[[2]]]]]]\n" * 2 + "```"
    outcomes = []

    def at_depth(n: int) -> None:
        if n:
            at_depth(n - 1)
        else:
            outcomes.extend(reading_of(reply))

    frame, used = sys._getframe(), 0
    while frame is not None:
        frame, used = frame.f_back, used + 1
    at_depth(sys.getrecursionlimit() - used - 60)
    assert len(outcomes) == 4


def test_threads_reading_at_once_leave_the_warning_filters_alone():
    before = list(warnings.filters)
    reply = "```python\n" + "assert f('\\d') == 1\n" * 20 + "```"
    threads = [threading.Thread(target=lambda: [reading_of(reply) for _ in range(10)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(warnings.filters) == before


ATOMS = st.sampled_from(
    [
        *("1", "-2.5", "'a'", '"it\'s"', "None", "[]", "{}", "(1,)", "{1, 2}", "1j", "b'x'", "u'a'", "...", "0x1F"),
        *("x", "y", "i", "math.pi", "os.sep", "f", "f(1)", "len('a')", "open", "undefined"),
    ]
)
FORMS = [
    *("f({0})", "f({0}, k={1})", "[{0}, {1}]", "{{{0}: {1}}}", "({0} + {1})", "{0} == {1}", "({0} < {1})"),
    *("{0} and {1}", "({0} if x else {1})", "[{0} for i in {1} if i]", "{{x: {0} for x in [{1}]}}"),
    *("(lambda x, y={0}: {1})", "{0}[{1}:]", "not {0}", "-({0})", "f(*{0})", "({0}).real", "({0})._x"),
    *("f'{{{0}}}!'", "(z := {0})", "{0} is None"),
]


def _combined(forms: list[str], inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Texts in which each form is filled with two others."""
    return st.tuples(st.sampled_from(forms), inner, inner).map(lambda found: found[0].format(*found[1:]))


EXPRESSIONS = st.recursive(ATOMS, partial(_combined, FORMS), max_leaves=8)
STATEMENTS = st.one_of(
    EXPRESSIONS.map(lambda e: f"assert {e}"),
    st.tuples(EXPRESSIONS, EXPRESSIONS).map(lambda p: f"assert {p[0]} == {p[1]}"),
    st.tuples(EXPRESSIONS, EXPRESSIONS).map(lambda p: f"assert f({p[0]}) == {p[1]}, 'message'"),
    st.tuples(st.sampled_from(["x", "y", "i", "f"]), EXPRESSIONS).map(lambda p: f"{p[0]} = {p[1]}"),
    st.tuples(EXPRESSIONS, EXPRESSIONS).map(lambda p: f"x, y = {p[0]}, {p[1]}"),
    EXPRESSIONS.map(lambda e: f"def test():\n    x = {e}\n    assert f(x) == x"),
    EXPRESSIONS.map(lambda e: f"for i in {e}:\n    assert f(i) == i"),
    st.sampled_from(["import math", "import os", "from math import pi as x", "import math as y"]),
    st.sampled_from(["x.append(1)", "assert f(", "del x"]),
)
FILES = st.lists(STATEMENTS, min_size=1, max_size=8).map(
    lambda lines: "\n".join(["import math\nx = 1\ny = [2]", *lines])
)

ALLOWED = {"f", "math", "x", "y", "len", "bool"}  # x and y where a lambda, a comprehension or an import binds them


def calls_entry_point(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "f" for n in ast.walk(node))


def cases_in(text: str) -> tuple[TestCase, ...]:
    found = block(text).cases
    assume(found)
    return found


@pytest.mark.slow
@given(FILES)
def test_each_case_of_any_file_keeps_the_promises_of_the_strict_reading(text):
    """One test of all three, since most of its time goes into making files with a case."""
    for case in cases_in(text):
        check_that_it_is_an_expression_that_calls_the_entry_point_and_names_nothing_else(case)
        check_that_reading_it_again_gives_it_again(case)
        check_that_its_free_names_are_bound_by_its_imports_or_are_built_in(case)


def check_that_it_is_an_expression_that_calls_the_entry_point_and_names_nothing_else(case: TestCase) -> None:
    expression, prediction = (ast.parse(part, mode="eval") for part in (case.expression, case.prediction))
    assert calls_entry_point(expression)
    assert not calls_entry_point(prediction)
    called = {id(n.func) for n in ast.walk(expression) if isinstance(n, ast.Call)}
    for node in (*ast.walk(expression), *ast.walk(prediction)):
        if isinstance(node, ast.Name):
            assert node.id in ALLOWED | {"i"}
            assert node.id != "f" or id(node) in called
        assert not isinstance(node, ast.NamedExpr | ast.Await | ast.Yield)
        assert not (isinstance(node, ast.Attribute) and node.attr.startswith("_"))
    assert set(case.imports) <= {"import math", "from math import pi as x", "import math as y"}
    assert case.direct is is_direct_call(case.expression, "f")
    assert "\n" not in case.to_assert()


def check_that_reading_it_again_gives_it_again(case: TestCase) -> None:
    again = bare(case.to_assert())
    assert again.rejections == ()
    assert [(c.expression, c.prediction, c.imports, c.direct) for c in again.cases] == [
        (case.expression, case.prediction, case.imports, case.direct)
    ]


def check_that_its_free_names_are_bound_by_its_imports_or_are_built_in(case: TestCase) -> None:
    namespace: dict[str, object] = {"f": None}
    exec("\n".join(case.imports), namespace)  # imports of math only, see above
    for part in (case.expression, case.prediction):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `1[0]` compiles, with a warning
            free = set(compile(part, "case", "eval").co_names) - {"real", "pi"}
        assert free <= namespace.keys() | vars(builtins).keys()


ARITHMETIC = [
    *("f({0})", "f({0}, k={1})", "f(*[{0}, {1}])", "({0} + {1})", "({0}) * ({1})", "({0} if {1} else 3)"),
    *("[{0}, {1}][1]", "(lambda x: {0})({1})", "(lambda y, x={0}: x - y)({1})"),
    *("sum(x for x in [{0}, {1}])", "[x + y for y in [{0}]][0]", "([x for x in [x, {0}] if {1}][:1] == [1])"),
    *("({0} < {1})", "({0} or {1})", "(not {0})", "(-({0}))", "len(str({0}))"),
]
NUMBERS = st.recursive(
    st.sampled_from(["1", "2", "-3", "x", "y", "x", "y"]), partial(_combined, ARITHMETIC), max_leaves=6
)
LINES = st.one_of(
    st.tuples(st.sampled_from(["x = {}", "y = {}", "x = y = {}", "y: int = {}", "assert f({})"]), NUMBERS),
    st.tuples(st.sampled_from(["x, y = y, {}", "assert f(x) == {}", "assert {} == f(y, k=1)", "assert {}"]), NUMBERS),
).map(lambda pair: pair[0].format(pair[1]))


def stand_in(*values: float, **named: float) -> int:
    return (7 * sum(values) + 3 * sum(named.values()) + len(values)) % 11


@given(st.lists(LINES, min_size=1, max_size=8))
def test_a_case_holds_iff_its_assert_holds_where_it_stands(lines):
    text = "\n".join(["x = 1", "y = 2", *lines])
    suite = bare(text)
    cases = {case.line: case for case in suite.cases}
    rejected = {rejection.line for rejection in suite.rejections}
    namespace: dict[str, object] = {"f": stand_in}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.startswith("assert"):
            exec(line, namespace)
            continue
        condition = line.removeprefix("assert ")
        assert (number in cases) is not (number in rejected)
        if number in cases:
            case = cases[number]
            holds = eval(case.expression, {"f": stand_in}) == eval(case.prediction, {"f": stand_in})
            assert holds is bool(eval(condition, namespace))


def in_place(text: str) -> Suite:
    return block(text, tests_per_suite=8, forms=CallForms(in_place=True))


@pytest.mark.parametrize(
    "text",
    [
        "x0 = [1]\n" + "".join(f"x{n + 1} = [x{n}, x{n}]\n" for n in range(60)) + "f(x60)\nassert x60 == 1",
        "x0 = [1]\n" + "".join(f"x{n + 1} = x{n} + x{n}\nf(x{n + 1})\n" for n in range(60)) + "assert x60 == 1",
        "".join(f"x{n}=[]\n" for n in range(3000)) + f"f({','.join(f'x{n}' for n in range(3000))})\nassert x1 == 1",
        "".join(f"x{n}=[]\n" for n in range(3000)) + "".join(f"f(x{n})\n" for n in range(3000)) + "assert x1 == 1",
        "x = [1]\n" + "f(x)\n" * 9000 + "assert x == 1",
        "x = [[1], [2]]\n" + "".join(f"y{n}=x\n" for n in range(3000)) + "f(x)\n" * 3000 + "assert x == 1",
        "x = [" + "[" * 40 + "]" * 40 + "]\n" + "y = x[:]\nf(x, y)\n" * 3000 + "assert x == 1",
        f"x = {'-' * 1500} f(1)\nassert x",
    ],
    ids=["doubling", "doubling, calls", "many names", "many calls", "one name", "many aliases", "deep copies", "depth"],
)
def test_names_that_a_call_changes_cost_a_bounded_number_of_steps(text: str) -> None:
    before = time.process_time()
    in_place(text[:MAX_CHARACTERS])
    assert time.process_time() - before < 3.0  # more names or lines took minutes, or had no end


def test_few_names_are_within_the_budget_of_steps() -> None:
    text = "".join(f"x{n} = [{n}]\nf(x{n})\nassert x{n} == [0]\n" for n in range(8))
    assert len(in_place(text).cases) == 8
