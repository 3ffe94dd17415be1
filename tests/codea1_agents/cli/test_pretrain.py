from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import codea1, one_object

pytest.importorskip("transformers", reason="transformers is not installed")


def test_a_model_is_made_and_measured(folder: Path) -> None:
    result = codea1("pretrain", "--out", "base", "--steps", "2", "--seed", "4", "--variant", "rare", "--json")
    assert result.exit_code == 0, result.stderr
    told = one_object(result.stdout)
    assert (told["settings"]["steps"], told["settings"]["seed"]) == (2, 4)
    assert told["settings"]["rules"]["variant"] == "rare"
    assert told["evaluation"] == {}
    assert (folder / "base" / "model.safetensors").is_file()
    again = codea1("pretrain", "--out", "base")
    assert again.exit_code == 2
    assert "exists already" in again.stderr


@pytest.mark.parametrize("options", [["--variant", "odd"], ["--aware", "2"]])
def test_what_cannot_be_is_said_in_one_sentence(folder: Path, options: list[str]) -> None:
    result = codea1("pretrain", "--out", "base", *options)
    assert result.exit_code == 2
    assert not (folder / "base").exists()
