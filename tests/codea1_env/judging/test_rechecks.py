"""What only the company of other questions has done to an answer does not count."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from codea1_env.facts.submissions import Candidate, RejectionReason
from codea1_env.facts.verdicts import CandidateReport, Outcome, OutcomeKind, ValidCase, Verdict
from codea1_env.judging.judge import Duel, Judge
from codea1_env.judging.solution_values import limits_of_solutions
from codea1_env.problems import GoldenCase, Problem
from codea1_env.rules.rewards import score
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Guarantee, Job, JobReport, Limits, Sandbox
from codea1_env.values import encode
from tests.support.replies import bare
from tests.support.several_answers import judged as judged_by
from tests.support.several_answers import verdicts

TWICE = Problem("twice", "def f(x): ...", "f", "def f(x): return 2 * x", (GoldenCase("f(1)", "2"),))
RIGHT, WRONG = Candidate("def f(x): return x + x"), Candidate("def f(x): return 7")
RULES = preset("fixed")

Answer = Callable[[Job, str, int], Outcome]
"""(job, expression, how many jobs of this program there were before) -> what comes of it."""


class Scripted:
    """A sandbox that answers as it is told, and remembers what it was asked."""

    name = "scripted"
    guarantee = Guarantee.TRUSTED_ONLY

    def __init__(self, answer: Answer, solution_s: float = 0.0) -> None:
        self.asked: list[tuple[str, list[str]]] = []
        self.n_batches = 0
        self._answer = answer
        self._solution_s = solution_s

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        self.n_batches += 1
        return [self._report(job) for job in jobs]

    def _report(self, job: Job) -> JobReport:
        n_before = sum(program == job.program for program, _ in self.asked)
        self.asked.append((job.program, [call.expression for call in job.calls]))
        outcomes = tuple(self._answer(job, call.expression, n_before) for call in job.calls)
        return JobReport(value(None), outcomes, call_s=(self._solution_s,) * len(outcomes))

    def close(self) -> None:
        """Nothing to end."""


def value(of: object) -> Outcome:
    return Outcome(OutcomeKind.VALUE, encode(of))


def is_solution(job: Job) -> bool:
    return job.program == TWICE.solution


def judged(
    answer: Answer,
    text: str,
    *candidates: Candidate,
    replayed: Sequence[ValidCase] = (),
    limits: Limits | None = None,
    solution_s: float = 0.0,
) -> tuple[Scripted, tuple[CandidateReport, ...]]:
    sandbox = Scripted(answer, solution_s)
    suite = bare(text)
    duel = Duel(TWICE, candidates, ((suite,),) * len(candidates), tuple(replayed))
    (report,) = Judge(sandbox, RULES, limits=limits).judge([duel])
    return sandbox, report.candidates


HUNG, UNHEARD, FULL = map(Outcome, (OutcomeKind.TIME_LIMIT, OutcomeKind.NOT_RUN, OutcomeKind.MEMORY_LIMIT))
LUCKY = "assert str(iter([f(1)]))[-2] in '02468ace'"


def test_a_case_that_the_solution_does_not_confirm_in_the_same_company_is_flaky() -> None:
    def answer(job: Job, call: str, n_before: int) -> Outcome:
        if call.startswith("f("):
            return value(2)
        return value(is_solution(job) and n_before < 2)  # its luck ends with the third run

    sandbox, (report,) = judged(answer, f"assert f(3) == 2\n{LUCKY}", RIGHT)
    assert verdicts(report) == [Verdict.PASSED]
    (rejection,) = report.suites[0].suite.rejections
    assert rejection.reason is RejectionReason.FLAKY
    assert rejection.line == 2
    assert report.suites[0].suite.n_invalid == 1
    assert sandbox.asked[-1] == (TWICE.solution, sandbox.asked[2][1])  # the questions of the candidate, in their order
    assert score(report, RULES).coder.value == 1.0


@pytest.mark.parametrize(
    ("solution", "program", "text", "expected", "n_batches"),
    [
        # A case that the solution confirms beats a wrong program.
        ({"[f(1)]": value([2])}, {"[f(1)]": value([7])}, "[f(1)] == [2]", [Verdict.WRONG_ANSWER], 3),
        # Nothing is asked again for plain calls, cases that are passed, and what takes all memory alone.
        ({"[f(1)]": value([2])}, {"[f(1)]": value([2])}, "[f(1)] == [2]", [Verdict.PASSED], 2),
        ({"f(3)": value(2)}, {"f(3)": value(7)}, "f(3) == 2", [Verdict.WRONG_ANSWER], 2),
        ({"f(2)": value(4)}, {"f(2)": FULL}, "f(2) == 4", [Verdict.MEMORY_LIMIT], 2),
    ],
)
def test_the_solution_is_asked_again_where_a_programs_answer_may_be_the_companys(
    solution: dict[str, Outcome], program: dict[str, Outcome], text: str, expected: list[Verdict], n_batches: int
) -> None:
    sandbox, (report,) = judged(
        lambda job, call, n: (solution if is_solution(job) else program)[call], f"assert {text}", WRONG
    )
    assert verdicts(report) == expected
    assert sandbox.n_batches == n_batches


def test_a_replayed_case_that_the_solution_no_longer_confirms_says_nothing() -> None:
    case = bare(LUCKY).cases[0]
    replayed = [ValidCase(case, encode(True), None)]
    _, (report,) = judged(lambda job, call, n: value(is_solution(job) and n < 2), "", RIGHT, replayed=replayed)
    assert [case.verdict for case in report.replayed] == [Verdict.UNDECIDED]  # confirmed, but not in this company


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (value(True), value(True), Verdict.PASSED),
        (value(False), value(False), Verdict.DENIED),
        (value(True), value(False), Verdict.DENIED),
        (HUNG, HUNG, Verdict.DENIED),
        (value(True), HUNG, Verdict.UNDECIDED),
        (FULL, value(False), Verdict.UNDECIDED),
        (UNHEARD, UNHEARD, Verdict.UNDECIDED),
        (Outcome(OutcomeKind.ERROR, error_type="E"), value(True), Verdict.DENIED),
        (value(True), Outcome(OutcomeKind.INTERNAL_ERROR), Verdict.INTERNAL_ERROR),
    ],
)
def test_a_replayed_case_is_confirmed_by_two_runs_of_the_solution(
    first: Outcome, second: Outcome, verdict: Verdict
) -> None:
    case = ValidCase(bare(LUCKY).cases[0], encode(True), None)
    sandbox, (report,) = judged(
        lambda job, call, n: (second if n % 2 else first) if is_solution(job) else value(True),
        "",
        RIGHT,
        replayed=[case],
    )
    assert [found.verdict for found in report.replayed] == [verdict]
    asked = [calls for program, calls in sandbox.asked if program == RIGHT.program]
    assert any(asked) == (verdict is Verdict.PASSED)


def test_our_own_failure_to_confirm_is_our_failure() -> None:
    lost = Outcome(OutcomeKind.INTERNAL_ERROR)
    _, (report,) = judged(
        lambda job, call, n: (value([2]) if n < 2 else lost) if is_solution(job) else value([7]),
        "assert [f(1)] == [2]",
        WRONG,
    )
    assert verdicts(report) == [Verdict.INTERNAL_ERROR]
    assert report.has_internal_error


def test_a_corrected_case_that_turns_out_flaky_counts_as_invalid_once() -> None:
    _, (report,) = judged(
        lambda job, call, n: value(["a" if is_solution(job) and n < 2 else "b"]), "assert [f(1)] == ['wrong']", RIGHT
    )
    suite = report.suites[0].suite
    assert [rejection.reason.value for rejection in suite.rejections] == ["wrong_prediction", "flaky"]
    assert (suite.cases, suite.n_invalid) == ((), 1)


def test_what_runs_out_of_memory_in_company_is_asked_again_alone() -> None:
    def answer(job: Job, call: str, n_before: int) -> Outcome:
        is_crowded = len(job.calls) > 1 and not is_solution(job)
        return FULL if call == "f(2)" and is_crowded else value(2 * int(call[2]))

    sandbox, (report,) = judged(answer, "assert f(1) == 2\nassert f(2) == 4", RIGHT)
    assert verdicts(report) == [Verdict.PASSED, Verdict.PASSED]
    assert sandbox.asked[-1] == (RIGHT.program, ["f(2)"])


def test_answers_of_several_candidates_are_not_mixed_up() -> None:
    def answer(job: Job, call: str, n_before: int) -> Outcome:
        if is_solution(job):
            return value([call])
        if job.program == WRONG.program:
            return value([7]) if call.startswith("[") else FULL
        return FULL if call == "f(2)" and len(job.calls) > 1 else value([call])

    text = "assert [f(1)] == 0\nassert f(2) == 0"
    _, (wrong, right, again) = judged(answer, text, WRONG, RIGHT, WRONG)
    assert verdicts(wrong) == verdicts(again) == [Verdict.WRONG_ANSWER, Verdict.MEMORY_LIMIT]
    assert verdicts(right) == [Verdict.PASSED, Verdict.PASSED]


def test_solutions_must_do_with_half_of_what_candidates_get() -> None:
    limits = Limits(cpu_s=1.0, wall_s=9.0, memory_mb=100, value_bytes=1000, max_restarts=2)
    assert limits_of_solutions(limits) == Limits(0.5, 4.5, 50, 125, 2)
    assert limits_of_solutions(Limits(memory_mb=1, value_bytes=1)).memory_mb == 1
    seen: dict[str, Limits] = {}

    def answer(job: Job, call: str, n_before: int) -> Outcome:
        seen[job.program] = job.limits
        return value(2)

    judged(answer, "assert f(1) == 2", RIGHT, limits=limits)
    assert seen == {TWICE.solution: limits_of_solutions(limits), RIGHT.program: limits}


def test_a_hard_question_gets_more_time_and_is_asked_alone() -> None:
    def answer(job: Job, call: str, n_before: int) -> Outcome:
        has_time = is_solution(job) or call != "f(2)" or job.limits.cpu_s >= 5
        return value(2 * int(call[2])) if has_time else HUNG

    sandbox, (report,) = judged(answer, "assert f(1) == 2\nassert f(2) == 4", RIGHT, solution_s=0.5)
    assert verdicts(report) == [Verdict.PASSED, Verdict.PASSED]
    assert sandbox.asked[-2:] == [(TWICE.solution, ["f(2)"]), (RIGHT.program, ["f(2)"])]


def test_one_testers_hanging_inputs_cost_another_ones_suite_nothing() -> None:
    def answer(job: Job, call: str, n_before: int) -> Outcome:
        number = int(call[2:-1])
        if is_solution(job):
            return value(2 * number)
        if number > 100:
            return HUNG
        return UNHEARD if len(job.calls) == 4 else value(7)

    sandbox = Scripted(answer)
    suites = (bare("assert f(101) == 202\nassert f(102) == 204"), bare("assert f(1) == 2\nassert f(2) == 4"))
    (report,) = Judge(sandbox, RULES).judge([Duel(TWICE, (WRONG,), (suites,))])
    assert verdicts(report.candidates[0]) == [Verdict.TIME_LIMIT] * 2 + [Verdict.WRONG_ANSWER] * 2
    assert sandbox.asked[-1] == (WRONG.program, ["f(1)", "f(2)"])


@pytest.mark.slow
def test_sleep_that_other_suites_have_used_up_is_given_back(sandbox: Sandbox) -> None:
    problem = Problem("slow", "def f(x): ...", "f", "import time\ndef f(x):\n  time.sleep(0.14)\n  return x", ())
    texts = ["\n".join(f"assert f({4 * n + i}) == {4 * n + i}" for i in range(4)) for n in range(4)]
    slower = "import time\ndef f(x):\n  time.sleep(0.15)\n  return x"
    (report,) = judged_by(sandbox, problem, [slower], texts, Limits(wall_s=1.6))
    assert verdicts(report) == [Verdict.PASSED] * 16
    assert report.rechecks.rerun > 0


def test_what_was_not_asked_behind_hard_questions_is_asked_with_their_time() -> None:
    def answer(job: Job, call: str, n_before: int) -> Outcome:
        if is_solution(job) or job.limits.cpu_s > 2:
            return value(2 * int(call[2]))
        return HUNG if call in ("f(1)", "f(2)") else UNHEARD

    text = "\n".join(f"assert f({number}) == {2 * number}" for number in range(1, 6))
    _, (report,) = judged(answer, text, RIGHT, solution_s=0.6)
    assert verdicts(report) == [Verdict.PASSED] * 5


def test_an_endless_loop_gets_no_more_time_where_the_solution_is_quick() -> None:
    sandbox, (report,) = judged(lambda job, *_: value(2) if is_solution(job) else HUNG, "assert f(1) == 2", RIGHT)
    assert verdicts(report) == [Verdict.TIME_LIMIT]
    assert sandbox.asked[-1] == (TWICE.solution, ["f(1)"])
