"""What the environment knows when a round has been judged: the unit that is pictured, recorded and scored again."""

from __future__ import annotations

from dataclasses import dataclass

from codea1_env.facts.verdicts import ProblemReport
from codea1_env.problems.problem import Problem
from codea1_env.rules.mistake_book import BookDelta
from codea1_env.rules.reward_parts import CandidateRewards


@dataclass(frozen=True, slots=True)
class JudgedRound:
    """One round of one episode."""

    problem: Problem
    episode_id: str
    round: int
    """From 0."""
    coder_reply: str
    tester_reply: str | None
    """None where the tester was not asked, because the candidate is invalid."""
    report: ProblemReport
    """One candidate and one suite, which is empty where the tester was not asked."""
    rewards: CandidateRewards
    book: BookDelta | None
    """What this round changed in the Mistake Book; None where there is no book or the round is masked."""
