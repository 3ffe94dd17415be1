"""Counting processes: what a sandbox has started and what it leaves. Zygotes that start in another way."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from codea1_env.sandbox.local import worker
from tests.support.waiting import wait_until

Bootstrap = Callable[[str], None]
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


@pytest.fixture
def bootstrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bootstrap:
    """`bootstrap(code)`: let zygotes run `code` first; what it does not end goes on as always."""

    def start_with(code: str) -> None:
        script = tmp_path / "bootstrap.py"
        goes_on = f"import runpy\nrunpy.run_path({str(worker._BOOTSTRAP)!r}, run_name='__main__')\n"
        script.write_text(textwrap.dedent(code) + "\n" + goes_on)
        monkeypatch.setattr(worker, "_BOOTSTRAP", script)

    return start_with


@pytest.fixture
def refuse(bootstrap: Bootstrap) -> Callable[..., None]:
    """`refuse(*tiers)`: let zygotes say of these tiers that they cannot be had."""

    def refuse(*tiers: str) -> None:
        bootstrap(f"""
            import json, os, socket, sys
            options = json.loads(sys.argv[1])
            if options["tier"] in {tiers!r}:
                socket.socket(fileno=options["control"]).send(b"N" + b"not today")
                os._exit(1)
        """)

    return refuse
