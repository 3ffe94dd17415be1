"""What crosses between a harness and a program: arguments and what becomes of them, results, exceptions, records."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from typing import Any

import pytest

from codea1_env.facts.verdicts import TOO_MANY, Outcome, OutcomeKind
from codea1_env.sandbox import Call, Harness, Job, JobReport, Limits, Place, Sandbox
from codea1_env.sandbox.interface import OPAQUE_ARGUMENT, OPAQUE_RESULT_USE, OVERSIZED_ARGUMENT, RECORD_FACTOR
from codea1_env.sandbox.local import TIERS
from codea1_env.values import decode, encode
from tests.support.sandboxes import sandbox_of

TESTERS = Harness(is_trusted=False)


def run(sandbox: Sandbox, program: str, *calls: str | Call, harness: Harness = TESTERS, **limits: Any) -> JobReport:
    every = tuple(call if isinstance(call, Call) else Call(call, place=Place.HARNESS) for call in calls)
    return sandbox.run([Job(program, "f", every, harness=harness, limits=Limits(**limits))])[0]


def values(report: JobReport) -> list[Any]:
    return [outcome.summary if outcome.value is None else decode(outcome.value) for outcome in report.outcomes]


def in_python(expression: str, *programs: str, **scope: Any) -> Any:
    """What an expression is worth where programs of this file have run."""
    for program in programs:
        exec(program, scope)
    return eval(expression, scope)


def given(*args: Any, **kwargs: Any) -> Call:
    return Call(arguments=encode((args, kwargs)))


@pytest.mark.parametrize(
    ("body", "expression"),
    [
        ("x.sort()", "(lambda x: (f(x), x)[1])([3, 1, 2])"),
        ("x.sort()", "(lambda a, b: [f([b, a]), a, b])([1], [0])"),  # moved, not changed
        ("x.sort()", "(lambda a, x: [f(x), a.append(9), x])(*(lambda a: (a, [[2], a]))([1]))"),
        ("x[0].append(7)", "(lambda a: [f([a, []]), a])([1])"),
        ("x[0] = [7]", "(lambda a, x: [f(x), x])(*(lambda a: (a, [a, []]))([1]))"),
        ("x[0], x[1] = x[1], x[0]; x[0].append(9)", "(lambda x: [f(x), x])([[1], [2]])"),
        ("x[:] = [[5], [6]]", "(lambda a: (lambda x: [f(x), x])([a, a]))([1])"),
        ("x[0] = x[2]; x[2] = [1]", "(lambda x: [f(x), x, f(x), x])([[1], [1], [2]])"),
        ("x[0].reverse(); return x[0][0]", "(lambda x: [f(x), x])([list(range(30_000)), []])"),
        ("yield x.append(1)", "(lambda x: [f(x) is None, x])([])"),  # its body never runs
        ("x.append(f)", "(lambda x: [f(x), len(x)])([2, 1])"),
        ("x.clear()", "(lambda x: [f(x), x])({1: 2})"),
        ("x['b'] = x.pop('a')", "(lambda a, x: [f(x), a.append(1), x])(*(lambda a: (a, {'a': a}))([0]))"),
        ("x.add(5)", "(lambda x: [f(x), x])({1})"),
        ("x += b'z'", "(lambda x: [f(x), x])(bytearray(b'a'))"),
        ("x.rotate()", "(lambda x: [f(x), list(x)])(__import__('collections').deque([1, 2, 3]))"),
        ("x.append(1); raise KeyError(1)", "(lambda x: [g(x), x])([])"),
        ("x[1].append(x[0])", "(lambda x: [f(x), x])([1, []])"),
        ("x.append(3)", "(lambda x: [f(x=x), x])([])"),
        ("return x", "(lambda x: [f(x), x])((1, [2]))"),
    ],
)
def test_what_a_program_does_to_arguments_is_done_to_the_testers(sandbox: Sandbox, body: str, expression: str) -> None:
    program = f"def f(x):\n    {body}\n"
    guard = "def g(x):\n    try: return f(x)\n    except KeyError: return 'caught'\n"
    report = run(sandbox, program, expression, harness=Harness(guard, is_trusted=False))
    assert values(report) == [in_python(expression, program, guard)]


def test_a_benchmarks_own_harness_sees_copies(sandbox: Sandbox) -> None:
    call = Call("(lambda x: [f(x), x])([2, 1])", place=Place.HARNESS)
    report = run(sandbox, "def f(x): x.sort()", call, harness=Harness())
    assert values(report) == [[None, [2, 1]]]
    assert report.entry_point_calls[0][0].answer == Outcome(OutcomeKind.VALUE, b"null")


def test_arguments_that_are_no_longer_plain_data_are_of_no_use(sandbox: Sandbox) -> None:
    report = run(sandbox, "def f(x): x.append(f)", "(lambda x: [f(x), x])([2, 1])", given([1]))
    assert report.outcomes[0].kind is OutcomeKind.OPAQUE
    assert report.outcomes[1].arguments == encode(((2,), {}))


def test_a_call_by_arguments_is_answered_like_one_of_a_harness(sandbox: Sandbox) -> None:
    program = "def f(x, y=1):\n    x[0] += y\n    return 6 // x[0]"
    report = run(sandbox, program, given([1]), given([1], y=2), given([0], 0), "f([1], y=2)")
    assert [outcome.value for outcome in report.outcomes[:2]] == [b"3", b"2"]
    assert report.outcomes[0].arguments == encode((([2],), {}))
    assert (report.outcomes[2].error_type, report.outcomes[2].arguments) == ("ZeroDivisionError", None)
    assert report.entry_point_calls[3][0].answer == report.outcomes[1]


def test_what_cannot_be_passed_is_named(sandbox: Sandbox) -> None:
    report = run(sandbox, "def f(x): return x(3)", "f(lambda y: y)", "f(f)", "f(iter([1]))", "f(object())")
    found = {(outcome.kind, outcome.error_type) for outcome in report.outcomes}
    assert found == {(OutcomeKind.OPAQUE, OPAQUE_ARGUMENT)}
    (long,) = run(sandbox, "def f(x): return x", "f('x' * 10**6)", harness=Harness()).outcomes
    assert long.error_type == OVERSIZED_ARGUMENT


def test_a_program_cannot_raise_what_only_the_stand_in_may(sandbox: Sandbox) -> None:
    for name in (OPAQUE_ARGUMENT, OVERSIZED_ARGUMENT, OPAQUE_RESULT_USE):
        report = run(sandbox, f"class {name}(TypeError): pass\ndef f(x): raise {name}('no')", "f(1)")
        assert report.outcomes[0].kind is OutcomeKind.ERROR


@pytest.mark.parametrize(
    ("program", "expression"),
    [
        ("def f(x): yield from range(x)", "[list(f(3)), sorted(f(2)), sum(f(4)), max(f(2)), list(zip(f(2), f(3)))]"),
        ("def f(x): return map(str, range(x))", "'-'.join(f(3))"),
        ("def f(x): return filter(None, range(x))", "[*f(3)]"),
        ("def f(x): return zip('ab', range(x))", "dict(f(2))"),
        ("def f(x): return iter(range(x))", "(lambda it: [next(it), list(it), list(it)])(f(3))"),
        ("def f(x): return {n: 1 for n in range(x)}.keys()", "[list(f(3)), len(f(3)), 2 in f(3), bool(f(0))]"),
        ("def f(x): return {n: [n] for n in range(x)}.items()", "[(k, v) for k, v in f(2)]"),
        ("def f(x): return memoryview(b'abc')", "[list(f(1)), len(f(1))]"),
        ("class S:\n  def __iter__(self): return iter([1, 2])\ndef f(x): return S()", "(lambda s: [*s, *s])(f(1))"),
        ("import itertools\ndef f(x): return itertools.count(x)", "(lambda it: [next(it), next(it)])(f(3))"),
        ("def f(x):\n  for n in range(x):\n    yield (m for m in range(n))", "[list(each) for each in f(3)]"),
        ("def f(x):\n  yield x\n  raise ValueError", "next(f(3))"),
        ("def f(x): return [iter([n]) for n in range(x)]", "[list(each) for each in f(2)]"),
        ("def f(x): return {x: 1}.keys() if x else (lambda: 1)", "[callable(f(1)), callable(f(0))]"),
        ("import itertools\ndef f(x): return itertools.groupby(x)", "[(key, list(group)) for key, group in f('aab')]"),
    ],
)
def test_a_result_that_can_be_iterated_is_used_as_in_python(sandbox: Sandbox, program: str, expression: str) -> None:
    assert values(run(sandbox, program, expression)) == [in_python(expression, program)]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("yield x\n  raise ValueError", "ValueError"),
        ("raise ValueError\n  yield x", "ValueError"),
        ("return map(int, ['a', x])", "ValueError"),
        ("class E(ValueError): pass\n  yield [x]\n  raise E", "E"),
        ("return (int(n) for n in [1, 'b'])", "ValueError"),
        ("raise ValueError", "ValueError"),
        ("yield 1", ""),
    ],
)
def test_what_a_result_raises_when_iterated_is_not_raised_by_the_call(sandbox: Sandbox, body: str, error: str) -> None:
    def raises(expected: type[Exception], function: Any, *args: Any) -> bool:
        try:
            function(*args)
        except expected:
            return True
        return False

    program = f"def f(x):\n  {body}"
    first = "raises(ValueError, f, 1)"
    expression = f"[{first}, {first} or [raises(ValueError, list, f(1)), raises(ValueError, next, f(1)), f(1) is None]]"
    assert values(run(sandbox, program, expression)) == [in_python(expression, program, raises=raises)]
    (outcome,) = run(sandbox, program, "list(f(1))").outcomes
    assert outcome.error_type == error


SHELF = """
class Shelf:
    __iter__ = lambda self: iter([1])
    __getitem__ = __add__ = __call__ = __lt__ = __float__ = __getattr__ = lambda self, *_: 1
    __len__ = lambda self: 0 / 0
