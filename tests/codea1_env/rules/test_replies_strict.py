"""What the strict reading makes of a tester's reply, and why it drops what it drops."""

import sys
import warnings

import pytest

from codea1_env.facts.submissions import COUNTED_AS_INVALID, RejectionReason
from codea1_env.rules.reading.direct_calls import is_direct_call
from tests.support.replies import bare, block, claims, reasons

CLAIMS = {
    "f(1) == 2": "f(1) => 2",
    "2 == f(1)": "f(1) => 2",
    "(f( 1 ) == 2)": "f(1) => 2",
    "f(1) == 2, 'a message'": "f(1) => 2",
    "f(1) == 2, f'{undefined}'": "f(1) => 2",
    "f(x=1, y=[1, (2,)]) == {'a': {1}}": "f(x=1, y=[1, (2,)]) => {'a': {1}}",
    "f(0x10, 1_000, u'a') == 'b' 'c'": "f(16, 1000, 'a') => 'bc'",
    "f(1) is None": "f(1) => None",
    "None is f(1)": "f(1) => None",
    "f(1) is True": "f(1) => True",
    "f(1) == (1 < 2)": "f(1) => (1 < 2)",
    "f(1) == (not 1)": "f(1) => (not 1)",
    "(f(1) or 2) == 2": "(f(1) or 2) => 2",
    "(f(1) if f(2) else 2) == 2": "(f(1) if f(2) else 2) => 2",
    "(1 if 2 else 3) == f(1)": "f(1) => (1 if 2 else 3)",
    "f(1)[0] == 2": "f(1)[0] => 2",
    "f(1).upper() == 'A'": "f(1).upper() => 'A'",
    "sorted(f(1)) == [1, 2]": "sorted(f(1)) => [1, 2]",
    "f(f(1)) == 2": "f(f(1)) => 2",
    "f(*[1, 2]) == 3": "f(*[1, 2]) => 3",
    "[f(i) for i in range(2)] == [0, 1]": "[f(i) for i in range(2)] => [0, 1]",
    "(lambda g: g + f(1))(2) == 3": "(lambda g: g + f(1))(2) => 3",
    "f(f'{1:>3}') == 1": "f(f'{1:>3}') => 1",
    "f(lambda x, *a, y=2, **k: x) == 1": "f(lambda x, *a, y=2, **k: x) => 1",
    # properties
    **{
        condition: f"bool({condition}) => True"
        for condition in (
            *("f(1)", "not f(1)", "f(1) != 2", "f(1) < 2", "f(1) in (1, 2)", "f(1) is not None", "f(1) in [*'a']"),
            *("f(1) is (f(2) > 3)", "type(f(1)) is type(f(2))", "f(1) == 2 == 2", "1 <= f(1) <= 2", "f(1) == f(2)"),
            *("f(1) == 1 and f(2) == 2", "isinstance(f(1), int)", "f(1) in [2, 3]", "not f(1) < 2"),
            "not (f(1) and f(2))",
        )
    },
    "bool(f(1))": "bool(f(1)) => True",
    "abs(f(1) - 2.5) < 1e-6": "bool(abs(f(1) - 2.5) < 1e-06) => True",
    "all(f(i) for i in (1, 2))": "bool(all((f(i) for i in (1, 2)))) => True",
    # no equalities
    "not f(1) == 2": "bool(f(1) != 2) => True",
    "f(1) not in [2]": "bool(f(1) != 2) => True",
    "(f(1) < 2) == True": "bool(f(1) < 2) => True",
    "(f(1) < 2) is False": "bool(not f(1) < 2) => True",
    "isinstance(f(1), int) is True": "bool(isinstance(f(1), int)) => True",
    # what the entry point returns is not taken for the outcome of a comparison
    "f(1) == 1": "f(1) => 1",
    "(f(1) or f(2)) is False": "(f(1) or f(2)) => False",
}


@pytest.mark.parametrize(("condition", "claim"), CLAIMS.items(), ids=CLAIMS)
def test_an_assert_becomes_an_expression_and_its_value(condition, claim):
    suite = block(f"assert {condition}")
    assert claims(suite) == [claim]
    assert suite.rejections == ()


