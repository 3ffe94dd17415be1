from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from codea1_env.errors import UnknownName, UserError
from codea1_env.plugins import names, resolve


def test_a_path_names_any_object_of_a_module() -> None:
    import json

    assert resolve("agents", "json:JSONDecoder.decode") is json.JSONDecoder.decode


@pytest.mark.parametrize("name", [":x", "x:", ":", "a..b:c", ".json:loads", "json:loads.", "json:lo ads", "a b:c"])
def test_what_is_no_path_is_told_what_one_looks_like(name: str) -> None:
    with pytest.raises(UserError, match="expected module:attribute"):
        resolve("agents", name)


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(UserError, match="cannot import 'no_such_module'"):
        resolve("agents", "no_such_module:x")
    with pytest.raises(UserError, match="'json' has no attribute 'lods': did you mean 'loads'"):
        resolve("agents", "json:lods")
    with pytest.raises(UnknownName, match=r"own class or function is json:loads$"):
        resolve("agents", "json.loads")
    with pytest.raises(UnknownName, match="did you mean 'mutant'"):
        resolve("agents", "mutan")
    assert "fuzz" in names("agents")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import sys\nsys.exit(3)", "SystemExit: 3"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def f(:", "SyntaxError"),
    ],
)
def test_a_module_that_fails_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, said: str
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "fails_here.py").write_text(source)
    with pytest.raises(UserError, match=f"importing 'fails_here' failed: {said}"):
        resolve("agents", "fails_here:agent")


def test_a_distribution_may_be_installed_after_the_first_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UnknownName, match="late"):
        resolve("agents", "late")
    metadata = tmp_path / "late-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: late\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[codea1_env.agents]\nlate = json:loads\n")
    importlib.invalidate_caches()
    assert resolve("agents", "late") is importlib.import_module("json").loads
