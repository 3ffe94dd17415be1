"""A judged round: the unit that is rendered, recorded and scored again."""

from __future__ import annotations

from dataclasses import dataclass

from codea1_env.facts.verdicts import ProblemReport
from codea1_env.problems.problem import Problem
from codea1_env.rules.mistake_book import BookDelta
from codea1_env.rules.rewards import CandidateRewards


@dataclass(frozen=True, slots=True)
class JudgedRound:
    """One round of one episode."""

    problem: Problem
    episode_id: str
    round: int
    """From 0."""
    coder_reply: str
    tester_reply: str | None
    """None where the tester had no turn, because the candidate is invalid."""
    report: ProblemReport
    """One candidate and one suite; the suite is empty where the tester had no turn."""
    rewards: CandidateRewards
    book: BookDelta | None
    """The changes of the Mistake Book in this round; None if there is no book, or a failure of ours or a missing reply
    masks the round."""

    def __repr__(self) -> str:
        paid = f"coder {self.rewards.coder.value:.3g}, tester {self.rewards.testers[0].value:.3g}"
        return f"<JudgedRound {self.round} of {self.problem.id:.60}: {paid}; {self.report.candidates[0]!r}>"