@pytest.mark.parametrize(
    "condition",
    [
        *("f(1) == 0.3", "(f(1) == 0.3) is True", "True is (f(1) == 0.3)", "(f(1) == 0.3) == True"),
        *("(f(1) == 0.3) == 1", "(f(1) == 0.3) != False", "(f(1) != 0.3) is not True", "not f(1) != 0.3"),
        *("not not f(1) == 0.3", "not bool(f(1) != 0.3)", "bool(f(1) == 0.3)", "bool(bool(f(1) == 0.3) is True)"),
        *("f(1) in [0.3]", "f(1) in (0.3,)", "not f(1) not in {0.3}"),
    ],
)
def test_an_equality_is_one_however_it_is_wrapped_d15(condition):
    for text in (f"assert {condition}", f"same = {condition}\nassert same"):
        suite = block(text)
        assert claims(suite) == ["f(1) => 0.3"]
        assert suite.cases[0].direct


CALLS = {
    "f(1) == 1": (),
    "f(1) + f(k=2) + f(1) > 3": ("f(1)", "f(k=2)"),
    "f(2) + abs(f(x=[1])) + f(2) == 9": ("f(2)", "f(x=[1])"),
    # the calls of a case are known all or not at all
    "all(f(i) for i in [1])": (),
    "f(f(1)) == 2": (),
    "f(2, *[3]) == 1": (),
    "f(1) + f(f(2)) == 1": (),
    "f(*[1]) + f(2) == 1": (),
}


@pytest.mark.parametrize(("condition", "calls"), CALLS.items(), ids=CALLS)
def test_a_case_knows_what_it_asks_if_that_is_literal(condition, calls):
    assert [case.calls for case in block(f"assert {condition}").cases] == [calls]


@pytest.mark.parametrize("argument", ["0 + 1", "2 - 1", "1 * 1", "3 + -2", "2 * 3 - 5", "-1 * -1", "1 * (3 - 2)"])
def test_an_argument_that_is_written_as_a_sum_asks_nothing_else(argument):
    assert block(f"assert f({argument}) == 1").cases[0].calls == ("f(1)",)
    assert block(f"assert f([({argument}, 'a')], k={argument}) == 1").cases[0].calls == ("f([(1, 'a')], k=1)",)


@pytest.mark.parametrize(
    "argument", ["1 + 1.0", "True + 0", "2 ** 1", "2 // 2", "'a' * 2", "(1 << 65) * 2", "[1] + [2]"]
)
def test_other_arithmetic_is_not_worked_out_by_reading(argument):
    assert block(f"assert f({argument}) == 1").cases[0].calls == ()


UNREADABLE = {
    "syntax_error": (
        *("", "f(", "\0", f"f({'1+' * 3000}1)", f"[f({'[' * 300}"),
        # numbers and depth that could not be written back
        *(f"f({'9' * 6000})", f"f({'[' * 70 + ']' * 70})", f"f({'[' * 300 + ']' * 300})", f"f({'-' * 300}1)"),
    ),
    "forbidden_name": ("x", "f(1) + f(x)"),
    "too_long": (f"f(0x{'f' * 6000})", f"f(1{'+1' * 30_000})"),
}


@pytest.mark.parametrize(("text", "reason"), [(text, reason) for reason in UNREADABLE for text in UNREADABLE[reason]])
def test_what_cannot_be_read_is_no_case_and_costs_the_next_one_nothing(text, reason):
    suite = block(f"assert {text} == 1\nassert f(7) == 2")
    assert claims(suite) == ["f(7) => 2"]
    assert reasons(suite) == [reason]


def test_calls_of_something_else_are_no_tests_d5():
    suite = block(
        "assert len('aa') == 2\nassert print('x') == None\nassert globals().update(f=abs) is None\nassert True"
    )
    assert suite.cases == ()
    assert reasons(suite) == ["no_entry_point_call", "forbidden_name", "forbidden_name", "no_entry_point_call"]
    assert {rejection.reason for rejection in suite.rejections} <= COUNTED_AS_INVALID


