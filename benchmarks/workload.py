"""The workload of benchmarks: groups of replies as in a training step, made from the starter problems.

A group is one problem, candidates (alternately the solution and known wrong programs), and separate suites for each
candidate. All calls are distinct, and one prediction in eight is wrong. The same seed gives the same texts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codea1_env import values
from codea1_env.problems.problem import Problem
from codea1_env.problems.starter import load
from codea1_env.rules.mistake_book import BookEntry, BookKey

EVALPLUS_ROWS = Path(__file__).parents[2] / "shared" / "data" / "evalplus_dev.parquet"
"""Problems with heavy harnesses; they are not part of the package."""
N_CANDIDATES = N_SUITES = N_CASES = N_REPLAYED = 8
WRONG_ONE_IN = 8


@dataclass(frozen=True)
class Case:
    """One call."""

    call: str
    value: Any
    """What the solution returns."""
    prediction: str = ""
    """Of the tester."""


@dataclass(frozen=True)
class Group:
    """One problem with its candidates and suites, and the entries of the Mistake Book."""

    problem: Problem
    programs: tuple[str, ...]
    """(N,)"""
    suites: tuple[tuple[tuple[Case, ...], ...], ...]
    """(N, M, K)"""
    book: tuple[BookEntry, ...]

    @property
    def coder_replies(self) -> tuple[str, ...]:
        """(N,)"""
        return tuple(f"Here is the function:\n\n```python\n{program}```\n" for program in self.programs)

    @property
    def tester_replies(self) -> tuple[tuple[str, ...], ...]:
        """(N, M)"""
        return tuple(tuple(map(_tester_reply, suites)) for suites in self.suites)


def groups(number: int, seed: int) -> list[Group]:
    """Return `number` groups, each with its own problem id. The seed decides the calls.

    The groups take the starter problems in turn; the seed decides the first one.
    """
    available = problems()
    return [
        _group(available[(seed + index) % len(available)], index, random.Random(f"{seed} {index}"))
        for index in range(number)
    ]


def problems() -> list[Problem]:
    """Return the starter problems for which this module has inputs."""
    return [load().by_id(f"starter/{name}") for name in _INPUTS]


def right_cases(problem: Problem, rng: random.Random) -> Iterator[Case]:
    """Yield endless distinct calls with the solution's values. The solution is trusted, so it runs in this process."""
    namespace: dict[str, Any] = {}
    exec(f"{problem.imports}\n{problem.solution}", namespace)
    seen: set[str] = set()
    while True:
        arguments = _INPUTS[problem.entry_point](rng)
        call = f"{problem.entry_point}({', '.join(map(repr, arguments))})"
        if call not in seen:
            seen.add(call)
            yield Case(call, namespace[problem.entry_point](*arguments))


def _group(shipped: Problem, index: int, rng: random.Random) -> Group:
    problem = replace(shipped, id=f"{shipped.id} {index}")
    programs = [problem.solution, *(wrong.program for wrong in problem.wrong_programs)]
    cases = _cases(problem, rng)
    replayed = right_cases(problem, random.Random(f"replayed {index}"))
    return Group(
        problem,
        tuple(f"{programs[m % len(programs)].strip()}\n# candidate {m}\n" for m in range(N_CANDIDATES)),
        tuple(tuple(tuple(next(cases) for _ in range(N_CASES)) for _ in range(N_SUITES)) for _ in range(N_CANDIDATES)),
        tuple(_entry(next(replayed), age) for age in range(1, N_REPLAYED + 1)),
    )


def _cases(problem: Problem, rng: random.Random) -> Iterator[Case]:
    previous = "None"
    for number, case in enumerate(right_cases(problem, rng), 1):
        right = repr(case.value)
        yield replace(case, prediction=previous if number % WRONG_ONE_IN == 0 else right)
        previous = right


def _entry(case: Case, age: int) -> BookEntry:
    return BookEntry(BookKey(case.call, (), values.encode(case.value)), True, 1 + age % 3, 1, 1, 1, 0, age)


def _tester_reply(cases: tuple[Case, ...]) -> str:
    asserts = "".join(f"assert {case.call} == {case.prediction}\n" for case in cases)
    return f"These tests look at the edges of the statement:\n\n```python\n{asserts}```\n"


def _numbers(rng: random.Random, low: int, high: int, most: int) -> list[int]:
    return [rng.randint(low, high) for _ in range(rng.randint(1, most))]


def _words(rng: random.Random, most: int) -> list[str]:
    return ["".join(rng.choices("abcde", k=rng.randint(1, 4))) for _ in range(rng.randint(0, most))]


def _ranges(rng: random.Random, most: int) -> list[tuple[int, int]]:
    return [(low, low + rng.randint(0, 9)) for low in _numbers(rng, -20, 60, most)]


_INPUTS: dict[str, Callable[[random.Random], tuple[Any, ...]]] = {
    "count_carries": lambda rng: (rng.randint(0, 10**6), rng.randint(0, 10**6)),
    "squeeze_runs": lambda rng: ("".join(rng.choices("aab ", k=rng.randint(0, 16))), rng.randint(0, 3)),
    "deepest_fall": lambda rng: (_numbers(rng, -50, 50, 12),),
    "subtract_ranges": lambda rng: (_ranges(rng, 5), _ranges(rng, 4)),
    "invert_index": lambda rng: ({word: _words(rng, 4) for word in _words(rng, 5)},),
    "deviation_of": lambda rng: ([round(rng.uniform(-9, 99), 2) for _ in range(rng.randint(1, 8))],),
    "apportion": lambda rng: (rng.randint(0, 200), _numbers(rng, 1, 30, 7)),
    "wrap_note": lambda rng: (" ".join(_words(rng, 12)), rng.randint(2, 14)),
}
