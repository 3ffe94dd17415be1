"""The strict reading of a coder's reply: which part of it is the program.

In this order, the first that there is:

1. The last fenced block that defines the entry point. Later blocks are usually the corrected answer, and blocks that
   only use the program (examples, outputs) do not define it.
2. Statements outside the blocks that define the entry point.
3. The last block that parses and defines something, else the first block.
4. Without blocks: the whole text if it is Python that defines something; else the longest run of statements that does;
   else, from the first `def` on, text that is not Python.

Blocks labelled with another language never count. A program that does not parse is still the candidate: loading it
gives its verdict.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from codea1_env.rules.reading.fences import Block, Fenced, without_margin
from codea1_env.rules.reading.python_text import UnreadableError, parse
from codea1_env.rules.reading.statements import segments

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_ANY_DEF = r"^[ \t]*(?:async[ \t]+)?def[ \t]+{name}[ \t]*[(\[]"


def find_program(fenced: Fenced, entry_point: str) -> str:
    """Return the program in a reply; empty if there is none. `entry_point` may be empty (unknown)."""
    blocks = [block for block in fenced.blocks if block.may_be_python]
    defining = [block for block in blocks if _mentions_definition(block.text, entry_point)]
    if defining:
        return _tidy(defining[-1].text)
    run = _run_outside(fenced.outside, entry_point)
    if blocks and not run.defines_entry_point:
        return _tidy(_best_block(blocks).text)
    return _tidy(run.text)


def _best_block(blocks: list[Block]) -> Block:
    return next((block for block in reversed(blocks) if _defines_something(block.text)), blocks[0])


def _mentions_definition(text: str, entry_point: str) -> bool:
    if not entry_point:
        return False
    try:
        return entry_point in _defined(parse(text).body)
    except UnreadableError:
        return _first_def(text, entry_point) is not None


def _defines_something(text: str) -> bool:
    try:
        return bool(_defined(parse(text).body))
    except UnreadableError:
        return False


def _defined(body: Iterable[ast.stmt]) -> set[str]:
    """Return the names that top-level statements bind, those under `if` and `try` included."""
    names: set[str] = set()
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, _DEFINITIONS):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.If | ast.Try):
            waiting.extend([*node.body, *node.orelse])
    return names


def _first_def(text: str, entry_point: str) -> int | None:
    """Return where the first line stands that begins a function (of this name, if it is not empty)."""
    name = re.escape(entry_point) if entry_point else r"\w+"
    match = re.search(_ANY_DEF.format(name=name), text, re.MULTILINE)
    return match.start() if match else None


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring statements among prose."""

    text: str
    defines_entry_point: bool = False


def _run_outside(text: str, entry_point: str) -> _Run:
    """Return the best program among prose; empty text if there is none."""
    if _defines_something(text):
        return _Run(text, _mentions_definition(text, entry_point))
    runs = _runs(text, entry_point)
    complete = [run for run in runs if run.defines_entry_point]
    if complete:
        return complete[-1]
    broken = _first_def(text, entry_point)
    if broken is not None and entry_point:
        return _Run(without_margin(text[broken:]), defines_entry_point=True)
    if runs:
        return max(runs, key=lambda run: len(run.text))
    return _Run("" if broken is None else without_margin(text[broken:]))


def _runs(text: str, entry_point: str) -> list[_Run]:
    lines = text.split("\n")
    runs: list[_Run] = []
    first = end = 0
    names: set[str] = set()
    for segment in [*segments(text), None]:
        body = [] if segment is None else _code(lines[segment.first : segment.end])
        if segment is not None and body:
            first = first if names else segment.first
            names |= _defined(body)
            end = segment.end
            continue
        if names:
            runs.append(_Run(without_margin("\n".join(lines[first:end])), entry_point in names))
            names = set()
    return runs


def _code(lines: list[str]) -> list[ast.stmt]:
    """Return the statements of a segment; none if it is not Python, or only by accident."""
    try:
        body = parse(without_margin("\n".join(lines))).body
    except UnreadableError:
        return []
    return [] if any(_reads_like_prose(node) for node in body) else body


def _reads_like_prose(node: ast.stmt) -> bool:
    """Whether `node` is a word or `Note: word`, which Python takes for an expression or an annotation."""
    if isinstance(node, ast.AnnAssign):
        return node.value is None
    if not isinstance(node, ast.Expr):
        return False
    is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return not (is_text or isinstance(node.value, ast.Call))


def _tidy(program: str) -> str:
    return program.strip("\n") if program.strip() else ""
