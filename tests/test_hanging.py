"""A test that hangs where no signal reaches it ends its process and shows where every thread is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import HANG_S
from tests.support import ROOT

TESTS = """
import signal, threading, pytest

def hang():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    threading.Event().wait()

def test_in_its_body():
    hang()

@pytest.fixture
def stuck():
    yield
    hang()

def test_in_a_fixture_after_it_failed(stuck):
    assert False

@pytest.fixture(scope="session")
def stuck_at_the_end():
    yield
    hang()

def test_at_the_end_of_the_session(stuck_at_the_end):
    pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["in_its_body", "in_a_fixture_after_it_failed", "at_the_end_of_the_session"])
@pytest.mark.parametrize("workers", [[], ["-n", "1"]])
def test_the_process_ends_with_the_stacks_of_all_threads(tmp_path: Path, name: str, workers: list[str]) -> None:
    module = tmp_path / "test_hangs.py"
    module.write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-c", str(ROOT / "pyproject.toml")]
    # No limit by a signal, and so the other one after two seconds.
    command += ["-p", "no:cacheprovider", "-o", f"timeout={2 - HANG_S}", *workers, f"{module}::test_{name}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120)
    assert done.returncode == 1
    assert "Timeout (0:00:02)!" in done.stderr
    assert f"{module}" in done.stderr
    if workers:
        assert f"test_{name} - worker 'gw0' crashed" in done.stdout
