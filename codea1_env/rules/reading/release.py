"""The release's reading of replies, including its defects.

Source: the release, reward.py:101-174, 265-309, 491-531.

Its defects stay on purpose: only ```` ```python ```` fences count, every comparison counts as `==` and only its first
comparator is kept, any function may be called, and every non-ASCII character counts as non-printable. Three things
differ, so that no reply can stop a training step. An empty reply gives an empty suite, where the release divides by
zero (reward.py:305). An assert that is nested too deeply for the parser is dropped. Asserts are also dropped (TOO_LONG)
once their inlined names have added as many nodes as a reply may have characters.

A piece that the release drops without counting it is reported as NOT_AN_ASSERT or NO_COMPARISON. A piece that it counts
as invalid is reported as SYNTAX_ERROR.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from codea1_env.facts.submissions import RejectionReason, Rejections, TestCase
from codea1_env.python_text import PYTHON_ERRORS, TextBudget, UnreadableError, parse
from codea1_env.rules.reading.direct_calls import encoded_prediction, is_direct, names_method

_LABELLED = re.compile(r"```python(.*?)```", re.DOTALL)
_QUOTE_OR_COMMENT = re.compile(r"[\"'#]")
_STRING_REST = {
    '"': re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+"'),
    "'": re.compile(r"[^'\\]*+(?:\\.[^'\\]*+)*+'"),
}


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    number: int  # in the reply, from 1


def find_program(reply: str) -> str:
    """Return the text between the first ```` ```python ```` and the next fence, else the whole reply.

    Line feeds at either end are stripped. A block in any other fence style keeps its fences, as in the release.
    """
    _, label, rest = reply.partition("```python")
    code, fence, _ = rest.partition("```")
    return (code if label and fence else reply).strip("\n")


def read_tests(reply: str, entry_point: str, budget: TextBudget) -> tuple[list[TestCase], Rejections]:
    """Return the cases of a reply, in order, and what was dropped.

    Args:
        reply: any text.
        entry_point: only decides which cases are direct; a case may call any function.
        budget: what the reply may still spend; it pays for parsing and for the nodes that inlined names add.
    """
    reader = _Reader(entry_point, budget)
    blocks = list(_LABELLED.finditer(reply))
    if not blocks:
        for line in _numbered(reply, 1):
            if line.text.strip().startswith("assert"):
                reader.keep(line.text.strip(), line.number)
        return reader.cases, reader.rejections
    lines: list[_Line] = []
    number, position = 1, 0
    for block in blocks:
        number += reply.count("\n", position, block.start(1))
        position = block.start(1)
        lines.extend(_numbered(block.group(1), number))
    reader.read_lines(lines)
    return reader.cases, reader.rejections


def _numbered(text: str, first: int) -> Iterator[_Line]:
    return (_Line(line, first + offset) for offset, line in enumerate(text.split("\n")))


