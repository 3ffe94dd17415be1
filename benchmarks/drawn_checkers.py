"""Answers of all sorts, right ones among them, to problems whose checkers accept several answers and sometimes fail."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import partial

from drawn import Draw, Program, Subject, Test, drawn_subjects, holding
from plain_python import Ended, Mode, PlainPython

from codea1_env.facts.answers import AnswerRules
from codea1_env.problems.problem import GoldenCase, Problem

_PROGRAMS_PER_PROBLEM, _PLAIN_TESTS, _OTHER_TESTS = 10, 4, 2
_SHARE_RIGHT = 0.4
_SHARE_GOLDEN = 0.3
"""Share of the problems whose tests are golden ones."""


@dataclass(frozen=True)
class _Task:
    """A problem with several right answers."""

    solution: str
    inputs: tuple[str, ...]
    right: tuple[str, ...]
    """Expressions of other answers, over the parameters and `s`, the solution's answer; most are right."""
    is_right: str
    """What a checker tests: an expression over the parameters, `expected` and `answer`."""


_TASKS: dict[str, _Task] = {
    "peak": _Task(
        "def f(xs):\n    return xs.index(max(xs))",
        ("[1, 3, 2, 9, 4]", "[5]", "[2, 2]", "[1, 0, 1]"),
        ("len(xs) - 1 - xs[::-1].index(max(xs))", "0", "next(i for i in range(len(xs)) if xs[i] == max(xs))", "-1"),
        "all(xs[answer] >= xs[i] for i in (answer - 1, answer + 1) if 0 <= i < len(xs))",
    ),
    "half": _Task(
        "def f(n):\n    return n / 2",
        ("3", "0", "-7", "10 ** 20", "0.25"),
        ("n * 0.5", "n / 2 + 1e-5", "n // 2", "n / 2 * (1 + 1e-4)"),
        "math.isclose(answer, expected, rel_tol=1e-3)",
    ),
    "root": _Task(
        "def f(a, b=1):\n    return -b / a",
        ("2", "3, 4", "a=4, b=2", "0.5, b=-3"),
        ("s + 1e-7", "s", "-b * (1 / a)", "round(s, 3)"),
        "abs(a * answer + b) < 1e-4",
    ),
    "permutation": _Task(
        "def f(xs):\n    return sorted(xs)",
        ("[3, 1, 2]", "[]", "[1, 1]", "['b', 'a']"),
        ("xs", "xs[::-1]", "tuple(xs)", "sorted(xs, reverse=True)", "xs[1:] + xs[:1]"),
        "sorted(answer) == sorted(xs)",
    ),
    "factors": _Task(
        "def f(n):\n    p = next(p for p in range(2, n + 1) if n % p == 0)\n    return p, n // p",
        ("12", "35", "7", "2 ** 20"),
        ("(s[1], s[0])", "[s[0], s[1]]", "(1, n)", "(n, 1)", "(-s[0], -s[1])"),
        "answer[0] * answer[1] == n",
    ),
    "subset": _Task(
        "def f(xs, *, total):\n    import itertools\n    return next(list(c) for k in range(len(xs) + 1)"
        " for c in itertools.combinations(xs, k) if sum(c) == total)",
        ("[1, 2, 3], total=3", "[5], total=0", "[2, 2, 4], total=4"),
        ("s[::-1]", "xs[:2]", "[total]", "tuple(s)", "[x for x in xs if x == total] or s"),
        "sum(answer) == total and all(answer.count(x) <= xs.count(x) for x in answer)",
    ),
    "text": _Task(
        "def f(a, *rest):\n    return a + ''.join(rest)",
        ("'x'", "'b', 'a'", "'', 'é', 'z'"),
        ("s[::-1]", "''.join(sorted(s))", "s + ' '", "s.upper()"),
        "sorted(answer) == sorted(a + ''.join(rest))",
    ),
    "path": _Task(
        "def f(edges, start):\n    path = [start]\n    while (path[-1] in edges) and len(path) < 9:\n"
        "        path.append(edges[path[-1]][0])\n    return path",
        ("{1: [2, 3], 2: [4]}, 1", "{}, 5", "{'a': ['b']}, 'a'"),
        ("[start]", "s[:1] + s[1:]", "[start, *(edges.get(start) or [start])[-1:]]", "tuple(s)"),
        "answer[0] == start and all(b in edges[a] for a, b in zip(answer, answer[1:]))",
    ),
    "count": _Task(
        "def f(text):\n    return {c: text.count(c) for c in text}",
        ("'aab'", "''", "'é é'"),
        ("__import__('collections').Counter(text)", "dict(sorted(s.items()))", "list(s.items())", "{**s, 'q': 0}"),
        "all(answer[c] == text.count(c) for c in text) and sum(answer.values()) == len(text)",
    ),
    "nearest": _Task(
        "def f(xs, **by):\n    return min(xs, key=lambda x: abs(x - by.get('to', 0)))",
        ("[3, -3, 5]", "[1, 4], to=3", "[0.5, -0.5]"),
        ("-s", "max(x for x in xs if abs(x - by.get('to', 0)) == abs(s - by.get('to', 0)))", "xs[0]", "float(s)"),
        "answer in xs and abs(answer - to) == abs(expected - to)",
    ),
}

