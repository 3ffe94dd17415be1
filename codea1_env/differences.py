"""In what a program differs from the solution, where that is one small change: the line, and a sentence for people."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from difflib import SequenceMatcher

from codea1_env.python_text import TextBudget, UnreadableError, parse

_MAX_LINES = 2  # of a change that is told
_MAX_COMPARED = 400  # lines: comparing takes their square


@dataclass(frozen=True, slots=True)
class Difference:
    """One change of a program."""

    line: int
    """Line of the program, from 1, where the change begins; 0 where the layout of the program hides it."""
    program: tuple[str, ...]
    """Its lines there, without indentation; () if some are missing."""
    solution: tuple[str, ...]
    """Those of the solution; () if the program has more."""

    def sentence(self) -> str:
        """Return what differs, without a full stop."""
        where = f"line {self.line}" if self.line else "one line"
        ours, theirs = (" / ".join(f"`{line}`" for line in lines) for lines in (self.program, self.solution))
        if not ours:
            return f"{theirs} is missing before {where}"
        return f"{where} is {ours}, " + (
            f"in the solution it is {theirs}" if theirs else "which the solution does not have"
        )


def difference(program: str, solution: str) -> Difference | None:
    """Return the only change between two programs; None if there is none, or more than a small one.

    Comments, docstrings and the layout do not count.

    Args:
        program: any text.
        solution: the program that it is compared with.
    """
    try:
        written, right = (_lines(text) for text in (program, solution))
    except UnreadableError:
        return None
    if max(len(written), len(right)) > _MAX_COMPARED:
        return None
    changes = [
        each for each in SequenceMatcher(None, right, written, autojunk=False).get_opcodes() if each[0] != "equal"
    ]
    if len(changes) != 1:
        return None
    _, first, end, begin, stop = changes[0]
    if max(end - first, stop - begin) > _MAX_LINES:
        return None
    return Difference(
        line=_number(program, written, min(begin, len(written) - 1)),
        program=tuple(line.strip() for line in written[begin:stop]),
        solution=tuple(line.strip() for line in right[first:end]),
    )


def comparable(*programs: str) -> tuple[str, ...]:
    """Return programs without comments, docstrings and layout, so that what differs in them is their code.

    If one cannot be read, all are returned as they are.
    """
    try:
        return tuple("\n".join(_lines(text)) for text in programs)
    except UnreadableError:
        return programs


def is_same(program: str, solution: str) -> bool:
    """Return whether two programs differ at most in comments, docstrings and layout."""
    one, other = comparable(program, solution)
    return one == other


def _number(program: str, written: list[str], position: int) -> int:
    """Return the line of a program, from 1, that one of its lines in another layout is; 0 if none is."""
    wanted = written[position]
    numbers = [n for n, line in enumerate(program.split("\n"), start=1) if line.rstrip() == wanted]
    rank = written[:position].count(wanted)
    return numbers[rank] if rank < len(numbers) else 0


def _lines(text: str) -> list[str]:
    tree = parse(text, TextBudget())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and len(node.body) > 1:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                del node.body[0]
    return ast.unparse(tree).split("\n")
