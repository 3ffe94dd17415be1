"""Read Python statements from text that is only partly Python.

Text that parses gives its statements. Other text is cut at logical lines into candidates for top-level statements. Each
is parsed by itself, and text that does not parse is kept as `Broken`, so one syntax error costs one statement. The body
of a broken function or class is read in the same way.

**Places.** Trees keep the positions of what the tester wrote: a line of the reply, and a column of the `Source` that
was parsed. What makes a new node of an old one places it where the old one stands. So a side of a test is written where
its node stands, and wherever a part of it stands that is not within the node around it: names were replaced there by
what was assigned to them. Nodes without a position were not written by anybody; only their parts count.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import is_
from types import EllipsisType
from typing import Any, TypeVar

from codea1_env.facts.submissions import Span, Written
from codea1_env.python_text import TextBudget, UnreadableError, parse
from codea1_env.rules.reading.answers import Answer
from codea1_env.rules.reading.logical_lines import LogicalLine, logical_lines

MAX_NESTING = 8
"""Most functions and classes around an assert that is still read."""
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""Statements that define a function or a class."""
_CONTINUES = frozenset({"elif", "else", "except", "finally"})
_COMPOUND = frozenset({"async", "for", "if", "match", "try", "while", "with"})
_ASSERT = re.compile(r"\s*assert\b")
_MAY_RUN = re.compile(r"[\w)\]\"'](?<!\bparam)\s*\(|:=")
_NAME = re.compile(r"[^\W\d]\w*")


def children_of(node: ast.AST) -> list[ast.AST]:
    """Return the nodes of which a node consists, in order, as `ast.iter_child_nodes` does in twice the time."""
    children: list[ast.AST] = []
    for name in node._fields:
        held = getattr(node, name, None)
        if isinstance(held, list):
            children += [part for part in held if isinstance(part, ast.AST)]
        elif isinstance(held, ast.AST):
            children.append(held)
    return children


def nodes_in(*trees: ast.AST) -> list[ast.AST]:
    """Return trees and all nodes in them, those of a node after it."""
    nodes = [*trees]
    for node in nodes:
        nodes += children_of(node)
    return nodes


def arguments_in(node: ast.AST) -> list[ast.expr]:
    """Return the values that a call passes, by position and by keyword; none of other nodes."""
    return [*node.args, *(keyword.value for keyword in node.keywords)] if isinstance(node, ast.Call) else []


def is_no_op(node: ast.stmt) -> bool:
    """Whether `node` is `pass`, `...` or a docstring."""
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant(value=str() | EllipsisType())):
            return True
    return False


