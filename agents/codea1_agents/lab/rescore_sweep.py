"""What if: a stored run under many reward rules at once, and what that would have done to learning. Pure.

GRPO learns from advantages, and these are signs and orders within a group far more than sizes. So beside the mean
rewards this says, for each setting, in how many groups anything could have been learnt, whose advantages would have
had the other sign, which pairs of rollouts would have changed places, and how often another rollout would have been
the best of its group. Verdicts stay as they were found, and what the agents would have done differently is not known:
it is the first step under the other rules, not the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from math import isnan, nan
from typing import TypeVar

import numpy as np

from codea1_agents.lab.rescore import with_rewards_of
from codea1_agents.statistics import Estimate, OrderChange, difference_interval, mean_interval, order_change
from codea1_agents.train.grpo.grouping import group_advantages
from codea1_env.errors import UnknownName, UserError
from codea1_env.facts.verdicts import CandidateReport
from codea1_env.rules.rewards import score
from codea1_env.rules.ruleset import Ruleset, preset

DIALS = ("alpha", "rules", "tests", "replay")
"""What can be swept: `RewardRules.alpha`, presets by name, `tests_per_suite`, the share of replayed cases."""
_MAX_SETTINGS = 200


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to score."""

    label: str
    rules: Ruleset
    replay: float = 1.0
    """Share of a candidate's replayed cases that count, in [0, 1]: the first ones, as a smaller replay has it."""
    values: tuple[tuple[str, str], ...] = ()
    """The dials and what they stand at."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """One candidate with its suites, and whom it is compared with."""

    group: str
    """Candidates of one group are compared with each other."""
    problem_id: str
    report: CandidateReport


@dataclass(frozen=True, slots=True)
class Signs:
    """What became of the signs of advantages; counts of rollouts that are masked in neither scoring."""

    n: int = 0
    n_flipped: int = 0
    """Positive before and negative after, or the reverse."""
    n_vanished: int = 0
    """Not 0 before, 0 after."""
    n_appeared: int = 0
    """0 before, not 0 after."""


@dataclass(frozen=True, slots=True)
class RoleEffect:
    """One role under one setting, against the rules of the run."""

    reward: Estimate
    difference: Estimate
    """After minus before, rollout by rollout."""
    n_groups: int
    """Groups of at least two rollouts that are not masked."""
    n_flat: int
    """Of these, groups whose rewards are all equal under the setting: nothing could have been learnt from them."""
    signs: Signs
    order: OrderChange
    """Of pairs within groups."""
    n_other_best: int
    """Groups in which no rollout that was (one of) the best before is among the best after."""


@dataclass(frozen=True, slots=True)
class SettingEffect:
    """A setting, and what it does to either role."""

    setting: Setting
    coder: RoleEffect
    tester: RoleEffect


def settings_of(played: Ruleset, dials: Mapping[str, Sequence[str]]) -> tuple[Setting, ...]:
    """Return every combination of the dials' values, in order, the first dial slowest.

    Args:
        played: the rules of the run.
        dials: name of a dial -> values as text.

    Raises:
        UserError: unknown dial or preset, a value that is none, out of range, or too many combinations.
    """
    for name in dials:
        if name not in DIALS:
            raise UnknownName.of("dial", name, DIALS)
    found: list[Setting] = []
    for combination in product(*dials.values()):
        if len(found) == _MAX_SETTINGS:
            raise UserError(f"more than {_MAX_SETTINGS} combinations: sweep fewer values")
        found.append(_setting(played, dict(zip(dials, combination, strict=True))))
    return tuple(found)


def sweep(
    rollouts: Iterable[Rollout], played: Setting, settings: Sequence[Setting], *, seed: int = 0
) -> list[SettingEffect]:
    """Return what each setting does; every rollout is scored once per setting and then forgotten.

    A candidate's group is that of `Rollout.group`. Suites of one candidate are a group if it has several; where every
    candidate has one, the suites of the candidates' group are.

    Args:
        rollouts: in any order.
        played: the rules of the run.
        settings: what to compare them with.
        seed: of the intervals' resampling.
    """
    base, others = _Scored(), [_Scored() for _ in settings]
    for rollout in rollouts:
        base.add(rollout, played)
        for scored, setting in zip(others, settings, strict=True):
            scored.add(rollout, setting)
    return [
        SettingEffect(
            setting,
            _effect(base.coder, scored.coder, seed),
            _effect(base.tester, scored.tester, seed),
        )
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
            raise UserError(f"tests must be a whole number, not {values['tests']}")
        rules = replace(rules, tests_per_suite=int(n))
    replay = _number("replay", values.get("replay", "1"))
    if not 0 <= replay <= 1:
        raise UserError(f"replay must be within [0, 1], not {values['replay']}")
    label = ", ".join(f"{name} {value}" for name, value in values.items())
    return Setting(label, rules, replay, tuple(values.items()))


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise UserError(f"{name} must be a number, not {text!r}") from error
    if isnan(value):
        raise UserError(f"{name} must be a number, not {text!r}")
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
    """Rewards under one setting, as they are needed for means and for groups."""

    def __init__(self) -> None:
        self.coder = _Rewards({}, {})
        self.tester = _Rewards({}, {})
        self._n = 0

    def add(self, rollout: Rollout, setting: Setting) -> None:
        rewards = score(_with_fewer_replays(rollout.report, setting.replay), setting.rules)
        self._n += 1
        self.coder.add(rollout.problem_id, rollout.group, rewards.coder.value)
        if not rollout.report.is_valid:  # nobody wrote tests for it
            return
        alone = len(rewards.testers) == 1
        for reward in rewards.testers:
            self.tester.add(rollout.problem_id, rollout.group if alone else f"{rollout.group} {self._n}", reward.value)


def _with_fewer_replays(report: CandidateReport, share: float) -> CandidateReport:
    if share == 1:
        return report
    return replace(report, replayed=report.replayed[: round(share * len(report.replayed))])


def _effect(before: _Rewards, after: _Rewards, seed: int) -> RoleEffect:
    signs, order, n_groups, n_flat, n_other_best = Signs(), OrderChange(0, 0, 0, 0), 0, 0, 0
    for group, old in before.by_group.items():
        new = after.by_group[group]
        signs = _added(signs, _signs(old, new))
        known = [(a, b) for a, b in zip(old, new, strict=True) if not (isnan(a) or isnan(b))]
        if len(known) < 2:
            continue
        olds, news = [a for a, _ in known], [b for _, b in known]
        n_groups += 1
        n_flat += group_advantages(np.array(news)).n_flat
        n_other_best += not _best(olds) & _best(news)
        order = _added(order, order_change(olds, news))
    return RoleEffect(
        reward=mean_interval(after.by_problem, seed=seed),
        difference=difference_interval(before.by_problem, after.by_problem, seed=seed),
        n_groups=n_groups,
        n_flat=n_flat,
        signs=signs,
        order=order,
        n_other_best=n_other_best,
    )


def _signs(before: Sequence[float], after: Sequence[float]) -> Signs:
    """A masked rollout has no advantage, and the others of its group have theirs without it, as in training."""
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


def _best(values: Sequence[float], tolerance: float = 1e-9) -> set[int]:
    highest = max(values)
    return {position for position, value in enumerate(values) if value >= highest - tolerance}


_Counts = TypeVar("_Counts", Signs, OrderChange)


def _added(first: _Counts, second: _Counts) -> _Counts:
    return type(first)(*(getattr(first, each.name) + getattr(second, each.name) for each in fields(first)))
