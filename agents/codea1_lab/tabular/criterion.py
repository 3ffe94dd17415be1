"""Whether a tester gains by aiming at a bug instead of choosing an input without thought: the criterion h*.

A naive test has a right answer with probability v and, if so or not, fails the program with probability h. An aimed
test has a right answer with probability va, and fails the program with probability ha. Under the rules `fixed` a right
answer earns alpha, and 1 - alpha if the program fails as well: v (alpha + (1 - alpha) h). That is equal for naive and
aimed tests at ha = h*. Above it aiming pays, below it the tester retreats to safe inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

from codea1_env.errors import UserError


@dataclass(frozen=True, slots=True)
class Skill:
    """The skill of a tester.

    Raises:
        UserError: a probability is outside [0, 1], or an aimed test never has a right answer.
    """

    right_naive: float
    """Probability that the answer of a naive test is right (v)."""
    right_aimed: float
    """The same of an aimed test (va)."""

    def __post_init__(self) -> None:
        if not (0 <= self.right_naive <= 1 and 0 < self.right_aimed <= 1):
            raise UserError(f"right_naive must be in [0, 1] and right_aimed in (0, 1], got {self}")


def least_kill_rate(skill: Skill, kills_naive: float, alpha: float) -> float:
    """Return h*: how often an aimed test must fail the program so that aiming pays. Above 1: it never does.

    Args:
        skill: the tester's skill.
        kills_naive: how often a naive test fails the program (h), in [0, 1].
        alpha: weight of validity, in [0, 1); with a Mistake Book, that of `rules.rewards.alpha_with_book`.

    Raises:
        UserError: a number is out of its range.
    """
    if not (0 <= kills_naive <= 1 and 0 <= alpha < 1):
        raise UserError(f"kills_naive must be in [0, 1] and alpha in [0, 1), got {kills_naive:g} and {alpha:g}")
    v, va, odds = skill.right_naive, skill.right_aimed, alpha / (1 - alpha)
    return v / va * kills_naive + odds * (v - va) / va


def alpha_of_first_kill(alpha: float, tests_per_suite: int) -> float:
    """Return the weight for `reward.credit.most_kills` = 1 at which one failure is worth what K were worth at `alpha`.

    There a right answer earned alpha / K and all failures 1 - alpha; where only the first counts, it earns 1 / K of the
    other weight. So that weight is alpha / (alpha + K (1 - alpha)); advantages do not depend on scale.
    """
    return alpha / (alpha + tests_per_suite * (1 - alpha))
