from __future__ import annotations

import platform
import re
from pathlib import Path

import pytest

from codea1_agents.play import versions
from codea1_agents.play.versions import git_commit, installed_versions
from tests.support.folders import git


def test_python_and_the_packages_that_move_results_are_told() -> None:
    found = installed_versions()
    assert found["python"] == platform.python_version()
    assert {"codea1-env", "numpy", "gymnasium", "pettingzoo", "hypothesis"} <= set(found)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a package in it that git does not know yet."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(versions.codea1_env, "__file__", str(package / "__init__.py"))
    git(tmp_path, "init", "-q")
    return tmp_path


def test_a_checkout_has_its_commit_and_says_if_it_was_changed(checkout: Path) -> None:
    assert git_commit() is None  # the package merely lies inside a repository
    git(checkout, "add", ".")
    git(checkout, "commit", "-q", "-m", "first")
    commit = git_commit()
    assert re.fullmatch(r"[0-9a-f]{40}", commit)
    (checkout / "package" / "__init__.py").write_text("changed = True\n")
    assert git_commit() == f"{commit}-dirty"
