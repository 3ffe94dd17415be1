from __future__ import annotations

import inspect
from typing import Any

import pytest

from codea1_agents.cli import listing
from codea1_agents.prompts.templates import WORDINGS, load_prompts
from codea1_agents.scripted.testers import FuzzTester
from codea1_env import plugins
from codea1_env.errors import MissingExtra
from codea1_env.plugins import names
from tests.support.command_line import codea1, one_object, refused


@pytest.mark.parametrize(
    ("group", "key"),
    [("agents", "agents"), ("problems", "sources"), ("rewards", "rewards"), ("sandboxes", "sandboxes")],
)
def test_every_registered_name_is_listed_with_a_sentence(group: Any, key: str) -> None:
    result = codea1("list", group, "--json")
    rows = one_object(result.stdout)[key]
    assert [row["name"] for row in rows] == list(names(group))
    assert all(row["what"].endswith((".", ":")) or " " in row["what"] for row in rows)
    assert all(row["name"] in result.stderr for row in rows)


def test_an_agents_options_are_told_with_their_defaults_and_one_agent_with_its_docstring() -> None:
    found = one_object(codea1("list", "agents", "--json").stdout)["agents"]
    options = {each["name"]: each["options"] for each in found}
    assert options["mutant"] == [{"name": "strength", "type": "float", "default": "0.5"}]
    assert options["examples"] == []
    assert "did you mean 'mutant'" in refused("list", "agents", "mutent")
    shown = codea1("list", "agents", "fuzz,hunt=true").stdout
    assert inspect.getdoc(FuzzTester).splitlines()[-1] in shown  # type: ignore[union-attr]
    assert ["hunt", "bool", "False"] in [line.split() for line in shown.splitlines()]
    (found,) = one_object(codea1("list", "agents", "openai", "--json").stdout)["agents"]
    assert {each["name"]: each["default"] for each in found["options"]}["model"] in (None, "''")


def test_problem_sources_are_listed_with_kinds_and_wordings_load_with_every_extension() -> None:
    result = codea1("list", "problems", "--json")
    found = {each["name"]: each for each in one_object(result.stdout)["sources"]}
    assert found["humaneval"]["n_by_kind"] == {"function": 164}
    assert [each["name"] for each in found["tiny"]["options"]] == ["options"]
    assert "tiny:OPTIONS" in result.stderr
    found = one_object(codea1("list", "prompts", "--json").stdout)
    assert [each["name"] for each in found["prompts"]] == list(WORDINGS)
    for wording in found["prompts"]:
        for extension in found["extensions"]:
            load_prompts(wording["name"] + extension["name"])


def test_one_plug_in_that_cannot_be_imported_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = plugins.resolve

    def resolve(group: Any, name: str) -> Any:
        if name == "mutant":
            raise MissingExtra.of("mutant", "vllm")
        return whole(group, name)

    monkeypatch.setattr(listing, "resolve", resolve)
    result = codea1("list", "agents", "--json")  # a table would break its lines where the path of a clone is long
    assert result.exit_code == 0
    about = {each["name"]: each["what"] for each in one_object(result.stdout)["agents"]}
    assert about["mutant"].startswith("cannot be used: ")
    assert "[vllm]" in about["mutant"]
    assert "reference" in about


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("problems", "HumanEval: 164 hand-written functions"),
        ("problems", "Problems written for this project"),
        ("rules", "fill corrects a test's wrong prediction, drop_wrong drops the test"),
    ],
)
def test_a_list_is_written_for_users(what: str, said: str) -> None:
    shown = " ".join(codea1("list", what).stdout.split())
    assert said in shown
    assert "`PARTS`" not in shown
