from __future__ import annotations

import logging
import warnings

import pytest

from codea1_agents.checks import env_check
from codea1_agents.checks.env_check import check_environment
from codea1_env import code_a1_v0
from codea1_env.problems import ProblemSet


@pytest.fixture(autouse=True)
def timed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The environments whose speed was measured, which takes PettingZoo five seconds each time."""
    measured: list[object] = []
    monkeypatch.setattr(env_check, "performance_benchmark", measured.append)
    return measured


def test_the_environment_passes_every_conformance_test(
    toys: ProblemSet, capsys: pytest.CaptureFixture[str], timed: list[object]
) -> None:
    found = check_environment(toys)
    assert [str(env) for env in timed] == ["code_a1_v0"]
    assert len(found) == 11
    assert [each for each in found if each.fault] == []
    assert capsys.readouterr().out == ""
    assert logging.getLogger("codea1_env").isEnabledFor(logging.WARNING)


def test_a_fault_of_the_environment_is_told(toys: ProblemSet, monkeypatch: pytest.MonkeyPatch) -> None:
    def warned(self: object, agent: str) -> None:
        warnings.warn("a new complaint", UserWarning, stacklevel=1)

    monkeypatch.setattr(code_a1_v0.raw_env, "observation_space", warned)
    faults = {each.name: each.fault for each in check_environment(toys)}
    assert faults["PettingZoo api_test"] == "UserWarning: a new complaint"
