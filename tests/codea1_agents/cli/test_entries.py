"""Numbers on the command line are bounded, in one place for all commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from codea1_agents.cli.app import ENTRIES
from tests.support.command_line import refused


def numbers() -> list[tuple[str, str]]:
    """Command and long name of each option that takes a number."""

    def of(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        for name, part in getattr(command, "commands", {}).items():
            yield from of(part, (*path, name))
        for option in command.params:
            kinds = str(getattr(getattr(option, "type_descriptor", None), "annotation", ""))
            if re.search(r"\b(int|float)\b", kinds):
                yield " ".join(path), next(name for name in option.opts if name.startswith("--"))

    return [pair for name, entry in ENTRIES.items() for pair in of(entry.load(name), (name,))]


@pytest.mark.parametrize(("command", "option"), numbers())
def test_no_number_is_too_large_or_negative_for_its_option(command: str, option: str) -> None:
    for value in (10**19, 10**30, "9" * 5000, "1e400", "nan", "inf", "-inf", -1, -(10**30)):
        said = refused(*command.split(), f"{option}={value}")
        assert said.startswith(f"error: Invalid value for '{option}'")
        assert said.count("\n") == 1
