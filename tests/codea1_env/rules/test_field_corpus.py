"""A corpus in the forms of the field is read as plain Python and pytest run it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from codea1_env.facts.submissions import TestCase
from codea1_env.rules.replies import is_readable, read_candidate, read_suite
from codea1_env.rules.ruleset import preset
from tests.support.field_corpus import WrittenSuite, replies, suites

SEED = 35
READING = preset("fixed").reading
SUITES = suites(300, SEED)


def raises(expected: Any, function: Any, *args: Any, **kwargs: Any) -> bool:
    try:
        function(*args, **kwargs)
    except expected:
        return True
    return False


def holds(case: TestCase, suite: WrittenSuite) -> bool:
    """Whether a case holds for the solution, by plain Python."""
    space: dict[str, Any] = {"raises": raises}
    exec("\n".join((suite.problem.imports, suite.problem.solution, *case.imports)), space)
    try:
        return bool(eval(f"({case.expression}) == ({case.prediction})", space))
    except Exception:  # noqa: BLE001  -- a wrong test may raise anything
        return False


def read(suite: WrittenSuite) -> Sequence[TestCase]:
    return read_suite(suite.reply, READING, entry_point=suite.problem.entry_point).cases


def test_nearly_all_items_are_read_and_hold_iff_they_hold_in_python() -> None:
    found = [(suite, read(suite)) for suite in SUITES]
    n_read, n_items = sum(len(cases) for _, cases in found), sum(len(suite.items) for suite in SUITES)
    assert n_read / n_items >= 0.95, f"{n_read} of {n_items}"
    different = [
        (suite.form, suite.code)
        for suite, cases in found
        if [holds(case, suite) for case in cases] != [item.holds for item in suite.items]
    ]
    assert different == []


def test_what_is_read_is_still_readable_where_it_comes_from_a_book() -> None:
    for suite in SUITES:
        problem = suite.problem
        assert all(is_readable(case, READING, problem.entry_point, problem.calls) for case in read(suite)), suite.form


def test_a_suite_holds_iff_pytest_passes_it(tmp_path: Path) -> None:
    files = {f"test_suite_{n}": suite for n, suite in enumerate(SUITES) if suite.code}
    for name, suite in files.items():
        text = f"{suite.problem.imports}\n{suite.problem.solution}\n\n{suite.code}\n"
        (tmp_path / f"{name}.py").write_text(text)
    report = tmp_path / "report.xml"
    command = [
        sys.executable,
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", "--tb=no"),
        "--continue-on-collection-errors",
    ]
    subprocess.run([*command, str(tmp_path)], cwd=tmp_path, capture_output=True, timeout=300, check=False)
    failed = {
        (case.get("classname") or case.get("name") or "").split(".")[0]
        for case in ElementTree.parse(report).iter("testcase")
        if case.find("failure") is not None or case.find("error") is not None
    }
    different = {
        name: (suite.form, suite.code)
        for name, suite in files.items()
        if all(holds(case, suite) for case in read(suite)) is (name in failed)
    }
    assert different == {}


@pytest.mark.parametrize("seed", [SEED])
def test_the_program_of_every_reply_is_found_as_it_was_written(seed: int) -> None:
    different = [
        reply
        for problem, reply in replies(300, seed)
        if read_candidate(reply, READING, entry_point=problem.entry_point).program.strip() != problem.solution.strip()
    ]
    assert different == []
