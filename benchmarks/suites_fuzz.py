"""Compares what is read of suites that change their own names with what plain Python computes.

    python benchmarks/suites_fuzz.py [--files N] [--seed N] [--json]

A file is drawn of helpers that change values, closures, generators, classes, `:=`, `match`, `exec`, functions above
their constants, methods with `setUp`, and asserts of a function `f` that returns its arguments. Plain Python runs the
file: its statements, each by itself, then its tests; it notes both sides of each assert as they are at that moment.
Each case that is read of the file must have the sides that Python has noted for its line, unless one of the reasons
below holds. A test that Python can run must not be rejected for a name that is not defined.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import io
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from textwrap import indent
from typing import Any

from measuring import machine, option_parser

from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import preset


class Reason(StrEnum):
    """Why a case may have other sides than those that Python has noted."""

    AGREES = "agrees"
    NOT_CALLED = "nothing calls its function"
    """It is read as if it were a test."""
    FAILS_FIRST = "something fails first"
    """A name has no value in it, in its loop or in an assignment: the file or the test ends there."""
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True)
class Difference:
    """A case or a rejection that Python does not confirm."""

    file: str
    line: int
    read: str
    python: str


_HELPERS = (
    "def grow():\n    D.append(2)",
    "def up():\n    global n\n    n = n + 2",
    "def both():\n    global n, D\n    n, D = 3, [1, 2]",
    "def pure(x):\n    return sorted(x)",
    ("def make():\n    out = []\n    def inner(v):\n        out.append(v)\n        return list(out)\n    return inner"),
    (
        "def counter():\n    k = 0\n    def step():\n        nonlocal k\n        k += 1\n"
        "        return k\n    return step"
    ),
    (
        "class B:\n    def __init__(self):\n        D.append(2)\n    def more(self):\n"
        "        E.append(7)\n    @property\n    def size(self):\n        D.append(9)\n        return 1"
    ),
    "class K:\n    D.append(5)\n    y = n",
    (
        "class A:\n    def __add__(self, o):\n        D.append(o)\n        return self\n"
        "    def __len__(self):\n        E.append(3)\n        return 2\na = A()"
    ),
    "def reg(fn):\n    D.append(2)\n    return fn",
    "def gen():\n    global n\n    n = 8\n    yield 1\n    D.append(4)\n    yield 2",
    "def callit(g):\n    return g()",
    "def store(x):\n    HOOKS.append(x)",
    "def viaarg(x):\n    x.append(6)",
    "def alias():\n    local = D\n    local.append(3)",
    "def default(x=D):\n    x.append(1)\n    return len(x)",
    "def a_():\n    b_()\ndef b_():\n    E.append(1)",
    "add = lambda: D.append(2)",
    "plus = lambda x: x + n",
    "late = lambda: len(D)",
    "acc = lambda v, h=[]: (h.append(v), len(h))[1]",
    "it = iter([1, 2, 3])",
    "g2 = (x + n for x in [1, 2])",
    "m = map(str, [1, 2])",
    "def helper_checks():\n    assert f(n) == 1",
    "def pcheck(v, w=3):\n    assert f(v, w) == n",
    "def rec(k):\n    if k:\n        rec(k - 1)\n    E.append(k)",
)
_STATEMENTS = (
    "grow()",
    "up()",
    "both()",
    "x = pure(D)",
    "s = make()\ns(1)\ny = s(2)",
    "c = counter()\nc()\nz = c()",
    "b = B()",
    "b = B()\nb.more()",
    "print(B().size)",
    "a + 4",
    "len(a)",
    "print(len(a))",
    "@reg\ndef dec(x):\n    return x",
    "for _ in gen():\n    pass",
    "list(gen())",
    "callit(grow)",
    "callit(lambda: E.append(2))",
    "store(grow)\nHOOKS[0]()",
    "store(up)\nfor h in HOOKS:\n    h()",
    "viaarg(D)",
    "viaarg(E)",
    "alias()",
    "default()",
    "a_()",
    "w = add()",
    "w = plus(1)",
    "w = late()",
    "w = acc(1)",
    "w = next(it)",
    "w = D.pop()",
    "w = sorted(E)",
    "w = list(m)",
    "w = sum(g2)",
    "helper_checks()",
    "pcheck(D)",
    "pcheck(n, 1)",
    "rec(2)",
    "print(n := 7)",
    "assert (n := 9)",
    "assert (D := [3, 4])",
    "[n := v for v in [4, 5]]",
    "match [3, [1, 2]]:\n    case [n, D]:\n        pass",
    "match {'k': [1]}:\n    case {'k': D, **rest}:\n        pass",
    "exec('n = 3; D = [1, 2]')",
    "globals().update(n=4)",
    "globals()['D'] = [8]",
    "vars()['n'] = 6",
    "eval('D.append(4)')",
    "setattr(__import__('builtins'), 'sorted', lambda x: [0])",
    "n = 5",
    "D = [7]",
    "E = D",
    "D = E",
    "n += 1",
    "D += [3]",
    "D[0] = 4",
    "del D[0]",
    "del n",
    "D.sort()",
    "(D).append(3)",
    "D.append(n)",
    "E.extend(D)",
    "D = D + [n]",
    "E = [D, D]\nE[0].append(1)",
    "with open('/dev/null') as n:\n    pass",
    "for n in [3, 4]:\n    pass",
    "for v in [D]:\n    v.append(1)",
    "try:\n    D.append(1)\nexcept ValueError as n:\n    pass",
    "import os as n",
    "from math import *",
    "from operator import *",
    "k = 0\nwhile k < 2:\n    k += 1\n    D.append(0)",
    "if n:\n    D = [6]",
    "if D:\n    n = 2",
    "x, *D = [1, 2, 3]",
    "x = y = D\nx.append(1)",
    "x = [D for _ in range(2)]\nx[0].append(3)",
    "x = {'k': D}\nx['k'].append(2)",
    "lst = [grow]\nlst[0]()",
    "d = {'g': up}\nd['g']()",
    "u = (lambda q: q.append(1))(D)",
    "sorted([1], key=lambda v: D.append(v) or 0)",
    "list(map(D.append, [1]))",
    "any(E.append(v) for v in [1, 2])",
    "[E.append(v) for v in [1]]",
    "x = (D.append(1), 2)",
    "t = D.append",
    "t = D.append\nt(3)",
    "import heapq\nheapq.heappush(D, 0)",
    "import heapq\nw = heapq.heappop(D)",
    "import copy\nE = copy.copy(D)",
    "import bisect\nbisect.insort(D, 1)",
    "import collections\nD = collections.deque([1])\nD.appendleft(4)",
    "import collections\nE = collections.defaultdict(list)\nw = E['q']",
    "import functools\n@functools.lru_cache\ndef mem(x):\n    E.append(x)\n    return x\nmem(1)",
    "from functools import partial\np = partial(D.append, 3)\np()",
    "n2 = n",
    "fs = [lambda: n]\nn = 44",
    "for i in [1, 2]:\n    assert f(i, n) == 1\n    n = i",
    "for i, q in [(1, D), (2, E)]:\n    q.append(i)\n    assert f(i) == 1",
    "for q in [D, E]:\n    assert f(q) == 1",
    "for q in [n, n]:\n    assert f(q) == n\n    n = 30",
    "if __name__ == '__main__':\n    n = 99\n    D = [77]",
    "assert D.append(5) is None",
    "assert next(it)",
    "assert D.pop()",
    "assert f(D.pop()) == 1",
    "assert f(next(it)) == 1",
    "assert f(n) == D.append(1)",
    "assert len(pure(D)) == 1",
    "assert f(grow()) == 1",
    "f(D.append(3))",
    "r = f(D)",
    "r = f(D)\nr2 = r",
    "raise_ = 1",
    "async def co():\n    D.append(1)",
    (
        "class M(type):\n    def __new__(c, *a, **k):\n        D.append(1)\n"
        "        return type.__new__(c, *a)\nclass X(metaclass=M):\n    pass"
    ),
    "class P:\n    def __init_subclass__(cls):\n        E.append(1)\nclass Q(P):\n    pass",
    "class I:\n    def __iter__(self):\n        D.append(1)\n        return iter([1])\nfor _ in I():\n    pass",
    (
        "class W:\n    def __enter__(self):\n        D.append(1)\n    def __exit__(self, *a):\n"
        "        global n\n        n = 61\nwith W():\n    pass"
    ),
    "class G:\n    def __getattr__(self, k):\n        D.append(1)\nG().zz",
    "def dflt(x=E.append(4)):\n    pass",
    "def ann(x: E.append(4)):\n    pass",
    "D.__init__([9])",
    "D.__iadd__([9])",
    "list.append(D, 8)",
    "D.__setitem__(0, 8)",
    "getattr(D, 'append')(3)",
    "type(D).append(D, 6)",
    "x = D if n else E\nx.append(1)",
    "x = D or E\nx.append(4)",
    "(x := D).append(4)",
    "x = D[:]\nx.append(4)",
    "x = list(D)\nx.append(1)",
    "zz = zip(D, D)\nw = list(zz)",
    "e = enumerate(D)\nfor i, v in e:\n    assert f(i, v) == 1",
    "rv = reversed(D)\nw = list(rv)",
)
_ASSERTS = (
    "assert f(D) == 1",
    "assert f(n) == 1",
    "assert f(E) == 1",
    "assert f(D, n) == 1",
    "assert f(1) == 1",
    "assert f(2) == n",
    "assert f(3) == D",
    "assert f(sorted(D)) == 1",
    "assert f(len(D)) == n",
    "assert f(plus(1)) == 1",
    "assert f(late()) == 1",
    "assert f(x) == 1",
    "assert f(w) == 1",
    "assert f(r) == 1",
    "assert f(next(it)) == 1",
    "assert f(list(it)) == 1",
    "assert f(sum(g2)) == 1",
    "assert f(acc(1)) == 1",
    "assert f([plus(v) for v in [1, 2]]) == 1",
    "assert f(E, D) == 1",
    "assert f(list(m)) == 1",
    "assert f(y) == n2",
    "assert f(fs[0]()) == 1",
    "assert f(max(D or [0], default=0)) == n",
    "assert f(E[0]) == 1",
)
_IN_TESTS = ("global n", "global D", "global n, D", "D = [50]", "n = 60")
_IN_METHODS = (
    *("assert f(self.x) == 1", "assert f(self.c) == 1", "assert f(D, self.x) == 1", "self.x = 5", "self.x.append(2)"),
    *("self.c.append(1)", "self.prepare()", "self.own(3)", "type(self).c = [0]", "D.append(1)"),
)
_CLASS = """
class Test{number}:
    c = [3]
    def setUp(self):
        self.x = {value}
    def prepare(self):
        self.x = 9
    def own(self, v):
        self.x = v
        assert f(v, self.x) == 1
    def test_b(self):
{first}
    def test_c(self):
{second}"""


def drawn(rng: random.Random) -> str:
    """Return one file that Python compiles."""
    while True:
        text = _drawn(rng)
        with contextlib.suppress(SyntaxError):
            compile(text, "suite", "exec")
            return text


def _drawn(rng: random.Random) -> str:
    constants = ["D = [1]", "n = 1", "E = [4]", "HOOKS = []"]
    rng.shuffle(constants)
    n_below = rng.choice((0, 0, 0, 1, 2))
    body = rng.choices(_HELPERS, k=rng.randint(0, 4))
    for number in range(rng.randint(1, 5)):
        (kind,) = rng.choices((_statement, _assert, _test, _class, _helper), (45, 20, 20, 10, 5))
        body.append(kind(rng, number))
    for constant in constants[:n_below]:
        body.insert(rng.randint(0, len(body)), constant)
    body += rng.choices(_ASSERTS, k=rng.randint(1, 2))
    if rng.random() < 0.3:
        body.append("def test_z():\n" + _indented(rng.choices(_ASSERTS, k=2)))
    return "\n".join((*constants[n_below:], *body, ""))


def _statement(rng: random.Random, _: int) -> str:
    return rng.choice(_STATEMENTS)


def _assert(rng: random.Random, _: int) -> str:
    return rng.choice(_ASSERTS)


def _helper(rng: random.Random, _: int) -> str:
    return rng.choice(_HELPERS)


def _test(rng: random.Random, number: int) -> str:
    lines = [rng.choice(_ASSERTS if rng.random() < 0.6 else _STATEMENTS) for _ in range(rng.randint(1, 4))]
    if rng.random() < 0.2:
        lines.insert(0, rng.choice(_IN_TESTS))
    if rng.random() < 0.15:
        lines.insert(rng.randrange(len(lines)), rng.choice(_HELPERS))
    return f"def test_{number}():\n{_indented(lines)}"


def _class(rng: random.Random, number: int) -> str:
    first, second = (
        _indented(rng.choices((*_IN_METHODS, rng.choice(_ASSERTS), rng.choice(_STATEMENTS)), k=rng.randint(1, 4)), 8)
        for _ in range(2)
    )
    return _CLASS.strip("\n").format(
        number=number, value=rng.choice(("[1]", "D", "n", "[D]")), first=first, second=second
    )


def _indented(lines: Sequence[str], n: int = 4) -> str:
    return indent("\n".join(lines), " " * n)


def f(*args: Any, **kwargs: Any) -> Any:
    """Return the arguments as they are now: the function under test."""
    return "f", copy.deepcopy(args), copy.deepcopy(kwargs)


class _Noting(ast.NodeTransformer):
    """Notes both sides of each assert, and runs each statement of a body though an earlier one has failed."""

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        match node.test:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
                sides = [left, right]
            case test:
                sides = [ast.Call(ast.Name("bool", ast.Load()), [test], []), ast.Constant(True)]
        noted = ast.Call(ast.Name("_note", ast.Load()), [ast.Constant(node.lineno), *sides], [])
        return ast.copy_location(ast.Expr(noted), node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            held = getattr(node, name, None)
            if isinstance(held, list):
                setattr(node, name, [self._guarded(each) for each in held])
        return node

    def _guarded(self, node: ast.stmt) -> ast.stmt:
        if isinstance(node, ast.Return | ast.Global | ast.Nonlocal | ast.ImportFrom | ast.Pass):
            return node
        noted: ast.stmt = ast.Expr(ast.Call(ast.Name("_missing", ast.Load()), [ast.Constant(node.lineno)], []))
        missing = ast.ExceptHandler(ast.Name("NameError", ast.Load()), None, [noted])
        caught = ast.ExceptHandler(ast.Name("Exception", ast.Load()), None, [ast.Pass()])
        return ast.Try([node], [missing, caught], [], [])


_MISSING = ("a name without a value", "")


def noted(text: str) -> dict[int, list[tuple[str, str]]]:
    """Return for each line the sides of its assert, each time that plain Python comes there."""
    sides: dict[int, list[tuple[str, str]]] = {}
    tree = ast.fix_missing_locations(_Noting().visit(ast.parse(text)))
    space: dict[str, Any] = {
        "f": f,
        "_note": lambda line, *pair: sides.setdefault(line, []).append(tuple(map(repr, pair))),
        "_missing": lambda line: sides.setdefault(line, []).append(_MISSING),
        "__name__": "suite",
    }
    kept = dict(vars(builtins))
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(tree, "suite", "exec"), space)
        for test in _tests(space):
            with contextlib.suppress(Exception):
                test()
    vars(builtins).update(kept)
    return sides


def _tests(space: dict[str, Any]) -> Iterator[Any]:
    for name, value in list(space.items()):
        if name.startswith("test") and callable(value):
            yield value
        for method in vars(value) if name.startswith("Test") else ():
            if method.startswith("test"):
                instance = value()
                instance.setUp()
                yield getattr(instance, method)


def _functions(tree: ast.AST, within: str = "") -> Iterator[tuple[int, str]]:
    """Yield the line of each assert with the name of the function around it."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.Assert):
            yield child.lineno, within
        yield from _functions(child, child.name if isinstance(child, ast.FunctionDef) else within)


