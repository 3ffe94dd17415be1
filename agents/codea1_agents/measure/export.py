"""Exports a tester's confirmed tests as golden tests: rows of the release's training layout, Parquet or JSON lines.

Method: method.md 3 (table 4) and 1.11. The tester runs once over the problems. The tests that the solution confirms
then serve as `GT_test` of a training without a tester (the rules `golden`). The paper does not specify the number of
tests per problem, the tester's view and the correction of tests; here these are options.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from io import BytesIO
from pathlib import Path
from typing import Any

from codea1_agents.measure.turns import sample_labels
from codea1_agents.play.named_agent import NamedAgent
from codea1_env import values
from codea1_env.errors import UserError, extra_needed
from codea1_env.facts.submissions import Suite
from codea1_env.facts.verdicts import ValidCase, ValidSuite
from codea1_env.judging.right_predictions import SuiteEvidence, accept_right_predictions
from codea1_env.judging.solution_values import SolutionValues, SuiteCalls, canonical_calls_of, limits_of_solutions
from codea1_env.problems.own_rows import problem_to_row
from codea1_env.problems.problem import Problem
from codea1_env.records.file_errors import file_errors
from codea1_env.records.whole_files import write_whole
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.rounds import RoundOptions, suite_of
from codea1_env.rounds.trees import SuitesPer, Tree
from codea1_env.rules.ruleset import Validation, preset
from codea1_env.rules.validation import validate
from codea1_env.sandbox.interface import Limits, Sandbox

_CHUNK = 16
"""Problems at a time."""


class Layout(StrEnum):
    """Layout of the rows; `load_problems` reads both."""

    RELEASE = "release"
    """The release's training rows, for other programs; loses examples that are not in a docstring."""
    OWN = "own"
    """The whole problem, with the exported tests in place of its golden tests: for training here on other tests (static
    supervision; paper, table 4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTask:
    """Settings of an export."""

    suites: int = 1
    """Per problem; a test that occurs in several suites is written once."""
    tests: int = 8
    """Requested per suite."""
    fill: bool = False
    """Whether a test with a wrong prediction is kept, with the solution's value in place of the prediction."""
    data_source: str = "codea1-env"
    """The release pays for `GT_test` only in rows of `kodcode_light`."""
    layout: Layout = Layout.RELEASE


