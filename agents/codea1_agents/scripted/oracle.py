"""Runs calls of a program in the sandbox, and caches the outcomes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from codea1_env.facts.outcomes import Outcome, OutcomeKind
from codea1_env.facts.outputs import OutputForm
from codea1_env.problems.problem import Problem
from codea1_env.sandbox.interface import Call, Job, Limits, Sandbox

_LIMITS = Limits(cpu_s=0.2, max_restarts=2)  # a slower call makes a poor test: the judge's host may be slower still
_MAX_SUBJECTS = 256
_MAX_CALLS = 4096  # cached for one subject
_NO_OUTCOME = (OutcomeKind.INTERNAL_ERROR, OutcomeKind.NOT_RUN)


@dataclass(frozen=True, slots=True)
class Subject:
    """A program whose calls can be run."""

    program: str
    entry_point: str
    preamble: str = ""
    script: OutputForm | None = None
    """As in a `Job`."""

    @classmethod
    def of(cls, problem: Problem, program: str) -> Subject:
        """Return a program for a problem."""
        return cls(program, problem.entry_point, problem.imports, problem.script)


class Oracle:
    """Runs calls in a sandbox; a distinct call of a subject runs once as long as its outcome is in the cache."""

    def __init__(self, sandbox: Sandbox, *, limits: Limits = _LIMITS) -> None:
        self._sandbox = sandbox
        self._limits = limits
        self._known: OrderedDict[Subject, dict[str, Outcome]] = OrderedDict()

    def outcomes(self, subject: Subject, calls: Sequence[str]) -> list[Outcome]:
        """Return one outcome per call, in order.

        Args:
            subject: the program.
            calls: sources of entry-point calls with literal arguments.

        Raises:
            SandboxError: the sandbox cannot be used at all.
        """
        return self.outcomes_of_each([subject], calls)[0]

    def outcomes_of_each(self, subjects: Sequence[Subject], calls: Sequence[str]) -> list[list[Outcome]]:
        """Run the same calls of several subjects, in parallel if the sandbox can; return one row per subject.

        Raises:
            SandboxError: the sandbox cannot be used at all.
        """
        known = [self._cache(subject) for subject in subjects]
        missing = [[call for call in dict.fromkeys(calls) if call not in cache] for cache in known]
        pairs = zip(subjects, missing, strict=True)
        jobs = [self._job(subject, texts) for subject, texts in pairs if texts]
        reports = iter(self._sandbox.run(jobs) if jobs else [])
        rows = []
        for cache, texts in zip(known, missing, strict=True):
            new = dict(zip(texts, next(reports).outcomes, strict=True)) if texts else {}
            rows.append([cache.get(call) or new[call] for call in calls])
            cache.update((call, outcome) for call, outcome in new.items() if outcome.kind not in _NO_OUTCOME)
        return rows

    def _cache(self, subject: Subject) -> dict[str, Outcome]:
        cache = self._known.setdefault(subject, {})
        self._known.move_to_end(subject)
        if len(cache) > _MAX_CALLS:
            cache.clear()
        while len(self._known) > _MAX_SUBJECTS:
            self._known.popitem(last=False)
        return cache

    def _job(self, subject: Subject, calls: Sequence[str]) -> Job:
        return Job(
            subject.program,
            subject.entry_point,
            tuple(map(Call, calls)),
            preamble=subject.preamble,
            limits=self._limits,
            script=subject.script,
        )
