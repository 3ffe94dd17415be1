"""The code blocks of documents, and the commands in them.

A comment on the line before a block says what it needs beside the package, as `<!-- needs: gpu -->`; see `NEEDS`.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from tests.support import ROOT

NEEDS = {
    "clone": "a clone of the repository: a wheel has no Makefile, constraints and examples",
    "gpu": "a GPU",
    "cluster": "a Ray cluster or several machines",
    "endpoint": "a server of a language model",
    "download": "models or problems from a hub",
    "extra": "an extra beside `rllib`, or a system package",
    "minutes": "more time than a test has",
    "yours": "files of the reader's own, or a name to fill in",
}
"""What a block may be marked with -> meaning."""

SHELLS = ("bash", "sh")
_MARK = re.compile(r"^<!-- needs: (\w+) -->$")
_FENCE = re.compile(r"^(`{3,}|:{3,})(\S*)\s*$")
_FILE = re.compile(r"# (\w+\.(?:py|toml))\b")
_ASSIGNMENT = re.compile(r"^\w+=")
_OPERATORS = set("|&;<>()")


@dataclass(frozen=True, slots=True)
class Block:
    document: Path
    line: int
    """Number of its first line of code, from 1."""
    language: str
    """As its fence says; `sh` for an indented block."""
    code: str
    needs: str = ""
    """A key of `NEEDS`; empty: nothing beside the package and the extra `rllib`."""

    @property
    def file_name(self) -> str:
        """Name of the file that the block is to be saved as, which its first line says; empty if there is none.

        JSON, which has no comments, is rows of `my.jsonl`.
        """
        if self.language == "json":
            return "my.jsonl"
        found = _FILE.match(self.code)
        return found[1] if found else ""

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"


def blocks_of(document: Path) -> list[Block]:
    """Return the code blocks of a Markdown document in order, fenced or indented by four spaces."""
    lines = document.read_text().splitlines()
    blocks, needs, number = [], "", 0
    while number < len(lines):
        line = lines[number]
        if mark := _MARK.match(line):
            needs = mark[1]
        elif fence := _FENCE.match(line):
            end = lines.index(fence[1], number + 1)
            blocks.append(Block(document, number + 2, fence[2], "\n".join(lines[number + 1 : end]) + "\n", needs))
            needs, number = "", end
        elif line.startswith("    ") and _begins_block(lines, number):
            end = number
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            code = "\n".join(each[4:] for each in lines[number:end]).rstrip() + "\n"
            blocks.append(Block(document, number + 1, "sh", code, needs))
            needs, number = "", end - 1
        elif line.strip():
            needs = ""
        number += 1
    return blocks


def _begins_block(lines: list[str], number: int) -> bool:
    """Return whether an indented line begins a block, instead of continuing the item of a list."""
    before = [line for line in lines[:number] if line.strip() and not _MARK.match(line)]
    follows_text = number > 0 and bool(lines[number - 1].strip()) and not _MARK.match(lines[number - 1])
    return not follows_text and not (before and re.match(r"^\s*(?:[-*]|\d+\.) |^ {2,}", before[-1]))


def commands_of(block: Block) -> list[list[str]]:
    """Return the words of each command of a shell block, without comments, assignments and redirections.

    Raises:
        ValueError: quotes that do not end.
    """
    found = []
    for line in block.code.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="".join(sorted(_OPERATORS)))
        lexer.whitespace_split = True
        for is_operator, words in groupby(lexer, key=lambda word: set(word) <= _OPERATORS):
            command = [] if is_operator else list(words)
            while command and (_ASSIGNMENT.match(command[0]) or command[0] in ("export", "$")):
                command.pop(0)
            if command:
                found.append(command)
    return found


def task_pages() -> list[Path]:
    """Return README and the pages of the site's first part, which guides through tasks, in order."""
    index = ROOT / "docs" / "index.md"
    first = re.findall(r"^```\{toctree\}\n(.*?)^```$", index.read_text(), re.DOTALL | re.MULTILINE)[0]
    names = [line for line in first.splitlines() if re.fullmatch(r"[\w/-]+", line)]
    return [ROOT / "README.md", index, *(ROOT / "docs" / f"{name}.md" for name in names)]