@pytest.mark.parametrize(
    "call", ["solution.f(1)", "Solution().f(1)", "self.f(1)", "'f(1)'", "ff(1)", "(lambda f: f(1))(abs)", "map(f, [1])"]
)
def test_only_a_call_by_name_counts_as_a_call_of_the_entry_point(call):
    assert block(f"assert {call} == 1").cases == ()


def test_surplus_cases_are_too_many():
    suite = block("assert f(1) == 1\nassert len('') == 0\nassert f(2) == 2\nassert f(3) == 3", tests_per_suite=2)
    assert claims(suite) == ["f(1) => 1", "f(2) => 2"]
    assert reasons(suite) == ["no_entry_point_call", "too_many"]
    assert suite.rejections[1].source == "assert f(3) == 3"


INLINED = {
    "r = f(1)\nassert r == 2": "f(1) => 2",
    "x = [1]\nassert f(x) == 2": "f([1]) => 2",
    "x = [1]\nassert f([x, {'k': x}]) == x": "f([[1], {'k': [1]}]) => [1]",
    "x = 1\ny = x\nz = (y, x)\nassert f(z) == 2": "f((1, 1)) => 2",
    "x = y = [1]\nassert f(x, y) == 2": "f([1], [1]) => 2",
    "x, (y, z) = 1, [2, 3]\nassert f(x, y, z) == 2": "f(1, 2, 3) => 2",
    "x, y = 1, 2\nx, y = y, x\nassert f(x, y) == 2": "f(2, 1) => 2",
    "x: list[int] = [1]\nassert f(x) == 2": "f([1]) => 2",
    "x = 1\nassert f(x) == 2\nx = 3": "f(1) => 2",
    "x = 1; assert f(x) == 2": "f(1) => 2",
    "x = 1 + 2\nassert f(x * 2) == 2": "f((1 + 2) * 2) => 2",
    "x = 1\nassert f(x=x) == 2": "f(x=1) => 2",
    "x = [1]\nassert f(*x) == 2": "f(*[1]) => 2",
    "x = 1\nassert f(f'{x}') == 2": "f(f'{1}') => 2",
    "x = 1\nassert f(1) == x + 1": "f(1) => 1 + 1",
    "g = lambda a: a + 1\nassert f(1) == g(1)": "f(1) => (lambda a: a + 1)(1)",
    "x = 5\nassert f([x for x in (1, 2)]) == x": "f([x for x in (1, 2)]) => 5",
    "x = [5]\nassert f([x for x in x]) == 1": "f([x for x in [5]]) => 1",
    "x = 5\ny = 6\nassert f([x + y for x in (y, 2)]) == 1": "f([x + 6 for x in (6, 2)]) => 1",
    "x = [5]\nassert f({k: v for k in x for v in x if v}) == 1": "f({k: v for k in [5] for v in [5] if v}) => 1",
    "x = 5\nassert f((lambda x, y=x: x + y)(1)) == x": "f((lambda x, y=5: x + y)(1)) => 5",
    "len = 3\nassert f(len) == 1": "f(3) => 1",
    "x = not 1\nassert f(x, [x]) == x": "f(not 1, [not 1]) => (not 1)",
    "x = 1 if 2 else 3\nassert f([x], x + x) == 1": "f([1 if 2 else 3], (1 if 2 else 3) + (1 if 2 else 3)) => 1",
    "_x = 3\nassert f(_x) == 1": "f(3) => 1",
    "é = 3\nassert f(é) == 'é'": "f(3) => 'é'",
    "bool = lambda x: x + 1\nassert bool(f(1) == 2) == 2": "(lambda x: x + 1)(f(1) == 2) => 2",
}


@pytest.mark.parametrize(("text", "claim"), INLINED.items(), ids=INLINED)
def test_a_name_stands_for_what_it_was_given(text, claim):
    suite = block(text)
    assert claims(suite) == [claim]
    assert suite.rejections == ()


CHANGED = [
    *("x.append(2)", "x[0] = 2", "del x[0]", "x += [2]", "for y in x:\n    y.append(1)", "for x in [[1]]:\n    pass"),
    *("with open('a') as x:\n    pass", "import os as x", "x, y = f(1)", "x = = [2]", "def x(a):\n    return a"),
    *("y = x\ny.append(2)", "y = {'k': x}\nz = y\nz['k'].append(2)"),
]


