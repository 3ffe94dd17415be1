from __future__ import annotations

import importlib
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.errors import UnknownName, UserError
from codea1_env.plugins import Group, from_record, names, only_typed, resolve


def test_a_path_names_any_object_of_a_module() -> None:
    import json

    assert resolve("agents", "json:JSONDecoder.decode") is json.JSONDecoder.decode


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module:x", "cannot import 'no_such_module'"),
        ("json:lods", "'json' has no attribute 'lods': did you mean 'loads'"),
        ("bisect:coder", r"'bisect' has no attribute 'coder'$"),  # its functions are another module's
        ("shlex:tester", r"'shlex' has no attribute 'tester', but join, quote, shlex, split$"),
        ("json.loads", r"own class or function is json:loads$"),
        ("mutan", "did you mean 'mutant'"),
        *((name, "expected module:attribute") for name in (":x", "x:", ":", "a..b:c", ".json:loads", "json:loads.")),
        *((name, "expected module:attribute") for name in ("json:lo ads", "a b:c")),
    ],
)
def test_what_is_not_there_is_named_and_what_is_no_path_is_told_what_one_looks_like(name: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        resolve("agents", name)
    assert isinstance(caught.value, UnknownName) or name not in ("json.loads", "mutan")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        *(("import sys\nsys.exit(3)", "SystemExit: 3"), ("1 / 0", "ZeroDivisionError: division by zero")),
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


_NAMES = st.from_regex(r"[a-z_]{1,8}(\.[a-z_]{1,8})?", fullmatch=True)


@given(module=_NAMES, attribute=_NAMES, typed=st.booleans(), group=st.sampled_from(("agents", "problems", "rewards")))
def test_a_name_in_a_record_imports_nothing_unless_it_was_typed(
    module: str, attribute: str, typed: bool, group: Group
) -> None:
    asked: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib, "import_module", lambda name: asked.append(name) or importlib)
        name = f"{module}:{attribute}"
        words = [f"--coder={name},option=1"] if typed else [f"x{name}", module, attribute]
        for context in (from_record, nullcontext):
            with only_typed(words), context(), suppress(UserError):
                resolve(group, name)
        with from_record(), pytest.raises(UserError, match="comes from a recorded run"):
            resolve(group, name)  # in Python, nothing was typed
    assert asked == [module] * (2 * typed)


def test_the_current_folder_registers_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = tmp_path / "evil-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[codea1_env.problems]\nstarter = evil:load\nevil = evil:load\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    assert "evil" not in names("problems")
    assert "fuzz" in names("agents")
    assert resolve("problems", "starter").__module__ == "codea1_env.problems.starter"


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
