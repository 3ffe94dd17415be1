"""How much validity and how many failures a suite is paid for under `fixed`, whose parameter `reward.credit` decides.

Of the first K cases of a suite, without those that the statement's examples answer (`pays_examples`):

- validity v = (right predictions + forgiven wrong ones) / K, and its level l = min(v / floor, 1)
- failures f = failed cases, of right and forgiven ones or (`wrong_answers`) of all, at most `most_kills`, / K
- the suite earns validity l and failures f * l^power * (1 - common), or no failures if v is below the gate

By default l = v, and f counts right cases of K: the rewards of `fixed`. In any case, a right prediction earns at least
as much as a wrong one for the same call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codea1_env.facts.verdicts import CaseReport
from codea1_env.rules.reward_parts import n_credited, n_failed, n_right, rewarded_cases
from codea1_env.rules.ruleset import CommonKills, Ruleset


@dataclass(frozen=True, slots=True)
class Credit:
    """What a suite is paid for, both in [0, 1]."""

    validity: float
    failures: float


def credits_of(
    suites: Sequence[tuple[CaseReport, ...]], fail_replayed: float | None, rules: Ruleset
) -> tuple[Credit, ...]:
    """Return what each suite against one candidate is paid for.

    Args:
        suites: (M,) the first K cases of each.
        fail_replayed: share of replayed cases that the candidate fails, in [0, 1]; None without replays.
        rules: K and `reward.credit`.
    """
    paid = [rewarded_cases(cases, rules) for cases in suites]
    return tuple(_credit(cases, _common(paid, n, fail_replayed, rules), rules) for n, cases in enumerate(paid))


def _credit(cases: tuple[CaseReport, ...], common: float, rules: Ruleset) -> Credit:
    credit, k = rules.reward.credit, rules.tests_per_suite
    right, killing = n_right(cases), n_credited(cases)
    forgiven = min(credit.forgiven, len(cases) - right, right)
    wrong_killing = n_failed(cases) - killing
    counted = killing + (wrong_killing if credit.wrong_answers else min(forgiven, wrong_killing))
    validity = (right + forgiven) / k
    level = min(validity / credit.floor, 1.0)
    if validity < credit.gate:
        return Credit(level, 0.0)
    failures = min(counted, credit.most_kills or k) / k
    return Credit(level, failures * level**credit.power * (1 - common))


def _common(
    suites: Sequence[tuple[CaseReport, ...]], number: int, fail_replayed: float | None, rules: Ruleset
) -> float:
    """Return how often the candidate fails anyway, in [0, 1], as far as suite `number` does not decide it."""
    match rules.reward.credit.common_kills:
        case CommonKills.IGNORED:
            return 0.0
        case CommonKills.BOOK:
            return fail_replayed or 0.0
        case CommonKills.GROUP:
            others = tuple(case for n, cases in enumerate(suites) for case in cases if n != number)
            return n_failed(others) / len(others) if others else 0.0
