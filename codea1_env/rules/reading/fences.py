"""Markdown code fences as models write them.

A fence is three or more backticks or tildes with any indentation and info string. The closing fence has at least as
many of the same characters, no info string, and at most three more columns of indentation. The end of the reply also
closes a block. Four forms go beyond CommonMark: a fence labelled Python may follow prose on its line, a closing fence
may follow the last line of code, a whole block may stand on one line, and a labelled fence ends an unclosed block.

A fence within a triple-quoted string is part of the program. The block then continues to the first fence outside such a
string, provided that its text is Python. Otherwise it ends at the first fence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from textwrap import dedent

from codea1_env.python_text import TextBudget, UnreadableError, parse
from codea1_env.rules.reading.logical_lines import has_open_quotes

_PYTHON = frozenset({"py", "py3", "python", "python3"})
_OTHER_LANGUAGES = """
    bash bat c c# c++ cmd cmake console cpp cs csharp css csv diff docker dockerfile go haskell html http ini java
    javascript js json json5 jsonl jsx kotlin latex log lua make makefile markdown math matlab md mermaid out output
    perl php plain plaintext powershell ps1 pycon python-repl r ruby rust scala sh shell shell-session sql stderr
    stdout swift terminal tex text toml traceback ts tsx txt typescript xml yaml yml zsh
"""
_NOT_PYTHON = frozenset(_OTHER_LANGUAGES.split())
_OPENING = re.compile(r"(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`]*)$")
_OPENING_BEHIND_PROSE = re.compile(r"(?P<fence>(?<!`)`{3,})(?P<info>[ \t]*(?:python3?|py))[ \t]*$", re.IGNORECASE)
_ONE_LINE = re.compile(r"(?P<fence>`{3,})(?:(?P<info>python3?|py)\b)?[ \t]*(?P<code>[^`]+)(?P=fence)$", re.IGNORECASE)
_MAX_INDENT = 3  # columns of a closing fence, beyond those of its opening one
_LABEL = re.compile(r"[{.\s]*([\w#+-]*)")


@dataclass(frozen=True, slots=True)
class Block:
    """The text between two fences, dedented if all of it is indented."""

    label: str
    """First word of the info string in lower case; may be empty."""
    text: str
    first_line: int
    """Line of the reply that `text` begins on, from 1."""

    @property
    def is_labelled_python(self) -> bool:
        """True iff the label says Python."""
        return self.label in _PYTHON

    @property
    def may_be_python(self) -> bool:
        """True unless the label names another language, or the block is empty."""
        return self.label not in _NOT_PYTHON and bool(self.text.strip())


@dataclass(frozen=True, slots=True)
class Fenced:
    """The blocks of a reply and the text around them."""

    blocks: tuple[Block, ...]
    outside: str
    """The text around the blocks. Lines of blocks and fences are blank, so line numbers stay valid."""


@dataclass(slots=True)
class _Open:
    fence: str
    label: str
    first: int  # index of the first line of code
    indent: int = 0


def read_fences(text: str, budget: TextBudget) -> Fenced:
    """Split `text` (lines end in line feeds) into fenced blocks and the rest; accepts any text.

    Where the budget does not suffice to tell whether a fence stands in quotes, it does not.
    """
    lines = text.split("\n")
    outside = list(lines)
    blocks: list[Block] = []
    opened: _Open | None = None
    quotes = _Quotes(lines, budget)
    skipped = 0  # lines before it are part of a block
    for index, line in enumerate(lines):
        if index < skipped:
            continue
        closes = opened is not None and _closes(line, opened)
        new = None if closes else _opening(line, index, inside=opened)
        if opened is not None and (closes or new is not None):
            end = quotes.end_of_block(opened, index)
            if closes or end > index:
                blocks.append(_block(lines, opened, end))
                _blank(outside, opened.first - 1, end + 1)
                opened, skipped = None, end + 1
            else:
                blocks.append(_unclosed(lines, outside, opened, index, quotes))
                opened = new
        elif new is not None:
            opened = new
        elif opened is None and (whole := _ONE_LINE.match(line.strip())) is not None:
            blocks.append(Block((whole["info"] or "").lower(), whole["code"].strip(), index + 1))
            outside[index] = ""
    if opened is not None:
        blocks.append(_unclosed(lines, outside, opened, len(lines), quotes))
    return Fenced(tuple(blocks), "\n".join(outside))


@dataclass(slots=True)
class _Quotes:
    """Finds the fences that stand in quotes and are therefore part of a program."""

    lines: Sequence[str]
    budget: TextBudget
    _ends: list[int] = field(init=False)
    """How many characters come before each line."""

    def __post_init__(self) -> None:
        self._ends = list(accumulate((len(line) + 1 for line in self.lines), initial=0))

    def end_of_block(self, opened: _Open, first: int) -> int:
        """Return the line that ends a block: line `first`, its first fence, or a later one if `first` is quoted."""
        if opened.label in _NOT_PYTHON or not self._is_quoted(opened, first):
            return first
        try:
            self.budget.take_steps(len(self.lines) - first)
        except UnreadableError:
            return first
        for end in range(first + 1, len(self.lines) + 1):
            is_end = end == len(self.lines) or _closes(self.lines[end], opened)
            if is_end and not self._is_quoted(opened, end):
                return end if self._is_python(self._code(opened, end)) else first
        return first

    def _is_quoted(self, opened: _Open, index: int) -> bool:
        try:
            self.budget.take_characters(self._ends[index] - self._ends[opened.first])
        except UnreadableError:
            return False
        code = self._code(opened, index)
        return ('"""' in code or "'''" in code) and has_open_quotes(code)

    def _is_python(self, code: str) -> bool:
        try:
            return bool(parse(without_margin(code), self.budget).body)
        except UnreadableError:
            return False

    def _code(self, opened: _Open, end: int) -> str:
        return "\n".join(self.lines[opened.first : end])