def f(x): return Shelf()
"""


SEQUENCE = """
class Pair:
    __len__ = lambda self: 2
    __getitem__ = lambda self, n: n
    __index__ = lambda self: 5
def f(x): return Pair()
"""
MIGHT = (
    "f(1)[0]", "f(1) + 1", "f(1)()", "f(1) < 2", "float(f(1))", "len(f(1))", "bool(f(1))", "f(1).any", "f'{f(1)}'",
    "str(f(1))", "f'{f(1)!r}'", "__import__('numpy').array_equal(f(1), [1])",
)  # fmt: skip
BY_ANOTHER_METHOD = ("list(reversed(f(1)))", "int(f(1))", "float(f(1))")


ITERATOR = "def f(x): yield from range(x)"
OF_ITERATORS = ("f(1).send", "f'{f(1)}'", "repr([f(1)])", "list(f(99_999))")
UNREADABLE = ("def f(x): return iter([[object()], [object()]])", "[len(each) for each in f(1)]")  # not left out
REFUSED = [*product([SHELF], MIGHT), *product([SEQUENCE], BY_ANOTHER_METHOD), *product([ITERATOR], OF_ITERATORS)]


@pytest.mark.parametrize(("program", "expression"), [*REFUSED, UNREADABLE])
def test_what_a_result_might_do_is_refused(sandbox: Sandbox, program: str, expression: str) -> None:
    (outcome,) = run(sandbox, program, expression).outcomes
    assert (outcome.kind, outcome.error_type) == (OutcomeKind.OPAQUE, OPAQUE_RESULT_USE)


@pytest.mark.parametrize("program", ["def f(x): yield x", "class A: pass\ndef f(x): return A()"])
@pytest.mark.parametrize(
    "expression",
    ["f(1)[0]", "f(1) + f(2)", "[1] + f(1)", "f(1) & f(2)", "2 ** f(1)", "len(f(1))", "f(1)()", "f(1) < f(2)", "-f(1)",
     "int(f(1))", "f(1)[0:1]", "reversed(f(1))", "round(f(1))", "'ab'[f(1)]", "[].append(f(1)) or f(1) @ 2"],
)  # fmt: skip
def test_what_the_class_of_a_result_lacks_fails_as_in_python(sandbox: Sandbox, program: str, expression: str) -> None:
    with pytest.raises(TypeError):
        in_python(expression, program)
    (outcome,) = run(sandbox, program, expression).outcomes
    assert (outcome.kind, outcome.error_type) == (OutcomeKind.ERROR, "TypeError")


@pytest.mark.parametrize(
    ("body", "truth"),
    [("pass", True), ("__bool__ = lambda self: False", False), ("__len__ = lambda self: 0", False),
     ("__len__ = lambda self: 2", True), ("__iter__ = lambda self: iter([])", True), ("__bool__ = lambda _: 1", None),
     ("__iter__ = lambda self: iter([1]); __bool__ = lambda self: False", False)],
)  # fmt: skip
def test_its_truth_value_travels_with_it(sandbox: Sandbox, body: str, truth: bool | None) -> None:
    program, expression = f"class A: {body}\ndef f(x): return A()", "[bool(f(1)), not f(1), 1 if f(1) else 0]"
    (outcome,) = run(sandbox, program, expression).outcomes
    if truth is None:
        assert (outcome.kind, outcome.error_type) == (OutcomeKind.OPAQUE, OPAQUE_RESULT_USE)
    else:
        assert decode(outcome.value or b"") == [truth, not truth, int(truth)]


def test_it_equals_nothing(sandbox: Sandbox) -> None:
    program = "def f(x): return {1: 2}.keys()"
    assert values(run(sandbox, program, "f(1) == {1}", "f(1) != {1}")) == [False, True]


def test_only_so_many_calls_of_one_expression_are_recorded(sandbox: Sandbox) -> None:
    report = run(sandbox, "def f(x): return x", "[f(n) for n in range(400)][-1]", "f(1)", value_bytes=4096)
    first, second = report.entry_point_calls
    assert first[-1] == TOO_MANY
    size = sum(len(call.arguments) + len(call.answer.value or b"") for call in first if call.answer is not None)
    assert 0.3 * RECORD_FACTOR * 4096 < size < RECORD_FACTOR * 4096
    assert [call.answer and call.answer.value for call in second] == [b"1"]
    assert values(report) == [399, 1]


FRAMES = """
def down(n): return 0 if n == 0 else 1 + down(n - 1)
def most():
    n = 900
    try:
        while n < 1100:
            down(n)
            n += 1
    except RecursionError:
        pass
    return n
