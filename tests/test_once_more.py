"""What fails in CI is run once more, alone, and nothing else is excused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

FLAKY = """
from pathlib import Path

def test_flaky():
    marker = Path(__file__).with_name("ran")
    if not marker.exists():
        marker.touch()
        raise ValueError("only the first time")
"""
BROKEN = "def test_broken():\n    assert 1 == 2\n"


def outcome(folder: Path, *arguments: str, **modules: str) -> tuple[int, str]:
    """Run tests as CI does, and then those that failed; return the exit status and the output of the latter."""
    (folder / "pytest.ini").touch()
    for name, text in modules.items():
        (folder / f"test_{name}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-o", "cache_dir=cache", *arguments]
    first = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    (folder / "log").write_text(first.stdout)
    again = [ROOT / ".ci" / "once-more", sys.executable, "log", "cache"]
    done = subprocess.run(again, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "1", "--dist", "loadgroup")])
def test_a_test_that_passes_alone_is_named_with_both_outcomes(tmp_path: Path, workers: tuple[str, ...]) -> None:
    grouped = 'import pytest\npytestmark = pytest.mark.xdist_group("a group")\n' + FLAKY
    status, said = outcome(tmp_path, *workers, flaky=grouped)
    assert status == 0
    assert "FLAKY test_flaky.py::test_flaky: first: ValueError: only the first time; alone: passed" in said


@pytest.mark.slow
def test_one_that_fails_again_fails_the_run(tmp_path: Path) -> None:
    status, said = outcome(tmp_path, flaky=FLAKY, broken=BROKEN)
    assert status == 1
    assert "FLAKY test_flaky.py::test_flaky" in said
    assert "FAILED test_broken.py::test_broken, alone as well" in said


MANY = "import pytest\n@pytest.mark.parametrize('n', range(6))\ndef test_it(n):\n    assert False\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "why"),
    [("import missing_module", "the run did not come to its end"), (MANY, "6 tests failed, more than 5")],
)
def test_a_broken_module_and_many_failures_are_not_run_again(tmp_path: Path, module: str, why: str) -> None:
    assert outcome(tmp_path, broken=module) == (1, f"once-more: {why}; nothing is run again\n")


def test_the_list_of_flaky_tests_names_tests_that_exist() -> None:
    names = [line for line in (ROOT / "tests" / "flaky.txt").read_text().splitlines() if not line.startswith("#")]
    for name in names:
        path, _, rest = name.partition("::")
        assert rest.split("[")[0].split("::")[-1] in (ROOT / path).read_text()
