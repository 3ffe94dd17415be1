"""Every example runs as it stands, and the README shows the one that the tests run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_from_anywhere(example, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_readmes_agent_is_the_tested_one():
    text = (ROOT / "examples" / "custom_agent.py").read_text()
    code = text.split('"""\n\n', 1)[1].strip()
    assert code in (ROOT / "README.md").read_text()
