"""docs/adapters and docs/serve.md: Python runs as printed where the packages are installed that the page names."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.code_blocks import blocks_of
from tests.support.command_line import run_python

PAGES = [*sorted((ROOT / "docs" / "adapters").glob("*.md")), ROOT / "docs" / "serve.md"]
MODEL = "models/tiny"
MARK = re.compile(r"^<!-- packages: (.+) -->$", re.MULTILINE)

pytestmark = pytest.mark.slow


def parts_of(page: Path) -> dict[str, str]:
    """Return the Python of a page by the packages that it needs, which a mark names before it."""
    text, found = page.read_text(), {}
    for block in blocks_of(page):
        if block.language == "python" and not block.needs:
            before = "\n".join(text.splitlines()[: block.line])
            packages = MARK.findall(before)[-1]
            found[packages] = found.get(packages, "") + block.code
    return found


@pytest.mark.parametrize(
    ("packages", "code"),
    [
        pytest.param(*part, id=f"{page.stem}-{part[0]}", marks=[pytest.mark.long] * (page.stem == "trl"))
        for page in PAGES
        for part in parts_of(page).items()
    ],
)
def test_its_python_runs_as_printed(packages: str, code: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for package in packages.split():
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    if MODEL in code:
        (tmp_path / "models").mkdir()
        (tmp_path / MODEL).symlink_to(request.getfixturevalue("tiny_folder"))
    run_python("-c", code, folder=tmp_path)
