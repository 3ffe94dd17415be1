"""No cell of an experiment starts before its predictions are committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from codea1_env.errors import UserError
from codea1_lab.experiments.declaration import declaration_path, experiment_names, load_experiment
from codea1_lab.experiments.predictions import require_predictions
from tests.support import ROOT
from tests.support.folders import git

DECLARED = 'name = "small"\npredictions = "notes/predictions.md"\n[[systems]]\nname = "base"\n'
UNPREDICTED = {"fixed-coder", "fixed-coder-rare", "no-evidence", "overlap", "paper-cpu"}
"""Declared before predictions were asked for; no other experiment may be added here."""


def test_cells_start_only_if_the_predictions_are_committed_and_unchanged(tmp_path: Path) -> None:
    declared = tmp_path / "lab" / "small.toml"
    predictions = tmp_path / "notes" / "predictions.md"
    for path, text in ((declared, DECLARED), (predictions, "+5")):
        path.parent.mkdir()
        path.write_text(text)
    experiment = load_experiment(str(declared))

    def fault() -> str:
        with pytest.raises(UserError) as raised:
            require_predictions(experiment, declared)
        return str(raised.value)

    assert "cannot be checked" in fault()
    git(tmp_path, "init")
    git(tmp_path, "add", "lab")
    assert "are not committed" in fault()
    git(tmp_path, "commit", "-m", "a declaration")
    git(tmp_path, "add", ".")
    assert "are not committed" in fault()
    git(tmp_path, "commit", "-m", "predictions")
    require_predictions(experiment, declared)
    predictions.write_text("+6")
    assert "differ from the committed ones" in fault()
    git(tmp_path, "add", ".")
    assert "differ from the committed ones" in fault()
    predictions.unlink()
    assert "differ from the committed ones" in fault()
    require_predictions(experiment.model_copy(update={"predictions": ""}), declared)


def test_declared_experiments_have_predictions() -> None:
    predicted = {name: load_experiment(name).predictions for name in experiment_names()}
    assert {name for name, path in predicted.items() if not path} == UNPREDICTED
    assert all((ROOT / path).is_file() for path in predicted.values() if path)
    assert all(declaration_path(name).is_file() for name in predicted)
