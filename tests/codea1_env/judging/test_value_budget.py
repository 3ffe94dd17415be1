"""All values of one candidate together take no more than a bounded time here, and no right candidate notices."""

from __future__ import annotations

from collections import Counter

import pytest

from codea1_env.facts.answers import Comparison, ValueBudget
from codea1_env.facts.verdicts import Outcome, OutcomeKind, Verdict
from codea1_env.judging.golden import ExpectedValues, golden_jobs, golden_results
from codea1_env.problems import GoldenCase, Problem
from codea1_env.sandbox import Sandbox
from tests.support.several_answers import judged, verdicts

SOLUTION = "def f(x):\n    return [x / 7] * 1_000"
JUNK = "def f(x):\n    return [x, *range(42_000)]"
NOISY = "def f(x):\n    return [x / 7 + 1e-15 * n for n in range(1_000)]"
PLAIN, TEXTS = "assert f({n}) == 0", "assert len(repr(f({n}))) == 0"


def value(length: int, fill: str = "x") -> Outcome:
    return Outcome(OutcomeKind.VALUE, f'"{fill * (length - 2)}"'.encode())


def test_only_what_is_much_longer_than_expected_takes_from_it() -> None:
    budget, right = ValueBudget(), value(200_000)
    for each in (right, value(400_000, "y"), value(256), Outcome(OutcomeKind.ERROR)):
        assert [budget.take(each, right) for _ in range(50)] == [each] * 50
    long = value(500_024, "z")  # by 100,000 bytes, ten times
    kinds = [budget.take(long, right).kind for _ in range(12)]
    assert kinds == [OutcomeKind.VALUE] * 10 + [OutcomeKind.OUTPUT_LIMIT] * 2
    assert budget.take(right, right) is right
    assert budget.take(value(200), right).kind is OutcomeKind.VALUE


def test_floats_written_in_full_cost_a_right_program_nothing() -> None:
    right, noisy = (
        Outcome(OutcomeKind.VALUE, b"[%b]" % b",".join([x] * 7_000)) for x in (b"0.3", b"0.30000000000000004")
    )
    budget = ValueBudget()
    assert {budget.take(noisy, right).kind for _ in range(80)} == {OutcomeKind.VALUE}


def test_items_and_arguments_count() -> None:
    opaque = Outcome(OutcomeKind.OPAQUE, items=b"[" + b"1," * 150_000 + b"1]", arguments=b"1" * 300_000)
    budget = ValueBudget()
    assert [budget.take(opaque, value(3)).kind for _ in range(2)] == [OutcomeKind.OPAQUE, OutcomeKind.OUTPUT_LIMIT]


@pytest.mark.slow
@pytest.mark.parametrize("line", [PLAIN, TEXTS])
def test_a_candidate_of_long_answers_fails_and_is_compared_within_the_budget(
    sandbox: Sandbox, line: str, monkeypatch
) -> None:
    compared: list[int] = []
    equal = ValueBudget.take

    def take(self: ValueBudget, outcome: Outcome, expected: Outcome) -> Outcome:
        found = equal(self, outcome, expected)
        compared.append(len(found.value or b""))
        return found

    monkeypatch.setattr(ValueBudget, "take", take)
    assert counted(sandbox, JUNK, line).keys() <= {Verdict.WRONG_ANSWER, Verdict.OUTPUT_LIMIT}
    assert 0 < sum(compared) < 2 << 20
    assert counted(sandbox, NOISY, line) == {Verdict.PASSED: 32}


def counted(sandbox: Sandbox, program: str, line: str) -> Counter[Verdict]:
    texts = ["\n".join(line.format(n=number) for number in range(at, at + 8)) for at in range(0, 32, 8)]
    return Counter(verdicts(*judged(sandbox, Problem("p", "s", "f", SOLUTION, ()), [program], texts)))


def test_golden_answers_have_one_too(sandbox: Sandbox) -> None:
    problem = Problem("p", "s", "f", SOLUTION, tuple(GoldenCase(f"f({n})", f"[{n} / 7] * 1_000") for n in range(8)))
    for program, n_passed in ((NOISY, 8), (JUNK, 0)):
        reports = sandbox.run(golden_jobs(problem, program))
        found = golden_results(
            problem, reports, ExpectedValues(sandbox).of([problem]), Comparison(rel_tol=1e-9, abs_tol=1e-9)
        )
        assert [result.passed for result in found] == [True] * n_passed + [False] * (8 - n_passed)
    assert {result.verdict for result in found} == {Verdict.WRONG_ANSWER, Verdict.OUTPUT_LIMIT}
