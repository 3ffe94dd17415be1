"""The funnel of tests: how many are written, and how many of them get how far, and why the others do not. Pure.

A tester can fail in many ways that all look like "it beats no program". The funnel tells them apart: each test that
does not kill has exactly one reason, and each reason belongs to one stage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from codea1_env.facts.submissions import RejectionReason
from codea1_env.facts.verdicts import Verdict

KILLING = "killing"
NOT_RIGHT = (
    RejectionReason.WRONG_PREDICTION,
    RejectionReason.SOLUTION_ERROR,
    RejectionReason.SOLUTION_TIME_LIMIT,
    RejectionReason.FLAKY,
    RejectionReason.OPAQUE_VALUE,
    RejectionReason.UNPASSABLE,
    RejectionReason.TOO_MANY_CALLS,
)
"""Reasons that keep a test that can be read from being right."""
_STAGES = ("read", "right", "not vacuous", "not a copy", KILLING)
_STAGE_OF: dict[str, str] = {
    **dict.fromkeys(NOT_RIGHT, "right"),
    RejectionReason.VACUOUS: "not vacuous",
    RejectionReason.DUPLICATE: "not a copy",
    "stated_example": "not a copy",
    RejectionReason.UNKNOWABLE: KILLING,
    "no_verdict": KILLING,
    "passed": KILLING,
}
"""The stage that a reason keeps a test from; reasons that are not named keep it from being read."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the funnel."""

    name: str
    n: int
    """Tests that reach it."""
    lost: Mapping[str, int]
    """Reasons why others reach only the stage before, the most frequent first."""


def count_tests(cases: Iterable[tuple[bool | None, bool, Verdict]], reasons: Iterable[RejectionReason]) -> Counter[str]:
    """Count the tests of a suite by the reason why they do not kill, and those that do as `KILLING`.

    Args:
        cases: of each kept case, whether its prediction is right, whether the examples hold it, and its verdict.
        reasons: of the rejections. A corrected case is among them as a wrong prediction, so it counts once.
    """
    counts = Counter(reason.value for reason in reasons)
    for is_right, is_example, verdict in cases:
        if is_right is not False:
            judged = KILLING if verdict.is_failure else "passed" if verdict is Verdict.PASSED else "no_verdict"
            counts["stated_example" if is_example else judged] += 1
    return counts


def funnel(counts: Mapping[str, int]) -> tuple[Stage, ...]:
    """Return the stages of sums of `count_tests`, from `written` to `killing`."""
    left = sum(counts.values())
    stages = [Stage("written", left, {})]
    for name in _STAGES:
        lost = {each: n for each, n in counts.items() if n and each != KILLING and _STAGE_OF.get(each, "read") == name}
        left -= sum(lost.values())
        stages.append(Stage(name, left, dict(sorted(lost.items(), key=lambda item: (-item[1], item[0])))))
    return tuple(stages)


def funnel_sentence(counts: Mapping[str, int]) -> str:
    """Return the funnel in one line: the stages, and the three most frequent reasons."""
    stages = funnel(counts)
    lost = sorted(((n, why) for stage in stages for why, n in stage.lost.items()), reverse=True)[:3]
    because = ", ".join(f"{why.replace('_', ' ')} {n:,}" for n, why in lost)
    return f"{', '.join(f'{stage.n:,} {stage.name}' for stage in stages)}{f'; lost: {because}' if because else ''}"
