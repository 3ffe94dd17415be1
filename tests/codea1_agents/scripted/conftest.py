"""A sandbox without processes, for trusted programs only, and problems of every shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from codea1_agents.scripted.signatures import read_interface
from codea1_env import values
from codea1_env.agent import AgentContext
from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.observations import observation_of
from codea1_env.problems.problem import Problem, ProblemSet, WrongProgram
from codea1_env.sandbox.interface import Guarantee, Job, JobReport

COUNT = Problem(
    id="count",
    statement='def count(text: str, letter: str = "a") -> int:\n    """How often the letter occurs."""\n',
    entry_point="count",
    solution="def count(text, letter='a'):\n    if not letter:\n        return 0\n    return text.count(letter)\n",
    golden=(),
    examples=("assert count('banana') == 3", "assert count('banana', 'n') == 2"),
)
CLIP = Problem(
    id="clip",
    statement="def clip(values, low, high):\n    ...\n",
    entry_point="clip",
    solution=(
        "def clip(values, low, high):\n"
        "    if low > high:\n"
        "        raise ValueError\n"
        "    return [min(max(v, low), high) for v in values]\n"
    ),
    golden=(),
    examples=("assert clip([1, 5, 9], 2, 8) == [2, 5, 8]",),
    wrong_programs=(
        WrongProgram("def clip(values, low, high):\n    return values\n", "does nothing", 1),
        WrongProgram(
            "def clip(values, low, high):\n    return [min(v, high) for v in values]\n", "forgets the low end", 4
        ),
    ),
)
SHELVES = Problem(
    id="shelves",
    statement="def shelves(books: Dict[str, Tuple[int, ...]], limit: Optional[float] = None) -> Set[str]:\n    ...\n",
    entry_point="shelves",
    solution=(
        "def shelves(books, limit=None):\n"
        "    return {name for name, sizes in books.items() if limit is None or sum(sizes) <= limit}\n"
    ),
    golden=(),
)


class Direct:
    """Evaluates everything in this process and counts what it is asked."""

    name = "direct"
    guarantee = Guarantee.TRUSTED_ONLY

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.n_runs = 0

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        self.n_runs += 1
        return [self._report(job) for job in jobs]

    def close(self) -> None:
        """Nothing to end."""

    def _report(self, job: Job) -> JobReport:
        names: dict[str, Any] = {}
        try:
            exec(f"{job.preamble}\n{job.program}", names)  # the tests' own programs
        except Exception as error:  # noqa: BLE001  -- stands for the boundary of a real sandbox
            broken = Outcome(OutcomeKind.ERROR, error_type=type(error).__name__)
            return JobReport(broken, (Outcome(OutcomeKind.NOT_RUN),) * len(job.calls))
        outcomes = tuple(self._outcome(call.expression, names) for call in job.calls)
        return JobReport(Outcome(OutcomeKind.VALUE, b"null"), outcomes)

    def _outcome(self, expression: str, names: dict[str, Any]) -> Outcome:
        self.asked.append(expression)
        try:
            return Outcome(OutcomeKind.VALUE, values.encode(eval(expression, names)))
        except Exception as error:  # noqa: BLE001  -- as above
            return Outcome(OutcomeKind.ERROR, error_type=type(error).__name__)


@pytest.fixture
def direct() -> Direct:
    return Direct()


@pytest.fixture
def shapes() -> ProblemSet:
    return ProblemSet("shapes", (COUNT, CLIP, SHELVES))


@pytest.fixture
def context(shapes: ProblemSet, direct: Direct) -> AgentContext:
    return AgentContext(shapes, direct, seed=1)


def turn(problem: Problem, *, program: str = "", feedback: str = "", round_: int = 0, k: int = 8) -> Any:
    """Return the observation and info of an agent's turn."""
    info = {"problem_id": problem.id, "episode_id": "e", "role": "", "round": round_, "tests_per_suite": k}
    return observation_of(problem, round_, program, feedback), info


def interface_of(statement: str, examples: str = "", program: str = "") -> Any:
    """Return what is known of the arguments of `f`."""
    return read_interface("f", statement, examples, program)
