"""The strict reading of a coder's reply: find the program in it.

The program is the first of these that exists:

1. The last fenced block that defines the entry point, with a body. A later block is usually the corrected answer, and
   blocks that only use the program (examples, outputs) do not define it. Names that it lacks are those of the other
   blocks that define them: a program may come in parts.
2. Statements outside the blocks, if they define the entry point.
3. The last block that defines it without a body; else the last that parses and defines something, else the first block.
4. In a reply without blocks: the whole text if it is Python that defines something; else the longest run of statements
   that defines something; else the text from the first `def` on, though it is not Python.

A program's own tests (`own_tests`) are not part of it. Blocks labelled with another language never count. A program
that does not parse is still the candidate; it gets its verdict when it is loaded.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import EllipsisType

from codea1_env.facts.entry_points import read_entry_point
from codea1_env.python_text import TextBudget, UnreadableError, free_names, parse
from codea1_env.rules.reading.answers import Block, Fenced, without_margin
from codea1_env.rules.reading.imports import imports_of
from codea1_env.rules.reading.own_tests import before_broken_test, find_own_tests, without_statements
from codea1_env.rules.reading.statements import DEFINITIONS, segments

_BUILTINS = frozenset(dir(builtins))
_TRIES = 3  # broken tests at a program's end
_LACKING = ("\n    pass", "\n        pass")  # behind a declaration with nothing but comments
_ANY_DEF = r"^[ \t]*(?:async[ \t]+)?def[ \t]+{name}[ \t]*[(\[]"
_ANY_CLASS = r"^[ \t]*class[ \t]+{name}[ \t]*[(\[:]"


@dataclass(frozen=True, slots=True)
class _Run:
    """Consecutive statements between lines of prose."""

    text: str
    defines_entry_point: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """A program without its own tests."""

    text: str
    n_own_tests: int = 0
    """How many statements have been left out, since they only test it; an end that is no Python counts as one."""


def find_program(fenced: Fenced, entry_point: str, budget: TextBudget) -> Program:
    """Return the program in a reply; empty if there is none. `entry_point` may be empty (unknown).

    Text that costs more than is left of the budget counts as text that does not parse.
    """
    search = _Search(entry_point, budget)
    text = search.program(fenced)
    if not entry_point:
        return Program(_tidy(text))
    readable = search.without_broken_tests(text)
    tree = search.tree(readable)
    tests = [] if tree is None else find_own_tests(readable, tree, entry_point, budget)
    return Program(_tidy(without_statements(readable, tests) if tests else readable), len(tests) + (readable != text))


@dataclass(frozen=True, slots=True)
class _Search:
    entry_point: str
    budget: TextBudget
    _known: dict[str, ast.Module | UnreadableError] = field(default_factory=dict)

    def _read(self, text: str) -> ast.Module | UnreadableError:
        if text not in self._known:
            try:
                self._known[text] = parse(text, self.budget)
            except UnreadableError as error:
                self._known[text] = error
        return self._known[text]

    def tree(self, text: str) -> ast.Module | None:
        """Return the tree of a text; None if it does not parse."""
        read = self._read(text)
        return None if isinstance(read, UnreadableError) else read

    def without_broken_tests(self, text: str) -> str:
        """Return a program that is no Python without the tests at its end that make it so; whole if there are none.

        What is no Python for its size or depth stays whole.
        """
        shorter = text
        for _ in range(_TRIES):
            read = self._read(shorter)
            if not isinstance(read, UnreadableError):
                return shorter if shorter == text or self._mentions_definition(shorter) else text
            rest = None if read.line is None else before_broken_test(shorter, self.entry_point, read.line)
            if rest is None:
                break
            shorter = rest
        return text

    def program(self, fenced: Fenced) -> str:
        """Return the program with its own tests."""
        blocks = [block for block in fenced.blocks if block.may_be_python]
        defining = [block for block in blocks if self._mentions_definition(block.text)]
        whole = [block for block in defining if not self._is_stub(block.text)]
        if whole and len(blocks) == 1:  # most replies
            return whole[0].text
        if whole:
            return self._with_parts(whole[-1], [block for block in blocks if block not in defining or block in whole])
        run = self._run_outside(fenced.outside)
        if blocks and not run.defines_entry_point:
            return (defining or [self._best_block(blocks)])[-1].text
        return run.text

    def _with_parts(self, chosen: Block, blocks: list[Block]) -> str:
        """Return a block, together with the last ones that define names which it lacks."""
        parts, others = [chosen], [block for block in blocks if block is not chosen]
        missing = free_names(chosen.text) - _BUILTINS
        while missing:
            for block in reversed(others):
                body = self._body(block.text)
                if body is not None and _defined(body) & missing:
                    others.remove(block)
                    parts.append(block)
                    missing = (missing | free_names(block.text)) - _BUILTINS - _defined(body)
                    break
            else:
                break
        return "\n\n".join(block.text for block in blocks if block in parts)

    def _body(self, text: str) -> list[ast.stmt] | None:
        tree = self.tree(text)
        return None if tree is None else tree.body

    def _is_stub(self, text: str) -> bool:
        """Whether a text declares the entry point and leaves its body out."""
        bodies = map(self._body, (text, *(text.rstrip() + rest for rest in _LACKING)))
        body = next((body for body in bodies if body is not None), [])
        for name in filter(None, read_entry_point(self.entry_point)):
            found = [node for node in body if isinstance(node, DEFINITIONS) and node.name == name]
            body = found[-1].body if found else []
        return bool(body) and all(map(_is_left_out, body))

    def _best_block(self, blocks: list[Block]) -> Block:
        return next((block for block in reversed(blocks) if self._defines_something(block.text)), blocks[0])

    def _mentions_definition(self, text: str) -> bool:
        if not self.entry_point:
            return False
        tree = self.tree(text)
        if tree is None:
            return _first_def(text, self.entry_point) is not None
        return read_entry_point(self.entry_point).name in _defined(tree.body)

    def _defines_something(self, text: str) -> bool:
        tree = self.tree(text)
        return tree is not None and bool(_defined(tree.body))

    def _run_outside(self, text: str) -> _Run:
        """Return the best program outside the blocks; an empty text if there is none."""
        if self._defines_something(text):
            return _Run(text, self._mentions_definition(text))
        if not self.entry_point and self._code(text.split("\n")):  # a program need not define anything
            return _Run(text)
        runs = self._runs(text)
        complete = [run for run in runs if run.defines_entry_point]
        if complete:
            return complete[-1]
        broken = _first_def(text, self.entry_point)
        if broken is not None and self.entry_point:
            return _Run(without_margin(text[broken:]), defines_entry_point=True)
        if runs:
            return max(runs, key=lambda run: len(run.text))
        return _Run("" if broken is None else without_margin(text[broken:]))

    def _runs(self, text: str) -> list[_Run]:
        lines = text.split("\n")
        runs: list[_Run] = []
        first = end = 0
        names: set[str] = set()
        for segment in [*segments(text), None]:
            body = [] if segment is None else self._code(lines[segment.first : segment.end])
            if segment is not None and body:
                first = first if names else segment.first
                names |= _defined(body)
                end = segment.end
                continue
            if names:
                defines = read_entry_point(self.entry_point).name in names
                runs.append(_Run(without_margin("\n".join(lines[first:end])), defines))
                names = set()
        return runs

    def _code(self, lines: list[str]) -> list[ast.stmt]:
        """Return the statements of a segment; none if it is not Python, or is prose that happens to parse."""
        try:
            body = parse(without_margin("\n".join(lines)), self.budget).body
        except UnreadableError:
            return []
        return [] if any(_reads_like_prose(node) for node in body) else body


def _defined(body: Iterable[ast.stmt]) -> set[str]:
    """Return the names that top-level statements bind, those under `if` and `try` included."""
    names: set[str] = set()
    pending = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, DEFINITIONS):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        names.update(named.name for named in imports_of(node))
        if isinstance(node, ast.If | ast.Try):
            pending.extend([*node.body, *node.orelse])
    return names


def _is_left_out(node: ast.stmt) -> bool:
    match node:
        case ast.Raise(exc=raised):
            raised = raised.func if isinstance(raised, ast.Call) else raised
            return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
        case ast.Return(value=ast.Constant(value=EllipsisType())):
            return True
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _first_def(text: str, entry_point: str) -> int | None:
    """Return the position of the first `def` line, of this name if it is not empty; None if there is none."""
    name, method = read_entry_point(entry_point)
    pattern = (_ANY_CLASS if method else _ANY_DEF).format(name=re.escape(name) if name else r"\w+")
    match = re.search(pattern, text, re.MULTILINE)
    return match.start() if match else None


def _reads_like_prose(node: ast.stmt) -> bool:
    """Whether `node` is a word or `Note: word`, which parse as an expression and as an annotation."""
    if isinstance(node, ast.AnnAssign):
        return node.value is None
    if not isinstance(node, ast.Expr):
        return False
    is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return not (is_text or isinstance(node.value, ast.Call))


def _tidy(program: str) -> str:
    return program.strip("\n") if program.strip() else ""
