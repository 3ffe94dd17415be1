"""Where the two sides of a test stand in the reply as written.

Trees keep the positions of what the tester wrote: a line of the reply, and a column of the `Source` that was parsed.
What makes a new node of an old one places it where the old one stands. So a side is written where its node stands, and
wherever a part of it stands that is not within the node around it: names were replaced there by what was assigned to
them. Nodes without a position were not written by anybody; only their parts count.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any, TypeVar

from codea1_env.facts.submissions import Span, Written
from codea1_env.rules.reading.answers import Answer
from codea1_env.rules.reading.statements import Source

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
