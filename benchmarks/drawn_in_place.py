"""Functions that change their arguments, with asserts on the arguments after a call.

A tester writes statements (`xs = [3, 1]`, `f(xs)`, `assert xs == [1, 3]`). Plain Python evaluates an expression that
means the same, and the golden tests of every second problem are such statements in a harness.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import partial
from textwrap import indent

from drawn import Draw, Program, Subject, Test, drawn_subjects, holding
from plain_python import Ended, Mode, PlainPython

from codea1_agents.scripted.mutation import mutants
from codea1_env.facts.call_forms import CallForms
from codea1_env.problems.problem import GoldenHarness, Problem

_PROGRAMS_PER_PROBLEM, _TESTS_PER_PROBLEM = 8, 6
_SHARE_MUTANTS = 0.4

_SOLUTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "def f(xs):\n    xs.sort()": ("[3, 1, 2]", "[]", "['b', 'a']", "[0.5, -1, 2]", "[[2], [1], [0, 5]]", "[True, 0]"),
    "def f(xs):\n    xs.reverse()\n    return len(xs)": (
        "[1, 2, 3]",
        "[[1], [2]]",
        "[[1], [1], 2]",
        "['a']",
        "bytearray(b'abc')",
    ),
    "def f(xs):\n    xs.append(len(xs))\n    xs.insert(0, xs[-1])": ("[5]", "[]", "['a', 2.5]", "[[1], (2,)]"),
    "def f(xs):\n    n = len(xs)\n    xs[:] = list(dict.fromkeys(xs))\n    return n - len(xs)": (
        "[1, 2, 1]",
        "[]",
        "[1, 1.0, True]",
        "['a', 'a']",
    ),
    "def f(xs, k):\n    for _ in range(k):\n        xs.append(xs.pop(0))": (
        "[1, 2, 3], 1",
        "[[1], [2], [3]], 2",
        "['a'], 3",
        "[1.5, 2], 0",
    ),
    "def f(d):\n    for key in d:\n        d[key] += 1": ("{'a': 1, 'b': 2}", "{}", "{1: 0.5}", "{(1, 2): True}"),
    "def f(a, b):\n    a.update(b)\n    b.clear()": (
        "{1: 2}, {1: 3, 4: 5}",
        "{}, {}",
        "{'a': [1]}, {'b': [1]}",
        "{1, 2}, {2, 3}",
    ),
    "def f(m):\n    m[:] = [list(row) for row in zip(*m)]": (
        "[[1, 2], [3, 4]]",
        "[[1], [2], [3]]",
        "[]",
        "[['a', 'b']]",
    ),
    "def f(m):\n    for row in m:\n        if 0 in row:\n            row[:] = [0] * len(row)\n    return m[0]": (
        "[[1, 0], [2, 3]]",
        "[[5]]",
        "[[0, 1], [0, 1], [1, 1]]",
        "[[0.0, 2.5]]",
    ),
    "def f(s):\n    for each in [n for n in s if n % 2 == 0]:\n        s.discard(each)\n    return sum(s)": (
        "{1, 2, 3}",
        "{2, 4}",
        "{0.5, 1, 2}",
        "set()",
    ),
    "def f(a, b):\n    b.extend(a)\n    a.clear()": (
        "[1, 2], [3]",
        "[[1]], [[2]]",
        "[], []",
        "['a'], []",
        "[[1], [1]], [[1]]",
    ),
    "def f(m):\n    m[0], m[-1] = m[-1], m[0]\n    m[0].append(9)": (
        "[[1], [2]]",
        "[[1]]",
        "[[1, 2], [3], [1, 2]]",
        "[[1], [1], [2]]",
    ),
    "def f(d, key):\n    return d.pop(key, None)": (
        "{'a': 1, 'b': [2]}, 'b'",
        "{1: 2}, 1",
        "{}, 0",
        "{1: 2.5, True: 3}, 1.0",
    ),
    "def f(xs):\n    for n, each in enumerate(xs):\n        xs[n] = each / 3": (
        "[1, 2, 3]",
        "[0.1]",
        "[]",
        "[1e300, -7]",
    ),
    "def f(t):\n    t[0].append(len(t))\n    t[1].update(a=t[0][:])": (
        "([1], {})",
        "([], {'a': 0}, 5)",
        "([[1]], {'b': [1]})",
    ),
    "def f(d):\n    for key, held in d.items():\n        held.append(key)\n    d['n'] = len(d)": (
        "{'a': [1], 'b': []}",
        "{}",
        "{1: [], 2: [], 3: []}",
    ),
    "def f(xs, *, by=1):\n    xs[::2] = [x + by for x in xs[::2]]\n    return xs": (
        "[1, 2, 3], by=2",
        "[1]",
        "[0.5, 1], by=0.25",
        "[], by=3",
    ),
    "def f(rows):\n    for row in rows:\n        row['n'] = sum(row.values())\n    rows.sort(key=lambda r: r['n'])": (
        "[{'a': 2}, {'a': 1}]",
        "[{}]",
        "[{'a': 1}, {'b': 1}, {'a': 1}]",
    ),
    "def f(xs):\n    while xs and xs[-1] == xs[0]:\n        xs.pop()\n    return not xs": (
        "[1, 2, 1]",
        "[1, 1]",
        "[]",
        "[[1], [2], [1]]",
    ),
    "def f(tree):\n    tree['left'], tree['right'] = tree['right'], tree['left']": (
        "{'left': {'n': 1}, 'right': None}",
        "{'left': [1], 'right': [1]}",
        "{'left': {'n': [2]}, 'right': {'n': [1]}}",
    ),
}
"""Solutions with the source of their arguments."""

_WRAPPED = """
import copy as _copy
_solved = f
{before}
def f(*args, **kwargs):
    {body}
