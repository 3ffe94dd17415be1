"""Back ends that are weak on purpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.sandbox import Guarantee, Job, JobReport
from codea1_env.values import encode

HARMLESS = {"f(21)": 42, "f('ab')": "abab", "f(1)": 499999500000}
Answer = Callable[[Job, str], Outcome]


class Scripted:
    """A back end that runs nothing: it answers harmless calls rightly, and all others as it is told."""

    name = "scripted"
    guarantee = Guarantee.TRUSTED_ONLY

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        loaded = Outcome(OutcomeKind.VALUE, encode(None))
        return [JobReport(loaded, tuple(self._one(job, call.expression) for call in job.calls)) for job in jobs]

    def _one(self, job: Job, expression: str) -> Outcome:
        if "NEEDLE" in job.program or "sum(range(" in job.program:
            return Outcome(OutcomeKind.VALUE, encode(HARMLESS[expression]))
        return self._answer(job, expression)

    def close(self) -> None:
        """Nothing to end."""
