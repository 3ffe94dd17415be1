from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from codea1_env import errors
from codea1_env.errors import UnknownName, install_line


@pytest.fixture(autouse=True)
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of PATH; it has a pip, which is that of the running interpreter."""
    folder = tmp_path / "an environment" / "bin"
    folder.mkdir(parents=True)
    for name in ("pip", "python"):
        (folder / name).touch(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def installed_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes a distribution as pip leaves it, with a `direct_url.json` (PEP 610) or without."""

    def make(name: str, origin: dict | None = None) -> None:
        metadata = tmp_path / f"{name.replace('-', '_')}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        if origin is not None:
            (metadata / "direct_url.json").write_text(json.dumps(origin))
        monkeypatch.syspath_prepend(str(tmp_path))

    return make


@pytest.mark.parametrize(
    ("origin", "line"),
    [
        ({"url": "file:///my%20clone", "dir_info": {"editable": True}}, "pip install -e '/my clone[more]'"),
        ({"url": "file:///home/me/clone", "dir_info": {}}, "pip install 'an-agent[more] @ file:///home/me/clone'"),
        ({"url": "file:///x/an_agent-1.0.whl"}, "pip install 'an-agent[more] @ file:///x/an_agent-1.0.whl'"),
        (None, "pip install 'an-agent[more]'"),
    ],
)
def test_an_extra_is_installed_from_where_its_distribution_came_from(installed_from, origin, line):
    installed_from("an-agent", origin)
    assert install_line("an-agent[more]") == line


@pytest.mark.parametrize("published", [False, True])
def test_only_a_published_release_is_named_without_its_place(installed_from, monkeypatch, published):
    installed_from(errors.DISTRIBUTION)
    monkeypatch.setattr(errors, "PUBLISHED", published)
    is_by_name = install_line("codea1-env[openai]") == "pip install 'codea1-env[openai]'"
    assert is_by_name is published
    assert ("-e '.[openai]'" in install_line("codea1-env[openai]")) is not published


def test_an_environment_that_is_on_no_path_is_named(on_path, tmp_path, installed_from, monkeypatch):
    installed_from("an-agent")
    monkeypatch.setenv("PATH", "/nowhere")
    assert install_line("an-agent[x]") == f"'{on_path}/python' -m pip install 'an-agent[x]'"
    monkeypatch.chdir(tmp_path)
    assert install_line("an-agent[x]") == "'an environment/bin/python' -m pip install 'an-agent[x]'"


def test_what_a_clone_pins_stays_pinned(tmp_path, installed_from):
    installed_from("an-agent", {"url": f"file://{tmp_path}", "dir_info": {"editable": True}})
    (tmp_path / "constraints.txt").touch()
    assert install_line("an-agent[x]") == f"pip install -c '{tmp_path}/constraints.txt' -e '{tmp_path}[x]'"


def test_known_names_are_all_told_unless_they_are_very_many() -> None:
    assert str(UnknownName.of("field", "x", map(str, range(24)))).endswith(", 9")
    assert str(UnknownName.of("field", "x", map(str, range(25)))).endswith(" and 13 more")
    assert str(UnknownName.of("field", "x", ())).endswith("known are none")


@pytest.mark.parametrize(
    ("name", "near"),
    [("training.nosuch", ""), ("training.lrr", "'training.lr'"), ("trainin", "'training.lr'")],
)
def test_a_section_that_all_names_share_makes_none_of_them_likely(name: str, near: str) -> None:
    text = str(UnknownName.of("setting", name, ["training.lr", "training.tis_cap"]))
    assert text.partition(": ")[2].startswith(f"did you mean {near}? known" if near else "known are")
    assert "did you mean" not in str(UnknownName.of("problem", "starter/zzz", ["starter/longest_zigzag"]))
