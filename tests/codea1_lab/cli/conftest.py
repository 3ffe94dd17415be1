"""The fixtures of the command line's tests, which the lab's commands use as well."""

from pathlib import Path

import pytest

from tests.codea1_agents.cli.conftest import *  # noqa: F403

DECLARED = """
name = "small"
seeds = 2
[pretraining]
steps = 3
[evaluation]
samples = 1
coder = { "held-out" = "tiny:held-out" }
[[systems]]
name = "base"
[[systems]]
name = "other"
[[tables]]
title = "Programs"
rows = ["base", "other"]
columns = { "held-out" = "coder/held-out" }
"""


@pytest.fixture
def declared(folder: Path) -> Path:
    path = folder / "small.toml"
    path.write_text(DECLARED)
    return path