_ODD = (
    "None",
    "True",
    "0",
    "1",
    "-1",
    "10 ** 400",
    "-(10 ** 400)",
    "10 ** 5000",
    "1e300",
    "1e-320",
    "float('nan')",
    "float('inf')",
    "-0.0",
    "'text'",
    "''",
    "'3'",
    "'\\ud800'",
    "'\\0'",
    "b'x'",
    "bytearray(b'x')",
    "[]",
    "()",
    "{}",
    "set()",
    "[None]",
    "[[]]",
    "[1, 'a']",
    "[float('nan')]",
    "(1, 2)",
    "(1, 2, 3)",
    "{1: 2}",
    "{0: 0, 1: 1}",
    "range(3)",
    "1j",
    "frozenset([1])",
    "...",
    "NotImplemented",
    "Decimal('1.5')",
    "Decimal('NaN')",
    "Decimal('sNaN')",
    "Fraction(1, 2)",
    "datetime.date(2020, 1, 2)",
    "object()",
    "type",
    "len",
    "lambda: 1",
    "iter([1])",
    "(i for i in range(3))",
    "memoryview(b'a')",
    "{}.keys()",
    "'x' * 50_000",
    "[0] * 5_000",
    "I(1)",
    "P(1, 2)",
    "D(1)",
    "E.A",
    "collections.deque([1, 2])",
    "collections.UserList([1])",
    "collections.OrderedDict(a=1)",
    "array.array('i', [1, 2])",
    "nested(40)",
    "nested(70)",
    "str(s)",
    "float(s)",
    "s + 1",
    "-s",
    "[s]",
    "(s,)",
    "{s: s}",
    "s * 2",
    "[s, s]",
    "s[:-1]",
    "1 / 0",
    "L()",
    "exit(3)",
)

_CHECKERS: dict[str, str] = {
    "plain": "return bool({right})",
    "careful": "try:\n        return bool({right})\n    except Exception:\n        return False",
    "strict about types": "if type(answer) is not type(expected):\n        return False\n    return bool({right})",
    "numbers only": "if not isinstance(answer, (int, float)):\n        return False\n    return bool({right})",
    "not a bool": "return int({right})",
    "truthy": "return ({right}) or None",
    "asserts": "assert {right}\n    return True",
    "asserts with a message": "assert {right}, f'wrong: {{answer!r}}'\n    return True",
    "exits": "if not ({right}):\n        exit(1)\n    return True",
    "hangs on some": "while answer == 'text' or answer == [] or answer is None:\n        pass\n"
    "    return bool({right})",
    "climbs": "n = 0\n    while isinstance(answer, (int, float)) and n < answer:\n        n = n * 2 + 1\n"
    "    return bool({right})",
    "recurses": "def depth(v): return 1 + max(map(depth, v), default=0) if isinstance(v, (list, tuple)) else 0\n"
    "    return depth(answer) < 9 and bool({right})",
    "changes its arguments": "result = bool({right})\n    if isinstance(answer, list): answer.clear()\n"
    "    if isinstance(expected, list): expected.clear()\n    return result",
    "sorts the answer": "if isinstance(answer, list): answer.sort()\n    return bool({right})",
    "prints": "print(answer, expected)\n    return bool({right})",
    "never": "return False",
    "always": "return True",
    "always fails": "raise ValueError('broken')",
    "fails on the solution's": "if answer == expected:\n        raise ValueError\n    return bool({right})",
    "fails unless it is the solution's": "if answer != expected:\n        raise ValueError\n    return True",
    "compares texts": "return str(answer) == str(expected) or bool({right})",
    "large numbers": "return float(answer) <= 1e308 and bool({right})",
    "hashes": "return len({{answer, expected}}) <= 2 and bool({right})",
    "json": "import json\n    json.dumps(answer)\n    return bool({right})",
    "length": "return len(answer) == len(expected) and bool({right})",
    "memory": "held = [0] * (10 ** 9 if answer == 1 else 1)\n    return bool({right})",
    "deletes": "del answer\n    return True",
    "yields": "yield bool({right})",
    "is": "return answer is expected or bool({right})",
    "arithmetic": "return bool(answer * 0 == expected * 0 and ({right}))",
    "raises SystemExit": "if answer != expected:\n        raise SystemExit(bool({right}))\n    return True",
    "keyboard": "if not ({right}):\n        raise KeyboardInterrupt\n    return True",
    "stops": "return next(answer == expected or bool({right}) for _ in (answer and [1]))",
}
_CHECKER = """import math
def check(arguments, expected, answer):
    {unpacked}
    {body}
"""
_UNPACKED = {
    "path": "edges, start = arguments",
    "root": "a, b = arguments",
    "subset": "xs, total = arguments",
    "text": "a, *rest = arguments",
    "nearest": "xs, to = (*arguments, 0)[:2]",
    "factors": "(n,) = arguments",
    "half": "(n,) = arguments",
    "count": "(text,) = arguments",
}