@pytest.mark.parametrize("change", CHANGED)
def test_a_name_that_a_dropped_statement_may_have_changed_is_not_misread(change):
    suite = block(f"x = [1]\n{change}\nassert f(x) == 2\nassert f([1]) == 3\nx = [4]\nassert f(x) == 5")
    assert claims(suite) == ["f([1]) => 3", "f([4]) => 5"]
    is_forbidden = "import" in change
    assert set(reasons(suite)) & COUNTED_AS_INVALID <= {"forbidden_name" if is_forbidden else "syntax_error"}


def test_reading_a_constant_in_a_dropped_statement_does_not_spoil_it():
    suite = block("n = 3\nprint(n)\nassert f(n) == 2\nassert f(n ==\nassert f(n) == 3")
    assert claims(suite) == ["f(3) => 2", "f(3) => 3"]


def test_names_that_would_double_without_end_are_too_long():
    doubling = "x0 = [1]\n" + "".join(f"x{i} = [x{i - 1}, x{i - 1}]\n" for i in range(1, 60))
    suite = block(f"{doubling}assert f(x50) == 1\nassert f(x2) == 1")
    assert claims(suite) == ["f([[[1], [1]], [[1], [1]]]) => 1"]
    assert reasons(suite) == ["too_long"]
    assert RejectionReason.TOO_LONG not in COUNTED_AS_INVALID


def test_all_cases_together_may_only_grow_so_far():
    suite = block(f"x = {list(range(1000))}\n" + "assert f(x) == 1\n" * 20)
    assert 8 < len(suite.cases) < 14
    assert set(reasons(suite)) == {"too_long"}


FORBIDDEN = {
    "called": ("f == f(1)", "f(1) == f", "callable(f) and f(1)", "list(map(f, [1])) == [1]", "f(f) == 1"),
    "'f' may not be bound": ("[f(1) for f in [abs]] == [1]", "(lambda f: f(1))(abs) == f(1)"),
    "may not be bound": ("f(lambda __x: 1) == 1",),
    "'open' may not be used": ("f(1) == open('x').read()",),
    **{
        f"{use.partition('(')[0]!r} may not be used": (f"f({use}) == 1",)
        for use in ("eval('1')", "id(1)", "hash('a')", "getattr(1, 'real')", "object()", "print")
    },
    "'undefined' is not defined": ("f(1) == undefined",),
    "'math' is not defined": ("f(math.pi) == 1",),
    "__import__": ("f(__import__('os')) == 1",),
    "__name__": ("f.__name__ == 'f'",),
    "__class__": ("f((1).__class__) == 1",),
    "_asdict": ("f(1)._asdict() == {}",),
    ":=": ("(x := f(1)) == 1",),
}


@pytest.mark.parametrize(("condition", "why"), [(condition, why) for why in FORBIDDEN for condition in FORBIDDEN[why]])
def test_a_test_may_not_use(condition, why):
    suite = block(f"assert {condition}")
    assert suite.cases == ()
    assert reasons(suite) == ["forbidden_name"]
    assert why in suite.rejections[0].detail


def test_a_substitution_that_a_binding_would_capture_is_refused():
    assert reasons(block("n = len('ab')\nassert f([n for len in (1, 2)]) == 1")) == ["forbidden_name"]
    assert reasons(block("n = len('ab')\nfrom numpy import size as len\nassert f(n) == len([1])")) == ["forbidden_name"]
    assert reasons(block("n = sum([1])\nfrom math import fsum as sum\nassert f(n) == sum([1])")) == ["forbidden_name"]


def test_awaiting_and_yielding_are_no_expressions_of_a_test():
    conditions = ("await f(1)", "f((yield)) == 1", "f((yield from [])) == 1", "[f(i) async for i in x]")
    suite = block("x = []\n" + "\n".join(f"assert {condition}" for condition in conditions))
    assert suite.cases == ()
    assert reasons(suite) == ["syntax_error"] * 4


