"""Exports a tester's confirmed tests as the golden tests of the same problems.

Method: method.md 3 (table 4). The tester runs once over the problems. The tests that the solution confirms then serve
a training without a tester (the rules `golden`). The paper does not specify the number of tests per problem and the
tester's view; here these are options.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from codea1_agents.evaluation.solution_runs import check_tests
from codea1_agents.play.named_agent import NamedAgent
from codea1_env.errors import UserError
from codea1_env.facts.submissions import Suite
from codea1_env.facts.verdicts import ValidSuite
from codea1_env.problems.own_rows import problem_to_row
from codea1_env.problems.problem import Problem
from codea1_env.records.whole_files import write_text
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.rounds import RoundOptions, SuitesPer, Tree, suite_of
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.sandbox.interface import Limits, Sandbox

_CHUNK = 16
"""Problems at a time."""


@dataclass(slots=True)
class Exported:
    """The rows, and the problems and tests that were left out."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    n_tests: int = 0
    without_tests: list[str] = field(default_factory=list)
    """Ids of problems that are left out for want of a confirmed test."""
    unavailable: list[str] = field(default_factory=list)
    """Ids of problems that are left out since the tester or the coder was unavailable, or the sandbox failed."""
    rejections: Counter[str] = field(default_factory=Counter)
    """Number of tests left out, by reason."""


def export_tests(
    problems: Sequence[Problem],
    tester: NamedAgent,
    sandbox: Sandbox,
    *,
    suites: int = 1,
    tests: int = 8,
    coder: NamedAgent | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Exported:
    """Run a tester over problems and return its confirmed tests as rows.

    Args:
        problems: with trusted solutions; they need no golden tests.
        tester: writes the tests.
        sandbox: where the solutions run.
        suites: per problem; a test that occurs in several suites is written once.
        tests: requested per suite.
        coder: writes the program that the tester sees; None: the tester is blind.
        progress: called with the numbers of finished and of all problems.

    Raises:
        UserError: an agent failed.
        SandboxError: the sandbox cannot be used at all.
    """
    rules, exported = replace(preset("fixed"), tests_per_suite=tests), Exported()
    for start in range(0, len(problems), _CHUNK):
        chunk = problems[start : start + _CHUNK]
        read = zip(chunk, _suites(chunk, tester, sandbox, rules, suites, coder), strict=True)
        unchecked = [(problem, suite, ()) for problem, suite in read if suite is not None]
        checked = check_tests(unchecked, sandbox, rules, Limits())
        tests_by_problem = dict(zip((problem.id for problem, *_ in unchecked), checked, strict=True))
        for problem in chunk:
            _add(exported, problem, tests_by_problem.get(problem.id))
        progress(start + len(chunk), len(problems))
    return exported


def _suites(
    problems: Sequence[Problem],
    tester: NamedAgent,
    sandbox: Sandbox,
    rules: Ruleset,
    n_suites: int,
    coder: NamedAgent | None,
) -> list[Suite | None]:
    """Return all suites of a problem joined; None where an agent was unavailable."""
    suites_per, view = (SuitesPer.PROBLEM, "blind") if coder is None else (SuitesPer.CANDIDATE, "white_box")
    rounds = Referee(problems, rules, sandbox=sandbox).open(
        [Tree(problem, 1, n_suites, suites_per) for problem in problems],
        RoundOptions(lambda _, suite: suite, view, skips_invalid=False),
    )
    if coder is not None:
        rounds.submit_programs(coder.replies(rounds.coder_turns()))
    turns = rounds.tester_turns()
    read: list[list[Suite]] = [[] for _ in problems]
    for turn, reply in zip(turns, tester.replies(turns), strict=True):
        if isinstance(reply, str):
            read[turn.tree].append(suite_of(reply, problems[turn.tree], rules.reading, rules.tests_per_suite))
    return [_join_suites(suites) if suites else None for suites in read]


def _join_suites(suites: Sequence[Suite]) -> Suite:
    return Suite(
        tuple(case for suite in suites for case in suite.cases),
        tuple(rejection for suite in suites for rejection in suite.rejections),
    )


def _add(exported: Exported, problem: Problem, checked: tuple[ValidSuite, Any] | None) -> None:
    if checked is None:
        exported.unavailable.append(problem.id)
        return
    suite = checked[0]
    exported.rejections.update(rejection.reason.value for rejection in suite.rejections)
    snippets = [
        "\n".join([*dict.fromkeys(case.imports), f"assert {case.expression} == {case.prediction}"])
        for case in (valid.case for valid in suite.cases)
    ]
    if not snippets:
        exported.without_tests.append(problem.id)
        return
    exported.n_tests += len(snippets)
    exported.rows.append(problem_to_row(problem) | {"golden": snippets})


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write the rows as JSON lines, all or none.

    Raises:
        UserError: no row is left, or the file cannot be written.
    """
    if not rows:
        raise UserError(f"{path} was not written: no test was confirmed")
    write_text(path, "".join(f"{json.dumps(row)}\n" for row in rows))
