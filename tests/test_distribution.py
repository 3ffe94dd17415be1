"""What a release would upload: the contents of wheel and sdist, and their metadata."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from tests.support import ROOT

pytest.importorskip("hatchling", reason="hatchling is not installed")

PACKAGES = {name: ROOT / "agents" / name for name in ("codea1_agents", "codea1_lab", "codea1_game")}
PACKAGES |= {"codea1_env": ROOT / "codea1_env"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wheel and sdist; nothing is downloaded."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def sources(package: str) -> set[str]:
    """Return the files of a package as its wheel names them."""
    files = (path for path in PACKAGES[package].rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(PurePosixPath(package, path.relative_to(PACKAGES[package]))) for path in files}


@pytest.mark.slow
def test_the_wheel_holds_the_packages_whole_and_nothing_else(built: Path) -> None:
    (path,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(path).namelist())
    metadata = {name for name in names if name.partition("/")[0].endswith(".dist-info")}
    assert names - metadata == set().union(*map(sources, PACKAGES))
    parts = {name.rpartition("/")[2] for name in metadata}
    assert parts == {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "LICENSE"}


@pytest.mark.slow
def test_the_sdist_holds_what_tests_and_documentation_need(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tops = {name.partition("/")[0] for name in names}
    assert {"codea1_env", "agents", "tests", "docs", "examples", "benchmarks", "README.md", "LICENSE"} <= tops
    assert {"CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "Makefile", "constraints.txt", "pyproject.toml"} <= tops
    assert {"build", "dist", "runs", "models", ".venv", ".git"} & tops == set()
    assert sources("codea1_env") <= names


@pytest.mark.slow
def test_an_index_would_take_both(built: Path) -> None:
    pytest.importorskip("twine", reason="twine is not installed")
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, built.iterdir())]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_citation_has_the_version_of_the_package() -> None:
    from codea1_env import __version__

    lines = (ROOT / "CITATION.cff").read_text().splitlines()
    assert f"version: {__version__}" in lines
    assert f"version = {{{__version__}}}" in (ROOT / "docs" / "citation.md").read_text()
    assert f'version = "{__version__}"' in (ROOT / "pyproject.toml").read_text()
