"""Candidates gain nothing by knowing that they are asked, by luck, or by what was asked before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codea1_env.facts.submissions import Candidate
from codea1_env.facts.verdicts import CandidateReport, Verdict
from codea1_env.judging.judge import Duel, Judge
from codea1_env.problems import GoldenCase, Problem
from codea1_env.rules.rewards import score
from codea1_env.rules.ruleset import Isolation, preset
from codea1_env.sandbox.local import LocalSandbox
from tests.support.replies import bare
from tests.support.several_answers import verdicts

TWICE = Problem(
    "twice", "def f(x): ...", "f", "def f(x): return 2 * x", (GoldenCase("f(1)", "2"), GoldenCase("f(3)", "6"))
)
RAISES_WHEN_ASKED = """
import sys
frame = sys._getframe()
while frame is not None:
    job = frame.f_locals.get("job")
    if isinstance(job, dict) and (job["calls"] or job["serve"]):
        raise ImportError("not now")
    frame = frame.f_back
def f(x): return 7
"""
COUNTS = """
n = 0
def f(x):
    global n
    n += 1
    return 2 * x if n == 1 else 7
"""


def judged(sandbox: LocalSandbox, program: str, *, isolation: Isolation = Isolation.PROGRAM) -> CandidateReport:
    suite = bare("assert f(1) == 2\nassert f(2) == 4")
    duel = Duel(TWICE, (Candidate(program),), ((suite,),))
    rules = replace(preset("fixed"), isolation=isolation)
    (report,) = Judge(sandbox, rules, golden=True).judge([duel])
    return report.candidates[0]


def test_a_program_that_loads_only_unasked_has_failed_what_it_was_asked(sandbox: LocalSandbox) -> None:
    report = judged(sandbox, RAISES_WHEN_ASKED)
    assert report.verdict is Verdict.PASSED
    assert verdicts(report) == [Verdict.RUNTIME_ERROR] * 2
    assert score(report, preset("fixed")).testers[0].value == 0.25  # two of eight cases, both valid, both failed


def test_a_program_that_never_loads_is_invalid(sandbox: LocalSandbox) -> None:
    report = judged(sandbox, "raise ImportError")
    assert report.verdict is Verdict.RUNTIME_ERROR
    assert verdicts(report) == [Verdict.NOT_RUN] * 2


REMEMBERS = """
seen = []
def f(x):
    seen.append(x)
    return len(seen)
"""


@pytest.mark.parametrize(("rules", "is_drawn"), [("fixed", True), ("zero_sum", True), ("paper", False)])
def test_a_preset_says_whether_the_order_of_calls_is_drawn(sandbox: LocalSandbox, rules: str, is_drawn: bool) -> None:
    counting = Problem("count", "def f(x): ...", "f", "def f(x): return x", (GoldenCase("f(1)", "1"),))
    suite = bare("\n".join(f"assert f({x}) == {x}" for x in range(1, 6)))
    (report,) = Judge(sandbox, preset(rules)).judge([Duel(counting, (Candidate(REMEMBERS),), ((suite,),))])
    found = verdicts(report.candidates[0])
    assert (found == [Verdict.PASSED] * 5) is not is_drawn
    assert len(found) == 5


def test_in_isolation_a_program_knows_nothing_of_other_calls(sandbox: LocalSandbox) -> None:
    together, alone = (judged(sandbox, COUNTS, isolation=isolation) for isolation in Isolation)
    assert sorted(verdicts(together)) == [Verdict.PASSED, Verdict.WRONG_ANSWER]
    assert verdicts(alone) == [Verdict.PASSED] * 2
    assert (together.golden_pass_rate, alone.golden_pass_rate) == (0.5, 1.0)
