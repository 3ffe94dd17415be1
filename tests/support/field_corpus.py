"""Suites and replies in the forms in which models write them, made of the starter problems; the same for every seed.

Forms are weighted as they were counted in published suites: three quarters of all items are rows of tables. An item is
one assert or one row; the corpus knows of each whether it holds for the solution.
"""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Callable
from dataclasses import dataclass

from codea1_env.problems import GoldenCase, Problem, load_problems

FENCE = "```"


@dataclass(frozen=True)
class Item:
    """One test: a call with literal arguments, and the value that the suite predicts."""

    args: tuple[str, ...]
    want: str
    holds: bool
    raises: bool = False

    def call(self, name: str) -> str:
        return f"{name}({', '.join(self.args)})"


@dataclass(frozen=True)
class WrittenSuite:
    problem: Problem
    form: str
    code: str
    """As a file of Python; empty where the form is none."""
    reply: str
    items: tuple[Item, ...]


def suites(n: int, seed: int) -> list[WrittenSuite]:
    rng = random.Random(seed)
    problems = [problem for problem in load_problems("starter") if len(_golden(problem)) >= 3]
    names, weights = zip(*((name, weight) for name, (weight, _) in FORMS.items()), strict=True)
    found = []
    while len(found) < n:
        problem, form = rng.choice(problems), rng.choices(names, weights)[0]
        made = _suite(problem, form, rng)
        if made is not None:
            found.append(made)
    return found


def replies(n: int, seed: int) -> list[tuple[Problem, str]]:
    """Return `n` replies of coders, each of which holds the solution."""
    rng = random.Random(seed)
    problems = list(load_problems("starter"))
    return [(problem, _wrapped(problem.solution.strip("\n"), rng)) for problem in rng.choices(problems, k=n)]


def _golden(problem: Problem) -> list[Item]:
    """Return the golden tests of the form `f(literals) == literal`."""
    found = []
    for test in problem.golden:
        match ast.parse(test.expression).body if isinstance(test, GoldenCase) and not test.imports else ():
            case [ast.Expr(value=ast.Call(func=ast.Name(id=problem.entry_point), args=args, keywords=[]))]:
                if args and all(map(is_literal, (*args, ast.parse(test.expected, mode="eval").body))):
                    found.append(Item(tuple(map(ast.unparse, args)), test.expected, True))
    return found


def is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


def _suite(problem: Problem, form: str, rng: random.Random) -> WrittenSuite | None:
    golden = _golden(problem)
    _, write = FORMS[form]
    n_items = rng.randint(6, 20) if "table" in form else rng.randint(2, 6)
    items = [_item(rng.choice(golden), problem, rng, raises=form == "exceptions") for _ in range(n_items)]
    if len({len(item.args) for item in items}) > 1:
        return None  # optional arguments: no row of a table
    if form == "tolerances" and not all(isinstance(ast.literal_eval(item.want), int | float) for item in items):
        return None
    code = write(problem.entry_point, items, rng)
    reply = code if form == "lists in prose" else _wrapped(code, rng)
    return WrittenSuite(problem, form, "" if form == "lists in prose" else code, reply, tuple(items))


def _item(golden: Item, problem: Problem, rng: random.Random, *, raises: bool) -> Item:
    if raises:
        args = tuple(rng.choice([given, "None", "object"]) for given in golden.args)
        args = tuple("None" if given == "object" else given for given in args)
        error = rng.choice(["TypeError", "ValueError", "AttributeError"])
        return Item(args, error, _error_of(problem, args) == error, raises=True)
    if rng.random() < 0.9:
        return golden
    value = ast.literal_eval(golden.want)
    wrong = {bool: not value, int: 0, float: 0.5, str: ""}.get(type(value), [None])
    wrong = value + 1 if type(value) in (int, float) else wrong if wrong != value else "?"
    return Item(golden.args, repr(wrong), False)


def _error_of(problem: Problem, args: tuple[str, ...]) -> str:
    space: dict[str, object] = {}
    exec(f"{problem.imports}\n{problem.solution}", space)
    try:
        eval(f"{problem.entry_point}({', '.join(args)})", space)
    except Exception as error:  # noqa: BLE001  -- any exception of a solution
        return next((kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _KINDS), type(error).__name__)
    return ""


_KINDS = ("TypeError", "ValueError", "AttributeError")


def _lines(lines: list[str], indent: int = 0) -> str:
    return "\n".join("    " * indent + line for line in lines)


def _asserts(name: str, items: list[Item], rng: random.Random) -> str:
    lines = [f"assert {item.call(name)} == {item.want}" for item in items]
    if rng.random() < 0.5:
        return _lines(lines)
    return "\n\n".join(f"def test_{n}():\n    {line}" for n, line in enumerate(lines))


def _columns(items: list[Item]) -> list[str]:
    return [*(f"a{n}" for n in range(len(items[0].args))), "expected"]


def _row(item: Item) -> str:
    return f"({', '.join((*item.args, item.want))})"


