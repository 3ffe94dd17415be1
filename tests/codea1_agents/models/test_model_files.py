"""Places of models: what cannot be read or written is one sentence before any work is done."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_agents.models.model_files import model_digest, require_model, require_new, writing_errors
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


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The weights of a folder, of more bytes than any read at once."""
    folder = tmp_path_factory.mktemp("large")
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(bytes(5 << 20))
    return folder / "model.safetensors"


@given(place=st.integers(0, (5 << 20) - 1))
def test_a_change_anywhere_in_the_weights_changes_the_digest(large: Path, place: int) -> None:
    before = model_digest(str(large.parent))
    assert before == model_digest(str(large.parent))
    with large.open("r+b") as file:
        file.seek(place)
        (old,) = file.read(1)
        file.seek(place)
        file.write(bytes([old ^ 1]))
    later = large.stat().st_mtime_ns + 10**9  # the clock of a file system may be slower than this test
    os.utime(large, ns=(later, later))
    assert model_digest(str(large.parent)) != before