"""
_BEFORE = {
    "an object in it": "class A:\n    __eq__ = lambda self, other: True\n    __hash__ = lambda self: 1",
    "changes arguments of earlier calls": "_kept = []",
    "other types in it": "from fractions import Fraction",
    "subclasses in it": "class I(int): pass",
}
"""What a variant needs before it."""
_VARIANTS = {
    "as it is": "return _solved(*args, **kwargs)",
    "returns its argument": "_solved(*args, **kwargs)\n    return args[0]",
    "returns nothing": "_solved(*args, **kwargs)",
    "changes a copy": "args, kwargs = _copy.deepcopy((args, kwargs))\n    return _solved(*args, **kwargs)",
    "returns a changed copy": "args = _copy.deepcopy(args)\n    _solved(*args, **kwargs)\n    return args[0]",
    "changes a copy that is not deep": "return _solved(_copy.copy(args[0]), *args[1:], **kwargs)",
    "new objects": (
        "value = _solved(*args, **kwargs)\n    new = _copy.deepcopy(args[0])\n"
        "    if isinstance(new, (list, bytearray)): args[0][:] = new\n"
        "    elif isinstance(new, (dict, set)): args[0].clear(); args[0].update(new)\n    return value"
    ),
    "twice": "_solved(*args, **kwargs)\n    return _solved(*args, **kwargs)",
    "fails after the change": "_solved(*args, **kwargs)\n    raise ValueError('late')",
    "fails before the change": "raise KeyError('early')",
    "floats": (
        "value = _solved(*args, **kwargs)\n    if isinstance(args[0], list):\n"
        "        args[0][:] = [float(x) if type(x) is int else x for x in args[0]]\n    return value"
    ),
    "a little off": (
        "value = _solved(*args, **kwargs)\n    if isinstance(args[0], list):\n"
        "        args[0][:] = [x * (1 + 1e-12) if type(x) in (int, float) else x for x in args[0]]\n    return value"
    ),
    "tuples for lists": (
        "value = _solved(*args, **kwargs)\n    if isinstance(args[0], list):\n"
        "        args[0][:] = [tuple(x) if type(x) is list else x for x in args[0]]\n    return value"
    ),
    "the same object again": (
        "value = _solved(*args, **kwargs)\n    if isinstance(args[0], list) and args[0]: args[0].append(args[0][0])\n"
        "    return value"
    ),
    "its own argument in it": (
        "value = _solved(*args, **kwargs)\n    if isinstance(args[0], list): args[0].append(args[0])\n    return value"
    ),
    "an object in it": (
        "value = _solved(*args, **kwargs)\n    if isinstance(args[0], list): args[0].append(A())\n    return value"
    ),
    "a function in it": (
        "value = _solved(*args, **kwargs)\n    if isinstance(args[0], dict): args[0]['f'] = len\n    return value"
    ),
    "an extra item": (
        "value = _solved(*args, **kwargs)\n    if isinstance(args[0], list): args[0].append(0)\n    return value"
    ),
    "other order": (
        "value = _solved(*args, **kwargs)\n    if isinstance(args[0], list): args[0].reverse()\n"
        "    if isinstance(args[0], dict):\n"
        "        items = list(args[0].items())[::-1]; args[0].clear(); args[0].update(items)\n    return value"
    ),
    "inner objects change places": (
        "value = _solved(*args, **kwargs)\n    xs = args[0]\n"
        "    if isinstance(xs, list) and len(xs) > 1: xs[0], xs[1] = xs[1], xs[0]\n    return value"
    ),
    "inner objects change": (
        "value = _solved(*args, **kwargs)\n    for x in args[0]:\n        if isinstance(x, list): x.append(7)\n"
        "    return value"
    ),
    "changes arguments of earlier calls": (
        "value = _solved(*args, **kwargs)\n    for each in _kept: each.clear()\n"
        "    _kept.extend(a for a in args if hasattr(a, 'clear'))\n    return value"
    ),
    "a generator": "yield _solved(*args, **kwargs)",
    "a generator of its argument": "_solved(*args, **kwargs)\n    return (x for x in args[0])",
    "right for short arguments": "return _solved(*args, **kwargs) if len(args[0]) < 3 else None",
    "other types in it": (
        "value = _solved(*args, **kwargs)\n    if isinstance(args[0], list):\n"
        "        args[0][:] = [Fraction(x) if type(x) is int else x for x in args[0]]\n    return value"
    ),
    "subclasses in it": (
        "value = _solved(*args, **kwargs)\n    if isinstance(args[0], list):\n"
        "        args[0][:] = [I(x) if type(x) is int else x for x in args[0]]\n    return value"
    ),
    "clears": "_solved(*args, **kwargs)\n    args[0].clear()",
    "prints": "print(*args)\n    return _solved(*args, **kwargs)",
}


@dataclass(frozen=True)
class _Form:
    """A form of a test: statements, and the expression whose value their assert compares."""

    lines: str
    """Before the assert; `{names}` are the arguments of a call."""
    asserted: str
    """What is compared: `{x}` is the first argument."""
    then: str
    """The same as `asserted` after `lines`, as an expression in which the arguments have their names."""


_FORMS: dict[str, _Form] = {
    "argument": _Form("f({names})", "{x}", "(f({names}), {x})[1]"),
    "argument after two calls": _Form("f({names})\nf({names})", "{x}", "(f({names}), f({names}), {x})[2]"),
    "all arguments": _Form("f({names})", "[{all}]", "(f({names}), [{all}])[1]"),
    "last argument": _Form("f({names})", "{last}", "(f({names}), {last})[1]"),
    "result": _Form("", "f({names})", "f({names})"),
    "result and argument": _Form("r = f({names})", "(r, {x})", "(f({names}), {x})"),
    "length": _Form("f({names})", "len({x})", "(f({names}), len({x}))[1]"),
    "sorted": _Form("f({names})", "sorted({x})", "(f({names}), sorted({x}))[1]"),
    "listed": _Form("f({names})", "list({x})", "(f({names}), list({x}))[1]"),
    "first": _Form("f({names})", "{x}[0]", "(f({names}), {x}[0])[1]"),
    "text": _Form("f({names})", "str({x})", "(f({names}), str({x}))[1]"),
    "an argument that is equal": _Form("f({names})", "{x} == {first}", "(f({names}), {x} == {first})[1]"),
    "type of an item": _Form("f({names})", "isinstance({x}[0], list)", "(f({names}), isinstance({x}[0], list))[1]"),
    "truth": _Form("f({names})", "bool({x})", "(f({names}), bool({x}))[1]"),
    "a copy": _Form("old = sorted({x})\nf({names})", "(old, {x})", "(sorted({x}), f({names}), {x})[::2]"),
    "a sum": _Form("f({names})", "sum({x})", "(f({names}), sum({x}))[1]"),
    "a sum of the result": _Form("f({names})\nr = f({names})", "(r, {x})", "(f({names}), f({names}), {x})[1:]"),
}


def _subject(plain: PlainPython, name: str, n_programs: int, rng: random.Random) -> Subject:
    solution, inputs = rng.choice(sorted(_SOLUTIONS.items()))
    problem = Problem(name, solution, "f", solution, (), calls=CallForms(in_place=True))
    faulty = rng.sample(found := mutants(solution, entry_point="f"), min(len(found), int(_SHARE_MUTANTS * n_programs)))
    variants = rng.sample(sorted(_VARIANTS.items()), n_programs - len(faulty))
    programs = [Program(f"mutant: {each.note}", each.program) for each in faulty] + [
        Program(name, solution + "\n" + _WRAPPED.format(before=_BEFORE.get(name, ""), body=body))
        for name, body in variants
    ]
    subject = Subject(problem, tuple(programs))
    drawn = [_asserted(rng.choice(sorted(_FORMS)), rng.choice(inputs)) for _ in range(3 * _TESTS_PER_PROBLEM)]
    drawn = list(dict.fromkeys(drawn))
    values = plain.answers([subject.question(Test("", each.call), solution, Mode.VALUE) for each in drawn])
    tests = [
        replace(
            each, text=f"{each.call} == {value.detail}", expected=value.detail, lines=f"{each.lines} == {value.detail}"
        )
        for each, value in zip(drawn, values, strict=True)
        if value.ended is Ended.PASSED and value.detail != "None"
    ]
    tests = holding(subject, tests, plain)[:_TESTS_PER_PROBLEM]
    if int(name.rpartition("/")[2]) % 2 == 0:
        return replace(subject, tests=tuple(tests))
    tests = [_in_a_harness(each) for each in tests]
    golden = tuple(GoldenHarness(each.harness) for each in tests)
    return replace(subject, problem=replace(problem, golden=golden), tests=tuple(tests), is_golden=True)


subjects: Draw = partial(drawn_subjects, "in_place", _PROGRAMS_PER_PROBLEM, _subject)
"""Draw problems, each with mutants and variants of its solution, and tests that the solution passes."""


def _asserted(name: str, given: str) -> Test:
    """Return a test without its expected value."""
    args, kwargs = eval(f"(lambda *args, **kwargs: (args, kwargs))({given})")
    # Which objects of a harness a program has replaced is not known, so that copies hold none.
    form = _FORMS["argument" if name == "a copy" and "[" in repr(args[0])[1:] else name]
    letters = "xyz"[: len(args)]
    texts = [repr(each) for each in args]
    names = ", ".join([*letters, *(f"{key}={value!r}" for key, value in kwargs.items())])
    parts = {"x": "x", "last": letters[-1], "all": ", ".join(letters), "names": names, "first": texts[0]}
    statements = [f"{letter} = {text}" for letter, text in zip(letters, texts, strict=True)]
    statements += form.lines.format(**parts).splitlines()
    lines = "\n".join([*statements, f"assert {form.asserted.format(**parts)}"])
    return Test(
        name, "", f"(lambda {', '.join(letters)}: {form.then.format(**parts)})({', '.join(texts)})", lines=lines
    )


def _in_a_harness(test: Test) -> Test:
    harness = f"def check(candidate):\n    f = candidate\n{indent(test.lines, '    ')}\n"
    return Test(f"golden, {test.form}", "(check(candidate), True)[1]", harness=harness)
