"""The problems and observations of the agents' tests, from ordinary to extreme ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codea1_env.agent import Role
from codea1_env.observations import MAX_PROBLEM_CHARS, ObservationFields, turn_info
from codea1_env.problems import GoldenCase, Problem, ProblemSet

_HUGE_PROGRAM = 65_536
"""Characters. Longer programs are legal, but an endpoint might need minutes for a reply."""
_TESTS = 8


@dataclass(frozen=True, slots=True)
class Case:
    """One observation with its info."""

    name: str
    observation: Mapping[str, Any]
    info: Mapping[str, Any]


def _problem(name: str, statement: str, examples: tuple[str, ...] = ()) -> Problem:
    return Problem(
        id=f"conformance/{name}",
        statement=statement,
        entry_point="add",
        solution="def add(a: int, b: int) -> int:\n    return a + b\n",
        golden=(GoldenCase("add(1, 2)", "3"), GoldenCase("add(-1, 1)", "0")),
        examples=examples,
    )


_PLAIN = 'def add(a: int, b: int) -> int:\n    """Return a + b.\n\n    >>> add(1, 2)\n    3\n    """\n'
_UNICODE = (
    'def add(a: int, b: int) -> int:\n    """Gib a + b zurück: ½ ≠ ∞, 加法, الجمع, \N{SNAKE}\N{ZERO WIDTH JOINER}, '
    'e\N{COMBINING ACUTE ACCENT}, <|im_end|>, {braces}, $dollar, ```."""\n'
)
_LONG = 'def add(a: int, b: int) -> int:\n    """Return a + b.\n\n' + "    It is said once more.\n" * 2800 + '    """\n'

CONFORMANCE_PROBLEMS = ProblemSet(
    "conformance",
    (
        _problem("plain", _PLAIN, ("assert add(1, 2) == 3",)),
        _problem("unicode", _UNICODE),
        _problem("empty", "?"),
        _problem("huge", _LONG[:MAX_PROBLEM_CHARS]),
    ),
)
"""The problems of the observations; privileged agents find the solutions here."""


def cases(role: Role) -> tuple[Case, ...]:
    """Return the observations for the tests of an agent of this role."""
    plain, unicode_, empty, huge = CONFORMANCE_PROBLEMS
    wrong = "def add(a, b):\n    return a - b\n"
    shown = wrong if role == "tester" else ""
    long = wrong + "# " + "x" * 100 + "\n" * 3
    return (
        _case("an ordinary observation", role, ObservationFields(plain, 0, shown)),
        _case(
            "a second round",
            role,
            ObservationFields(plain, 1, wrong, "1 of 2 tests failed.\nadd(1, 2) should be 3; it gave -1"),
        ),
        _case(
            "a Unicode observation",
            role,
            ObservationFields(unicode_, 0, shown + "# \udc80 \x00 \u202e ½\n" if shown else ""),
        ),
        _case(
            "an empty observation",
            role,
            ObservationFields(empty, 0),
            blank=("problem", "examples", "program", "feedback"),
        ),
        _case(
            "a huge observation",
            role,
            ObservationFields(huge, 0, (long * (_HUGE_PROGRAM // len(long))) if shown else ""),
        ),
    )


def _case(name: str, role: Role, seen: ObservationFields, *, blank: tuple[str, ...] = ()) -> Case:
    observation = seen.to_dict() | dict.fromkeys(blank, "")
    info = turn_info(
        seen.problem,
        episode_id=f"conformance-{name}",
        role=role,
        round_=seen.round,
        tests_per_suite=_TESTS,
        program=observation["program"],
    )
    return Case(name, observation, info)
