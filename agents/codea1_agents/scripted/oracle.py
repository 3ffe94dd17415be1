"""What a program returns for given calls, found out in the sandbox and remembered."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from codea1_env.facts.outcomes import Outcome, OutcomeKind
from codea1_env.problems.problem import Problem
from codea1_env.sandbox.interface import Call, Job, Limits, Sandbox

_LIMITS = Limits(cpu_s=0.2, max_restarts=2)  # a call that needs more is a poor test: a judge's host may be slower
_MAX_SUBJECTS = 256
_MAX_CALLS = 4096  # remembered for one subject
_NO_ANSWER = (OutcomeKind.INTERNAL_ERROR, OutcomeKind.NOT_RUN)


@dataclass(frozen=True, slots=True)
class Subject:
    """A program that can be asked."""

    program: str
    entry_point: str
    preamble: str = ""

    @classmethod
    def solution_of(cls, problem: Problem) -> Subject:
        """Return the problem's trusted solution."""
        return cls(problem.solution, problem.entry_point, problem.imports)


class Oracle:
    """Answers calls through a sandbox; each distinct call of a subject is run once as long as it is remembered."""

    def __init__(self, sandbox: Sandbox, *, limits: Limits = _LIMITS) -> None:
        self._sandbox = sandbox
        self._limits = limits
        self._known: OrderedDict[Subject, dict[str, Outcome]] = OrderedDict()

    def outcomes(self, subject: Subject, calls: Sequence[str]) -> list[Outcome]:
        """Return one outcome per call, in order.

        Args:
            subject: whom to ask.
            calls: sources of entry-point calls with literal arguments.

        Raises:
            SandboxError: the sandbox cannot be used at all.
        """
        return self.outcomes_of_each([subject], calls)[0]

    def outcomes_of_each(self, subjects: Sequence[Subject], calls: Sequence[str]) -> list[list[Outcome]]:
        """Ask several subjects the same calls, in parallel where the sandbox can; one row per subject.

        Raises:
            SandboxError: the sandbox cannot be used at all.
        """
        known = [self._memory(subject) for subject in subjects]
        missing = [[call for call in dict.fromkeys(calls) if call not in memory] for memory in known]
        pairs = zip(subjects, missing, strict=True)
        jobs = [self._job(subject, texts) for subject, texts in pairs if texts]
        reports = iter(self._sandbox.run(jobs) if jobs else [])
        answers = []
        for memory, texts in zip(known, missing, strict=True):
            new = dict(zip(texts, next(reports).outcomes, strict=True)) if texts else {}
            answers.append([memory.get(call) or new[call] for call in calls])
            memory.update((call, outcome) for call, outcome in new.items() if outcome.kind not in _NO_ANSWER)
        return answers

    def _memory(self, subject: Subject) -> dict[str, Outcome]:
        memory = self._known.setdefault(subject, {})
        self._known.move_to_end(subject)
        if len(memory) > _MAX_CALLS:
            memory.clear()
        while len(self._known) > _MAX_SUBJECTS:
            self._known.popitem(last=False)
        return memory

    def _job(self, subject: Subject, calls: Sequence[str]) -> Job:
        return Job(
            subject.program,
            subject.entry_point,
            tuple(map(Call, calls)),
            preamble=subject.preamble,
            limits=self._limits,
        )
