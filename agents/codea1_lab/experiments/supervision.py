"""Writes golden tests with a tester, to train a coder on them (the paper's table 4)."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from codea1_agents.evaluation.export import export_tests, write_rows
from codea1_agents.train.tiny.tiny_agent import tiny_agent
from codea1_env.problems import load_problems
from codea1_env.sandbox import load_sandbox

_SUITES = 4
"""Suites per problem: they hold about as many tests as there are golden ones."""


def write_supervision(tester: Path, problems: str, target: Path, *, tests: int, seed: int) -> None:
    """Write problems whose golden tests are a tester's confirmed tests.

    Args:
        tester: directory of its model; it sees no program.
        problems: source of the problems; their own golden tests are not used.
        target: file of JSON lines.
        tests: requested per suite.
        seed: seeds the sampling.
    """
    problem_set = load_problems(problems)
    with (
        closing(load_sandbox("local")) as sandbox,
        closing(tiny_agent("tester", tester, problem_set, sandbox, seed)) as asker,
    ):
        exported = export_tests(problem_set, asker, sandbox, suites=_SUITES, tests=tests)
    write_rows(target, exported.rows)
