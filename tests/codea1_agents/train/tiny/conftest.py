from __future__ import annotations

from pathlib import Path

import pytest

STEPS = 3


@pytest.fixture(scope="session")
def base_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has hardly begun to learn."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    from codea1_agents.train.tiny.pretraining import PretrainingSettings, pretrain

    folder = tmp_path_factory.mktemp("base") / "model"
    pretrain(PretrainingSettings(seed=1, steps=STEPS)).save(folder)
    return folder
