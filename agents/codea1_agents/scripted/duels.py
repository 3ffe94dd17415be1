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


_EDITS = (
    ("starter/is_balanced", "return not still_open", "return True", "What if the text ends too early?"),
    (
        "starter/rotate_window",
        "turn = steps % len(window) if window else 0",
        "turn = steps if window else 0",
        "There may be more steps than items.",
    ),
    (
        "starter/free_gaps",
        "free_from = max(free_from, end)",
        "free_from = end",
        "Two bookings may overlap in more than one way.",
    ),
    (
        "starter/visible_towers",
        "tallest = seen = 0",
        "tallest, seen = -1, 0",
        "Read again what a tower is.",
    ),
    (
        "starter/peak_guests",
        "days = sorted(day for day, change in changes.items() if change)",
        "days = sorted(changes)",
        "The guests may change during a run of days.",
    ),
)
"""Each the id of a problem, what its solution says once, what the program says there, and a hint."""

N_DUELS = len(_EDITS)


def duel(number: int) -> Duel:
    """Return a duel.

    Args:
        number: from 1 to `N_DUELS`.
    """
    problem_id, right, wrong, hint = _EDITS[number - 1]
    problem = load_problems("starter").by_id(problem_id)
    program = problem.solution.replace(right, wrong)
    line = program[: program.index(wrong)].count("\n") + 1
    return Duel(problem, program, (hint, f"Line {line} is wrong: `{wrong}`."))
