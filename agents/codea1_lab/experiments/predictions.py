"""Predictions come before results: a declared experiment starts no cell before its predictions are committed."""

from __future__ import annotations

import subprocess
from pathlib import Path

from codea1_env.errors import UserError
from codea1_lab.experiments.declaration import Experiment


def require_predictions(experiment: Experiment, declared: Path) -> None:
    """Check that the predictions of an experiment are committed and have not been changed since.

    Args:
        experiment: an experiment without predictions may always run.
        declared: its file, in whose repository the predictions are.

    Raises:
        UserError: they are not, or the declaration is in no repository.
    """
    if not experiment.predictions:
        return
    fault = f"{experiment.name}: its predictions, {experiment.predictions},"
    folder = declared.resolve().parent
    status, root = _git(folder, "rev-parse", "--show-toplevel")
    if status:
        raise UserError(
            f"{fault} cannot be checked ({root}): run it in a clone of the repository, or run a copy of {declared.name}"
            " without predictions, whose results confirm nothing"
        )
    if _git(Path(root), "cat-file", "-e", f"HEAD:{experiment.predictions}")[0]:
        raise UserError(f"{fault} are not committed: commit them before the first cell starts")
    if _git(Path(root), "diff", "--quiet", "HEAD", "--", experiment.predictions)[0]:
        raise UserError(f"{fault} differ from the committed ones: commit or restore them before a cell starts")


def _git(folder: Path, *words: str) -> tuple[int, str]:
    """Run a command of git; return its exit status, and the last line of what it says."""
    try:
        done = subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return 1, "git is not installed"
    return done.returncode, next(reversed((done.stdout or done.stderr).splitlines()), "")
