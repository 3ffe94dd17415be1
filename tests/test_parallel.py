"""Tests that share a machine-wide thing are kept on one worker; without that they fail now and then."""

from __future__ import annotations

import pytest


@pytest.mark.xdist_group("groups")
def test_groups_are_honoured(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("loadgroup", default=False):
        pytest.skip("not run by several workers")
    assert request.node.nodeid.endswith("@groups")
