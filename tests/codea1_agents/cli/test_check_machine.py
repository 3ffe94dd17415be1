from __future__ import annotations

import pytest

from codea1_agents.checks.machine import Finding
from tests.support.command_line import codea1, one_object


def test_what_is_missing_comes_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    findings = (
        Finding("Python", True, "3.11"),
        Finding("extra data", False, "pyarrow (missing)", "pip install x[data]"),
    )
    monkeypatch.setattr("codea1_agents.cli.check.examine", lambda: findings)
    result = codea1("check", "machine", "--json")
    assert result.exit_code == 0
    assert "pip install x[data]" in result.stderr
    data = one_object(result.stdout)
    assert data["findings"][1] == {
        "subject": "extra data",
        "ok": False,
        "detail": "pyarrow (missing)",
        "remedy": "pip install x[data]",
    }


def test_this_machine_is_examined() -> None:
    shown = codea1("check", "machine").stdout
    for subject in ("Python", "cores", "memory", "sandbox", "docker", "GPU", "extra vllm"):
        assert subject in shown
