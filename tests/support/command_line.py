"""A short run of the command line, and what it leaves."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from codea1_env.book.store import MistakeBook, StoredEntry

FAST = ["play", "-p", "starter", "--coder", "mutant,strength=0.9", "--tester", "boundary", "--limit", "3"]
"""Three problems, so that most episodes replay cases of earlier ones."""

Started = Callable[..., subprocess.Popen[str]]
"""The fixture `started`."""
Finished = Callable[..., subprocess.CompletedProcess[str]]
"""The fixture `finished`."""


def entries_of(run: Path) -> list[StoredEntry]:
    """Return the entries of a run's Mistake Book."""
    with MistakeBook(run / "book.sqlite", create=False) as book:
        return list(book.entries())
