"""What solutions return, found by two runs in two processes and remembered, so that candidates and rounds share it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import repeat

from codea1_env.facts.outcomes import Outcome, OutcomeKind
from codea1_env.facts.submissions import Suite, TestCase
from codea1_env.judging.vacuity import under_changes
from codea1_env.problems.problem import Problem
from codea1_env.rules.reading.direct_calls import is_direct_call
from codea1_env.rules.validation import SolutionEvidence
from codea1_env.sandbox.interface import LENGTHS_OF_EQUALS, SLEPT, Call, Harness, Job, JobReport, Limits, Place, Sandbox

_MAX_REMEMBERED = 65_536


def limits_of_solutions(limits: Limits) -> Limits:
    """Return what solutions must do with where candidates have `limits`.

    Otherwise a test could be so near to a limit that the solution passes, and a right program that is a little slower
    or larger fails.
    """
    return replace(
        limits,
        cpu_s=limits.cpu_s / 2,
        wall_s=limits.wall_s / 2,
        memory_mb=max(1, limits.memory_mb // 2),
        value_bytes=max(1, limits.value_bytes // LENGTHS_OF_EQUALS),
    )


def call_of_case(case: TestCase) -> Call:
    """Return what a case evaluates."""
    return _called(case.expression, case.imports, direct=case.direct)


def call_of_prediction(case: TestCase, max_bytes: int) -> Call | None:
    """Return what has to be evaluated to know what a case predicts; None if it predicts nothing or it is known.

    A literal harms nobody, so that it needs no second process. One that is longer than `max_bytes` is left to the
    sandbox, which says so.
    """
    if case.prediction is None or (case.predicted is not None and len(case.predicted) <= max_bytes):
        return None
    return _called(case.prediction, case.imports, direct=_is_literal(case.prediction))


def _called(expression: str, imports: tuple[str, ...], *, direct: bool) -> Call:
    return Call(expression) if direct else Call(expression, imports, Place.HARNESS)


Answers = Mapping[Call, SolutionEvidence]


@dataclass(frozen=True, slots=True)
class SuiteCalls:
    """What a suite asks of the solution."""

    calls: tuple[Call, ...]
    """One per case."""
    predictions: tuple[Call | None, ...]
    """One per case; None where nothing has to be evaluated."""

    @classmethod
    def of(cls, suite: Suite, max_bytes: int) -> SuiteCalls:
        """Return what a suite asks under a bound on the length of values."""
        cases = suite.cases
        predictions = tuple(call_of_prediction(case, max_bytes) for case in cases)
        return cls(tuple(map(call_of_case, cases)), predictions)

    def __iter__(self) -> Iterator[Call]:
        yield from self.calls
        yield from filter(None, self.predictions)

    def evidence(self, answers: Answers) -> list[SolutionEvidence]:
        """Return what the solution did with each case."""
        return [
            answers[call] if prediction is None else answers[call]._replace(prediction=answers[prediction].first)
            for call, prediction in zip(self.calls, self.predictions, strict=True)
        ]


class SolutionValues:
    """Remembers up to 65,536 answers, the problems used last. Thread-safe; our own failures are never remembered."""

    def __init__(self, sandbox: Sandbox, limits: Limits, *, finds_vacuous: bool = False) -> None:
        """Make an empty memory.

        Args:
            sandbox: where the solutions run.
            limits: of solutions.
            finds_vacuous: whether to look for cases that test nothing (`Ruleset.drop_vacuous`).
        """
        self._sandbox = sandbox
        self._limits = limits
        self._finds_vacuous = finds_vacuous
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, ...], dict[Call, SolutionEvidence]] = OrderedDict()

    def answers(self, asked: Sequence[tuple[Problem, Iterable[Call]]]) -> list[Answers]:
        """Return all answers to the questions about each problem, in the order of `asked`."""
        found = [self._recalled(problem, questions) for problem, questions in asked]
        open_questions = [
            (problem, missing) for (problem, _), (_, missing) in zip(asked, found, strict=True) if missing
        ]
        answered = iter(self._found_out(open_questions))
        for (problem, _), (known, missing) in zip(asked, found, strict=True):
            if missing:
                new = next(answered)
                known.update(new)
                self._remember(problem, new)
        return [known for known, _ in found]

    def _found_out(self, asked: Sequence[tuple[Problem, Sequence[Call]]]) -> list[dict[Call, SolutionEvidence]]:
        """Ask all questions about a problem together, and those once more that only their company left unanswered."""
        found = self._put(asked)
        again = [
            (position, questions)
            for position, answers in enumerate(found)
            for questions in _apart(answers, self._limits.max_restarts + 1)
        ]
        answered = self._put([(asked[position][0], questions) for position, questions in again])
        for (position, _), answers in zip(again, answered, strict=True):
            found[position].update(answers)
        if self._finds_vacuous:
            self._find_vacuous([problem for problem, _ in asked], found)
        return found

    def _find_vacuous(self, problems: Sequence[Problem], found: Sequence[dict[Call, SolutionEvidence]]) -> None:
        """Add to the evidence what becomes of it when the solution's answers are changed."""
        answered = list(zip(problems, found, strict=True))
        for answers, changes in zip(found, under_changes(answered, self._sandbox, self._limits), strict=True):
            answers.update({call: answers[call]._replace(under_changes=each) for call, each in changes.items()})

    def _put(self, asked: Sequence[tuple[Problem, Sequence[Call]]]) -> list[dict[Call, SolutionEvidence]]:
        jobs = [
            job
            for problem, questions in asked
            for job in _both_orders(program_job(problem, problem.solution, questions, self._limits))
        ]
        reports = iter(self._sandbox.run(jobs) if jobs else ())
        found = []
        for _, questions in asked:
            first, second = next(reports), next(reports)
            calls = first.entry_point_calls or ((),) * len(questions)
            evidence = map(SolutionEvidence, _outcomes(first), _outcomes(second)[::-1], repeat(None), calls)
            found.append(dict(zip(questions, evidence, strict=False)))
        return found

    def _recalled(self, problem: Problem, questions: Iterable[Call]) -> tuple[dict[Call, SolutionEvidence], list[Call]]:
        distinct = dict.fromkeys(questions)
        with self._lock:
            known = self._known.get(_key(problem), {})
            recalled = {question: known[question] for question in distinct if question in known}
        return recalled, [question for question in distinct if question not in recalled]

    def _remember(self, problem: Problem, new: dict[Call, SolutionEvidence]) -> None:
        with self._lock:
            known = self._known.setdefault(_key(problem), {})
            known.update(
                (question, runs)
                for question, runs in new.items()
                if not runs.internal_error and runs.under_changes.is_known
            )
            self._known.move_to_end(_key(problem))
            while len(self._known) > 1 and sum(map(len, self._known.values())) > _MAX_REMEMBERED:
                self._known.popitem(last=False)
            if len(known) > _MAX_REMEMBERED:
                known.clear()