def _parametrize(name: str, items: list[Item], rng: random.Random) -> str:
    columns = _columns(items)
    names = rng.choice([repr(", ".join(columns)), repr(columns), repr(tuple(columns))])
    rows = [rng.choice([_row(item), f"pytest.param({_row(item)[1:-1]}, id='row {n}')"]) for n, item in enumerate(items)]
    table = f"[\n{_lines([row + ',' for row in rows], 1)}\n]"
    head, where = ("", table) if rng.random() < 0.7 else (f"CASES = {table}\n\n", "CASES")
    body = f"assert {name}({', '.join(columns[:-1])}) == expected"
    test = f"@pytest.mark.parametrize({names}, {where})\ndef test_table({', '.join(columns)}):\n    {body}"
    if rng.random() < 0.4:
        test = test.replace("def test_table(", "def test_table(self, ")
        test = f"class TestTable:\n{_lines(test.split(chr(10)), 1)}"
    return f"import pytest\n\n{head}{test}"


def _loop(name: str, items: list[Item], rng: random.Random) -> str:
    columns = ", ".join(_columns(items))
    given = ", ".join(_columns(items)[:-1])
    rows = f"[{', '.join(map(_row, items))}]"
    loop = rng.choice(
        [
            [f"for {columns} in {rows}:", f"    assert {name}({given}) == expected, 'wrong'"],
            [f"cases = {rows}", f"for i, ({columns}) in enumerate(cases):", f"    result = {name}({given})",
             "    assert result == expected, f'case {i}'"],
            [f"cases = {rows}", "for case in cases:", f"    assert {name}(*case[:-1]) == case[-1]"],
        ]
    )  # fmt: skip
    return f"def test_all():\n{_lines(loop, 1)}" if rng.random() < 0.6 else _lines(loop)


def _check(name: str, items: list[Item], rng: random.Random) -> str:
    lines = [f"assert {item.call('candidate')} == {item.want}" for item in items]
    return f"def check(candidate):\n{_lines(lines, 1)}\n\ncheck({name})"


def _unittest(name: str, items: list[Item], rng: random.Random) -> str:
    words = ["self.assertEqual({call}, {want})", "self.assertTrue({call} == {want})"]
    made = [rng.choice(words).format(call=item.call(name), want=item.want) for item in items]
    tests = "\n\n".join(f"    def test_{n}(self):\n        {line}" for n, line in enumerate(made))
    main = "\n\nif __name__ == '__main__':\n    unittest.main()" if rng.random() < 0.5 else ""
    return f"import unittest\n\nclass TestIt(unittest.TestCase):\n{tests}{main}"


def _exceptions(name: str, items: list[Item], rng: random.Random) -> str:
    tests = []
    for n, item in enumerate(items):
        call = item.call(name)
        body = rng.choice(
            [
                [f"with pytest.raises({item.want}):", f"    {call}"],
                [f"pytest.raises({item.want}, {', '.join((name, *item.args))})"],
                ["try:", f"    {call}", "    assert False", f"except {item.want}:", "    pass"],
            ]
        )
        tests.append(f"def test_{n}():\n{_lines(body, 1)}")
    return "import pytest\n\n" + "\n\n".join(tests)


def _tolerances(name: str, items: list[Item], rng: random.Random) -> str:
    lines = [f"assert {item.call(name)} == pytest.approx({item.want})" for item in items]
    return "import pytest\n\n" + "\n\n".join(f"def test_{n}():\n    {line}" for n, line in enumerate(lines))


def _listed(name: str, items: list[Item], rng: random.Random) -> str:
    marks = [rng.choice(["-", "*", f"{n}."]) for n, _ in enumerate(items, start=1)]
    tests = [f"`assert {item.call(name)} == {item.want}`" for item in items]
    return "\n".join(f"{mark} {test}" for mark, test in zip(marks, tests, strict=True))


FORMS: dict[str, tuple[float, Callable[[str, list[Item], random.Random], str]]] = {
    "tables of pytest": (50, _parametrize),
    "loops over tables": (10, _loop),
    "asserts": (22, _asserts),
    "check(candidate)": (5, _check),
    "unittest": (5, _unittest),
    "exceptions": (4, _exceptions),
    "tolerances": (2, _tolerances),
    "lists in prose": (2, _listed),
}


def _wrapped(code: str, rng: random.Random) -> str:
    """Return a reply that holds some code as chat models write it."""
    fenced = f"{FENCE}{rng.choice(['python', 'python', 'py', ''])}\n{code}\n{FENCE}"
    prose = rng.choice(["", "Here it is:\n\n", "It\u2019s simple; I'll show you.\n\n"])
    body = rng.choice([f"{prose}{fenced}", f"{prose}{fenced}\n\nIt handles `None`, too.", code])
    if rng.random() < 0.3:
        draft = f"Let me think. It can't be hard.\n{FENCE}python\n{json.dumps('draft')}\n{FENCE}\n"
        body = rng.choice([f"<think>\n{draft}</think>\n\n{body}", f"{draft}</think>\n\n{body}"])
    if rng.random() < 0.3:
        body = f"<answer>{body}</answer>" if body != code else body
    body += rng.choice(["", "", "<|im_end|>", "</s>", "<|endoftext|>", "\n<|eot_id|>"])
    return body.replace("\n", "\r\n") if rng.random() < 0.1 else body
