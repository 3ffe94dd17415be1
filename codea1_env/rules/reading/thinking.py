"""Remove the thinking sections of reasoning models: they are no part of the answer.

A section begins with `<think>` (or `<thinking>`) at the start of a line and ends with the closing tag. Chat templates
often write the opening tag into the prompt, so a reply may begin in the middle of a section. Then everything up to a
closing tag at the end of a line is thinking too. A section without a closing tag extends to the end of the reply; code
in it is not part of the answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TAG = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)
_OPENING = re.compile(r"(?:^[ \t]*|(?<=</think>)|(?<=</thinking>))<think(?:ing)?>", re.IGNORECASE | re.MULTILINE)
_CLOSING = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_CLOSING_A_LINE = re.compile(r"</think(?:ing)?>[ \t]*$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply without its thinking sections."""

    text: str
    """Sections are replaced by blank lines, so line numbers stay valid."""
    unfinished: bool
    """Whether the reply ends in the middle of a section."""


def without_thinking(text: str) -> Answer:
    """Return a reply (lines end in line feeds) without its thinking sections; accepts any text."""
    if _TAG.search(text) is None:  # most replies
        return Answer(text, False)
    position = _end_of_a_section_begun_in_the_prompt(text)
    kept = [_blank(text[:position])]
    while (opening := _OPENING.search(text, position)) is not None:
        kept.append(text[position : opening.start()])
        closing = _CLOSING.search(text, opening.end())
        if closing is None:
            return Answer("".join(kept), True)
        kept.append(_blank(text[opening.start() : closing.end()]))
        position = closing.end()
    kept.append(text[position:])
    return Answer("".join(kept), False)


def _end_of_a_section_begun_in_the_prompt(text: str) -> int:
    closing, opening = _CLOSING_A_LINE.search(text), _OPENING.search(text)
    if closing is None or (opening is not None and opening.start() < closing.start()):
        return 0
    return closing.end()


def _blank(section: str) -> str:
    return "\n" * section.count("\n")
