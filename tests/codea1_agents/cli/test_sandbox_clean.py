"""`codea1 sandbox clean`. That it removes what it must and nothing else: tests/codea1_env/sandbox/docker."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codea1_env.sandbox.docker.engine import Cleaned

pytest.importorskip("docker")


def cleaning(monkeypatch: pytest.MonkeyPatch, cleaned: Cleaned) -> None:
    monkeypatch.setattr("codea1_agents.cli.sandbox.clean_docker", lambda: cleaned)


def test_it_says_what_it_removed_and_what_it_left(codea1: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cleaning(monkeypatch, Cleaned(("codea1-1", "codea1-2"), ("image:tag",), 3))
    result = codea1("sandbox", "clean")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "removed container codea1-1",
        "removed container codea1-2",
        "removed image image:tag",
        "kept 3 that are in use",
    ]


def test_it_says_so_if_there_is_nothing_to_remove(codea1: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cleaning(monkeypatch, Cleaned())
    assert codea1("sandbox", "clean").stdout == "nothing to remove\n"


def test_with_json_stdout_holds_one_object(codea1: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cleaning(monkeypatch, Cleaned(("codea1-1",), n_left=1))
    result = codea1("sandbox", "clean", "--json")
    found = json.loads(result.stdout)
    assert (found["containers"], found["images"], found["n_left"]) == (["codea1-1"], [], 1)
    assert "removed container codea1-1" in result.stderr


def test_without_an_engine_it_fails_with_one_sentence(codea1: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/socket")
    result = codea1("sandbox", "clean")
    assert result.exit_code == 3
    assert "unix:///nowhere/socket" in result.stderr
    assert result.stdout == ""
