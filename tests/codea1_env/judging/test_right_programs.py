"""Right programs in unusual styles (`right_programs.toml`): the judge says what plain Python says."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from codea1_env.facts.submissions import Candidate
from codea1_env.facts.verdicts import CandidateReport, SuiteReport, Verdict
from codea1_env.judging.judge import Duel, Judge
from codea1_env.problems import Problem
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Sandbox
from tests.support.replies import block

pytestmark = pytest.mark.slow

TABLE = Path(__file__).with_name("right_programs.toml")


@dataclass(frozen=True)
class Case:
    """One program, and what holds for it."""

    name: str
    solution: str
    program: str
    asserts: tuple[str, ...]
    known_difference: str = ""
    """Why the judge does not pass it; empty if it does."""
    is_neutral: bool = False
    """Whether the difference counts for nobody, neither coder nor tester."""

    @property
    def problem(self) -> Problem:
        """As the judge takes it."""
        return Problem(self.name, "Solve it.", "f", self.solution, ())


CASES = [Case(**row | {"asserts": tuple(row["asserts"])}) for row in tomllib.loads(TABLE.read_text("utf-8"))["case"]]
each_case = pytest.mark.parametrize("case", CASES, ids=[re.sub(r"\W+", "_", case.name) for case in CASES])


@pytest.fixture(scope="module")
def reports(sandbox: Sandbox) -> dict[str, CandidateReport]:
    """All programs, judged at once; each assert is a suite of its own, so that none counts as a duplicate."""
    duels = [
        Duel.crossed(case.problem, [Candidate(case.program)], [block(f"assert {text}") for text in case.asserts])
        for case in CASES
    ]
    return {report.problem_id: report.candidates[0] for report in Judge(sandbox, preset("fixed")).judge(duels)}


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 120
    assert len({case.name for case in CASES}) == len(CASES)


@each_case
def test_plain_python_passes_it(case: Case, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("\n".join([case.program, *(f"assert {text}, {text!r}" for text in case.asserts)]), "utf-8")
    options = {"capture_output": True, "stdin": subprocess.DEVNULL, "text": True}
    ran = subprocess.run([sys.executable, script], check=False, timeout=60, **options)
    assert ran.returncode == 0, ran.stderr


@each_case
def test_the_judge_passes_it_too_or_the_reason_is_known(case: Case, reports: dict[str, CandidateReport]) -> None:
    report = reports[case.name]
    said = [_said(text, suite) for text, suite in zip(case.asserts, report.suites, strict=True)]
    differing = [each for each in said if each]
    if case.known_difference:
        assert differing, "it is not a difference any more"
        assert not (case.is_neutral and any(map(_counts, report.suites))), "\n".join(differing)
    else:
        assert report.loads, report.detail
        assert not differing, "\n".join(differing)


def _said(text: str, suite: SuiteReport) -> str:
    """Return how the judge differs from "passed"; empty if it does not."""
    if not suite.cases:
        return f"{text}: no case, {[f'{each.reason}: {each.detail}' for each in suite.suite.rejections]}"
    case = suite.cases[0]
    if case.case.prediction_right is not True:
        return f"{text}: a wrong prediction"
    return "" if case.verdict is Verdict.PASSED else f"{text}: {case.verdict}, {case.actual}"


def _counts(suite: SuiteReport) -> bool:
    """Whether a suite says anything against its tester or its candidate."""
    return suite.suite.n_invalid > 0 or suite.beats