def without_margin(text: str) -> str:
    """Return `text` without the white space that all of its lines begin with; as it is if the first line has none."""
    has_margin = text.lstrip("\n").startswith((" ", "\t"))
    return dedent(text) if has_margin else text  # dedent would also empty lines of white space, within strings too


def _closes(line: str, opened: _Open) -> bool:
    body = line.strip()
    is_fence = body.startswith(opened.fence) and not body.strip(opened.fence[0])
    return is_fence and _indent(line) <= opened.indent + _MAX_INDENT


def _indent(line: str) -> int:
    return len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())


def _opening(line: str, index: int, *, inside: _Open | None) -> _Open | None:
    if "```" not in line and "~~~" not in line:
        return None
    body = line.strip()
    match = _OPENING.match(body) or (None if inside else _OPENING_BEHIND_PROSE.search(body))
    if match is None:
        return None
    label = _LABEL.match(match["info"])
    opened = _Open(match["fence"], label.group(1).lower() if label else "", index + 1, _indent(line))
    # Within a block, only a labelled fence of the same kind can open another block.
    if inside is not None and not (opened.label in _PYTHON and opened.fence.startswith(inside.fence)):
        return None
    return opened


def _unclosed(lines: Sequence[str], outside: list[str], opened: _Open, end: int, quotes: _Quotes) -> Block:
    """End a block without a closing line at the first fence that follows code on its line, else at `end`."""
    for index in range(opened.first, end):
        body = lines[index].rstrip()
        if body.endswith(opened.fence) and quotes.end_of_block(opened, index) == index:
            code = [*lines[opened.first : index], body.rstrip(opened.fence[0]).rstrip()]
            _blank(outside, opened.first - 1, index + 1)
            return _block(code, _Open(opened.fence, opened.label, 0), len(code), first_line=opened.first + 1)
    _blank(outside, opened.first - 1, end)
    return _block(lines, opened, end)


def _block(lines: Sequence[str], opened: _Open, end: int, *, first_line: int | None = None) -> Block:
    text = without_margin("\n".join(lines[opened.first : end]))
    return Block(opened.label, text, opened.first + 1 if first_line is None else first_line)


def _blank(outside: list[str], first: int, end: int) -> None:
    outside[first:end] = [""] * (end - first)
