"""Scores recorded games under other reward rules. Pure: it executes and writes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import isnan, nan

from codea1_agents.statistics import Estimate, OrderChange, difference_interval, known_mean, mean_interval, order_change
from codea1_env.errors import UserError
from codea1_env.rules.rewards import score
from codea1_env.rules.ruleset import Ruleset
from codea1_env.runs.records import EpisodeRecord, RewardRecord, RewardsRecord


@dataclass(frozen=True, slots=True)
class MovedProblem:
    """A problem's mean reward under two scorings, and its rank among all problems; 1 is the highest mean."""

    problem_id: str
    before: float
    after: float
    rank_before: int
    rank_after: int


@dataclass(frozen=True, slots=True)
class RoleComparison:
    """One role's rewards under two scorings of the same rounds."""

    before: Estimate
    after: Estimate
    difference: Estimate
    """After minus before, round by round."""
    order: OrderChange
    """How the order of the rounds changes."""
    moved: tuple[MovedProblem, ...]
    """Problems whose rank changed, the largest change first."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run under two scorings."""

    coder: RoleComparison
    tester: RoleComparison
    """Without the rounds in which the tester had no turn."""


def with_rewards_of(played: Ruleset, other: Ruleset) -> Ruleset:
    """Return the rules `played` with the reward formulas and `tests_per_suite` of `other`; all else stays.

    The verdicts of a run depend on the rest of its rules.

    Raises:
        UserError: `other` pays for golden tests, which the run did not execute.
    """
    if other.reward.needs_golden and not played.reward.needs_golden:
        raise UserError(
            f"rules {other.name} pay for golden tests, which this run has not executed: play with --rules {other.name}"
        )
    return replace(played, name=other.name, reward=other.reward, tests_per_suite=other.tests_per_suite)


def rescored(record: EpisodeRecord, rules: Ruleset) -> EpisodeRecord:
    """Return the episode with the rewards of `rules`; it equals the record if these are the rules of the run."""
    rounds = tuple(
        played.model_copy(update={"rewards": RewardsRecord.model_validate(score(played.to_report(), rules))})
        for played in record.rounds
    )
    return record.model_copy(update={"rounds": rounds})


def compare(pairs: Iterable[tuple[EpisodeRecord, EpisodeRecord]], *, seed: int = 0) -> Comparison:
    """Return how two scorings of the same episodes differ.

    Args:
        pairs: each episode under the first and the second scoring.
        seed: for the intervals' resampling.
    """
    coder, tester = _Rewards(), _Rewards()
    for before, after in pairs:
        for old, new in zip(before.rounds, after.rounds, strict=True):
            coder.add(before.problem_id, old.rewards.coder, new.rewards.coder)
            if old.tester_reply is not None:
                tester.add(before.problem_id, old.rewards.testers[0], new.rewards.testers[0])
    return Comparison(coder.comparison(seed), tester.comparison(seed))


class _Rewards:
    """One role's rewards under both scorings by problem, in the order of play."""

    def __init__(self) -> None:
        self._before: dict[str, list[float]] = {}
        self._after: dict[str, list[float]] = {}

    def add(self, problem_id: str, before: RewardRecord, after: RewardRecord) -> None:
        self._before.setdefault(problem_id, []).append(nan if before.value is None else before.value)
        self._after.setdefault(problem_id, []).append(nan if after.value is None else after.value)

    def comparison(self, seed: int) -> RoleComparison:
        return RoleComparison(
            before=mean_interval(self._before, seed=seed),
            after=mean_interval(self._after, seed=seed),
            difference=difference_interval(self._before, self._after, seed=seed),
            order=order_change(_flat(self._before), _flat(self._after)),
            moved=self._moved(),
        )

    def _moved(self) -> tuple[MovedProblem, ...]:
        before, after = _means(self._before), _means(self._after)
        known = [problem for problem in before if not (isnan(before[problem]) or isnan(after[problem]))]
        old, new = _ranks({p: before[p] for p in known}), _ranks({p: after[p] for p in known})
        moved = [MovedProblem(p, before[p], after[p], old[p], new[p]) for p in known if old[p] != new[p]]
        return tuple(sorted(moved, key=lambda each: (-abs(each.rank_after - each.rank_before), each.problem_id)))


def _flat(values: dict[str, list[float]]) -> list[float]:
    return [value for of_problem in values.values() for value in of_problem]


def _means(values: dict[str, list[float]]) -> dict[str, float]:
    return {problem: known_mean(of_problem) for problem, of_problem in values.items()}


def _ranks(means: dict[str, float]) -> dict[str, int]:
    """Return the rank of each problem, 1 for the highest mean; equal means share the better rank."""
    ordered = sorted((round(mean, 9) for mean in means.values()), reverse=True)
    rank: dict[float, int] = {}
    for position, mean in enumerate(ordered):
        rank.setdefault(mean, position + 1)
    return {problem: rank[round(mean, 9)] for problem, mean in means.items()}
