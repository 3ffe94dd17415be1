"""Converts the examples in a problem's statement into asserts.

It reads doctest prompts (`>>> f(1)` with the value below, or `>>> f(1) == 2`), assert lines, and lines of the form
`f(1) == 2`, or with `=>`, `==>`, `->`, an arrow, `=`, `returns` or `should return` instead of the operator. It
ignores a line that contains more than a call with literal arguments and a literal value: a missing example is better
than a wrong one.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence

from codea1_env.errors import BrokenInput
from codea1_env.facts.entry_points import read_entry_point
from codea1_env.problems.python_source import called_name, calls_of, expression, imports_of, literal, parse, unparse

_MOST_LINES = 12
_MOST_CHARACTERS = 4_000
"""Maximal length of one example."""

_LEAD = r"^\s*(?:[-*•]\s+|\d+[.)]\s+)?(?:for\s+|e\.g\.,?\s+|example\s*\d*:\s*)?"
_RELATION = re.compile(r"\s*(?:(?:#|//)\s*)?(?:={1,2}>|-+>|={1,2}|➞|→|⇒|(?:should\s+)?returns?\b:?)\s*")
_ARITHMETIC = re.compile(r"[-+*/\d\s.()]+=\s*(?=[^=]+$)")
_REMARK = re.compile(r"\s+\([^()]*\)$")
_WORDS = {"true": "True", "false": "False"}
_BUILTINS = frozenset(dir(builtins))


_MISTAKEN = frozenset(
    {
        "assert median([-10, 4, 6, 1000, 10, 20]) == 15.0",
        "assert sort_array([1, 5, 2, 3, 4]) == [1, 2, 3, 4, 5]",
        "assert sort_array([-2, -3, -4, -5, -6]) == [-6, -5, -4, -3, -2]",
        "assert tri(1) == 3",
        "assert tri(2) == 2",
        "assert tri(4) == 3",
    }
)
"""Examples in HumanEval's statements that its solutions contradict (47, 116), or that describe single items (130)."""


def find_examples(statement: str, entry_point: str) -> tuple[str, ...]:
    """Return the examples as asserts of one line each, in order, without duplicates."""
    lines = [line.rstrip().removesuffix('"""').removesuffix("'''") for line in statement.splitlines()]
    imports = ast.walk(parse(imports_of(statement), "the imports"))
    aliases = [part for part in imports if isinstance(part, ast.alias)]
    imported = {(alias.asname or alias.name).partition(".")[0] for alias in aliases}
    examples = dict.fromkeys(_examples(lines, entry_point, _BUILTINS | imported))
    return tuple(example for example in examples if example not in _MISTAKEN)


def _examples(lines: Sequence[str], entry_point: str, known: frozenset[str]) -> Iterator[str]:
    stated = re.compile(_LEAD + rf"(?={re.escape(entry_point)}\s*\()", re.IGNORECASE)
    for position, line in enumerate(lines):
        following = lines[position + 1 : position + _MOST_LINES]
        try:
            if line.lstrip().startswith(">>>"):
                example = _read_prompt(line.lstrip()[3:], following, entry_point, known)
            elif re.match(r"\s*assert\b", line):
                example = _read_assert([line.strip(), *following], entry_point, known)
            else:
                lead = stated.match(line)
                example = _read_sentence([line[lead.end() :], *following], entry_point) if lead else None
        except BrokenInput:
            continue  # nested too deeply to be unparsed
        if example:
            yield example


def _read_prompt(source: str, following: Sequence[str], entry_point: str, known: frozenset[str]) -> str | None:
    """Read a doctest prompt: the value is in the same line after `==`, or in the lines below."""
    n_more = next((i for i, line in enumerate(following) if not line.lstrip().startswith("...")), len(following))
    source = "\n".join([source.strip(), *(line.lstrip()[3:] for line in following[:n_more])])
    if source.startswith("assert"):
        return _read_assert([source], entry_point, known)
    code = expression(source)
    if code is None or not _calls(code, entry_point, known):
        return None
    match code:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            return _assert(left, right if literal(right) else None)
        case ast.Compare():
            return None
    want = []
    for line in following[n_more:]:
        if not line.strip() or line.lstrip().startswith(">>>"):
            break
        want.append(line.strip())
    if not want:  # a prompt shows nothing for None; after anything but a plain call it is an error of the statement
        return f"assert {unparse(code)} == None" if _is_plain_call(code, entry_point) else None
    return _assert(code, _value("\n".join(want)))


def _read_assert(lines: Sequence[str], entry_point: str, known: frozenset[str]) -> str | None:
    for n_lines in range(1, len(lines) + 1):
        try:
            tree = parse("\n".join(lines[:n_lines]), "")
        except BrokenInput:
            continue
        match tree.body:
            case [ast.Assert(test=test)] if _calls(test, entry_point, known):
                return f"assert {unparse(test)}"
        return None
    return None


def _read_sentence(lines: Sequence[str], entry_point: str) -> str | None:
    """Read a line that begins with the call: `f(1) == 2`, `f(1) => 2`, `f(1) should return 2.`"""
    whole = "\n".join(lines)[:_MOST_CHARACTERS]
    for bracket in re.finditer(r"\)", whole):
        call = expression(whole[: bracket.end()])
        if call is None:
            continue
        relation = _RELATION.match(whole, bracket.end())
        if not relation or not _is_plain_call(call, entry_point):
            return None
        following = whole[relation.end() :].split("\n")  # the value is in the fewest first lines that form one
        values = (_value("\n".join(following[:n_lines])) for n_lines in range(1, len(following) + 1))
        return _assert(call, next((value for value in values if value is not None), None))
    return None


def _value(text: str) -> ast.expr | None:
    text = text.strip()
    without_sum = _ARITHMETIC.sub("", text, count=1) if _ARITHMETIC.match(text) else text
    for reading in (text.removesuffix("."), text, _REMARK.sub("", text), without_sum):
        value = expression(_WORDS.get(reading.lower(), reading))
        if value is not None and literal(value):
            # `("x")` is a string in Python, but its writer probably meant a tuple.
            return None if reading.startswith("(") and not isinstance(value, ast.Tuple) else value
    return None


def _assert(call: ast.expr, value: ast.expr | None) -> str | None:
    return None if value is None else f"assert {unparse(call)} == {unparse(value)}"


def _is_plain_call(node: ast.expr, entry_point: str) -> bool:
    if not (isinstance(node, ast.Call) and called_name(node) == entry_point):
        return False
    return all(literal(argument) for argument in (*node.args, *(keyword.value for keyword in node.keywords)))


def _calls(node: ast.expr, entry_point: str, known: frozenset[str]) -> bool:
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return calls_of(node)[entry_point] > 0 and names <= known | {read_entry_point(entry_point).name}
