"""Candidates gain nothing by knowing that they are asked, by luck, or by what was asked before."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.facts.submissions import RejectionReason
from codea1_env.facts.verdicts import CandidateReport, Verdict
from codea1_env.judging.candidate_runs import drawn_order
from codea1_env.problems import GoldenCase, Problem
from codea1_env.rules.rewards import score
from codea1_env.rules.ruleset import Isolation, preset
from codea1_env.sandbox.interface import Limits
from codea1_env.sandbox.local import LocalSandbox
from tests.support.several_answers import judged, verdicts

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


def report_on(sandbox: LocalSandbox, program: str, isolation: Isolation = Isolation.PROGRAM) -> CandidateReport:
    rules = replace(preset("fixed"), isolation=isolation)
    (report,) = judged(sandbox, TWICE, [program], ["assert f(1) == 2\nassert f(2) == 4"], rules=rules, golden=True)
    return report


def test_a_program_that_loads_only_unasked_has_failed_what_it_was_asked(sandbox: LocalSandbox) -> None:
    report = report_on(sandbox, RAISES_WHEN_ASKED)
    assert report.verdict is Verdict.PASSED
    assert verdicts(report) == [Verdict.RUNTIME_ERROR] * 2
    assert score(report, preset("fixed")).testers[0].value == 0.25  # two of eight cases, both valid, both failed


REMEMBERS = """
seen = []
def f(x):
    seen.append(x)
    return len(seen)
"""


@pytest.mark.parametrize(("rules", "is_drawn"), [("fixed", True), ("zero_sum", True), ("paper", False)])
def test_rules_say_whether_the_order_of_calls_is_drawn(sandbox: LocalSandbox, rules: str, is_drawn: bool) -> None:
    counting = Problem("count", "def f(x): ...", "f", "def f(x): return x", (GoldenCase("f(1)", "1"),))
    suite = "\n".join(f"assert f({x}) == {x}" for x in range(1, 6))
    found = verdicts(*judged(sandbox, counting, [REMEMBERS], [suite], rules=preset(rules)))
    assert (found == [Verdict.PASSED] * 5) is not is_drawn
    assert len(found) == 5


def test_in_isolation_a_program_knows_nothing_of_other_calls(sandbox: LocalSandbox) -> None:
    together, alone = (report_on(sandbox, COUNTS, isolation) for isolation in Isolation)
    assert sorted(verdicts(together)) == [Verdict.PASSED, Verdict.WRONG_ANSWER]
    assert verdicts(alone) == [Verdict.PASSED] * 2
    assert (together.golden_pass_rate, alone.golden_pass_rate) == (0.5, 1.0)


def test_what_was_not_run_because_loading_takes_long_counts_for_nobody(sandbox: LocalSandbox) -> None:
    slow = "import time\nwhile time.process_time() < 0.08: pass\ndef f(x): return 2 * x if x else 7\n"
    suite = "\n".join(f"assert f({x}) == {2 * x}" for x in range(1, 9))
    rules, limits = replace(preset("zero_sum"), isolation=Isolation.CALL), Limits(cpu_s=0.1, job_factor=2.0)
    (report,) = judged(sandbox, TWICE, [slow], [suite], limits, rules)
    (suite_report,) = report.suites
    reasons = [rejection.reason for rejection in suite_report.suite.rejections]
    assert 0 < len(reasons) < 8
    assert set(reasons) == {RejectionReason.UNKNOWABLE}
    assert verdicts(report) == [Verdict.PASSED] * (8 - len(reasons))
    assert score(report, rules).coder.value == 1.0


ASKED = [f"f({n})" for n in range(6)]


def test_orders_are_drawn_from_program_and_calls_alone() -> None:
    orders = {drawn_order(f"def f(x): return {n}", ASKED) for n in range(200)}
    assert len(orders) > 150  # of 720
    assert {order[0] for order in orders} == set(range(6))
    assert drawn_order("p", ASKED) == drawn_order("p", ASKED)
    assert drawn_order("p", ASKED) != drawn_order("p", [*ASKED[:-1], "f(7)"])
    assert [drawn_order("p", ASKED[:n]) for n in range(2)] == [(), (0,)]


@given(st.text(), st.lists(st.text(), max_size=5))
def test_every_order_has_each_call_once(program: str, calls: list[str]) -> None:
    assert sorted(drawn_order(program, calls)) == [*range(len(calls))]
