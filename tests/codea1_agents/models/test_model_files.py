"""Places of models: what cannot be read or written is one sentence before any work is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from codea1_agents.models.model_files import require_model, require_new, writing_errors
from codea1_env.errors import BrokenInput, UserError


def test_a_folder_that_is_missing_is_not_looked_up_on_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tinym").mkdir()
    (tmp_path / "tinym" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        BrokenInput, match=r"folder 'tinyn' does not exist; did you mean 'tinym'\? A model on the HuggingFace hub"
    ):
        require_model("coder", "tinyn")
    assert require_model("coder", "gpt2") == "gpt2"
    assert require_model("coder", "someone/model") == "someone/model"
    with pytest.raises(BrokenInput, match="the folder 'models/tiny-of-nobody' does not exist"):
        require_model("coder", "models/tiny-of-nobody")


def test_a_new_model_needs_a_new_or_empty_folder_that_can_be_written(tmp_path: Path) -> None:
    require_new(tmp_path)
    require_new(tmp_path / "deep" / "model")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="exists already"):
        require_new(tmp_path)
    for place in (tmp_path / "file", tmp_path / "file" / "model"):
        with pytest.raises(UserError, match="cannot be written"):
            require_new(place)
    numpy = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    from numpy import zeros

    with pytest.raises(UserError, match="gone"), writing_errors(tmp_path / "gone"):
        numpy.save_file({"x": zeros(3)}, tmp_path / "gone" / "model.safetensors")
