"""The outcome of a candidate. Pure."""

from __future__ import annotations

from enum import StrEnum

from codea1_agents.play.summary import can_win, new_cases
from codea1_env.facts.verdicts import Verdict
from codea1_env.runs.records import RoundRecord


class Outcome(StrEnum):
    """The result of all cases that a candidate ran; each candidate has exactly one outcome."""

    PASSED = "passed all"
    """It is valid, passed at least one case and failed none."""
    BEATEN = "beaten by a new test"
    """It failed at least one right case of its suites that copies no example."""
    RELAPSED = "beaten by a replayed test only"
    """It failed none of these, but a case of the Mistake Book."""
    INVALID = "invalid program"
    """It does not load."""
    NO_EVIDENCE = "no evidence"
    """It is valid, but no case is evidence about it."""
    MASKED = "masked"
    """The sandbox or an agent failed."""
    FAILED = "fails wrong or copied tests only"
    """It failed no other case."""


def outcome_of(played: RoundRecord) -> Outcome:
    """Return the outcome of the candidate of one judged round."""
    if played.rewards.coder.value is None:
        return Outcome.MASKED
    if played.candidate.verdict is not Verdict.PASSED:
        return Outcome.INVALID
    new = new_cases(played)
    if any(case.verdict.is_failure and can_win(case) for case in new):
        return Outcome.BEATEN
    if any(case.verdict.is_failure for case in played.replayed):
        return Outcome.RELAPSED
    if any(case.verdict.is_failure for case in new):
        return Outcome.FAILED
    known = any(case.verdict is Verdict.PASSED for case in (*new, *played.replayed))
    return Outcome.PASSED if known else Outcome.NO_EVIDENCE
