"""What the Makefile would run on a machine that has nothing installed yet; nothing is run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")

INHERITED = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES", "EXTRAS", "TORCH_INDEX", "CONSTRAINTS"}
CPU_BUILDS = "https://download.pytorch.org/whl/cpu"


@pytest.fixture
def planned(tmp_path: Path):
    """The commands of a target, in order, where no virtual environment is."""

    def plan(*arguments: str) -> list[str]:
        command = ["make", "-n", f"VENV={tmp_path / 'venv'}", *arguments]
        # These tests may themselves run under `make test EXTRAS=...`, which hands its settings on.
        environment = {name: value for name, value in os.environ.items() if name not in INHERITED}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    return plan


def install_of(lines: list[str]) -> str:
    (line,) = (line for line in lines if "pip install" in line)
    return line


def test_all_tests_install_language_models_and_ray_and_pin_what_was_tested(planned) -> None:
    line = install_of(planned("test"))
    assert line.endswith("-e '.[dev,dev-models,dev-adapters,rllib,lora]'")
    assert " -c constraints.txt " in line
    assert "index-url" not in line


def test_an_index_of_smaller_builds_is_added_to_pypi(planned) -> None:
    assert f" --extra-index-url {CPU_BUILDS} " in install_of(planned("test", f"TORCH_INDEX={CPU_BUILDS}"))


@pytest.mark.parametrize(
    ("arguments", "size"),
    [
        (("test",), "about 4 GB"),
        (("test", f"TORCH_INDEX={CPU_BUILDS}"), "about 1 GB"),
        (("test", "EXTRAS=dev"), "about 150 MB"),
        (("test-fast",), "about 150 MB"),
    ],
)
def test_the_size_of_the_download_is_said_before_it_begins(planned, arguments: tuple[str, ...], size: str) -> None:
    lines = planned(*arguments)
    said = next(number for number, line in enumerate(lines) if "a download of" in line)
    assert size in lines[said]
    assert lines.index(install_of(lines)) > said


def test_the_fast_tests_need_neither_models_nor_ray(planned) -> None:
    lines = planned("test-fast")
    assert install_of(lines).endswith("-e '.[dev]'")
    assert '-m "not models and not ray and not browser and not engine and not slow"' in lines[-1]


def test_the_gates_run_all_tests(planned) -> None:
    assert planned("check")[-1] == planned("test")[-1]
    assert planned("test")[-1].endswith("-m pytest -q -n auto --dist loadgroup")


def test_harnesses_are_tested_in_an_environment_of_their_own(planned, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    lines = planned("harnesses-test", f"HARNESSES_VENV={folder}")
    assert "--no-deps -r constraints-harnesses.txt" in " ".join(lines)
    assert "tests/codea1_agents/adapters/test_inspect" in lines[-1]
    assert not any(str(tmp_path / "venv") in line for line in lines)


def test_the_site_is_built_with_its_own_extra_and_warnings_are_errors(planned) -> None:
    lines = planned("docs")
    assert install_of(lines).endswith("-e '.[docs]'")
    assert " -W " in lines[-1]
    assert lines[-1].endswith(" docs build/docs")
