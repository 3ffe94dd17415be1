"""Models and configurations of GRPO's tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.grpo import tiny_config
from tests.support.language_models import byte_tokenizer, tiny_model


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers", reason="transformers is not installed")
    folder = tmp_path_factory.mktemp("model")
    tiny_model().save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def config(phrase_folders: dict[str, str], increments: str) -> Any:
    return tiny_config(phrase_folders, increments)
