"""Hand-picked duels for people: programs for shipped problems, each wrong in one place that careful reading finds."""

from __future__ import annotations

from dataclasses import dataclass

from codea1_env.problems import load_problems
from codea1_env.problems.problem import Problem


@dataclass(frozen=True, slots=True)
class Duel:
    """A problem and a program that is wrong in one place."""

    problem: Problem
    program: str
    hints: tuple[str, ...]
    """Ever clearer ones."""


@dataclass(frozen=True, slots=True)
class _Edit:
    name: str
    topic: str
    """The subject of the problem, in a few words."""
    right: str
    """The text in the solution, where it stands once."""
    wrong: str
    hint: str


_EDITS = (
    _Edit("is_balanced", "brackets", "return not still_open", "return True", "What if the text ends too early?"),
    _Edit(
        "rotate_window",
        "turning part of a list",
        "turn = steps % len(window) if window else 0",
        "turn = steps if window else 0",
        "There may be more steps than items.",
    ),
    _Edit(
        "free_gaps",
        "the free times of a room",
        "free_from = max(free_from, end)",
        "free_from = end",
        "Two bookings may overlap in more than one way.",
    ),
    _Edit("visible_towers", "towers", "tallest = seen = 0", "tallest, seen = -1, 0", "Read again what a tower is."),
    _Edit(
        "peak_guests",
        "hotel guests",
        "days = sorted(day for day, change in changes.items() if change)",
        "days = sorted(changes)",
        "The guests may change during a run of days.",
    ),
)

N_DUELS = len(_EDITS)
TOPICS = tuple(edit.topic for edit in _EDITS)
"""Of the duels, in their order."""


def duel(number: int) -> Duel:
    """Return a duel.

    Args:
        number: from 1 to `N_DUELS`.
    """
    edit = _EDITS[number - 1]
    problem = load_problems("starter").by_id(f"starter/{edit.name}")
    program = problem.solution.replace(edit.right, edit.wrong)
    line = program[: program.index(edit.wrong)].count("\n") + 1
    return Duel(problem, program, (edit.hint, f"Line {line} is wrong: `{edit.wrong}`."))