@dataclass(slots=True)
class Exported:
    """The rows, and the problems and tests that were left out."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    n_tests: int = 0
    without_tests: list[str] = field(default_factory=list)
    """Ids of problems without a confirmed test; they have no row."""
    unavailable: list[str] = field(default_factory=list)
    """Ids of problems for which the tester or the coder was unavailable, or the sandbox failed; they have no row."""
    rejections: Counter[str] = field(default_factory=Counter)
    """Number of tests left out, by reason."""


def export_tests(
    problems: Sequence[Problem],
    tester: NamedAgent,
    sandbox: Sandbox,
    task: ExportTask,
    *,
    coder: NamedAgent | None = None,
) -> Exported:
    """Run a tester over problems and return its confirmed tests as rows.

    Args:
        problems: with trusted solutions; they need no golden tests.
        tester: writes the tests.
        sandbox: where the solutions run.
        task: settings of the export.
        coder: writes the program that the tester sees; None: the tester is blind.

    Raises:
        UserError: an agent failed.
        SandboxError: the sandbox cannot be used at all.
    """
    solutions = SolutionValues(sandbox, limits_of_solutions(Limits()), finds_vacuous=preset("fixed").drop_vacuous)
    exported = Exported()
    for start in range(0, len(problems), _CHUNK):
        chunk = problems[start : start + _CHUNK]
        for problem, suite in zip(chunk, _suites(chunk, tester, sandbox, task, coder), strict=True):
            if suite is None:
                exported.unavailable.append(problem.id)
                continue
            _add(exported, problem, _validated(problem, suite, solutions, sandbox, task), task)
    return exported


def _suites(
    problems: Sequence[Problem], tester: NamedAgent, sandbox: Sandbox, task: ExportTask, coder: NamedAgent | None
) -> list[Suite | None]:
    """Return all suites of a problem joined; None where an agent was unavailable."""
    rules = replace(preset("fixed"), tests_per_suite=task.tests)
    suites_per, view = (SuitesPer.PROBLEM, "blind") if coder is None else (SuitesPer.CANDIDATE, "white_box")
    rounds = Referee(problems, rules, sandbox=sandbox).open(
        [Tree(problem, 1, task.suites, suites_per) for problem in problems],
        RoundOptions(labels=sample_labels(lambda _, suite: suite, view), skips_invalid=False),
        in_background=False,
    )
    if coder is not None:
        rounds.submit_programs(coder.replies(rounds.coder_turns()))
    turns = rounds.tester_turns()
    read: list[list[Suite]] = [[] for _ in problems]
    for turn, reply in zip(turns, tester.replies(turns), strict=True):
        if isinstance(reply, str):
            read[turn.tree].append(suite_of(reply, problems[turn.tree], rules.reading, task.tests))
    return [_joined(suites) if suites else None for suites in read]


def _joined(suites: Sequence[Suite]) -> Suite:
    return Suite(
        tuple(case for suite in suites for case in suite.cases),
        tuple(rejection for suite in suites for rejection in suite.rejections),
    )


def _validated(
    problem: Problem, suite: Suite, solutions: SolutionValues, sandbox: Sandbox, task: ExportTask
) -> ValidSuite:
    calls = SuiteCalls.of(suite, Limits().value_bytes)
    (answers,) = solutions.answers([(problem, calls)])
    validation, comparison = Validation.FILL if task.fill else Validation.DROP_WRONG, preset("fixed").comparison
    read = SuiteEvidence(problem, suite, calls.evidence(answers))
    (evidence,) = accept_right_predictions([read], sandbox, Limits(), comparison)
    return validate(
        suite,
        evidence,
        validation=validation,
        comparison=comparison,
        canonical=canonical_calls_of(problem),
        output=problem.script,
    )


def _add(exported: Exported, problem: Problem, suite: ValidSuite, task: ExportTask) -> None:
    if suite.internal_error:
        exported.unavailable.append(problem.id)
        return
    exported.rejections.update(rejection.reason.value for rejection in suite.rejections)
    snippets = [snippet for case in suite.cases if (snippet := _snippet(case))]
    if not snippets:
        exported.without_tests.append(problem.id)
        return
    exported.n_tests += len(snippets)
    if task.layout is Layout.OWN:
        exported.rows.append(own_row(problem, snippets))
    else:
        exported.rows.append(training_row(problem, snippets, data_source=task.data_source))


def _snippet(case: ValidCase) -> str:
    """Return the test as text; empty if the solution's value cannot be written as source."""
    if case.prediction_right:
        return _lines(case.case.imports, case.case.expression, case.case.prediction or "")
    written = values.to_source(case.expected)
    if written is None:
        return ""
    return _lines((*case.case.imports, *written.imports), case.case.expression, written.expression)


def _lines(imports: Iterable[str], expression: str, expected: str) -> str:
    return "\n".join([*dict.fromkeys(imports), f"assert {expression} == {expected}"])


def own_row(problem: Problem, snippets: Sequence[str]) -> dict[str, Any]:
    """Return one row of our own layout: the problem with exactly these golden tests."""
    return problem_to_row(problem) | {"golden": list(snippets)}


def training_row(problem: Problem, snippets: Sequence[str], *, data_source: str) -> dict[str, Any]:
    """Return one row of the release's training layout (method.md 1.11), which `load_problems` reads back."""
    system = "You are a careful Python programmer."
    return {
        "prompt": [
            {"role": "system", "content": system},
            {"role": "user", "content": f"Question:\n{problem.statement}"},
        ],
        "clean_description": problem.statement,
        "GT_code": problem.solution,
        "GT_test": list(snippets),
        "data_source": data_source,
        "extra_info": {"question_id": problem.id, "function_name": problem.entry_point, "imports": problem.imports},
    }


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write the rows atomically: as Parquet if the name ends in `.parquet`, else as JSON lines.

    Raises:
        UserError: there are no rows, or the file cannot be written.
        MissingExtra: Parquet without `codea1-env[data]`.
    """
    if not rows:
        raise UserError(f"{path} was not written: no test was confirmed")
    content = _parquet(rows) if path.suffix == ".parquet" else b"".join(f"{json.dumps(row)}\n".encode() for row in rows)
    with file_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)


def _parquet(rows: Sequence[dict[str, Any]]) -> bytes:
    with extra_needed("a Parquet file", "data"):
        import pyarrow  # noqa: PLC0415  -- heavy, and an extra
        import pyarrow.parquet  # noqa: PLC0415  -- likewise
    buffer = BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), buffer)
    return buffer.getvalue()