def root_of(node: ast.AST) -> str:
    """Return the name that attributes and items are taken of; empty if it is no name."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


@dataclass(frozen=True, slots=True)
class Source:
    """The lines that statements were parsed from, and their position in the reply.

    The nodes know the lines of the reply. Their columns count bytes of `lines`, each of which is a part of the reply's.
    """

    lines: Sequence[str]
    first_line: int
    """Line of the reply that `lines[0]` is, from 1."""

    def text(self, node: ast.stmt | ast.expr) -> str:
        """Return the source of `node`; whole lines if it spans several or if they are not ASCII."""
        end = node.end_lineno or node.lineno
        text = "\n".join(self.lines[node.lineno - self.first_line : end - self.first_line + 1])
        if end == node.lineno and text.isascii():  # column offsets count bytes
            return text[node.col_offset : node.end_col_offset]
        return text.strip()

    def may_run(self, node: ast.expr) -> bool:
        """Whether the source of `node` holds a call or a binding; its literals may hold what looks like one, too."""
        return _MAY_RUN.search(self.text(node)) is not None

    def statements(self, nodes: Iterable[ast.stmt]) -> tuple[Statement, ...]:
        """Return nodes of this source as statements."""
        return tuple(Statement(node, self) for node in nodes)


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
    """A function or class; if its body did not parse as a whole, that of `head.node` is empty."""

    head: Statement
    body: tuple[Piece, ...]


Piece = Statement | Broken | Partial


def definition_of(piece: Piece) -> Partial:
    """Return the function or class that a piece is."""
    if isinstance(piece, Partial):
        return piece
    assert isinstance(piece, Statement)
    assert isinstance(piece.node, DEFINITIONS)
    return Partial(piece, piece.source.statements(piece.node.body))


def parsed(pieces: Iterable[Piece]) -> Iterator[ast.stmt]:
    """Yield the statements that were parsed, and the heads of definitions that were not as a whole."""
    for piece in pieces:
        if isinstance(piece, Partial):
            yield piece.head.node
            yield from parsed(piece.body)
        elif isinstance(piece, Statement):
            yield piece.node


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
        return [*source.statements(parse(text, self.budget, source.first_line).body)]

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
    for piece in [*pieces, None]:
        if isinstance(piece, Broken) and not piece.is_assert:
            run.append(piece)
            continue
        if run:
            merged.append(Broken("\n".join(broken.text for broken in run), run[0].line, run[0].fault))
            run = []
        if piece is not None:
            merged.append(piece)
    return merged


def _dedented(lines: Sequence[str]) -> list[str]:
    """Remove the first line's indentation from every line; a line with less loses all of its own."""
    body = lines[0].lstrip()
    prefix = lines[0][: len(lines[0]) - len(body)]
    if not prefix:
        return list(lines)
    return [line.removeprefix(prefix) if line.startswith(prefix) else line.lstrip(" \t\f") for line in lines]


_NodeT = TypeVar("_NodeT", bound=ast.AST)

_NOBODY = 2
_PLACE = "place"  # attribute of a new node: the one where it stands


def placed(node: _NodeT, place: ast.AST) -> _NodeT:
    """Return a new node, placed where another one stands; a node that was parsed, or placed before, as it is."""
    known = vars(node)
    if "lineno" not in known:
        known.setdefault(_PLACE, place)
    return node


def with_operands_before(claim: ast.expr, sides: Iterable[ast.expr]) -> list[list[ast.expr]]:
    """Return each side of a comparison together with what stood for it before names were inlined."""
    before: ast.AST | None = claim
    said = claim
    while isinstance(before, ast.Compare):
        said, before = before, vars(before).get(_PLACE)
    if not (isinstance(claim, ast.Compare) and isinstance(said, ast.Compare)):
        return [[side] for side in sides]
    return [[said.left if side is claim.left else said.comparators[0], side] for side in sides]


def rebuilt(node: _NodeT, part: Callable[[ast.AST], ast.AST]) -> _NodeT:
    """Return a node made of other parts; the node itself if all of them are the same, since others may share it."""
    changed: dict[str, object] = {}
    for name, old in ast.iter_fields(node):
        new: Any = old
        if isinstance(old, list):
            parts = [part(item) if isinstance(item, ast.AST) else item for item in old]
            new = old if all(map(is_, parts, old)) else parts
        elif isinstance(old, ast.AST) and old._fields:  # operators have no parts
            new = part(old)
        if new is not old:
            changed[name] = new
    return type(node)(**{**dict(ast.iter_fields(node)), **changed}) if changed else node