def _value(text: str, imports: Sequence[str]) -> str:
    space: dict[str, Any] = {"f": f}
    for statement in imports:
        exec(statement, space)
    try:
        return repr(eval(text, space))
    except Exception as error:  # noqa: BLE001  -- a side may raise anything
        return repr(error)


def compared(text: str) -> tuple[Counter[str], list[Difference]]:
    """Return how often what was read of a file has each reason, and what has none."""
    python, functions = noted(text), dict(_functions(ast.parse(text)))
    suite = read_suite(f"```python\n{text}```\n", preset("fixed").reading, entry_point="f")
    counts: Counter[str] = Counter()
    differences = []
    for case in suite.cases:
        line = case.line - 1
        sides = _value(case.expression, case.imports), _value(case.prediction, case.imports)
        name = functions[line]
        if sides in python.get(line, ()):
            reason = Reason.AGREES
        elif _MISSING in python.get(line, ()):
            reason = Reason.FAILS_FIRST
        elif line not in python and name and not name.startswith("test"):
            reason = Reason.NOT_CALLED
        else:
            reason = Reason.FAILS_FIRST if line not in python else Reason.UNEXPLAINED
        counts[reason] += 1
        if reason is Reason.UNEXPLAINED:
            differences.append(Difference(text, line, str(sides), str(python[line])))
    for rejection in suite.rejections:
        line = rejection.line - 1
        is_missing = rejection.reason.value == "forbidden_name" and "is not defined" in rejection.detail
        if is_missing and functions.get(line) and {*python.get(line, ())} - {_MISSING}:
            binds = any(name in rejection.detail for name in _unbound(text))
            counts[Reason.FAILS_FIRST if binds else Reason.UNEXPLAINED] += 1
            differences += [] if binds else [Difference(text, line, rejection.detail, str(python[line]))]
    return counts, differences


