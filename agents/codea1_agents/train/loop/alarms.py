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


WINDOW = 8
"""Steps in a window, over which figures are averaged."""
_VALIDITY_FALL = 0.1
"""Fall of suite validity from one window to the next, together with `_DIFFICULTY_RISE`."""
_DIFFICULTY_RISE = 0.05
"""Rise of the share of suites that beat a program, together with `_VALIDITY_FALL`."""
_FEW_DISTINCT = 0.2
"""Share of distinct suites, or of distinct programs, of a problem."""
_LITTLE_SPREAD = 0.05
"""Share of groups whose rewards differ."""
_MOSTLY_CUT = 0.5
"""Share of replies that the token limit cuts."""
_KL_CEILING = 1.0
"""Nats per token."""
_KL_GROWTH = 10.0
"""Factor over the divergence of the window before, if it is above a tenth of the ceiling."""
_MOSTLY_MASKED = 0.2
"""Share of candidates without a verdict."""
_OFTEN_DECIDED = 0.05
"""Share of cases that passed by equal answers only, or that are doubted."""
_OFTEN_RERUN = 0.5
"""Share of cases that ran again; hanging programs raise it, too."""
_OFTEN_VACUOUS = 0.2
"""Share of tests that are vacuous."""


def alarms_of(history: History) -> dict[str, str]:
    """Return the alarms after the last step of a history, by name."""
    found = {name: alarm(history) for name, alarm in ALARMS.items()}
    return {name: sentence for name, sentence in found.items() if sentence}


def _hacked_difficulty(history: History) -> str:
    """Whether tests get harder to pass because they get worse, so invalid tests earn rewards."""
    before, now = _windows(history)
    fall = _mean(before, "suite_validity") - _mean(now, "suite_validity")
    rise = _mean(now, "suites_that_beat") - _mean(before, "suites_that_beat")
    if fall >= _VALIDITY_FALL and rise >= _DIFFICULTY_RISE:
        return f"suite validity fell by {fall:.2f} while the share of suites that beat a program rose by {rise:.2f}"
    return ""


@dataclass(frozen=True, slots=True)
class _ShareAlarm:
    """An alarm about a share that is beyond its limit."""

    figure: str
    limit: float
    sentence: str
    is_least: bool = False
    """Whether the alarm is raised at or below the limit, instead of at or above it."""

    def __call__(self, history: History) -> str:
        share = _mean(_windows(history)[1], self.figure)
        return self.sentence.format(share) if (share <= self.limit if self.is_least else share >= self.limit) else ""


def _distinct(what: str) -> _ShareAlarm:
    sentence = f"only {{:.0%}} of a problem's {what} are distinct"
    return _ShareAlarm(f"distinct_{what}", _FEW_DISTINCT, sentence, is_least=True)


def _spread(role: str) -> _ShareAlarm:
    sentence = f"rewards differ in {{:.0%}} of the {role}'s groups only: the others train nothing"
    return _ShareAlarm(f"{role}_spread_share", _LITTLE_SPREAD, sentence, is_least=True)


def _cut(role: str) -> _ShareAlarm:
    return _ShareAlarm(f"{role}_cut_share", _MOSTLY_CUT, f"{{:.0%}} of the {role}'s replies are cut at their limit")


def _cases(figure: str, limit: float, sentence: str) -> _ShareAlarm:
    """Return an alarm about a rule for rare cases that an agent may exploit."""
    return _ShareAlarm(figure, limit, f"{{:.0%}} of the cases {sentence}")


def _divergence(history: History) -> str:
    before, now = _windows(history)
    for name in sorted(name for name in (history[-1] if history else ()) if name.endswith("_kl")):
        module, kl, former = name.removesuffix("_kl"), _mean(now, name), _mean(before, name)
        if kl >= _KL_CEILING:
            return f"the {module} is {kl:.2f} nats per token from the model as it was loaded"
        if kl >= _KL_CEILING / 10 and kl >= _KL_GROWTH * former:
            return f"the {module}'s divergence grew from {former:.3f} to {kl:.3f} nats per token"
    return ""


ALARMS: dict[str, Callable[[History], str]] = {
    "hacked_difficulty": _hacked_difficulty,
    "equal_suites": _distinct("suites"),
    "equal_programs": _distinct("programs"),
    "no_spread_coder": _spread("coder"),
    "no_spread_tester": _spread("tester"),
    "cut_coder": _cut("coder"),
    "cut_tester": _cut("tester"),
    "divergence": _divergence,
    "masked": _ShareAlarm(
        "masked_share", _MOSTLY_MASKED, "{:.0%} of the candidates are masked: sandbox or agents fail"
    ),
    "equal_answers": _cases("equal_answers_share", _OFTEN_DECIDED, "pass by equal answers only, not by equal values"),
    "doubted": _cases(
        "doubted_share", _OFTEN_DECIDED, "are no evidence: programs or tests make their result unknowable"
    ),
    "rerun": _cases("rerun_share", _OFTEN_RERUN, "run again, for lack of memory, time or restarts"),
    "vacuous": _cases("vacuous_share", _OFTEN_VACUOUS, "hold whatever the program returns"),
}


def _windows(history: History) -> tuple[History, History]:
    """Return the window before the last, and the last. A window is empty if the history is too short for it."""
    if len(history) < 2 * WINDOW:
        return (), history[len(history) - WINDOW :] if len(history) >= WINDOW else ()
    return history[-2 * WINDOW : -WINDOW], history[-WINDOW:]


def _mean(history: History, name: str) -> float:
    return known_mean(figures.get(name, math.nan) for figures in history)
