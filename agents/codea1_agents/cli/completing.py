"""Completion of values in a shell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from pathlib import Path

from codea1_env.rules.ruleset import PRESETS

_PACKAGE = Path(__file__).parents[1]
_INPUTS = "+inputs"
_MARKS = ("config.toml", "evaluation.json")
"""Files that only folders of runs and evaluations have."""

Completion = Callable[[str], list[str]]


def registered(group: str) -> Completion:
    """Return a completion with the names that all distributions registered in `codea1_env.<group>`."""

    def complete(incomplete: str) -> list[str]:
        return _beginning(incomplete, (point.name for point in entry_points(group=f"codea1_env.{group}")))

    return complete


agents, sandboxes, sources, rewards = (registered(group) for group in ("agents", "sandboxes", "problems", "rewards"))


def rules(incomplete: str) -> list[str]:
    """Complete the name of a preset of rules or of a registered reward."""
    return [*_beginning(incomplete, PRESETS), *rewards(incomplete)]


def presets(incomplete: str) -> list[str]:
    """Complete the name of a preset of `codea1 train`."""
    return _beginning(incomplete, _stems("presets"))


def prompts(incomplete: str) -> list[str]:
    """Complete the name of a wording; after a whole name, also its extension."""
    names = _stems("prompts")
    return _beginning(incomplete, [*names, *(name + _INPUTS for name in names if incomplete.startswith(name))])


def runs(incomplete: str) -> list[str]:
    """Complete the path of a folder of a run, at most one level below what was typed."""
    typed = Path(incomplete)
    parent = typed if not incomplete or incomplete.endswith("/") else typed.parent
    found = [folder for pattern in ("*", "*/*") for folder in parent.glob(pattern) if _is_run(folder)]
    return _beginning(incomplete, map(str, found))


def players(incomplete: str) -> list[str]:
    """Complete a player of `codea1 crossplay`: an agent, or the folder of a run."""
    return [*agents(incomplete), *runs(incomplete)]


def _is_run(folder: Path) -> bool:
    return any((folder / mark).is_file() for mark in _MARKS)


def _stems(folder: str) -> list[str]:
    return [path.stem for path in (_PACKAGE / folder).glob("*.toml")]


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
