"""The folder of an experiment: its declaration, a folder per base and per cell, and the report."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from codea1_env.errors import BrokenInput, UserError
from codea1_env.records.closing import Closing
from codea1_env.records.faults import first_fault, read_file
from codea1_env.records.file_errors import file_errors
from codea1_env.records.journal import require_empty
from codea1_env.records.locks import hold_folder
from codea1_env.records.whole_files import write_whole
from codea1_lab.experiments.declaration import Experiment

_DECLARED = "experiment.json"


class ExperimentFolder(Closing):
    """The folder of a running experiment. Use it as a context manager. One process at a time may write to it."""

    def __init__(self, path: Path, experiment: Experiment) -> None:
        """Start an experiment in a new or empty folder, or continue the one that is there.

        Raises:
            UserError: the folder holds something else or another experiment, cannot be written, or is in use.
        """
        self.path = path
        with file_errors(path):
            path.mkdir(parents=True, exist_ok=True)
            if (path / _DECLARED).exists():
                _require_same(stored_experiment(path), experiment, path)
            else:
                require_empty(path, "it does not contain an experiment; choose another folder")
            self._lock = hold_folder(path)
            try:
                text = json.dumps(experiment.model_dump(mode="json"), indent=1)
                write_whole(path / _DECLARED, f"{text}\n".encode())
            except OSError:
                self._lock.close()
                raise

    def close(self) -> None:
        """Release the lock of the folder."""
        self._lock.close()


def require_experiment(path: Path, experiment: Experiment, *, may_lack: bool) -> None:
    """Raise UserError unless a folder contains this experiment, which another process may be running.

    Args:
        path: the folder to open.
        experiment: what the folder should contain.
        may_lack: whether the folder may also be without an experiment.
    """
    if not (path / _DECLARED).exists():
        if may_lack:
            return
        raise UserError(f"{path} does not contain an experiment yet")
    _require_same(stored_experiment(path), experiment, path)


def stored_experiment(path: Path) -> Experiment:
    """Return the declaration of the experiment in a folder.

    Raises:
        BrokenInput: it is not well formed.
        OSError: it cannot be read.
    """
    try:
        return Experiment.model_validate_json(read_file(path / _DECLARED))
    except ValidationError as error:
        raise BrokenInput(f"{path / _DECLARED}: {first_fault(error)}") from error


def _require_same(stored: Experiment, experiment: Experiment, path: Path) -> None:
    """Raise UserError if a setting differs that decides the numbers of a cell. More seeds or systems may be added."""
    for key in ("name", "pretraining", "set", "evaluation", "warm_up", "model"):
        if getattr(_without_place(stored), key) != getattr(_without_place(experiment), key):
            raise UserError(f"{path} has this experiment with another {key!r}: choose another folder")
    before = {system.name: system for system in stored.systems}
    for system in experiment.systems:
        old = before.get(system.name, system)
        unsized = {"seeds": None, "bases": None}
        if old.model_copy(update=unsized) != system.model_copy(update=unsized):
            raise UserError(f"{path} has this experiment with another system {system.name!r}: choose another folder")


def _without_place(experiment: Experiment) -> Experiment:
    """Return an experiment without the place of its model, which may be moved."""
    model = experiment.model
    return experiment.model_copy(update={"model": model.model_copy(update={"folder": ""})}) if model else experiment
