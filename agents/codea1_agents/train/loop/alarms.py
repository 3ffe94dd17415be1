"""Alarms: signs that a run is collapsing. Pure functions of the figures; each returns a sentence or an empty text.

A sentence says what is wrong and what to change. Alarms compare means over several steps, so one odd step raises none.
They read only the figures of `StepFacts.numbers`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from codea1_agents.statistics import known_mean

Figures = Mapping[str, float]
History = Sequence[Figures]
Alarm = Callable[[History], str]

WINDOW = 8
"""Steps in a window, over which figures are averaged."""
AT_ONCE = 3
"""Steps after which a share of exactly 0 or 1 raises its alarm before a window is full."""
_VALIDITY_FALL = 0.1
"""Fall of suite validity from one window to the next, together with `_DIFFICULTY_RISE`."""
_DIFFICULTY_RISE = 0.05
"""Rise of the share of suites that beat a program, together with `_VALIDITY_FALL`."""
_NO_VALIDITY = 0.02
"""Share of right cases in a suite."""
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
_LITTLE_ENTROPY = 0.02
"""Nats per token."""
_WIDE_GAP = 0.05
"""Nats per token between the log-probabilities of learner and sampler."""
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
    sentences = {name: alarm(history) for name, alarm in ALARMS.items()}
    return {name: sentence for name, sentence in sentences.items() if sentence}


def without_reward(history: History, n_steps: int) -> str:
    """Return why a run should end: in so many steps on end no program earned anything, so that none was better."""
    last = history[-n_steps:] if n_steps else ()
    names = ("coder_reward", "coder_spread_share")
    if len(last) < n_steps or not last or any(figures.get(name) != 0.0 for figures in last for name in names):
        return ""
    return (
        f"no_reward: the coder earned nothing in {n_steps} steps on end, so no program is better than another: begin "
        "with easier problems, a better model (codea1 check model) or a warm start (codea1 sft), or go on with "
        "run.give_up_after=0"
    )


def _hacked_difficulty(history: History) -> str:
    """Whether suites beat more programs and are right less often: harder inputs, or wrong answers that are paid."""
    before, now = _windows(history)
    fall = _mean(before, "suite_validity") - _mean(now, "suite_validity")
    rise = _mean(now, "kill_rate") - _mean(before, "kill_rate")
    if fall >= _VALIDITY_FALL and rise >= _DIFFICULTY_RISE:
        return (
            f"suite validity fell by {fall:.2f} while the share of suites that beat a program rose by {rise:.2f}:"
            " inputs became harder, or wrong answers are paid; codea1 eval tester --base says which (answers)"
        )
    return ""


def _share(figure: str, limit: float, sentence: str, *, is_least: bool = False) -> Alarm:
    """Return an alarm about a share at or above a limit; at or below it, if `is_least`."""

    def alarm(history: History) -> str:
        shares = [figures.get(figure, math.nan) for figures in history[-AT_ONCE:]]
        if len(shares) == AT_ONCE and set(shares) == {0.0 if is_least else 1.0}:
            return sentence.format(shares[0])
        share = _mean(_windows(history)[1], figure)
        return sentence.format(share) if (share <= limit if is_least else share >= limit) else ""

    return alarm


def _distinct(what: str) -> Alarm:
    sentence = f"only {{:.0%}} of a problem's {what} are distinct: raise training.entropy_coeff or lower training.lr"
    return _share(f"distinct_{what}", _FEW_DISTINCT, sentence, is_least=True)


def _spread(role: str, more: str) -> Alarm:
    sentence = (
        f"rewards differ in only {{:.0%}} of the {role}'s groups, and the others train nothing: raise rollout.{more},"
        " or choose problems that are neither always nor never solved"
    )
    return _share(f"{role}_spread_share", _LITTLE_SPREAD, sentence, is_least=True)


def _cut(role: str) -> Alarm:
    sentence = f"{{:.0%}} of the {role}'s replies are cut at their limit: raise agents.{role}.max_tokens"
    return _share(f"{role}_cut_share", _MOSTLY_CUT, sentence)


def _cases(figure: str, limit: float, sentence: str) -> Alarm:
    """Return an alarm about a rule for rare cases that an agent may exploit."""
    return _share(figure, limit, f"{{:.0%}} of the cases {sentence}")


def _divergence(history: History) -> str:
    before, now = _windows(history)
    for module, name in _of_modules(history, "kl"):
        kl, former = _mean(now, name), _mean(before, name)
        advice = "lower training.lr or raise training.kl_coeff"
        if kl >= _KL_CEILING:
            return f"the {module} is {kl:.2f} nats per token from the model as it was loaded: {advice}"
        if kl >= _KL_CEILING / 10 and kl >= _KL_GROWTH * former:
            return f"the {module}'s divergence grew from {former:.3f} to {kl:.3f} nats per token: {advice}"
    return ""


def _entropy(history: History) -> str:
    for module, name in _of_modules(history, "entropy"):
        if (entropy := _mean(_windows(history)[1], name)) <= _LITTLE_ENTROPY:
            advice = "raise training.entropy_coeff or lower training.lr"
            return f"the {module} has {entropy:.3f} nats of entropy per token, so it hardly varies: {advice}"
    return ""


def _sampler_gap(history: History) -> str:
    for module, name in _of_modules(history, "sampler_gap"):
        if (gap := _mean(_windows(history)[1], name)) >= _WIDE_GAP:
            advice = 'set sampling_dtype = "float32", or training.old_log_probs = "learner" with an tis_cap'
            return f"the {module}'s sampler and learner differ by {gap:.2f} nats per token: {advice}"
    return ""


def _of_modules(history: History, figure: str) -> list[tuple[str, str]]:
    """Return the modules that have a figure, each with the figure's whole name."""
    names = sorted(name for name in (history[-1] if history else ()) if name.endswith(f"_{figure}"))
    return [(name.removesuffix(f"_{figure}"), name) for name in names]


