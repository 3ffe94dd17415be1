"""The example of a package with an agent: it is built, installed elsewhere, and plays by its registered name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT

pytest.importorskip("hatchling", reason="hatchling is not installed")


def pip(*arguments: object) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def importing(site: Path) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed wheel; nothing is downloaded."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(ROOT / "examples" / "agent_package", folder / "source")
    offline = ("--no-deps", "--no-index")
    pip("wheel", *offline, "--no-build-isolation", "-w", folder / "wheels", folder / "source")
    (wheel,) = (folder / "wheels").glob("*.whl")
    pip("install", *offline, "--target", folder / "site", wheel)
    return folder / "site"


def test_it_plays_by_its_name_with_an_option(finished: Callable[..., Any], site: Path) -> None:
    arguments = ["play", "-p", "starter", "--coder", "mutant", "--tester", "shuffled,most=1", "--episodes", "3"]
    played = finished(*arguments, "--json", env=importing(site))
    assert played.returncode == 0, played.stderr
    assert json.loads(played.stdout)["n_episodes"] == 3


def test_it_passes_the_check_of_agents(finished: Callable[..., Any], site: Path) -> None:
    checked = finished("check", "agent", "shuffled", "--json", env=importing(site))
    assert checked.returncode == 0, checked.stdout + checked.stderr