class Places:
    """Finds the places of nodes in a reply."""

    def __init__(self, answer: Answer, sources: Sequence[Source], column: Callable[[str, str], int]) -> None:
        """Make places.

        Args:
            answer: the answer in the reply.
            sources: what was parsed of it, in the order of their lines, which are distinct.
            column: returns where a line of a source begins in the line of the answer.
        """
        self._answer = answer
        self._sources = sources
        self._firsts = [source.first_line for source in sources]
        self._column = column
        self._lines = answer.text.split("\n")
        self._begins = list(accumulate((len(line) + 1 for line in self._lines), initial=0))
        self._offsets: dict[int, int | Sequence[int]] = {}
        self._spans: dict[ast.AST, Span] = {}

    def written(self, statement: Any, entered: Any, answered: Any) -> Written:
        """Return where a case without inlined names stands: its statement, its input and its answer."""
        line = statement.lineno
        begin = self._line(line)
        if isinstance(begin, int) and statement.end_lineno == line and "lineno" in vars(answered):
            return Written(
                Span(begin + statement.col_offset, begin + statement.end_col_offset),
                (Span(begin + entered.col_offset, begin + entered.end_col_offset),),
                (Span(begin + answered.col_offset, begin + answered.end_col_offset),),
            )
        return self.gathered(statement, (entered,), (answered,))

    def lines(self, first: int, n: int) -> Written:
        """Return where a piece stands that is not read: lines of the answer, which are all input."""
        end = min(first + n, len(self._begins)) - 1
        span = Span(self._answer.offset(self._begins[first - 1]), self._answer.offset(self._begins[end] - 1))
        return Written(span, (span,), ())

    def gathered(self, statement: ast.stmt, entered: Sequence[ast.expr], answered: Sequence[ast.expr]) -> Written:
        """Return where a case stands whose parts may have been written elsewhere.

        Args:
            statement: that states it.
            entered: the nodes of its input before and after its names were inlined; they may share subtrees.
            answered: those of its answer.
        """
        found = [(span, 0) for span in self._apart(entered)] + [(span, 1) for span in self._apart(answered)]
        found.sort()
        sides: tuple[list[Span], ...] = ([], [], [])  # the last one for what belongs to nobody
        current, owner = Span(-1, -1), _NOBODY
        for span, side in found:
            if span.start < current.end:
                owner = owner if owner == side else _NOBODY
                current = current if span.end <= current.end else Span(current.start, span.end)
            else:
                sides[owner].append(current)
                current, owner = span, side
        sides[owner].append(current)
        return Written(self._spans.get(statement) or self._span(statement), tuple(sides[0]), tuple(sides[1]))

    def _apart(self, nodes: Iterable[ast.AST]) -> set[Span]:
        """Return the spans of the nodes that do not stand within the node around them.

        A node that was parsed holds nothing from elsewhere, and of the others each is visited once.
        """
        found: set[Span] = set()
        pending: list[tuple[ast.AST, Span | None]] = [(node, None) for node in nodes]
        seen: set[int] = set()
        while pending:
            node, around = pending.pop()
            parsed: ast.AST | None = node
            while parsed is not None and "lineno" not in vars(parsed):
                parsed = vars(parsed).get(_PLACE)
            if parsed is not None:
                span = self._spans.get(parsed) or self._span(parsed)
                if around is None or span.start < around.start or span.end > around.end:
                    found.add(span)
                around = span
            if parsed is not node and id(node) not in seen:
                seen.add(id(node))
                pending += [(child, around) for child in ast.iter_child_nodes(node)]
        return found

    def _span(self, node: ast.AST) -> Span:
        known = vars(node)
        line, end_line = known["lineno"], known["end_lineno"]
        start = self._line(line)
        end = start if end_line == line else self._line(end_line)
        column, end_column = known["col_offset"], known["end_col_offset"]
        found = self._spans[node] = Span(
            start + column if isinstance(start, int) else start[column],
            end + end_column if isinstance(end, int) else end[end_column - 1] + 1,
        )
        return found

    def _line(self, line: int) -> int | Sequence[int]:
        """Return the offsets into the reply of the bytes of a line; of the first one, if the others follow evenly."""
        known = self._offsets.get(line)
        if known is not None:
            return known
        source = self._sources[bisect_right(self._firsts, line) - 1]
        text, whole = source.lines[line - source.first_line], self._lines[line - 1]
        begin = self._begins[line - 1] + (0 if text == whole else self._column(whole, text))
        offset = self._answer.offset
        first = offset(begin)
        is_even = text.isascii() and offset(begin + len(text)) - first == len(text)
        found = first if is_even else [offset(begin + n) for n, each in enumerate(text) for _ in each.encode()]
        self._offsets[line] = found
        return found
