"""Problems in a package of their own: copy the folder, change the names, and replace the problems."""

from codea1_env.problems import GoldenCase, Problem, ProblemSet, WrongProgram

LEAP = Problem(
    id="calendar/is_leap",
    statement='def is_leap(year: int) -> bool:\n    """Return whether a year is a leap year."""\n',
    entry_point="is_leap",
    solution="def is_leap(year):\n    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n",
    golden=tuple(GoldenCase(f"is_leap({year})", value) for year, value in ((1900, "False"), (2000, "True"))),
    examples=("assert is_leap(2024)", "assert is_leap(2023) == False"),
    licence="CC0-1.0",
    wrong_programs=(WrongProgram("def is_leap(year):\n    return year % 4 == 0\n", "forgets the centuries", 3),),
)


def load() -> ProblemSet:
    """Problems about the calendar."""
    return ProblemSet("calendar", (LEAP,))
