from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import document, refused

pytest.importorskip("transformers", reason="transformers is not installed")


def test_a_model_is_made_and_measured(folder: Path) -> None:
    told = document("pretrain", "--out", "base", "--steps", "2", "--seed", "4", "--variant", "rare")
    assert (told["settings"]["steps"], told["settings"]["seed"]) == (2, 4)
    assert told["settings"]["rules"]["variant"] == "rare"
    assert told["evaluation"] == {}
    assert (folder / "base" / "model.safetensors").is_file()
    assert "exists already" in refused("pretrain", "--out", "base")


@pytest.mark.parametrize(
    "options", [["--variant", "odd"], ["--aware", "2"], ["--evaluate", "--steps", "1", "--sandbox", "http://["]]
)
def test_what_cannot_be_is_said_in_one_sentence(folder: Path, options: list[str]) -> None:
    refused("pretrain", "--out", "base", *options)
    assert not (folder / "base").exists()
