"""Formats a reply as a sentence and a fenced code block."""

from __future__ import annotations

import re


def fenced_reply(code: str, sentence: str = "") -> str:
    """Return a reply with an optional sentence and one Python block.

    The fence is longer than any run of backticks in the code, so that a docstring cannot end the block.
    """
    longest = max((len(run) for run in re.findall(r"`{3,}", code)), default=2)
    fence = "`" * (longest + 1)
    block = f"{fence}python\n{code.strip()}\n{fence}"
    return f"{sentence}\n\n{block}" if sentence else block
