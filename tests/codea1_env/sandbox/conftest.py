"""Zygotes that start in another way."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from codea1_env.sandbox.local import worker

Bootstrap = Callable[[str], None]


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
            options = json.loads(given := sys.stdin.readline())
            if options["tier"] in {tiers!r}:
                socket.socket(fileno=options["control"]).send(b"N" + b"not today")
                os._exit(1)
            reading, writing = os.pipe()
            os.write(writing, given.encode())
            os.dup2(reading, 0)
        """)

    return refuse
