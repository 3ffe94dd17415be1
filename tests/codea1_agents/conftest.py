"""What tests of several packages share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Ray in this process and on this machine only, for the tests of one module."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    torch = pytest.importorskip("torch", reason="torch is not installed")
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    torch.set_num_threads(1)
    ray.shutdown()  # what another module has left
    ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()
