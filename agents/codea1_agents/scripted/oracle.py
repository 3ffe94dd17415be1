"""Runs calls of a program in the sandbox, and caches the outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.judging.solution_values import RecentAnswers
from codea1_env.problems.problem import Problem
from codea1_env.sandbox.interface import Call, Job, Limits, Sandbox

_LIMITS = Limits(cpu_s=0.2, max_restarts=2)  # a slower call makes a poor test: the judge's host may be slower still
_KEPT_BYTES = 512  # of an outcome, apart from its values
_NO_OUTCOME = (OutcomeKind.INTERNAL_ERROR, OutcomeKind.NOT_RUN)


def subject_of(problem: Problem, program: str) -> Job:
    """Return the job of a program for a problem, without calls."""
    return Job(program, problem.entry_point, preamble=problem.imports, script=problem.script)


class Oracle:
    """Runs calls in a sandbox; a distinct call of a subject runs once as long as its outcome is in the cache."""

    def __init__(self, sandbox: Sandbox, *, limits: Limits | None = None) -> None:
        self._sandbox = sandbox
        self._limits = limits or _LIMITS
        self._known: RecentAnswers[Job, str, Outcome] = RecentAnswers()

    def outcomes(self, subject: Job, calls: Sequence[str]) -> list[Outcome]:
        """Return one outcome per call, in order.

        Args:
            subject: the program, as a job without calls.
            calls: sources of entry-point calls with literal arguments.

        Raises:
            SandboxError: the sandbox cannot be used at all.
        """
        return self.outcomes_of_each([subject], calls)[0]

    def outcomes_of_each(self, subjects: Sequence[Job], calls: Sequence[str]) -> list[list[Outcome]]:
        """Run the same calls on several subjects, in parallel if the sandbox can; return one row per subject.

        Raises:
            SandboxError: the sandbox cannot be used at all.
        """
        known = [self._known.of(subject) for subject in subjects]
        missing = [[call for call in dict.fromkeys(calls) if call not in cache] for cache in known]
        pairs = zip(subjects, missing, strict=True)
        jobs = [replace(job, calls=tuple(map(Call, texts)), limits=self._limits) for job, texts in pairs if texts]
        reports = iter(self._sandbox.run(jobs) if jobs else [])
        rows = []
        for subject, cache, texts in zip(subjects, known, missing, strict=True):
            new = dict(zip(texts, next(reports).outcomes, strict=True)) if texts else {}
            rows.append([cache.get(call) or new[call] for call in calls])
            final = {call: outcome for call, outcome in new.items() if outcome.kind not in _NO_OUTCOME}
            self._known.add(subject, final, lambda call, outcome: _KEPT_BYTES + len(call) + outcome.n_bytes)
        return rows
