"""What one tester's suite does to the solution's process costs no other suite its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from codea1_env.facts.call_forms import CallForms
from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.judging.solution_values import RecentAnswers, SolutionValues
from codea1_env.problems import GoldenCase, Problem
from codea1_env.sandbox import Call, Guarantee, Job, JobReport, Limits
from codea1_env.values import encode

PROBLEM = Problem("p", "def f(x): ...", "f", "def f(x): return x", (GoldenCase("f(1)", "1"),))
LIMITS = Limits(max_restarts=1)
KINDS = {"hang": OutcomeKind.TIME_LIMIT, "hog": OutcomeKind.MEMORY_LIMIT, "fail": OutcomeKind.INTERNAL_ERROR}


class Fragile:
    """A sandbox that gives up after two calls that hang, and whose memory is full for the rest of a job after a hog."""

    name = "fragile"
    guarantee = Guarantee.TRUSTED_ONLY

    def __init__(self) -> None:
        self.batches: list[list[list[str]]] = []

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        self.batches.append([[call.expression for call in job.calls] for job in jobs])
        return [self._report(job) for job in jobs]

    def _report(self, job: Job) -> JobReport:
        outcomes: list[Outcome] = []
        n_hung, is_full = 0, False
        for call in job.calls:
            kind = next((kind for word, kind in KINDS.items() if word in call.expression), OutcomeKind.VALUE)
            if n_hung > job.limits.max_restarts:
                kind = OutcomeKind.NOT_RUN
            elif is_full:
                kind = OutcomeKind.MEMORY_LIMIT
            n_hung += kind is OutcomeKind.TIME_LIMIT
            is_full |= "hog" in call.expression
            outcomes.append(Outcome(kind, encode(call.expression) if kind is OutcomeKind.VALUE else None))
        return JobReport(Outcome(OutcomeKind.VALUE, encode(None)), tuple(outcomes))

    def close(self) -> None:
        """Nothing to end."""


def ask(sandbox: Fragile, *expressions: str) -> dict[str, tuple[OutcomeKind, OutcomeKind]]:
    questions = [Call(expression) for expression in expressions]
    (answers,) = SolutionValues(sandbox, LIMITS).answers([(PROBLEM, questions)])
    return {question.expression: (runs.first.kind, runs.second.kind) for question, runs in answers.items()}


VALUES = (OutcomeKind.VALUE, OutcomeKind.VALUE)
LATE = (OutcomeKind.TIME_LIMIT, OutcomeKind.TIME_LIMIT)


def test_what_was_not_run_because_others_hang_is_asked_again() -> None:
    sandbox = Fragile()
    found = ask(sandbox, "1", "hang 1", "hang 2", "2", "hang 3", "hang 4", "3")
    assert found == {"1": VALUES, "2": VALUES, "3": VALUES, **{f"hang {n}": LATE for n in range(1, 5)}}
    assert len(sandbox.batches) == 2
    assert max(map(len, sandbox.batches[1])) <= LIMITS.max_restarts + 1  # so many can hang, and all are answered


def test_what_has_no_memory_because_others_keep_it_is_asked_again_alone() -> None:
    sandbox = Fragile()
    found = ask(sandbox, "1", "hog", "2")
    assert found == {"1": VALUES, "2": VALUES, "hog": (OutcomeKind.MEMORY_LIMIT, OutcomeKind.MEMORY_LIMIT)}
    assert sorted(sandbox.batches[1]) == [["1"], ["1"], ["2"], ["2"], ["hog"], ["hog"]]


def test_a_question_without_company_is_asked_once() -> None:
    sandbox = Fragile()
    assert ask(sandbox, "hog") == {"hog": (OutcomeKind.MEMORY_LIMIT, OutcomeKind.MEMORY_LIMIT)}
    assert sandbox.batches == [[["hog"], ["hog"]]]


def test_what_is_answered_is_asked_once_and_remembered_but_our_own_failure_is_not() -> None:
    sandbox = Fragile()
    known = SolutionValues(sandbox, LIMITS)
    questions = [Call(expression) for expression in ("1", "fail", "hang")]
    for _ in range(2):
        (answers,) = known.answers([(PROBLEM, questions)])
        assert answers[questions[1]].internal_error
    assert sandbox.batches == [[["1", "fail", "hang"], ["hang", "fail", "1"]], [["fail"], ["fail"]]]
    known.answers([(replace(PROBLEM, calls=CallForms(in_place=True)), questions[:1])])  # the same id and solution
    assert len(sandbox.batches) == 3


@pytest.mark.parametrize(("n_characters", "n_asked"), [(10, 1), (30_000, 2)])
def test_an_answer_that_is_large_is_not_remembered(n_characters: int, n_asked: int) -> None:
    sandbox, question = Fragile(), Call(repr("x" * n_characters))
    known = SolutionValues(sandbox, LIMITS)
    for _ in range(2):
        known.answers([(PROBLEM, [question])])
    assert len(sandbox.batches) == n_asked


def test_few_problems_are_remembered_if_their_answers_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codea1_env.judging.solution_values._MAX_BYTES", 1 << 21)
    sandbox = Fragile()
    known, problems = SolutionValues(sandbox, LIMITS), [replace(PROBLEM, id=str(n), statement=str(n)) for n in range(3)]
    asked = [(problem, [Call(str(n)) for n in range(800)]) for problem in problems]
    for _ in range(2):
        known.answers(asked[1:])
    assert len(sandbox.batches) == 1
    known.answers(asked[:1])
    known.answers(asked[1:2])
    assert len(sandbox.batches) == 3


def test_problems_are_asked_apart() -> None:
    sandbox = Fragile()
    other = Problem("q", "def f(x): ...", "f", "def f(x): return x", (GoldenCase("f(1)", "1"),))
    hanging = [Call(f"hang {n}") for n in range(3)]
    first, second = SolutionValues(sandbox, LIMITS).answers([(PROBLEM, hanging), (other, [Call("1")])])
    assert {runs.first.kind for runs in first.values()} == {OutcomeKind.TIME_LIMIT}
    assert second[Call("1")].first.value == encode("1")
    assert len(sandbox.batches) == 2


@pytest.mark.parametrize("longest", [100, 1 << 20])
def test_answers_are_bounded_in_bytes_with_the_programs_that_gave_them(longest: int) -> None:
    answers: RecentAnswers[str, str, bytes] = RecentAnswers()
    for n in range(200):
        answers.add(f"{n}" + "#" * 1_000_000, {"f(1)": b"x" * longest}, lambda call, answer: len(call) + len(answer))
        answers.of("0" + "#" * 1_000_000)
    assert len(answers._known) <= 67  # of a million bytes
    assert answers._n_bytes.keys() == answers._known.keys()
    assert [text[:2] for text in answers._known][-1] == "0#"
    assert bool(answers.of("0" + "#" * 1_000_000)) == (longest == 100)