@dataclass(slots=True)
class _Reader:
    entry_point: str
    budget: TextBudget
    names: dict[str, ast.expr] = field(default_factory=dict)
    cases: list[TestCase] = field(default_factory=list)
    rejections: Rejections = field(default_factory=Rejections)

    def reject(self, reason: RejectionReason, source: str, line: int, detail: str) -> None:
        self.rejections.add(reason, source, line, detail)

    def read_lines(self, lines: list[_Line]) -> None:
        """Cut the lines where the brackets balance, and read each piece by itself."""
        piece: list[_Line] = []
        balance = 0
        for line in lines:
            stripped = line.text.strip()
            if not stripped:
                continue
            if balance < 0 or (balance > 0 and stripped.startswith("assert ")):
                self._drop_unfinished(piece)
                piece, balance = [], 0
            piece.append(line)
            balance += _balance(stripped)
            if balance == 0 and not stripped.endswith("\\"):
                self._read_piece(piece)
                piece = []
        self._drop_unfinished(piece)

    def keep(self, text: str, line: int) -> None:
        """Parse `text` again and add its case: an answer that needed brackets may lose its end, as in the release."""
        try:
            call, answer = _sides(parse(text, self.budget).body)
            direct, text = is_direct(call, self.entry_point), ast.unparse(answer)
            predicted = encoded_prediction(answer, text)
            case = TestCase(ast.unparse(call), text, direct=direct, line=line, predicted=predicted)
        except UnreadableError as error:
            self.reject(error.reason, text, line, error.detail)
        except PYTHON_ERRORS:
            self.reject(RejectionReason.SYNTAX_ERROR, text, line, "cannot be written back")
        else:
            self.cases.append(case)

    def _drop_unfinished(self, piece: list[_Line]) -> None:
        if piece:
            self.reject(RejectionReason.NOT_AN_ASSERT, _joined(piece), piece[0].number, "brackets do not balance")

    def _read_piece(self, piece: list[_Line]) -> None:
        source, line = _joined(piece), piece[0].number
        try:
            body = parse(source, self.budget).body
        except UnreadableError as error:
            self.reject(RejectionReason.NOT_AN_ASSERT, source, line, error.detail)
            return
        for node in body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.names[name] = value
                case ast.Assert(test=ast.Compare(left=ast.Call() as call, comparators=[answer, *_])):
                    self._keep_equality(call, answer, source, line)
                case ast.Assert():
                    self.reject(RejectionReason.NO_COMPARISON, source, line, "not `assert call <operator> value`")
                case _:
                    self.reject(RejectionReason.NOT_AN_ASSERT, source, line, "neither an assert nor `name = value`")

    def _keep_equality(self, call: ast.Call, answer: ast.expr, source: str, line: int) -> None:
        """Keep the assert with `==` as its operator, and replace the names that are whole arguments of its call."""
        try:
            arguments = [self._resolved(argument) for argument in call.args]
            keywords = [ast.keyword(keyword.arg, self._resolved(keyword.value)) for keyword in call.keywords]
            made = ast.Call(self._function(call.func), arguments, keywords)
            text = f"assert {ast.unparse(made)} == {ast.unparse(answer)}"
        except UnreadableError as error:
            self.reject(error.reason, source, line, error.detail)
        except PYTHON_ERRORS:
            self.reject(RejectionReason.NO_COMPARISON, source, line, "cannot be written back")
        else:
            self.keep(text, line)

    def _function(self, node: ast.expr) -> ast.expr:
        """Return a called function; if it is the method under test of a name's value, with that value."""
        match node:
            case ast.Attribute(value=ast.Name(id=name)) if name in self.names:
                method = ast.Attribute(self.names[name], node.attr, node.ctx)
                return method if names_method(method, self.entry_point) else node
        return node

    def _resolved(self, node: ast.expr) -> ast.expr:
        if not isinstance(node, ast.Name) or node.id not in self.names:
            return node
        value = self.names[node.id]
        self.budget.take_nodes(sum(1 for _ in ast.walk(value)))
        return value


def _joined(piece: list[_Line]) -> str:
    return "\n".join(line.text for line in piece).strip()


def _balance(line: str) -> int:
    """Return the number of brackets that `line` opens minus those that it closes, outside strings and its comment."""
    bare: list[str] = []
    position = 0
    unclosed: set[str] = set()  # quotes that nothing closes on this line: later ones of the kind are unclosed too
    while match := _QUOTE_OR_COMMENT.search(line, position):
        bare.append(line[position : match.start()])
        token, position = match.group(), match.end()
        if token == "#":
            position = len(line)
        elif token not in unclosed and (rest := _STRING_REST[token].match(line, position)):
            position = rest.end()
        else:
            unclosed.add(token)
    text = "".join((*bare, line[position:]))
    return sum(map(text.count, "([{")) - sum(map(text.count, ")]}"))


def _sides(body: list[ast.stmt]) -> tuple[ast.Call, ast.expr]:
    match body:
        case [ast.Assert(test=ast.Compare(left=ast.Call() as call, comparators=[answer, *_])), *_]:
            return call, answer
    raise UnreadableError(RejectionReason.SYNTAX_ERROR, "not `assert call <operator> value`")
