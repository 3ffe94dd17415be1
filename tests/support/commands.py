"""All commands of `codea1`, those of the lab among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codea1_agents.cli.app import ENTRIES
from codea1_agents.cli.entries import Commands, Group


def all_bodies() -> dict[str, str]:
    """Return the `module:function` of every command by its whole name, such as `eval coder`."""
    return dict(pair for name, entry in ENTRIES.items() for pair in _bodies(name, entry.commands))


def all_commands() -> dict[str, Any]:
    """Return every command by its whole name; imports all of them."""
    commands = {}
    for whole in all_bodies():
        name, *parts = whole.split()
        command = ENTRIES[name].load(name)
        for part in parts:
            command = command.commands[part]
        commands[whole] = command
    return commands


def _bodies(name: str, commands: str | Commands) -> Iterator[tuple[str, str]]:
    if isinstance(commands, str):
        yield name, commands
        return
    for part, command in commands.items():
        yield from _bodies(f"{name} {part}", command.commands if isinstance(command, Group) else command)
