"""What `--json` prints agrees with `documents.json`, and names the same thing alike in all commands."""

from __future__ import annotations

from jsonschema import Draft202012Validator

from tests.support.command_line import DOCUMENTS
from tests.support.commands import all_commands

SHARED = {"problems": "problems", "seed": "seed", "figures": "figures", "versions": "versions", "sandbox": "sandbox"}
OF_ANOTHER_KIND = {
    ("train", "figures"),  # the last line of metrics.jsonl
    ("eval compare", "figures"),  # each with a before and an after
    ("game solve", "figures"),  # by view
    ("sandbox audit", "sandbox"),
}


def test_every_command_has_a_schema_in_which_shared_keys_have_one_meaning() -> None:
    Draft202012Validator.check_schema(DOCUMENTS)
    assert all_commands().keys() <= DOCUMENTS["$defs"].keys()
    assert all(DOCUMENTS["$defs"][command]["properties"]["versions"] for command in all_commands())
    for command in all_commands():
        for key, meaning in DOCUMENTS["$defs"][command]["properties"].items():
            if key in SHARED and (command, key) not in OF_ANOTHER_KIND:
                assert meaning == {"$ref": f"#/$defs/{SHARED[key]}"}, (command, key)
