"""What solutions return, found by two runs in two processes and remembered, so that candidates and rounds share it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from codea1_env.outcomes import Outcome, OutcomeKind
from codea1_env.problems.problem import Problem
from codea1_env.rules.replies import is_direct_call
from codea1_env.sandbox.interface import Call, Harness, Job, JobReport, Limits, Place, Sandbox
from codea1_env.submissions import Suite, TestCase

__all__ = ["Question", "SolutionValues", "TwoRuns", "program_job", "questions_of"]

_MAX_REMEMBERED = 65_536


class Question(NamedTuple):
    """One distinct thing to evaluate; equal questions are asked once. A tuple, since each is hashed many times."""

    expression: str
    imports: tuple[str, ...]
    direct: bool

    @classmethod
    def of_case(cls, case: TestCase) -> Question:
        """Return what a case evaluates."""
        return cls(case.expression, case.imports, case.direct)

    @classmethod
    def of_prediction(cls, case: TestCase) -> Question:
        """Return what a case predicts; a literal harms nobody, so that it needs no second process."""
        prediction = case.prediction or "None"
        return cls(prediction, case.imports, _is_literal(prediction))

    def to_call(self) -> Call:
        """Return the sandbox's form of it."""
        place = Place.PROGRAM if self.direct else Place.HARNESS
        return Call(self.expression, () if self.direct else self.imports, place)


@dataclass(frozen=True, slots=True)
class TwoRuns:
    """What the solution did with a question, first in order and then, in another process, in reverse order."""

    first: Outcome
    second: Outcome

    @property
    def internal_error(self) -> bool:
        """True iff either run is our failure."""
        return OutcomeKind.INTERNAL_ERROR in (self.first.kind, self.second.kind)


Answers = Mapping[Question, TwoRuns]


class SolutionValues:
    """Remembers up to 65,536 answers, the problems used last. Thread-safe; our own failures are never remembered."""

    def __init__(self, sandbox: Sandbox, limits: Limits) -> None:
        self._sandbox = sandbox
        self._limits = limits
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, ...], dict[Question, TwoRuns]] = OrderedDict()

    def answers(self, asked: Sequence[tuple[Problem, Iterable[Question]]]) -> list[Answers]:
        """Return all answers to the questions about each problem, in the order of `asked`."""
        found = [self._recalled(problem, questions) for problem, questions in asked]
        open_questions = [
            (problem, missing) for (problem, _), (_, missing) in zip(asked, found, strict=True) if missing
        ]
        jobs = [
            program_job(problem, problem.solution, order, self._limits)
            for problem, missing in open_questions
            for order in (missing, missing[::-1])
        ]
        reports = iter(self._sandbox.run(jobs) if jobs else ())
        for (problem, _), (known, missing) in zip(asked, found, strict=True):
            if missing:
                forward, backward = _outcomes(next(reports)), _outcomes(next(reports))[::-1]
                new = {q: TwoRuns(*runs) for q, *runs in zip(missing, forward, backward, strict=True)}
                known.update(new)
                self._remember(problem, new)
        return [known for known, _ in found]

    def _recalled(
        self, problem: Problem, questions: Iterable[Question]
    ) -> tuple[dict[Question, TwoRuns], list[Question]]:
        with self._lock:
            known = self._known.get(_key(problem), {})
            recalled: dict[Question, TwoRuns] = {}
            missing = []
            for question in dict.fromkeys(questions):
                runs = known.get(question)
                if runs is None:
                    missing.append(question)
                else:
                    recalled[question] = runs
        return recalled, missing

    def _remember(self, problem: Problem, new: dict[Question, TwoRuns]) -> None:
        with self._lock:
            known = self._known.setdefault(_key(problem), {})
            known.update((question, runs) for question, runs in new.items() if not runs.internal_error)
            self._known.move_to_end(_key(problem))
            while len(self._known) > 1 and sum(map(len, self._known.values())) > _MAX_REMEMBERED:
                self._known.popitem(last=False)
            if len(known) > _MAX_REMEMBERED:
                known.clear()


def program_job(problem: Problem, program: str, questions: Iterable[Question], limits: Limits) -> Job:
    """Return the job that puts the questions to a program.

    The statement's imports are everyone's: the program's, and those of tests that use them unasked.
    """
    calls = tuple(question.to_call() for question in questions)
    return Job(program, problem.entry_point, calls, problem.imports, Harness(problem.imports), limits)


def questions_of(suite: Suite) -> Iterable[Question]:
    """Yield what a suite asks of the solution: each case, and each prediction."""
    for case in suite.cases:
        yield Question.of_case(case)
        if case.prediction is not None:
            yield Question.of_prediction(case)


def _key(problem: Problem) -> tuple[str, ...]:
    return (problem.id, problem.entry_point, problem.imports, problem.solution)


def _outcomes(report: JobReport) -> tuple[Outcome, ...]:
    """A solution that does not load answers every question with why."""
    return report.outcomes if report.loaded else (report.load,) * len(report.outcomes)


@lru_cache(maxsize=4096)
def _is_literal(source: str) -> bool:
    return is_direct_call(f"f({source})", "f")
