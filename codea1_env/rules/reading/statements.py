"""Read Python statements from text that is only partly Python.

Text that parses gives its statements. Other text is cut at logical lines into candidates for top-level statements. Each
is parsed by itself, and text that does not parse is kept as `Broken`, so one syntax error costs one statement. The body
of a broken function or class is read in the same way.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from codea1_env.python_text import TextBudget, UnreadableError, parse
from codea1_env.rules.reading.logical_lines import LogicalLine, logical_lines

MAX_NESTING = 8
"""Most functions and classes around an assert that is still read."""
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
"""Statements that define a function or a class."""
_CONTINUES = frozenset({"elif", "else", "except", "finally"})
_COMPOUND = frozenset({"async", "for", "if", "match", "try", "while", "with"})
_ASSERT = re.compile(r"\s*assert\b")
_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Source:
    """The lines that statements were parsed from, and their position in the reply.

    The nodes know the lines of the reply. Their columns count bytes of `lines`, each of which is a part of the reply's.
    """

    lines: Sequence[str]
    first_line: int
    """Line of the reply that `lines[0]` is, from 1."""

    def text(self, node: ast.stmt) -> str:
        """Return the source of `node`; whole lines if it spans several or if they are not ASCII."""
        end = node.end_lineno or node.lineno
        text = "\n".join(self.lines[node.lineno - self.first_line : end - self.first_line + 1])
        if end == node.lineno and text.isascii():  # column offsets count bytes
            return text[node.col_offset : node.end_col_offset]
        return text.strip()


@dataclass(frozen=True, slots=True)
class Statement:
    """A parsed statement."""

    node: ast.stmt
    source: Source

    @property
    def line(self) -> int:
        """Line of the reply, from 1."""
        return self.node.lineno

    @property
    def text(self) -> str:
        """Its source."""
        return self.source.text(self.node)


@dataclass(frozen=True, slots=True)
class Broken:
    """Text that is not Python, or costs more to read than is left."""

    text: str
    line: int
    fault: UnreadableError

    @property
    def is_assert(self) -> bool:
        """True iff it begins with `assert`."""
        return _ASSERT.match(self.text) is not None

    @property
    def names(self) -> set[str]:
        """Every name whose value it may have changed; the line of an assert changes none."""
        return set(_NAME.findall(self.text.partition("\n")[2] if self.is_assert else self.text))


@dataclass(frozen=True, slots=True)
class Partial:
    """A function or class whose body did not parse as a whole; `head.node` has an empty body."""

    head: Statement
    body: tuple[Piece, ...]


Piece = Statement | Broken | Partial


@dataclass(frozen=True, slots=True)
class Segment:
    """Physical lines [first, end) of one top-level statement, or of text that is none."""

    first: int
    end: int
    logical: tuple[LogicalLine, ...]


def read_statements(text: str, first_line: int, budget: TextBudget) -> list[Piece]:
    """Return the statements and broken pieces of `text`, in order; accepts any text.

    Args:
        text: lines end in line feeds.
        first_line: line of the reply that `text` begins on, from 1.
        budget: what the reply may still spend; text that costs more is broken.
    """
    lines = text.split("\n")
    recovery = _Recovery(budget)
    try:
        return recovery.parsed(text, Source(lines, first_line))
    except UnreadableError:
        return _merged(recovery.pieces(lines, first_line, 0))


def sources_of(pieces: Iterable[Piece]) -> list[Source]:
    """Return the sources of all statements in `pieces`, in the order of their lines."""
    found: dict[int, Source] = {}
    pending = list(pieces)
    while pending:
        piece = pending.pop()
        if isinstance(piece, Partial):
            pending += (piece.head, *piece.body)
        elif isinstance(piece, Statement):
            found[piece.source.first_line] = piece.source
    return [source for _, source in sorted(found.items())]


def segments(text: str) -> list[Segment]:
    """Cut `text` before each line that is indented no deeper than the first line of the statement before it."""
    groups: list[list[LogicalLine]] = []
    for line in logical_lines(text):
        if groups and _continues(line, groups[-1]):
            groups[-1].append(line)
        else:
            groups.append([line])
    return [Segment(group[0].first, group[-1].end, tuple(group)) for group in groups]


def _continues(line: LogicalLine, group: Sequence[LogicalLine]) -> bool:
    start = group[0]
    if line.indent > start.indent:
        return True
    decorated = group[-1].word.startswith("@") and group[-1].indent == line.indent
    return line.indent == start.indent and (decorated or line.word in _CONTINUES)


@dataclass(frozen=True, slots=True)
class _Recovery:
    """Reads what can be read of a text that does not parse as a whole."""

    budget: TextBudget

    def parsed(self, text: str, source: Source) -> list[Piece]:
        return [Statement(node, source) for node in parse(text, self.budget, source.first_line).body]

    def pieces(self, lines: Sequence[str], first_line: int, nesting: int) -> Iterator[Piece]:
        for segment in segments("\n".join(lines)):
            part = _dedented(lines[segment.first : segment.end])
            line = first_line + segment.first
            try:
                yield from self.parsed("\n".join(part), Source(part, line))
            except UnreadableError as error:
                yield from self._parts(segment, part, line, nesting, error)

    def _parts(
        self, segment: Segment, part: list[str], line: int, nesting: int, fault: UnreadableError
    ) -> Iterator[Piece]:
        """Yield the readable parts of a segment that does not parse as a whole."""
        head = segment.logical[0]
        n_head = head.end - segment.first
        if len(segment.logical) == 1:
            yield from self._stray_lines(part, line, fault)
            return
        if nesting == MAX_NESTING or head.word in _COMPOUND or head.word.startswith("@"):
            yield Broken("\n".join(part), line, fault)
            return
        rest = self.pieces(part[n_head:], line + n_head, nesting + 1)
        definition = self._definition(part[:n_head], line)
        if definition is not None:
            yield Partial(definition, tuple(_merged(rest)))
            return
        yield from self.pieces(part[:n_head], line, MAX_NESTING)
        yield from rest

    def _definition(self, head: list[str], line: int) -> Statement | None:
        try:
            body = parse("\n".join(head) + " pass", self.budget, line).body
        except UnreadableError:
            return None
        is_one = len(body) == 1 and isinstance(body[0], DEFINITIONS)
        return Statement(body[0], Source(head, line)) if is_one else None

    def _stray_lines(self, part: list[str], line: int, fault: UnreadableError) -> Iterator[Piece]:
        """Keep the assignments and imports that follow an unclosed bracket; the rest is broken."""
        broken: list[str] = []
        begun = line
        for offset, text in enumerate(part):
            pieces = self._simple(text, line + offset) if offset and text[:1].strip() else []
            if not pieces:
                begun = begun if broken else line + offset
                broken.append(text)
                continue
            if broken:
                yield Broken("\n".join(broken), begun, fault)
                broken = []
            yield from pieces
        if broken:
            yield Broken("\n".join(broken), begun, fault)

    def _simple(self, text: str, line: int) -> list[Piece]:
        try:
            pieces = self.parsed(text, Source([text], line))
        except UnreadableError:
            return []
        simple = (ast.Assign, ast.Import, ast.ImportFrom)
        return pieces if all(isinstance(p, Statement) and isinstance(p.node, simple) for p in pieces) else []


def _merged(pieces: Iterable[Piece]) -> list[Piece]:
    """Join adjacent broken pieces into one; each broken assert stays by itself."""
    merged: list[Piece] = []
    run: list[Broken] = []
    for piece in pieces:
        if isinstance(piece, Broken) and not piece.is_assert:
            run.append(piece)
            continue
        merged.extend(_joined(run))
        run = []
        merged.append(piece)
    merged.extend(_joined(run))
    return merged


def _joined(run: list[Broken]) -> list[Broken]:
    return [Broken("\n".join(b.text for b in run), run[0].line, run[0].fault)] if run else []


def _dedented(lines: Sequence[str]) -> list[str]:
    """Remove the first line's indentation from every line; a line with less loses all of its own."""
    body = lines[0].lstrip()
    prefix = lines[0][: len(lines[0]) - len(body)]
    if not prefix:
        return list(lines)
    return [line.removeprefix(prefix) if line.startswith(prefix) else line.lstrip(" \t\f") for line in lines]
