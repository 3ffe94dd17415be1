from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from codea1_env import plugins
from codea1_env.errors import MissingExtra
from codea1_env.plugins import names


@pytest.mark.parametrize(("command", "group"), [(["agents"], "agents"), (["problems", "list"], "problems")])
def test_every_registered_name_is_listed_with_a_sentence(
    codea1: Callable[..., Any], one_object: Any, command: list[str], group: Any
) -> None:
    result = codea1(*command, "--json")
    rows = one_object(result.stdout)[group]
    assert [row["name"] for row in rows] == list(names(group))
    assert all(row["what"].endswith((".", ":")) or " " in row["what"] for row in rows)
    assert all(row["name"] in result.stderr for row in rows)


def test_an_agents_options_are_told_with_their_defaults(codea1: Callable[..., Any], one_object: Any) -> None:
    options = {each["name"]: each["options"] for each in one_object(codea1("agents", "--json").stdout)["agents"]}
    assert "strength=0.5" in options["mutant"]


def test_one_plug_in_that_cannot_be_imported_does_not_hide_the_others(
    codea1: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = plugins.resolve

    def resolve(group: Any, name: str) -> Any:
        if name == "mutant":
            raise MissingExtra.of("mutant", "vllm")
        return whole(group, name)

    monkeypatch.setattr(plugins, "resolve", resolve)
    result = codea1("agents")
    assert result.exit_code == 0
    assert "[vllm]" in result.stdout
    assert "reference" in result.stdout
