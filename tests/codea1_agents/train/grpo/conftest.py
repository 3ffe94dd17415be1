"""A configuration that most tests of GRPO train with."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.grpo import tiny_config


@pytest.fixture
def config(phrase_folders: dict[str, str], increments: str) -> Any:
    return tiny_config(phrase_folders, increments)
