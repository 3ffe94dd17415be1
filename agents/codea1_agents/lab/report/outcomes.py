"""What became of a candidate, in one word. Pure."""

from __future__ import annotations

from enum import StrEnum

from codea1_agents.play.summary import new_cases
from codea1_env.facts.verdicts import Verdict
from codea1_env.runs.records import RoundRecord


class Outcome(StrEnum):
    """What the cases that a candidate met say about it; each candidate has exactly one."""

    PASSED = "passed all"
    """Valid, met at least one case, failed none."""
    BEATEN = "beaten by a new test"
    """Failed at least one case of its suites."""
    RELAPSED = "beaten by a replayed test only"
    """Failed none of its suites' cases, but one of the Mistake Book's."""
    INVALID = "invalid program"
    """Does not load."""
    NO_EVIDENCE = "no evidence"
    """Valid, but no case says anything about it."""
    MASKED = "masked"
    """Our own failure hides the truth."""


def outcome_of(played: RoundRecord) -> Outcome:
    """Return what became of the candidate of one judged round."""
    if played.rewards.coder.value is None:
        return Outcome.MASKED
    if played.candidate.verdict is not Verdict.PASSED:
        return Outcome.INVALID
    new = new_cases(played)
    if any(case.verdict.is_failure for case in new):
        return Outcome.BEATEN
    if any(case.verdict.is_failure for case in played.replayed):
        return Outcome.RELAPSED
    known = any(case.verdict is Verdict.PASSED for case in (*new, *played.replayed))
    return Outcome.PASSED if known else Outcome.NO_EVIDENCE
