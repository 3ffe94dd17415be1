"""Scores a stored run under other reward rules, and counts how the advantages of GRPO change. Pure.

GRPO learns from advantages, whose signs and order within a group matter more than their size. So each setting has not
only mean rewards. It also counts the groups whose rewards differ, the advantages whose sign changes, the pairs of
rollouts that change their order, and the groups in which another rollout becomes the best. The verdicts stay those of
the run. How the agents would have changed under other rules is unknown, so this shows the first step under them, not a
whole run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from math import isnan, nan
from typing import TypeVar

import numpy as np

from codea1_agents.statistics import TIED, Estimate, OrderChange, difference_interval, mean_interval, order_change
from codea1_agents.train.grpo.advantages import group_advantages
from codea1_env.errors import UnknownName, UserError
from codea1_env.facts.verdicts import CandidateReport
from codea1_env.rules.reward_parts import CandidateRewards
from codea1_env.rules.rewards import score
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.runs.records import EpisodeRecord, RewardsRecord

PARAMETERS = ("alpha", "rules", "tests", "replay")
"""`RewardRules.alpha`, a preset's name, `tests_per_suite`, the share of replayed cases."""
_MAX_SETTINGS = 200


@dataclass(frozen=True, slots=True)
class Setting:
    """One scoring."""

    label: str
    rules: Ruleset
    replay: float = 1.0
    """Share of a candidate's replayed cases that count, in [0, 1]: the first ones in the order of retrieval."""
    values: tuple[tuple[str, str], ...] = ()
    """Parameters and their values."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """One candidate with its suites, and its group."""

    group: str
    """Advantages compare the candidates of one group."""
    problem_id: str
    report: CandidateReport

    def rewards(self, setting: Setting) -> CandidateRewards:
        """Return the rewards under a setting."""
        n_replayed = round(setting.replay * len(self.report.replayed))
        return score(replace(self.report, replayed=self.report.replayed[:n_replayed]), setting.rules)


@dataclass(frozen=True, slots=True)
class Signs:
    """How the signs of advantages change: counts of rollouts that neither scoring masks."""

    n: int
    n_flipped: int
    """From positive to negative, or from negative to positive."""
    n_vanished: int
    """From another value to 0."""
    n_appeared: int
    """From 0 to another value."""


@dataclass(frozen=True, slots=True)
class RoleEffect:
    """One role under one setting, compared with the rules of the run."""

    reward: Estimate
    difference: Estimate
    """After minus before, rollout by rollout."""
    n_groups: int
    """Groups with at least two rollouts that are not masked."""
    n_flat: int
    """Those of these groups whose rewards are all equal under the setting, so that all advantages are 0."""
    signs: Signs
    order: OrderChange
    """How the order changes of pairs of rollouts within a group."""
    n_other_best: int
    """Groups in which none of the best rollouts before is among the best rollouts after."""


@dataclass(frozen=True, slots=True)
class SettingEffect:
    """A setting and its effect on both roles."""

    setting: Setting
    coder: RoleEffect
    tester: RoleEffect


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


def settings_of(played: Ruleset, parameters: Mapping[str, Sequence[str]]) -> tuple[Setting, ...]:
    """Return every combination of the parameters' values, the last parameter fastest; of none, the rules themselves.

    Args:
        played: the rules of the run.
        parameters: one of `PARAMETERS` -> values as text.

    Raises:
        UserError: unknown parameter or preset, a value that is not a number or out of range, or too many combinations.
    """
    for name in parameters:
        if name not in PARAMETERS:
            raise UnknownName.of("parameter", name, PARAMETERS)
    found: list[Setting] = []
    for combination in product(*parameters.values()):
        if len(found) == _MAX_SETTINGS:
            raise UserError(f"more than {_MAX_SETTINGS} combinations: sweep fewer values")
        found.append(_setting(played, dict(zip(parameters, combination, strict=True))))
    return tuple(found)


def sweep(rollouts: Iterable[Rollout], played: Setting, settings: Sequence[Setting]) -> list[SettingEffect]:
    """Return the effect of each setting. Each rollout is scored once per setting and not kept.

    A coder's group is `Rollout.group`. A tester's group holds the suites of one candidate; if each candidate has a
    single suite, it holds the suites of all candidates of a group.

    Args:
        rollouts: in any order.
        played: the rules of the run.
        settings: compared with `played`.
    """
    base, others = _Scored(), [_Scored() for _ in settings]
    for rollout in rollouts:
        base.add(rollout, played)
        for scored, setting in zip(others, settings, strict=True):
            scored.add(rollout, setting)
    return [
        SettingEffect(setting, _effect(base.coder, scored.coder), _effect(base.tester, scored.tester))
        for setting, scored in zip(settings, others, strict=True)
    ]


def _setting(played: Ruleset, values: Mapping[str, str]) -> Setting:
    rules = played
    if "rules" in values:
        rules = with_rewards_of(played, preset(values["rules"]))
    if "alpha" in values:
        rules = replace(rules, reward=replace(rules.reward, alpha=_number("alpha", values["alpha"])))
    if "tests" in values:
        n = _number("tests", values["tests"])
        if n != int(n):
            raise UserError(f"tests must be a whole number, got {values['tests']}")
        rules = replace(rules, tests_per_suite=int(n))
    replay = _number("replay", values.get("replay", "1"))
    if not 0 <= replay <= 1:
        raise UserError(f"replay must be in [0, 1], got {values['replay']}")
    label = ", ".join(f"{name} {value}" for name, value in values.items())
    return Setting(label or described(rules), rules, replay, tuple(values.items()))


def described(rules: Ruleset) -> str:
    """Return the rules in a few words."""
    return f"{rules.name} (alpha {rules.reward.alpha:g}, {rules.tests_per_suite} tests per suite)"


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise UserError(f"{name} must be a number, got {text!r}") from error
    if isnan(value):
        raise UserError(f"{name} must be a number, got {text!r}")
    return value


@dataclass(slots=True)
class _Rewards:
    """One role's rewards under one setting."""

    by_problem: dict[str, list[float]]
    by_group: dict[str, list[float]]

    def add(self, problem_id: str, group: str, value: float) -> None:
        self.by_problem.setdefault(problem_id, []).append(value)
        self.by_group.setdefault(group, []).append(value)