_LOOK = "read them with codea1 report"

ALARMS: dict[str, Alarm] = {
    "hacked_difficulty": _hacked_difficulty,
    "no_validity": _share(
        "suite_validity",
        _NO_VALIDITY,
        "{:.0%} of a suite's cases are right, so the tester earns nothing: warm it up with codea1 sft --role tester, or"
        " check rollout.prompts",
        is_least=True,
    ),
    "equal_suites": _distinct("suites"),
    "equal_programs": _distinct("programs"),
    "no_spread_coder": _spread("coder", "n_candidates"),
    "no_spread_tester": _spread("tester", "n_suites"),
    "cut_coder": _cut("coder"),
    "cut_tester": _cut("tester"),
    "divergence": _divergence,
    "entropy": _entropy,
    "sampler_gap": _sampler_gap,
    "masked": _share(
        "masked_share",
        _MOSTLY_MASKED,
        "{:.0%} of the candidates are masked, because the sandbox or an agent fails: run codea1 sandbox check",
    ),
    "masked_repairs": _share(
        "masked_share_turn_2",
        _MOSTLY_MASKED,
        "{:.0%} of the candidates in the second turn are masked: if codea1 sandbox check finds no fault, prompts with "
        "feedback are too long for agents.ROLE.max_prompt_tokens, or for the model",
    ),
    "equal_answers": _cases(
        "equal_answers_share", _OFTEN_DECIDED, f"pass by equal answers only, not by equal values: {_LOOK}"
    ),
    "doubted": _cases(
        "undecided_rate",
        _OFTEN_DECIDED,
        f"are not evidence, because programs or tests make their result unknowable: {_LOOK}",
    ),
    "rerun": _cases(
        "rerun_share", _OFTEN_RERUN, "run again, for lack of memory, time or restarts: raise game.limits, or run less"
    ),
    "vacuous": _cases("vacuous_share", _OFTEN_VACUOUS, f"hold whatever the program returns: {_LOOK}"),
}


def _windows(history: History) -> tuple[History, History]:
    """Return the window before the last, and the last. A window is empty if the history is too short for it."""
    if len(history) < 2 * WINDOW:
        return (), history[len(history) - WINDOW :] if len(history) >= WINDOW else ()
    return history[-2 * WINDOW : -WINDOW], history[-WINDOW:]


def _mean(history: History, name: str) -> float:
    return known_mean(figures.get(name, math.nan) for figures in history)