def program_job(problem: Problem, program: str, calls: Iterable[Call], limits: Limits) -> Job:
    """Return the job that asks a program for all calls.

    The statement's imports are everyone's: the program's, and those of tests that use them unasked.
    """
    harness = Harness(problem.imports, is_trusted=False)
    return Job(program, problem.entry_point, tuple(calls), problem.imports, harness, limits)


def _both_orders(job: Job) -> tuple[Job, Job]:
    return job, replace(job, calls=job.calls[::-1])


def _apart(answers: Answers, n_together: int) -> Iterator[tuple[Call, ...]]:
    """Yield what must be asked again, in groups that cannot keep each other from an answer.

    A tester's suites share the solution's process with those of others. Calls that hang use up its restarts, so that
    the rest is not run; calls whose memory is kept leave too little for the others; all share in the time to sleep.
    """
    if len(answers) == 1:
        return
    kinds = {
        question: (runs.first.kind, runs.second.kind)
        for question, runs in answers.items()
        if runs.first.value is None or runs.second.value is None
    }
    unheard = [question for question, ended in kinds.items() if OutcomeKind.NOT_RUN in ended]
    for start in range(0, len(unheard), n_together):
        yield tuple(unheard[start : start + n_together])
    slept = {each for each in kinds if SLEPT in (answers[each].first.error_type, answers[each].second.error_type)}
    yield from (
        (question,)
        for question, ended in kinds.items()
        if (OutcomeKind.MEMORY_LIMIT in ended or question in slept) and OutcomeKind.NOT_RUN not in ended
    )


def _key(problem: Problem) -> tuple[str, ...]:
    return (problem.id, problem.entry_point, problem.imports, problem.solution)


def _outcomes(report: JobReport) -> tuple[Outcome, ...]:
    """A solution that does not load answers every question with why."""
    return report.outcomes if report.loaded else (report.load,) * len(report.outcomes)


@lru_cache(maxsize=4096)
def _is_literal(source: str) -> bool:
    return is_direct_call(f"f({source})", "f")