class _Scored:
    """The rewards of both roles under one setting, by problem and by group."""

    def __init__(self) -> None:
        self.coder = _Rewards({}, {})
        self.tester = _Rewards({}, {})
        self._n = 0

    def add(self, rollout: Rollout, setting: Setting) -> None:
        rewards = rollout.rewards(setting)
        self._n += 1
        self.coder.add(rollout.problem_id, rollout.group, rewards.coder.value)
        if not rollout.report.is_valid:  # it was never given suites
            return
        alone = len(rewards.testers) == 1
        for reward in rewards.testers:
            self.tester.add(rollout.problem_id, rollout.group if alone else f"{rollout.group} {self._n}", reward.value)


def _effect(before: _Rewards, after: _Rewards) -> RoleEffect:
    signs, order, n_groups, n_flat, n_other_best = Signs(0, 0, 0, 0), OrderChange(0, 0, 0, 0), 0, 0, 0
    for group, old in before.by_group.items():
        new = after.by_group[group]
        signs = _added(signs, _signs(old, new))
        known = [(a, b) for a, b in zip(old, new, strict=True) if not (isnan(a) or isnan(b))]
        if len(known) < 2:
            continue
        olds, news = [a for a, _ in known], [b for _, b in known]
        n_groups += 1
        n_flat += not group_advantages(np.array(news)).is_trained.any()
        n_other_best += not _best(olds) & _best(news)
        order = _added(order, order_change(olds, news))
    return RoleEffect(
        reward=mean_interval(after.by_problem),
        difference=difference_interval(before.by_problem, after.by_problem),
        n_groups=n_groups,
        n_flat=n_flat,
        signs=signs,
        order=order,
        n_other_best=n_other_best,
    )


def _signs(before: Sequence[float], after: Sequence[float]) -> Signs:
    """Compare the signs of one group's advantages, which leave out masked rollouts, as in training."""
    known = [not (isnan(a) or isnan(b)) for a, b in zip(before, after, strict=True)]
    old, new = (
        np.sign(group_advantages(np.array([v if k else nan for v, k in zip(values, known, strict=True)])).values)
        for values in (before, after)
    )
    return Signs(
        n=sum(known),
        n_flipped=int(((old * new) < 0).sum()),
        n_vanished=int(((old != 0) & (new == 0)).sum()),
        n_appeared=int(((old == 0) & (new != 0)).sum()),
    )


def _best(values: Sequence[float]) -> set[int]:
    highest = max(values)
    return {position for position, value in enumerate(values) if value >= highest - TIED}


_Counts = TypeVar("_Counts", Signs, OrderChange)


def _added(first: _Counts, second: _Counts) -> _Counts:
    return type(first)(*(getattr(first, each.name) + getattr(second, each.name) for each in fields(first)))
