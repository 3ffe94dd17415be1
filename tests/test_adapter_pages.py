"""The pages of docs/adapters: their Python runs as printed where the packages are installed that a page names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.code_blocks import blocks_of

PAGES = sorted((ROOT / "docs" / "adapters").glob("*.md"))
MODEL = "models/tiny"

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_its_python_runs_as_printed(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (packages,) = re.findall(r"^<!-- packages: (.+) -->$", page.read_text(), re.MULTILINE)
    for package in packages.split():
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    code = "\n".join(block.code for block in blocks_of(page) if block.language == "python" and not block.needs)
    if MODEL in code:
        (tmp_path / "models").mkdir()
        (tmp_path / MODEL).symlink_to(request.getfixturevalue("tiny_folder"))
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