IMPORTS = {
    "import math\nassert f(1) == math.pi": ("import math",),
    "import math\nassert f(1) == 2": (),
    "import math, re\nassert f(re.sub('a', 'b', 'c')) == 2": ("import re",),
    "import numpy as np\nassert f(np.array([1])) == 1": ("import numpy as np",),
    "from math import inf as oo, pi\nassert f(oo) == pi": ("from math import inf as oo", "from math import pi"),
    "import collections.abc\nassert isinstance(f(1), collections.abc.Iterable)": ("import collections.abc",),
    "from collections import Counter\nx = Counter('a')\nassert f(x) == 1": ("from collections import Counter",),
    "from math import pi\nx = pi\nfrom math import e as pi2\nassert f(x) == pi2": (
        *("from math import e as pi2", "from math import pi"),
    ),
    "from __future__ import annotations\nassert f(1) == 1": (),
    "from solution import f\nassert f(1) == 1": (),
    "from .solution import f\nassert f(1) == 1": (),
    "from math import f\nassert f(1) == 1": (),
    "def test():\n    import math\n    assert f(math.pi) == 1": ("import math",),
}


@pytest.mark.parametrize(("text", "imports"), IMPORTS.items(), ids=IMPORTS)
def test_a_case_carries_the_imports_that_it_needs(text, imports):
    suite = block(text)
    assert [case.imports for case in suite.cases] == [imports]
    assert suite.rejections == ()


@pytest.mark.parametrize(
    "statement",
    [
        *("import os", "import random as x", "import solution", "import numpy.random", "import math as f"),
        *("from solution import g", "from solution import *", "from math import *", "from . import x"),
        *("from numpy import random", "from statistics import sys", "from operator import attrgetter"),
        *("from math import pi as f", "from math import pi as __x", "import json.decoder", "from json import decoder"),
        *("import xml", "import os.path"),
    ],
)
def test_other_imports_are_dropped_but_are_no_failed_tests(statement):
    suite = block(f"{statement}\nassert f(1) == 1")
    assert claims(suite) == ["f(1) => 1"]
    assert suite.cases[0].imports == ()
    assert reasons(suite) == ["not_an_assert"]
    assert RejectionReason.NOT_AN_ASSERT not in COUNTED_AS_INVALID


@pytest.mark.parametrize(
    "drawn",
    [
        "import random\nrandom.seed(0)\nx = random.randint(0, 9)",
        "from random import Random\nrng = Random(3)\nx = rng.sample(range(9), 3)",
        "import numpy as np\nrng = np.random.default_rng(0)\nx = rng.integers(0, 9, 4)",
        "from numpy.random import rand\nx = rand(3)",
    ],
)
def test_tests_with_random_numbers_are_not_read_even_if_seeded_and_it_is_said_why(drawn):
    suite = block(f"{drawn}\nassert f(x) == 1\nassert f(1) == 1")
    assert claims(suite) == ["f(1) => 1"]
    assert set(reasons(suite)) == {"not_an_assert"}
    assert suite.rejections[-1].detail.startswith("even a seeded draw depends on all draws before it")


@pytest.mark.parametrize("use", ["os.sep", "np.random.rand()", "datetime.datetime.now()", "statistics.random.random()"])
def test_clock_chance_and_machine_are_out_of_reach(use):
    imports = "import os\nimport numpy as np\nimport datetime, statistics\n"
    assert block(f"{imports}assert f({use}) == 1").cases == ()


@pytest.mark.parametrize(
    "arguments",
    [
        *("", "1, -1, +1.5, 'a', b'a', None, True, ...", "1 + 2j, -1 - 2j, 3j"),
        *("[1, (2, {3}), {'a': [{}]}]", "k=[1], m=-2"),
    ],
)
def test_a_call_with_literal_arguments_is_direct(arguments):
    assert is_direct_call(f"f({arguments})", "f")
    assert block(f"assert f({arguments}) == 1").cases[0].direct


