"""What a test makes of an answer does not tell it from an equal one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from codea1_env.judge import Duel, Judge
from codea1_env.outcomes import Outcome, OutcomeKind
from codea1_env.problems import Problem
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Reading, preset
from codea1_env.sandbox import Guarantee, Job, JobReport
from codea1_env.submissions import Candidate
from codea1_env.values import encode
from codea1_env.verdicts import Verdict

SUM = Problem("sum", "def f(x): ...", "f", "def f(x): return 0.1 * x + 0.2 * x", ())
NEAR, FAR = Candidate("def f(x): return 0.3 * x"), Candidate("def f(x): return 0.4 * x")
FACTORS = {SUM.solution: 0.1 + 0.2, NEAR.program: 0.3, FAR.program: 0.4}


class Evaluating:
    """A sandbox that evaluates harmless tests of harmless programs, and remembers what it was asked."""

    name = "evaluating"
    guarantee = Guarantee.TRUSTED_ONLY

    def __init__(self, says: Callable[[Job, str], Outcome | None] = lambda job, call: None) -> None:
        self.asked: list[tuple[str, list[str]]] = []
        self._says = says

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        return [self._report(job) for job in jobs]

    def _report(self, job: Job) -> JobReport:
        self.asked.append((job.program, [call.expression for call in job.calls]))
        outcomes = [self._says(job, call.expression) or self._value(job, call.expression) for call in job.calls]
        return JobReport(Outcome(OutcomeKind.VALUE, encode(None)), tuple(outcomes))

    def _value(self, job: Job, expression: str) -> Outcome:
        value = eval(expression, {"f": lambda x: FACTORS[job.program] * x})  # the expressions of this file
        return Outcome(OutcomeKind.VALUE, encode(value))

    def close(self) -> None:
        """Nothing to end."""


def verdicts(text: str, rules: str = "fixed", sandbox: Evaluating | None = None) -> dict[str, list[Verdict]]:
    suite = read_suite(text, Reading.STRICT, entry_point="f")
    assert suite.rejections == ()
    judge = Judge(sandbox or Evaluating(), preset(rules))
    (report,) = judge.judge([Duel(SUM, (NEAR, FAR), ((suite,),) * 2)])
    return {
        name: [case.verdict for case in candidate.suites[0].cases]
        for name, candidate in zip(("near", "far"), report.candidates, strict=True)
    }


@pytest.mark.parametrize(
    "condition",
    [
        "repr(f(1)) == '0.30000000000000004'",
        "str(f(1)) == '0.30000000000000004'",
        "f'{f(1)}' == '0.30000000000000004'",
        "f(1) != 0.3",
        "f(1) > 0.3",
        "f(1) in (0.30000000000000004, 7)",
        "{0.30000000000000004: True}.get(f(1)) is True",
        "[f(1)].count(0.3) == 0",
        "int(f(1) * 1e17) > int(0.3 * 1e17)",
        "f(1) - 0.3 > 0 and f(2) > 0.1",
    ],
)
def test_d15_no_expression_tells_equal_answers_apart_in_fixed(condition: str) -> None:
    found = verdicts(f"assert {condition}")
    assert found["near"] == [Verdict.PASSED]
    assert verdicts(f"assert {condition}", "paper")["near"] == [Verdict.WRONG_ANSWER]


def test_other_answers_still_fail() -> None:
    found = verdicts("assert str(f(1)) == '0.30000000000000004'\nassert f(2) < 0.7")
    assert found == {"near": [Verdict.PASSED] * 2, "far": [Verdict.WRONG_ANSWER] * 2}


def test_every_call_has_to_be_answered_equally() -> None:
    text = "assert f(0) == 0 and f(1) < 0.35"
    assert verdicts(text) == {"near": [Verdict.PASSED], "far": [Verdict.WRONG_ANSWER]}


def test_calls_whose_arguments_are_not_literal_are_judged_by_what_the_test_says() -> None:
    assert verdicts("assert str([f(x) for x in [1]]) == '[0.30000000000000004]'")["near"] == [Verdict.WRONG_ANSWER]


def test_an_answer_that_is_known_to_differ_is_not_asked_for_again() -> None:
    sandbox = Evaluating()
    found = verdicts("assert f(1) == 0.3\nassert f(1) < f(2) - 0.35", sandbox=sandbox)
    assert found["far"][0] is Verdict.WRONG_ANSWER
    n_rounds = {program: sum(asked == program for asked, _ in sandbox.asked) for program in FACTORS}
    assert n_rounds[FAR.program] == 1


def test_a_candidate_that_gives_no_answer_is_not_credited() -> None:
    def says(job: Job, call: str) -> Outcome | None:
        silent = job.program == NEAR.program and call == "f(1)"
        return Outcome(OutcomeKind.TIME_LIMIT) if silent else None

    assert verdicts("assert f(1) != 0.3", sandbox=Evaluating(says))["near"] == [Verdict.WRONG_ANSWER]
