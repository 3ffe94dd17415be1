"""Find where statements may begin and end in text that need not be Python.

One linear scan recognises strings, comments and brackets. It tolerates errors: an unclosed quote ends with its line,
and an unclosed bracket ends before a keyword that can only begin a statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(r"#[^\n]*|'''|\"\"\"|['\"]|[(\[{]|[)\]}]|\\\n|\n")
# Possessive quantifiers: a string that never closes costs one pass and no backtracking.
_STRING_REST = {
    "'": re.compile(r"[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'", re.DOTALL),
    '"': re.compile(r'[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"', re.DOTALL),
    "'''": re.compile(r"[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+'''", re.DOTALL),
    '"""': re.compile(r'[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+"""', re.DOTALL),
}
_ONLY_BEGINS_STATEMENTS = re.compile(
    r"[ \t]*(?:assert|break|class|continue|def|del|global|import|nonlocal|pass|raise|return|try|while|with)\b"
)
_WORD = re.compile(r"[@\w]*")
_UNCLOSED = "unclosed"
_INERT = "inert"  # a string or a comment
_TRIPLE = ("'''", '"""')


@dataclass(frozen=True, slots=True)
class LogicalLine:
    """A logical line as Python's reference defines it: it may span several physical lines."""

    first: int
    """Index of its first physical line, from 0."""
    end: int
    """Index after its last one."""
    indent: int
    """Columns of white space before it."""
    word: str
    """Its first word; empty if it begins with something else. A decorator begins with `@`."""


def has_open_quotes(text: str) -> bool:
    """Whether `text` ends within a string in triple quotes."""
    return any(token == _UNCLOSED and text.startswith(_TRIPLE, position) for token, position in _tokens(text))


def logical_lines(text: str) -> list[LogicalLine]:
    """Return the logical lines of `text` in order, without blank lines and lines that hold only a comment."""
    found: list[LogicalLine] = []
    physical = text.split("\n")
    first = passed = start = depth = 0
    for token, position in _tokens(text + "\n"):
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth = max(0, depth - 1)
        elif token == _UNCLOSED:
            depth = 0
        elif token == "\n" and (depth == 0 or _ONLY_BEGINS_STATEMENTS.match(text, position + 1)):
            passed += text.count("\n", start, position) + 1
            _append(found, physical, first, passed)
            first, start, depth = passed, position + 1, 0
    if first < len(physical):
        _append(found, physical, first, len(physical))
    return found


def _append(found: list[LogicalLine], physical: list[str], first: int, end: int) -> None:
    line = physical[first]
    body = line.lstrip()
    if body and not body.startswith("#"):
        indent = len(line[: len(line) - len(body)].expandtabs())
        word = _WORD.match(body)
        found.append(LogicalLine(first, end, indent, word.group() if word else ""))


def literals(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each string that is closed and of each comment."""
    return ((start, end) for token, start, end in _scan(text) if token == _INERT)


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """Yield brackets, line ends and "unclosed" (a quote that nothing closes) with their positions."""
    return ((token, start) for token, start, _ in _scan(text) if token != _INERT)


def _scan(text: str) -> Iterator[tuple[str, int, int]]:
    position = 0
    unclosed: set[str] = set()  # triple quotes that nothing closes: each further search would cost one pass
    while match := _TOKEN.search(text, position):
        token, position = match.group(), match.end()
        if token in _STRING_REST:
            rest = None if token in unclosed else _STRING_REST[token].match(text, position)
            if rest is not None:
                position = rest.end()
                yield _INERT, match.start(), position
                continue
            if len(token) == 3:
                unclosed.add(token)
            line_end = text.find("\n", position)
            position = len(text) if line_end < 0 else line_end
            yield _UNCLOSED, match.start(), position
        elif token[0] == "#":
            yield _INERT, match.start(), position
        elif token[0] != "\\":
            yield token, match.start(), position
