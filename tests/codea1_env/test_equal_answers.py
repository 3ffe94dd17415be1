"""What a test makes of an answer does not tell it from an equal one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from codea1_env.equal_answers import equal_answers
from codea1_env.judge import Duel, Judge
from codea1_env.outcomes import Outcome, OutcomeKind
from codea1_env.problems import Problem
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Comparison, Reading, preset
from codea1_env.sandbox import Guarantee, Job, JobReport
from codea1_env.sandbox.interface import TOO_MANY, Applied
from codea1_env.sandbox.local import LocalSandbox
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
        applied: list[list[Applied]] = [[] for _ in job.calls]
        outcomes = [
            self._says(job, call.expression) or self._value(job, call.expression, uses)
            for call, uses in zip(job.calls, applied, strict=True)
        ]
        return JobReport(Outcome(OutcomeKind.VALUE, encode(None)), tuple(outcomes), applied=tuple(map(tuple, applied)))

    def _value(self, job: Job, expression: str, uses: list[Applied]) -> Outcome:
        def f(x: float) -> float:
            uses.append(Applied(encode(((x,), {})), encode(FACTORS[job.program] * x)))
            return FACTORS[job.program] * x

        value = eval(expression, {"f": f})  # the expressions of this file
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


@pytest.mark.parametrize(
    "condition",
    [
        "str([f(x) for x in [1]]) == '[0.30000000000000004]'",
        "repr(f(*[1])) == '0.30000000000000004'",
        "(lambda a: repr(f(a)))(1) == '0.30000000000000004'",
        "str(f(f(1))) == '0.09000000000000002'",
        "all(f(x) * 10 > 3 for x in [1])",
    ],
)
def test_nor_where_arguments_are_computed(condition: str) -> None:
    assert verdicts(f"assert {condition}")["near"] == [Verdict.PASSED]


def test_a_candidate_that_gives_no_answer_is_not_credited() -> None:
    def says(job: Job, call: str) -> Outcome | None:
        return Outcome(OutcomeKind.TIME_LIMIT) if job.program == NEAR.program else None

    assert verdicts("assert f(1) != 0.3", sandbox=Evaluating(says))["near"] == [Verdict.TIME_LIMIT]


FORGIVING, EXACT = Comparison(rel_tol=1e-9), Comparison()
ONE, TWO = (Applied(encode(((x,), {})), encode(float(x))) for x in (1, 2))
NEARLY_ONE = ONE._replace(answer=encode(1 + 1e-12))


def test_all_answers_up_to_where_the_test_goes_another_way_must_be_equal() -> None:
    assert equal_answers([ONE, TWO], [ONE, TWO], EXACT)
    assert equal_answers([ONE, TWO], [NEARLY_ONE], FORGIVING)  # it stopped for a difference that does not count
    assert not equal_answers([ONE, TWO], [NEARLY_ONE], EXACT)
    assert not equal_answers([ONE, ONE], [ONE, ONE._replace(answer=encode(None))], FORGIVING)  # the second time
    assert not equal_answers([ONE, TWO._replace(answer=None)], [ONE, TWO], FORGIVING)


def test_without_an_answer_nothing_is_equal() -> None:
    assert not equal_answers([], [], FORGIVING)
    assert not equal_answers([ONE], [TWO], FORGIVING)
    assert not equal_answers([ONE, TOO_MANY], [ONE, TOO_MANY], FORGIVING)
    broken = Applied(b"[", b"{")
    assert not equal_answers([broken], [broken._replace(answer=b"[")], FORGIVING)


def test_dicts_in_another_order_are_equal_answers_under_any_rules(sandbox: LocalSandbox) -> None:
    problem = Problem("count", "def f(s): ...", "f", "def f(s): return {c: s.count(c) for c in s}", ())
    other = Candidate("def f(s): return {c: s.count(c) for c in sorted(s)}")
    suite = read_suite("assert list(f('b' + 'a')) == ['b', 'a']", Reading.STRICT, entry_point="f")
    (report,) = Judge(sandbox, preset("paper")).judge([Duel(problem, (other,), ((suite,),))])
    assert [case.verdict for case in report.candidates[0].suites[0].cases] == [Verdict.PASSED]


def test_an_answer_that_changes_when_it_is_asked_again_is_none(sandbox: LocalSandbox) -> None:
    problem = Problem("next", "def f(x): ...", "f", "def f(x): return x + 1", ())
    forgets = Candidate("def f(x, seen=set()):\n    if x in seen: return None\n    seen.add(x)\n    return x + 1\n")
    suite = read_suite("assert f(3) + f(3) == 8", Reading.STRICT, entry_point="f")
    (report,) = Judge(sandbox, preset("fixed")).judge([Duel(problem, (forgets,), ((suite,),))])
    assert [case.verdict for case in report.candidates[0].suites[0].cases] == [Verdict.RUNTIME_ERROR]