@pytest.mark.parametrize(
    "expression",
    [
        *("f(x)", "f(*[1])", "f(**{'a': 1})", "f({**{}})", "f([*[]])", "f(f'a')", "f([i for i in 'a'])"),
        *("f(lambda: 1)", "f(1 + 2)", "f(2 * 'a')", "f(not 1)", "f(~1)", "f(-True)", "f(set())", "f(f(1))"),
        *("f(1)[0]", "f(1) == 1", "f(a=1, a=2)", "g(1)", "a.f(1)", "f", "f(1); f(2)", "f(1", "", "\0", "f(" * 500),
    ],
)
def test_anything_else_is_not_direct(expression):
    assert not is_direct_call(expression, "f")


def test_asserts_in_plain_functions_and_methods_are_read_with_their_own_names():
    suite = block(
        '''"""Tests."""
x = 1
class TestF(unittest.TestCase):
    """About f."""
    x = 2
    assert f(x) == "class"
    def test_method(self):
        y = [x]
        assert f(y) == "method"
def test_function():
    x = 3
    def inner():
        assert f(x) == "inner"
    assert f(x) == "function"
    pass
assert f(x) == "module"
'''
    )
    assert claims(suite) == [
        *("f(2) => 'class'", "f([1]) => 'method'", "f(3) => 'inner'", "f(3) => 'function'", "f(1) => 'module'"),
    ]
    assert suite.rejections == ()


NOT_READ = [
    *("if True:\n    assert f(1) == 1", "for i in g:\n    assert f(i) == i", "x: int", "x += 1"),
    *("while True:\n    assert f(1) == 1", "async def test():\n    assert f(1) == 1"),
    *("with pytest.raises(Exception):\n    f(-1)", "try:\n    f(1)\n    assert False\nexcept:\n    pass"),
    *("match f(1):\n    case 1:\n        assert f(1) == 1", "def check_all(a, b):\n    assert f(a) == b"),
    "@pytest.mark.skip\ndef test(self):\n    assert f(1) == 1",
    "def f():\n    assert f(1) == 1",  # the program itself
    *("def helper():\n    return 1", "class A:\n    x = 1", "f(1)", "f(1) == 2", "self.assertRegex(f(1), 2)"),
    *("a.b = 1", "a, b = f(1)", "a, *b = 1, 2", "a, b = 1, *c", "a, b = 1, 2, 3", "f = abs", "a, f = 1, abs"),
]


@pytest.mark.parametrize("text", NOT_READ)
def test_other_statements_are_dropped_with_their_line_and_are_no_failed_tests(text):
    suite = block(f"{text}\nassert f(7) == 8")
    assert claims(suite) == ["f(7) => 8"]
    assert reasons(suite) == ["not_an_assert"]
    rejection = suite.rejections[0]
    assert rejection.line == (3 if text.startswith("@") else 2)
    assert rejection.source.split("\n")[0] in text
    assert rejection.detail


def test_statements_within_a_test_function_have_their_own_rejections():
    suite = block(
        "def test():\n    assert f(1) == 0\n    g(1)\n    assert f(2) == 0\n    return 1\n    assert f(3) == 0"
    )
    assert claims(suite) == ["f(1) => 0", "f(2) => 0"]
    dropped = [(4, "g(1)"), (6, "return 1"), (7, "assert f(3) == 0")]
    assert [(rejection.line, rejection.source) for rejection in suite.rejections] == dropped


@pytest.mark.parametrize("last", ["assert f(1) == 1", "assert f(1) =="])
def test_functions_within_functions_are_entered_so_far_and_no_farther(last):
    def nested(depth: int) -> str:
        headers = "".join(f"{' ' * i}def t{i}():\n" for i in range(depth))
        return f"{headers}{' ' * depth}assert f({depth}) == 1\n{' ' * depth}{last}"

    assert block(nested(8)).cases[0].expression == "f(8)"
    assert block(nested(9)).cases == ()