"""


def test_a_program_may_recurse_as_deep_as_a_script(sandbox: Sandbox) -> None:
    loading = FRAMES + "LOADED = most()\ndef f(x): return most()\ndef g(): return LOADED\n"
    script = [sys.executable, "-c", FRAMES + "def f(): return most()\nprint(most(), f())"]
    at_module, in_function = map(int, subprocess.check_output(script).split())
    calls = (Call("f(1)"), Call("f(1)", place=Place.HARNESS), given(1))
    assert all(each in (in_function, in_function + 1) for each in values(run(sandbox, loading, *calls)))
    (loaded,) = values(run(sandbox, loading + "f = lambda x: LOADED", Call("f(1)")))
    assert loaded in (at_module, at_module + 1)


def test_a_program_that_raises_its_recursion_limit_keeps_it(sandbox: Sandbox) -> None:
    program = "import sys\nsys.setrecursionlimit(5000)\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)\n"
    assert values(run(sandbox, program, "f(3000)", given(3000))) == [3000, 3000]


NULL = """
import os, pathlib
def f(x):
    with open(os.devnull, "w") as file: print("x", file=file)
    pathlib.Path("/dev/null").write_text("x")
    os.close(os.open(os.devnull, os.O_RDWR))
    return [open("/dev/null").read(), __file__]
"""


@pytest.mark.parametrize("tier", TIERS)
def test_the_null_device_opens_on_every_tier(tier: str) -> None:
    with sandbox_of(tier) as sandbox:
        assert values(run(sandbox, NULL, Call("f(1)"))) == [["", "program.py"]]


@pytest.mark.slow
def test_all_calls_of_a_job_together_are_bounded(sandbox: Sandbox) -> None:
    program = "def f(x):\n    n = 0\n    while n < 10**7: n += 1\n    return x\n"
    quick = run(sandbox, program, Call("f(0)"), cpu_s=30.0)
    once_s = quick.call_s[0]
    report = run(sandbox, program, *(Call(f"f({n})") for n in range(40)), cpu_s=2 * once_s, job_factor=3.0)
    kinds = [outcome.kind for outcome in report.outcomes]
    assert kinds[0] is OutcomeKind.VALUE
    assert kinds[-1] is OutcomeKind.NOT_RUN
    assert report.cpu_s < 40 * once_s