def _unbound(text: str) -> set[str]:
    """Return the names, in quotes, that a statement of the module uses before the file binds them."""
    known, missing = set(vars(builtins)) | {"f"}, set()
    for statement in ast.parse(text).body:
        names = [part for part in ast.walk(statement) if isinstance(part, ast.Name)]
        if not isinstance(statement, ast.FunctionDef | ast.ClassDef):
            missing |= {repr(name.id) for name in names if isinstance(name.ctx, ast.Load) and name.id not in known}
        known |= {name.id for name in names if not isinstance(name.ctx, ast.Load)}
        known |= {statement.name} if isinstance(statement, ast.FunctionDef | ast.ClassDef) else set()
    return missing


def main() -> None:
    parser = option_parser(__doc__, json="figures and differences for programs")
    parser.add_argument("--files", type=int, default=5000, help="default 5000")
    parser.add_argument("--seed", type=int, default=0, help="default 0")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    differences: list[Difference] = []
    for number in range(options.files):
        of_file, found = compared(drawn(random.Random(f"{options.seed} {number}")))
        counts += of_file
        differences += found
    figures = {"files": options.files, "seed": options.seed} | {str(reason): n for reason, n in counts.items()}
    if options.json:
        shown = [{"file": each.file, "line": each.line, "read": each.read} for each in differences]
        print(json.dumps({"about": machine(), "figures": figures, "differences": shown}, indent=1))
    else:
        for each in differences:
            print(indent(each.file, "    | "), f"line {each.line}: {each.read}; Python: {each.python}", sep="\n")
        print(figures)
    sys.exit(bool(differences))


if __name__ == "__main__":
    main()
