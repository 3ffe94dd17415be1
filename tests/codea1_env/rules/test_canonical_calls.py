"""A call is one however a case makes it."""

from __future__ import annotations

import pytest

from codea1_env import values
from codea1_env.facts.submissions import TestCase
from codea1_env.facts.verdicts import EntryPointCall
from codea1_env.rules.canonical_calls import CanonicalCalls, may_see_arguments
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Reading

SOLUTION = "import math\n\ndef f(n, to=9, *rest, by=1):\n    return n\n"
CALLS = CanonicalCalls.of(SOLUTION, "f")


def case(condition: str) -> TestCase:
    (found,) = read_suite(f"assert {condition}", Reading.STRICT, entry_point="f").cases
    return found


def called(*args: object, **kwargs: object) -> EntryPointCall:
    return EntryPointCall(values.encode((args, kwargs), max_bytes=1 << 20))


ARGUMENTS = [
    *(("f(17)", (17,), {}), ("f(n=17)", (17,), {}), ("f(+17)", (17,), {}), ("f(-0)", (0,), {})),
    *(("f(to=3, n=17)", (17, 3), {}), ("f(17, by=2, to=3)", (17, 3), {"by": 2})),
    *(("f(by=2, to=3)", (), {"to": 3, "by": 2}), ("f({2, 1, 3})", ({1, 2, 3},), {})),
    ("f('a=b', {'k': [1.0, -2.5, None, True]})", ("a=b", {"k": [1.0, -2.5, None, True]}), {}),
    *(("f(())", ((),), {}), ("f((1,), b'\\x00')", ((1,), b"\0"), {}), ("f()", (), {}), ("f(1 + 2j)", (1 + 2j,), {})),
    *(("f(1e400)", (float("inf"),), {}), ("f('x, {})')", ("x, {})",), {})),
]


@pytest.mark.parametrize(("plain", "args", "kwargs"), ARGUMENTS)
def test_a_plain_call_and_a_recorded_one_with_the_same_arguments_are_one(plain, args, kwargs):
    assert CALLS.of_case(case(f"{plain} == 1")) == CALLS.of_case(
        case("[f(i) for i in [1]] == [1]"), [called(*args, **kwargs)]
    )
    assert CALLS.of_case(case(f"{plain} == 1")) == CALLS.of_case(case(f"{plain} + 1 == 1"), [called(*args, **kwargs)])


def test_other_arguments_are_other_calls():
    others = [
        *("1", "1.0", "True", "'1'", "[1]", "(1,)", "{1}", "{1: 2, 3: 4}", "{3: 4, 1: 2}", "1, 8", "None", "by=2"),
        "to=1",
    ]
    assert len({CALLS.of_case(case(f"f({other}) == 1")) for other in others}) == len(others)


@pytest.mark.parametrize(
    ("written", "short"),
    [
        *(("f(17, 9)", "f(17)"), ("f(17, to=9, by=1)", "f(17)"), ("f(17, 9.0)", "f(17, 9.0)")),
        ("f(17, by=2)", "f(17, by=2)"),
        ("f(17, 9, 5)", "f(17, 9, 5)"),  # something follows
        ("f(9)", "f(9)"),
    ],
)
def test_a_default_of_the_solutions_that_is_written_out_is_left_out(written, short):
    direct = case(f"{written} == 1")
    args, kwargs = eval(written.replace("f", "(lambda *a, **k: (a, k))"))
    assert CALLS.of_case(direct) == (short,)
    assert CALLS.of_case(case("[f(i) for i in [1]] == [1]"), [called(*args, **kwargs)]) == (short,)


def test_only_literal_defaults_are_known():
    found = CanonicalCalls.of("def f(a, /, b=None, c=[-1, ()], *, d='x', e, g=len): ...", "f")
    assert found.defaults == {"b": "None", "c": "[-1, ()]", "d": "'x'"}
    whole, short = case("f(1, c=[-1, ()], b=None, d='x', e=2) == 1"), case("f(1, e=2) == 1")
    assert found.of_case(whole) == found.of_case(short) == ("f(1, e=2)",)
    assert found.of_case(case("f(1, c=2) == 1")) == found.of_case(case("f(1, None, 2) == 1")) == ("f(1, None, 2)",)


def test_names_of_parameters_are_those_of_the_only_definition_and_may_be_unknown():
    assert CanonicalCalls.of("def f(b, /, c): ...", "f").parameters == ("b", "c")
    for solution in (
        *("f = lambda n: n", "class f: ...", "def f(", "", "def f(a, b): ...\ndef f(b, a): ..."),
        *("def f(a, b=1): ...\nf = partial(f, b=5)", "@changed\ndef f(a, b=1): ..."),
        *("def f(a, b=1): ...\nif True:\n    def f(a, b=2): ...", "def f(a, b=1): ...\nfrom other import g as f"),
        "def f(a, /, **named): ...",
    ):
        unknown = CanonicalCalls.of(solution, "f")
        assert (
            unknown.of_case(case("f(b=1, a=2) == 1")) == unknown.of_case(case("f(a=2, b=1) == 1")) == ("f(a=2, b=1)",)
        )


def test_bytes_that_nobody_has_checked_are_calls_of_their_own():
    found = [CALLS.of_case(case("f(*[1]) == 1"), [EntryPointCall(junk)]) for junk in (b"", b"\xff", b"1", b"[[1],{}]")]
    assert len(set(found)) == 4
    long = called(["=" * 100_000], by=1)
    assert CALLS.of_case(case("f(*[1]) == 1"), [long]) == CALLS.of_case(case("f(*[2]) == 1"), [long])


def test_only_what_names_something_that_can_change_may_see_arguments():
    changeable = [called([1])], [called(n={1})], [called(1), called(([],))]
    assert all(may_see_arguments("(lambda x: (f(x), x))([1])", record) for record in changeable)
    assert all(may_see_arguments(text, [called([1])]) for text in ("[x for x in y]", "(x := [1])"))
    assert not may_see_arguments("f(*[[1]]) + before + lambdas", [called([1])])
    assert not may_see_arguments("[f(x) for x in (1,)]", [called(1, "a", (2, frozenset()), n=b"")])
    assert may_see_arguments("[f(x) for x in (1,)]", [EntryPointCall(b"junk")])
