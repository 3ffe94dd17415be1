"""A group; a bank of two small problems, judged once; a sandbox that is watched; a server of the judge."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from codea1_env import code_a1_v0
from codea1_env.bank import Bank, BankEntry, JudgedBank, ProblemBank, judge_bank
from codea1_env.errors import SandboxError
from codea1_env.problems import ProblemSet
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Job, JobReport, Sandbox
from tests.support.sandboxes import Wrapper
from tests.support.toys import RULES

ADD = {
    "right": "def add(a, b):\n    return a + b",
    "absolute": "def add(a, b):\n    return abs(a + b)",
    "broken": "def add(",
}
ADD_SUITES = {
    "easy": "assert add(1, 2) == 3\nassert add(0, 0) == 0",
    "hard": "assert add(-1, -2) == -3\nassert add(-5, 1) == -4",
    "half": "assert add(-1, -2) == -3\nassert add(-5, 1) == 'no'",
    "none": "",
}
LAST = {"right": "def last(items):\n    return items[-1] if items else None"}
LAST_SUITES = {"easy": "assert last([1]) == 1"}


@pytest.fixture
def add(toys: ProblemSet) -> ProblemSet:
    return toys.select(["toy/add"])


@pytest.fixture
def group(add: ProblemSet) -> Any:
    """What makes a group of two coders with two testers each."""
    return partial(code_a1_v0.group_env, problems=add, rules=RULES, n_candidates=2, n_suites=2)


def entries(table: dict[str, str]) -> tuple[BankEntry, ...]:
    return tuple(BankEntry(label, reply) for label, reply in table.items())


@pytest.fixture(scope="session")
def bank(toys: ProblemSet) -> Bank:
    add, last = toys
    problems = (
        ProblemBank(add, entries(ADD), entries(ADD_SUITES)),
        ProblemBank(last, entries(LAST), entries(LAST_SUITES)),
    )
    return Bank("toys", problems)


@pytest.fixture(scope="session")
def judged(bank: Bank, sandbox: Sandbox) -> JudgedBank:
    return judge_bank(bank, preset("fixed"), sandbox)


class Watched(Wrapper):
    """The shared sandbox behind a gate, and what it was given, call by call."""

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(sandbox)
        self.gate = threading.Event()
        self.gate.set()
        self.batches: list[Sequence[Job]] = []
        self.threads: set[str] = set()
        self.error = ""
        """Why it cannot be used at all; empty: it can."""

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        assert self.gate.wait(60)
        if self.error:
            raise SandboxError(self.error)
        self.batches.append(jobs)
        self.threads.add(threading.current_thread().name)
        return super().run(jobs)


@pytest.fixture
def watched(sandbox: Sandbox) -> Watched:
    return Watched(sandbox)


@pytest.fixture(scope="module")
def server(sandbox: Sandbox, toys: ProblemSet) -> Iterator[Any]:
    """It refuses bodies above 60,000 bytes."""
    from tests.support.serving import ServiceBounds, serving

    with serving(sandbox, toys, bounds=ServiceBounds(max_body_bytes=60_000)) as server:
        yield server
