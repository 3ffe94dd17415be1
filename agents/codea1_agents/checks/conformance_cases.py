"""The problems and observations of the agents' tests, from ordinary to extreme ones."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codea1_env.agent import Role
from codea1_env.observations import MAX_PROBLEM_CHARS, observation_of, turn_info
from codea1_env.problems import GoldenCase, Problem, ProblemSet

_HUGE_PROGRAM = 65_536
"""Characters. Longer programs are legal, but an endpoint might need minutes for a reply."""
_TESTS = 8
_NEXT_ROUND: dict[str, Any] = {
    "verdict": "passed",
    "own_tests": 0,
    "pass_rate": 0.5,
    "new_tests": 2,
    "replayed_tests": 0,
    "validity": 0.25,
    "difficulty": 0.125,
    "rejections": {},
    "reward_parts": {},
    "book_size": 1,
    "masked": False,
}
"""What the infos of a later round tell about the one before."""


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
        _problem("short", "?"),
        _problem("huge", _LONG[:MAX_PROBLEM_CHARS]),
    ),
)
"""The problems of the observations; privileged agents find the solutions here."""


def cases(role: Role) -> tuple[Case, ...]:
    """Return the observations for the tests of an agent of this role."""
    plain, unicode_, short, huge = CONFORMANCE_PROBLEMS
    wrong = "def add(a, b):\n    return a - b\n"
    shown = wrong if role == "tester" else ""
    long = wrong + "# " + "x" * 100 + "\n" * 3
    strange = shown + "# \u202e ½\n" if shown else ""
    feedback = "1 of 2 tests failed.\nadd(1, 2) should be 3; it gave -1"
    return (
        _case("an ordinary observation", role, plain, 0, shown),
        _case("a second round", role, plain, 1, wrong, feedback),
        _case("a Unicode observation", role, unicode_, 0, strange),
        _case("a problem of one character", role, short, 0, shown),
        _case("a huge observation", role, huge, 0, long * (_HUGE_PROGRAM // len(long)) if shown else ""),
    )


def _case(name: str, role: Role, problem: Problem, round_: int, program: str, feedback: str = "") -> Case:
    info = turn_info(
        problem,
        episode_id=hashlib.sha256(name.encode()).hexdigest()[:16],
        role=role,
        round_=round_,
        tests_per_suite=_TESTS,
        program=program if role == "tester" else "",
        tester_view="white_box",
    )
    return Case(name, observation_of(problem, round_, program, feedback), info | (_NEXT_ROUND if round_ else {}))