_PROGRAM = """import array, collections, dataclasses, datetime, enum, inspect
from decimal import Decimal
from fractions import Fraction
{solution}
_solved = f
class I(int): pass
P = collections.namedtuple('P', 'a b')
@dataclasses.dataclass
class D:
    a: int
class E(enum.IntEnum):
    A = 1
class L(list):
    __eq__ = lambda self, other: True
def nested(n): return [nested(n - 1)] if n else []
def f{signature}:
    s = _solved({passed})
    return {answer}
"""
_PASSED = {
    "root": "a, b",
    "subset": "xs, total=total",
    "text": "a, *rest",
    "path": "edges, start",
    "nearest": "xs, **by",
    "factors": "n",
    "half": "n",
    "count": "text",
}

_PROPERTIES = (
    "len(f({i})) == {length}",
    "f({i})[0] == {v}[0]",
    "isinstance(f({i}), {type})",
    "f({i}) == {v} and f({j}) == {vj}",
    "[f({i}), f({j})] == [{v}, {vj}]",
    "sorted(f({i})) == sorted({v})",
    "f({i}) in [{v}]",
    "str(f({i})) == {text}",
    "f({i}) is not None",
    "f({i}) != f({j})",
    "sum(f({i})) == sum({v})",
    "abs(f({i}) - {v}) < 1e-6",
    "bool(f({i})) == {truth}",
    "f({i}) == f({i})",
    "(f({i}), 1) == ({v}, 1)",
    "set(f({i})) == set({v})",
    "f({i}) < f({j}) or f({i}) >= f({j})",
    "f({i}) * 2 == {v} * 2",
)


def _subject(plain: PlainPython, name: str, n_programs: int, rng: random.Random) -> Subject:
    what, task = rng.choice(sorted(_TASKS.items()))
    kind = rng.choice(sorted(_CHECKERS))
    body = _CHECKERS[kind].format(right=task.is_right)
    checker = _CHECKER.format(unpacked=_UNPACKED.get(what, "(xs,) = arguments"), body=body)
    answers = AnswerRules(checker=checker)
    problem = Problem(name, task.solution, "f", task.solution, (), answers=answers)
    programs = tuple(_program(what, task, rng) for _ in range(n_programs))
    subject = Subject(problem, programs)
    tests = _tests(subject, task, rng, plain)
    if rng.random() >= _SHARE_GOLDEN:
        return replace(subject, tests=tuple(tests))
    tests = [replace(test, form="golden") for test in tests if test.call]
    golden = tuple(GoldenCase(test.call, test.expected) for test in tests)
    return replace(subject, problem=replace(problem, golden=golden), tests=tuple(tests), is_golden=True)


subjects: Draw = partial(drawn_subjects, "checker", _PROGRAMS_PER_PROBLEM, _subject)
"""Draw problems, each with a checker, programs, and tests that the solution passes."""


def _program(what: str, task: _Task, rng: random.Random) -> Program:
    answer = rng.choice((*task.right, "s")) if rng.random() < _SHARE_RIGHT else rng.choice(_ODD)
    signature = task.solution.partition(":\n")[0].removeprefix("def f")
    passed = _PASSED.get(what, "xs")
    source = _PROGRAM.format(solution=task.solution, signature=signature, passed=passed, answer=answer)
    return Program(f"{what}: {answer}", source)


def _tests(subject: Subject, task: _Task, rng: random.Random, plain: PlainPython) -> list[Test]:
    asked = [subject.question(Test("", f"f({i})"), task.solution, Mode.VALUE) for i in task.inputs]
    answers = zip(task.inputs, plain.answers(asked), strict=True)
    known = [(i, f"({it.detail})") for i, it in answers if it.ended is Ended.PASSED]
    tests = [
        Test("plain", f"f({i}) == {v}", f"f({i})", v, "" if rng.random() < 0.8 else f"assert f({i}) == 'odd'")
        for i, v in rng.sample(known, min(_PLAIN_TESTS, len(known)))
    ]
    drawn = []
    for form in rng.sample(_PROPERTIES, 3 * _OTHER_TESTS):
        (i, v), (j, vj) = rng.sample(known, 2)
        live = eval(v)
        length = len(live) if hasattr(live, "__len__") else -1
        parts = {"i": i, "j": j, "v": v, "vj": vj, "length": length, "text": repr(str(live)), "truth": bool(live)}
        drawn.append(Test("property", form.format(type=type(live).__name__, **parts)))
    return [*tests, *holding(subject, drawn, plain)[:_OTHER_TESTS]]
