"""Markdown code fences as models write them.

Backticks or tildes, three or more, any indentation and info string, closed by at least as many of the same or by the
end of the reply. Beyond CommonMark: a fence labelled Python may open behind prose on its line, a fence may close
behind the last line of code, a whole block may stand on one line, and a labelled fence ends an unclosed block.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import dedent

__all__ = ["Block", "Fenced", "read_fences", "without_margin"]

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
        """True unless the label names something else, or there is no text."""
        return self.label not in _NOT_PYTHON and bool(self.text.strip())


@dataclass(frozen=True, slots=True)
class Fenced:
    """A reply taken apart."""

    blocks: tuple[Block, ...]
    outside: str
    """What stands around the blocks; lines of blocks and fences are blank, so that line numbers hold."""


@dataclass(slots=True)
class _Open:
    fence: str
    label: str
    first: int  # index of the first line of code


def read_fences(text: str) -> Fenced:
    """Take `text` (lines end in line feeds) apart into fenced blocks and the rest; accepts any text."""
    lines = text.split("\n")
    outside = list(lines)
    blocks: list[Block] = []
    opened: _Open | None = None
    for index, line in enumerate(lines):
        body = line.strip()
        if opened is not None and _closes(body, opened.fence):
            blocks.append(_block(lines, opened, index))
            _blank(outside, opened.first - 1, index + 1)
            opened = None
        elif (new := _opening(body, index, inside=opened)) is not None:
            if opened is not None:
                blocks.append(_unclosed(lines, outside, opened, index))
            opened = new
        elif opened is None and (whole := _ONE_LINE.match(body)) is not None:
            blocks.append(Block((whole["info"] or "").lower(), whole["code"].strip(), index + 1))
            outside[index] = ""
    if opened is not None:
        blocks.append(_unclosed(lines, outside, opened, len(lines)))
    return Fenced(tuple(blocks), "\n".join(outside))


def without_margin(text: str) -> str:
    """Return `text` without the white space that all of its lines begin with; as it is if the first line has none."""
    has_margin = text.lstrip("\n").startswith((" ", "\t"))
    return dedent(text) if has_margin else text  # dedent would also empty lines of white space, within strings too


def _closes(body: str, fence: str) -> bool:
    return body.startswith(fence) and not body.strip(fence[0])


def _opening(body: str, index: int, *, inside: _Open | None) -> _Open | None:
    if "```" not in body and "~~~" not in body:
        return None
    match = _OPENING.match(body) or (None if inside else _OPENING_BEHIND_PROSE.search(body))
    if match is None:
        return None
    label = _LABEL.match(match["info"])
    opened = _Open(match["fence"], label.group(1).lower() if label else "", index + 1)
    # Within a block only a labelled fence of the same kind can be a new beginning; all else is text.
    if inside is not None and not (opened.label in _PYTHON and opened.fence.startswith(inside.fence)):
        return None
    return opened


def _unclosed(lines: Sequence[str], outside: list[str], opened: _Open, end: int) -> Block:
    """End a block that has no closing line at the first fence that stands behind code, else at `end`."""
    for index in range(opened.first, end):
        body = lines[index].rstrip()
        if body.endswith(opened.fence):
            code = [*lines[opened.first : index], body.rstrip(opened.fence[0])]
            _blank(outside, opened.first - 1, index + 1)
            return _block(code, _Open(opened.fence, opened.label, 0), len(code), first_line=opened.first + 1)
    _blank(outside, opened.first - 1, end)
    return _block(lines, opened, end)


def _block(lines: Sequence[str], opened: _Open, end: int, *, first_line: int | None = None) -> Block:
    text = without_margin("\n".join(lines[opened.first : end]))
    return Block(opened.label, text, opened.first + 1 if first_line is None else first_line)


def _blank(outside: list[str], first: int, end: int) -> None:
    outside[first:end] = [""] * (end - first)
