"""What scripted agents say: a sentence and a fenced block, as language models write."""

from __future__ import annotations

import re


def fenced(code: str, sentence: str = "") -> str:
    """Return a reply with one Python block.

    The fence is longer than any run of backticks in the code, so that a docstring cannot end the block.
    """
    longest = max((len(run) for run in re.findall(r"`{3,}", code)), default=2)
    fence = "`" * (longest + 1)
    block = f"{fence}python\n{code.strip()}\n{fence}"
    return f"{sentence}\n\n{block}" if sentence else block