def test_a_broken_statement_costs_only_itself():
    suite = block(
        """assert f(1) == 1
assert f(2) ==
assert f([3, 4) == 3
assert f([5,
          6] == 4
x = [7
y = 8
assert f(y) == 5
assert f('it's') == 6
def test_a():
    assert f(9) == 7
    assert f(10 == 8
    z = 11
    assert f(z) == 9
assert f(12) == 10"""
    )
    assert claims(suite) == ["f(1) => 1", "f(8) => 5", "f(9) => 7", "f(11) => 9", "f(12) => 10"]
    assert [(r.reason.value, r.line, r.source) for r in suite.rejections] == [
        ("syntax_error", 3, "assert f(2) =="),
        ("syntax_error", 4, "assert f([3, 4) == 3"),
        ("syntax_error", 5, "assert f([5,\n          6] == 4\nx = [7"),
        ("syntax_error", 10, "assert f('it's') == 6"),
        ("syntax_error", 13, "assert f(10 == 8"),
    ]


UNCLOSED = ('assert f("""1) == 1', "assert f('''1) == 1", "assert f((((1) == 1", "assert f({'a': [1) == 1", 'x = "')
PARTLY_PYTHON = {
    **{f"{opening}\nassert f(2) == 2\n\nassert f(3) == 3": "f(2) => 2, f(3) => 3" for opening in UNCLOSED},
    "def test(:\n    assert f(1) == 1\nassert f(2) == 2\n    assert f(3) == 3\n  assert f(4) == 4": (
        "f(1) => 1, f(2) => 2, f(3) => 3, f(4) => 4"
    ),
    "for i in [3]\n    assert f(i) == i\nif x:\n    assert f(1) ==\nelse:\n    assert f(2) == 2\nassert f(3) == 3": (
        "f(3) => 3"
    ),
    "def check(g):\n    assert g(1) == 1\n    assert g(2) ==\nassert f(3) == 3": "f(3) => 3, f(1) => 1",
}


@pytest.mark.parametrize(("text", "read"), PARTLY_PYTHON.items())
def test_what_follows_something_broken_is_read_unless_it_belongs_to_it(text, read):
    suite = block(text)
    assert ", ".join(claims(suite)) == read
    assert reasons(suite) == ["syntax_error"]


def test_bare_text_gives_its_asserts_and_prose_is_no_failed_test():
    suite = bare(
        "Here are my tests. They're good (I think:\n"
        "They cover edge cases.\n"
        "\n"
        "assert f(1) == 1\n"
        "    assert f([2,\n"
        "        3]) == 2\n"
        "Then one more, which is broken:\n"
        "assert f(4 == 3\n"
        "\n"
        "assert f(5) == 4\n"
        "Done\n"
    )
    assert claims(suite) == ["f(1) => 1", "f([2, 3]) => 2", "f(5) => 4"]
    assert [case.line for case in suite.cases] == [4, 5, 10]
    assert [(r.reason.value, r.line) for r in suite.rejections] == [
        ("not_an_assert", 1),
        ("not_an_assert", 7),
        ("syntax_error", 8),
        ("not_an_assert", 11),
    ]


BLOCKS = {
    "all blocks together": "```python\nx = 1\n```\n```py\nassert f(x) == 1\n```\n~~~\nassert f(2) == 2\n~~~",
    "other languages ignored": "```bash\nassert f(0) == 0\n```\n```python\nassert f(1) == 1\nassert f(2) == 2\n```",
    "unlabelled output ignored": "```python\nassert f(1) == 1\nassert f(2) == 2\n```\n```\n2 passed\n```",
    "text outside ignored": "assert f(0) == 0\n```python\nassert f(1) == 1\nassert f(2) == 2\n```\nassert f(3) == 3",
    "bare if no block has an assert": "```python\ndef f(x):\n    return x\n```\nassert f(1) == 1\nassert f(2) == 2",
    "bare if blocks are in other languages": "assert f(1) == 1\nassert f(2) == 2\n```bash\npytest\n```",
    "one line each": "```python assert f(1) == 1```\n```assert f(2) == 2```",
    "unclosed": "```python\nassert f(1) == 1\nassert f(2) == 2",
    "in a list": "- so:\n  ```python\n  assert f(1) == 1\n  assert f(2) == 2\n  ```",
    "carriage returns": "```python\r\nassert f(1) == 1\r\nassert f(2) == 2\r\n```\r\n",
    "byte order mark": "\ufeffassert f(1) == 1\nassert f(2) == 2",
}


