"""Alarms: signs that a run is collapsing. Pure functions of the figures; each returns a sentence or an empty text.

They compare means over several steps, so one odd step raises no alarm. They read only the figures of `figures_of`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from codea1_agents.statistics import known_mean

Figures = Mapping[str, float]
History = Sequence[Figures]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Thresholds of the alarms. All shares lie in [0, 1]."""

    window: int = 8
    """Steps in a window, over which figures are averaged."""
    validity_fall: float = 0.1
    """Fall of suite validity from one window to the next, together with `difficulty_rise`."""
    difficulty_rise: float = 0.05
    """Rise of the share of suites that beat a program, together with `validity_fall`."""
    few_distinct: float = 0.2
    """Share of distinct suites, or of distinct programs, of a problem."""
    little_spread: float = 0.05
    """Share of groups whose rewards differ."""
    mostly_cut: float = 0.5
    """Share of replies that the token limit cuts."""
    kl_ceiling: float = 1.0
    """Nats per token."""
    kl_growth: float = 10.0
    """Factor over the divergence of the window before, if it is above a tenth of the ceiling."""
    mostly_masked: float = 0.2
    """Share of candidates without a verdict."""
    often_decided: float = 0.05
    """Share of cases that passed by equal answers only, or that are doubted."""
    often_rerun: float = 0.5
    """Share of cases that ran again; hanging programs raise it, too."""
    often_vacuous: float = 0.2
    """Share of tests that are vacuous."""


def alarms_of(history: History, thresholds: Thresholds | None = None) -> dict[str, str]:
    """Return the alarms after the last step of a history, by name."""
    rules = thresholds or Thresholds()
    found = {name: alarm(history, rules) for name, alarm in ALARMS.items()}
    return {name: sentence for name, sentence in found.items() if sentence}


def _hacked_difficulty(history: History, rules: Thresholds) -> str:
    """Whether tests get harder to pass because they get worse, so invalid tests earn rewards."""
    before, now = _windows(history, rules)
    fall = _mean(before, "suite_validity") - _mean(now, "suite_validity")
    rise = _mean(now, "suites_that_beat") - _mean(before, "suites_that_beat")
    if fall >= rules.validity_fall and rise >= rules.difficulty_rise:
        return f"suite validity fell by {fall:.2f} while the share of suites that beat a program rose by {rise:.2f}"
    return ""


@dataclass(frozen=True, slots=True)
class _ShareAlarm:
    """An alarm about a share that is beyond its threshold."""

    figure: str
    threshold: str
    sentence: str
    is_least: bool = False
    """Whether the alarm is raised at or below the threshold, instead of at or above it."""

    def __call__(self, history: History, rules: Thresholds) -> str:
        share = _mean(_windows(history, rules)[1], self.figure)
        limit = getattr(rules, self.threshold)
        return self.sentence.format(share) if (share <= limit if self.is_least else share >= limit) else ""


def _distinct(what: str) -> _ShareAlarm:
    sentence = f"only {{:.0%}} of a problem's {what} are distinct"
    return _ShareAlarm(f"distinct_{what}", "few_distinct", sentence, is_least=True)


def _spread(role: str) -> _ShareAlarm:
    sentence = f"rewards differ in {{:.0%}} of the {role}'s groups only: the others train nothing"
    return _ShareAlarm(f"{role}_spread_share", "little_spread", sentence, is_least=True)


def _cut(role: str) -> _ShareAlarm:
    return _ShareAlarm(f"{role}_cut_share", "mostly_cut", f"{{:.0%}} of the {role}'s replies are cut at their limit")


def _cases(figure: str, threshold: str, sentence: str) -> _ShareAlarm:
    """Return an alarm about a rule for rare cases that an agent may exploit."""
    return _ShareAlarm(figure, threshold, f"{{:.0%}} of the cases {sentence}")


def _divergence(history: History, rules: Thresholds) -> str:
    before, now = _windows(history, rules)
    for name in sorted(name for name in (history[-1] if history else ()) if name.endswith("_kl")):
        module, kl, former = name.removesuffix("_kl"), _mean(now, name), _mean(before, name)
        if kl >= rules.kl_ceiling:
            return f"the {module} is {kl:.2f} nats per token from the model as it was loaded"
        if kl >= rules.kl_ceiling / 10 and kl >= rules.kl_growth * former:
            return f"the {module}'s divergence grew from {former:.3f} to {kl:.3f} nats per token"
    return ""


ALARMS: dict[str, Callable[[History, Thresholds], str]] = {
    "hacked_difficulty": _hacked_difficulty,
    "equal_suites": _distinct("suites"),
    "equal_programs": _distinct("programs"),
    "no_spread_coder": _spread("coder"),
    "no_spread_tester": _spread("tester"),
    "cut_coder": _cut("coder"),
    "cut_tester": _cut("tester"),
    "divergence": _divergence,
    "masked": _ShareAlarm(
        "masked_share", "mostly_masked", "{:.0%} of the candidates are masked: sandbox or agents fail"
    ),
    "equal_answers": _cases("equal_answers_share", "often_decided", "pass by equal answers only, not by equal values"),
    "doubted": _cases(
        "doubted_share", "often_decided", "are no evidence: programs or tests make their result unknowable"
    ),
    "rerun": _cases("rerun_share", "often_rerun", "run again, for lack of memory, time or restarts"),
    "vacuous": _cases("vacuous_share", "often_vacuous", "hold whatever the program returns"),
}


def _windows(history: History, rules: Thresholds) -> tuple[History, History]:
    """Return the window before the last, and the last. A window is empty if the history is too short for it."""
    if len(history) < 2 * rules.window:
        return (), history[len(history) - rules.window :] if len(history) >= rules.window else ()
    return history[-2 * rules.window : -rules.window], history[-rules.window :]


def _mean(history: History, name: str) -> float:
    return known_mean(figures.get(name, math.nan) for figures in history)
