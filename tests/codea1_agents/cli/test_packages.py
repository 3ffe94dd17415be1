"""The packages of examples/packages are built, installed elsewhere, and used by their registered names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT
from tests.support.command_line import finished, one_object, refused

pytest.importorskip("hatchling", reason="hatchling is not installed")
pytestmark = pytest.mark.xdist_group("packages")


def pip(*arguments: object) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


PACKAGES = {"agent": "shuffled", "problems": "calendar", "reward": "sharp", "sandbox": "metered"}
"""Folder -> the name that its package registers."""


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By kind, a folder with only its installed wheel; nothing is downloaded."""
    folder = tmp_path_factory.mktemp("packages")
    shutil.copytree(ROOT / "examples" / "packages", folder / "source")
    offline = ("--no-deps", "--no-index")
    sources = [folder / "source" / kind for kind in PACKAGES]
    pip("wheel", *offline, "--no-build-isolation", "-w", folder / "wheels", *sources)
    wheels = list((folder / "wheels").glob("*.whl"))
    assert len(wheels) == len(PACKAGES)
    for kind, name in PACKAGES.items():
        (wheel,) = (each for each in wheels if name in each.name)
        pip("install", *offline, "--target", folder / kind, wheel)
    return {kind: folder / kind for kind in PACKAGES}


@pytest.fixture
def used() -> Callable[..., dict[str, Any]]:
    """Run a command where these folders are importable; return its JSON."""

    def run(sites: Iterable[Path], *arguments: object) -> dict[str, Any]:
        path = os.pathsep.join(filter(None, [*map(str, sites), os.environ.get("PYTHONPATH")]))
        done = finished(*arguments, "--json", env={"PYTHONPATH": path})
        assert done.returncode == 0, done.stdout + done.stderr
        return dict(one_object(done.stdout))

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "listed", "command"),
    [
        ("agent", "agents", ["check", "agent", "shuffled"]),
        ("problems", "problems", ["check", "problems", "calendar"]),
        ("sandbox", "sandboxes", ["sandbox", "check", "metered"]),
        ("reward", "rewards", ["play", "-p", "starter", "--tester", "boundary", "-n", "2", "--rules", "sharp"]),
    ],
)
def test_each_is_listed_and_passes_its_check(sites, used, kind: str, listed: str, command: list[str]) -> None:
    (rows,) = (each for each in used([sites[kind]], "list", listed).values() if isinstance(each, list))
    (found,) = (each for each in rows if each["name"] == PACKAGES[kind])
    assert found["what"].endswith(".")
    assert used([sites[kind]], *command)


@pytest.mark.slow
def test_all_of_them_play_together(sites, used) -> None:
    arguments = ["-p", "calendar", "--tester", "shuffled,most=2", "--rules", "sharp", "--sandbox", "metered", "-n", "3"]
    played = used(sites.values(), "play", *arguments, "--coder", "mutant,strength=1", "--out", "run")
    assert (played["n_episodes"], played["n_masked_rounds"]) == (3, 0)
    assert played["sandbox"]["name"] == "metered"
    coder, tester = (played["figures"][f"{role}_reward"]["mean"] for role in ("coder", "tester"))
    assert coder == pytest.approx(1 - tester)  # the package's formula
    assert "unknown rules 'sharp'" in refused("play", "-p", "starter", "--rules", "sharp")  # here nobody has it