@pytest.mark.parametrize("reply", BLOCKS.values(), ids=BLOCKS)
def test_tests_are_found_in_blocks_of_any_style_or_in_bare_text_d20(reply):
    assert claims(bare(reply)) == ["f(1) => 1", "f(2) => 2"]


def test_lines_are_those_of_the_reply():
    tests = "def t():\r\n  assert f(2,\r\n   3) == 2\r\n  g()"
    suite = bare(f"Tests:\r\n\r\n~~~\r\n\r\nassert f(1) == 1\r\n~~~\r\n```py\r\n{tests}\r\n```")
    assert [case.line for case in suite.cases] == [5, 9]
    assert [rejection.line for rejection in suite.rejections] == [11]


THOUGHTS = "<think>\n```python\nassert f(0) == 0\ndef f(x): return 0\n```\nassert f(9) == 9\n</think>"


@pytest.mark.parametrize(
    "reply",
    [
        *(f"{THOUGHTS}\n```python\nassert f(1) == 1\n```", f"\n {THOUGHTS}```python\nassert f(1) == 1\n```"),
        f"{THOUGHTS.removeprefix('<think>')}\n```python\nassert f(1) == 1\n```",
        *(f"{THOUGHTS}\nassert f(1) == 1\n{THOUGHTS}", f"{THOUGHTS}{THOUGHTS}\nassert f(1) == 1"),
        f"assert f(1) == 1\n{THOUGHTS.removesuffix('</think>')}",
        f"{THOUGHTS.replace('think', 'THINKING')}\r\nassert f(1) == 1",
    ],
)
def test_what_a_model_thinks_is_no_test(reply):
    suite = bare(reply)
    assert claims(suite) == ["f(1) => 1"]
    assert suite.cases[0].line == next(n for n, line in enumerate(reply.splitlines(), 1) if "f(1)" in line)


def test_tags_within_tests_are_no_thoughts():
    text = "assert f('<think>a</think>b') == 'b'\nassert f('</think>') == '<think>'"
    assert len(bare(text).cases) == len(block(text).cases) == 2


@pytest.mark.parametrize(
    "reply", ["I cannot help.", "f(1) == 2", "```python\n# nothing\n```", "```json\n{}\n```", "x = 1", "```"]
)
def test_a_reply_without_an_assert_is_no_code(reply):
    suite = bare(reply)
    assert (suite.cases, reasons(suite)) == ((), ["no_code"])


def test_a_case_is_one_line_also_where_python_3_11_cannot_write_it_on_one():
    suite = block("assert f(f'{1:\\n}') == 1\nassert f(f'{2}\\n') == 2")
    assert len(suite.cases) == (2 if sys.version_info >= (3, 12) else 1)
    assert len(suite.cases) + len(suite.rejections) == 2
    assert not any("\n" in case.to_assert() for case in suite.cases)


def test_depth_is_bounded_where_names_are_filled_in_too():
    nested = "x = 1\n" + "x = [[[[[[x]]]]]]\n" * 10
    assert len(block(f"{nested}assert f(x) == 1").cases) == 1
    assert reasons(block(f"{nested}x = [[[x]]]\nassert f(x) == 1")) == ["syntax_error"]


def test_brackets_within_strings_and_comments_do_not_nest():
    text = "(" * 500
    suite = block(f"assert f('{text}') == 1  # {text}")
    assert claims(suite) == [f"f('{text}') => 1"]


def test_reading_warns_of_nothing():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        suite = block("assert (1if 1else 2) == f('\\d')\nassert (f(1) == 1, 'always true')")
    assert claims(suite) == ["f('\\\\d') => (1 if 1 else 2)"]
    assert caught == []


@pytest.mark.parametrize(
    ("text", "share"),
    [
        *((text, 0.0) for text in ("", "assert f('é') == 'ß'", "“—…”", "😀👩‍👩‍👧 日本語", "a\tb\r\nc\u3000d\xa0e")),
        *(("ab\0\x1b", 0.5), ("\ud800", 1.0), ("a\u202eb\x85", 0.5)),
    ],
)
def test_control_characters_and_surrogates_count_but_no_letters_emoji_and_white_space_d23(text, share):
    assert bare(text).nonprintable_share == share
