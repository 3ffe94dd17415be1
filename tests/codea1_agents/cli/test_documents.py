"""What `--json` prints agrees with `documents.json`, and names the same thing alike in all commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from codea1_agents.cli.app import all_commands

DOCUMENT = json.loads(files("codea1_agents.cli").joinpath("documents.json").read_text("utf-8"))
SHARED = {"problems": "problems", "seed": "seed", "figures": "figures", "versions": "versions", "sandbox": "sandbox"}
OF_ANOTHER_KIND = {
    ("train", "figures"),  # the last line of metrics.jsonl
    ("eval compare", "figures"),  # each with a before and an after
    ("game solve", "figures"),  # by view
    ("sandbox audit", "sandbox"),
}

EVAL = ("-p", "starter", "--limit", 2)
CHEAP = {
    "play": ("-p", "starter", "--limit", 2, "-n", 2),
    "eval coder": ("--agent", "mutant", *EVAL),
    "eval tester": ("--agent", "boundary", "--mutants", 2, "--coder", "mutant", "-n", 2, *EVAL),
    "eval select": ("--coder", "mutant", "--tester", "boundary", "-n", 2, "-m", 1, *EVAL),
    "eval compare": ("e", "e"),
    "crossplay": ("reference", "-p", "starter", "--limit", 1, "-n", 1, "--no-yardsticks", "--testers", "examples"),
    "rescore": ("run", "--alpha", 0.2),
    "game solve": ("starter", "--limit", 1),
    "game dynamics": ("starter", "--limit", 1, "--steps", 20),
    "report": ("run", "-o", "page.html"),
    "book show": ("run",),
    "book stats": ("run",),
    "book relapses": ("run",),
    "book export": ("run", "--pytest", "test_mistakes.py"),
    "book merge": ("run", "-o", "merged.sqlite"),
    "export tests": ("--agent", "boundary", "-o", "rows.jsonl", *EVAL),
    "check problems": ("starter", "--limit", 2),
    "check agent": ("reference",),
    "check machine": (),
    "sandbox check": (),
    "list agents": (),
    "list problems": (),
    "list presets": (),
    "list prompts": (),
}


def validator(command: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{command}", "$defs": DOCUMENT["$defs"]})


@pytest.fixture(scope="module")
def played(recorded: Callable[[str], Path]) -> Path:
    return recorded("play -p starter --limit 3 -n 3 --coder mutant,strength=1 --tester boundary")


def test_every_command_has_a_schema() -> None:
    Draft202012Validator.check_schema(DOCUMENT)
    assert all_commands().keys() <= DOCUMENT["$defs"].keys()
    assert all(DOCUMENT["$defs"][command]["properties"]["versions"] for command in all_commands())


def test_a_key_that_commands_share_has_one_meaning() -> None:
    for command in all_commands():
        for key, meaning in DOCUMENT["$defs"][command]["properties"].items():
            if key in SHARED and (command, key) not in OF_ANOTHER_KIND:
                assert meaning == {"$ref": f"#/$defs/{SHARED[key]}"}, (command, key)


@pytest.mark.slow
@pytest.mark.parametrize("command", CHEAP)
def test_a_document_agrees_with_its_schema(
    codea1: Callable[..., Any],
    one_object: Callable[[str], dict[str, Any]],
    run: Path,
    command: str,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "banks-of-documents"))
    if command == "eval compare":
        codea1("eval", "coder", *CHEAP["eval coder"], "--out", "e")
    result = codea1(*command.split(), *CHEAP[command], "--json")
    assert result.exit_code == 0, result.stderr
    found = one_object(result.stdout)
    assert [error.message for error in validator(command).iter_errors(found)] == []
    assert found.keys() - DOCUMENT["$defs"][command]["properties"].keys() <= {"kind", "schema_version"}
