"""Counting processes: what a sandbox has started and what it leaves."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.waiting import wait_until

Descendants = Callable[..., set[int]]


@pytest.fixture(scope="session")
def descendants() -> Descendants:
    """`descendants(pid)`: a process (by default this one) and all that it has started, directly or not."""

    def find(root: int | None = None) -> set[int]:
        parents: dict[int, int] = {}
        for entry in Path("/proc").glob("[0-9]*/stat"):
            try:
                parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
            except OSError:  # it has just ended
                continue
        found = {root or os.getpid()}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return found

    return find


@pytest.fixture(scope="session")
def left_over(descendants: Descendants) -> Descendants:
    """`left_over(before)`: processes of ours that were not there before, after time to end."""

    def find(before: set[int]) -> set[int]:
        wait_until(lambda: not descendants() - before, 20.0)  # a crowded machine may take long to end a process
        return descendants() - before

    return find
