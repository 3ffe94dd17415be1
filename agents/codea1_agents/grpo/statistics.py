"""What a tree tells about the state of the game, as numbers that are averaged over trees."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from codea1_agents.grpo.trees import Tree
from codea1_env.verdicts import CaseReport, Verdict

__all__ = ["told_of"]


def told_of(tree: Tree) -> dict[str, float]:
    """Return the figures of one tree; those that it says nothing about are left out.

    Rewards and their parts are means over what is not masked; shares lie in [0, 1]; lengths are in tokens.
    """
    return {name: float(value) for name, value in _figures(tree) if not math.isnan(value)}


def _figures(tree: Tree) -> Iterator[tuple[str, float]]:
    yield "coder_reward", _mean(tree.coder_rewards.ravel())
    yield "tester_reward", _mean(tree.tester_rewards.ravel())
    yield "coder_spread_share", float(tree.coder.is_trained.any())
    yield "tester_spread_share", _mean(tree.tester.is_trained.max(axis=-1).ravel())
    yield "masked_share", _mean(np.isnan(tree.coder_rewards))
    for role, answers in (("coder", tree.candidates), ("tester", tuple(a for group in tree.suites for a in group))):
        responses = [answer.response for answer in answers if answer.response is not None]
        yield f"{role}_tokens", _mean(len(each.tokens) for each in responses)
        yield f"{role}_cut_share", _mean(each.is_cut for each in responses)
    if tree.report is None:
        return
    candidates = tree.report.candidates
    yield "valid_candidates", _mean(each.is_valid for each in candidates)
    yield "pass_new", _mean(_passed(case for each in candidates for suite in each.suites for case in suite.cases))
    yield "pass_replayed", _mean(_passed(case for each in candidates for case in each.replayed))
    for name in ("validity", "adversarial"):
        parts = [
            part.value for each in tree.rewards for reward in each.testers for part in reward.parts if part.name == name
        ]
        yield name, _mean(parts)
    beaten = [any(case.verdict.is_failure for case in suite.cases) for each in candidates for suite in each.suites]
    yield "suites_that_beat", _mean(beaten)
    yield "golden_pass_rate", _mean(each.golden_pass_rate for each in candidates if each.golden_pass_rate is not None)
    texts = [suite.suite.cases for each in candidates for suite in each.suites]
    yield "distinct_suites", len(set(texts)) / len(texts) if texts else math.nan
    yield "distinct_programs", len({each.candidate.program for each in candidates}) / len(candidates)


def _passed(cases: Iterable[CaseReport]) -> list[bool]:
    return [
        case.verdict is Verdict.PASSED
        for case in cases
        if case.verdict not in (Verdict.NOT_RUN, Verdict.INTERNAL_ERROR)
    ]


def _mean(numbers: Iterable[float] | np.ndarray) -> float:
    known = [float(number) for number in numbers if not math.isnan(float(number))]
    return sum(known) / len(known) if known else math.nan
