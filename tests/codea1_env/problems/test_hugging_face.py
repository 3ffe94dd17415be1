from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codea1_env.errors import BrokenInput, UserError
from codea1_env.problems import load_dataset_problems, load_problems
from tests.support.data_set_rows import OWN


@pytest.fixture
def datasets(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return pytest.importorskip("datasets", reason="the extra codea1-env[datasets] is not installed")


def test_a_saved_dataset_is_read_by_folder_or_name(tmp_path: Path, datasets: Any) -> None:
    datasets.Dataset.from_list([OWN, {**OWN, "id": "2", "solution": "def"}]).save_to_disk(tmp_path / "saved")
    for found in (load_problems(tmp_path / "saved"), load_problems(f"hf:{tmp_path / 'saved'}")):
        assert [problem.id for problem in found] == ["mine/1"]
        assert found.skipped[0].place.endswith("row 2")


def test_a_split_is_asked_for_and_what_is_not_there_is_told(tmp_path: Path, datasets: Any) -> None:
    splits = {name: datasets.Dataset.from_list([{**OWN, "id": name}]) for name in ("train", "test")}
    folder = tmp_path / "saved"
    datasets.DatasetDict(splits).save_to_disk(folder)
    assert load_problems(f"hf:{folder}:test")[0].id == "test"
    assert load_dataset_problems(folder, split="train")[0].id == "train"
    with pytest.raises(UserError, match="name one of its splits: train, test"):
        load_problems(folder)
    with pytest.raises(UserError, match="no split 'dev': train, test"):
        load_problems(f"hf:{folder}:dev")
    with pytest.raises(BrokenInput, match="dataset 'nobody/nothing' cannot be loaded"):
        load_problems("hf:nobody/nothing")
