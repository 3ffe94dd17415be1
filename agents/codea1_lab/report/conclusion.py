"""The conclusion from a run, in one to three computed sentences: who gained, and from what to what. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan, nan
from typing import Any

from codea1_agents.play.summary import Summary
from codea1_agents.statistics import WINDOW, Estimate, direction, known_mean
from codea1_lab.report.material import Figure

_HALF = 0.5
MUCH = 0.05
"""Share of programs without evidence from which the report warns."""


def of_training(
    figures: Mapping[str, Figure], steps: Sequence[Mapping[str, Any]], lines: Sequence[Mapping[str, Any]]
) -> tuple[str, ...]:
    """Return what a training shows.

    Args:
        figures: of the last part of the run and the first, by name.
        steps: the lines of `metrics.jsonl` with figures, in order.
        lines: all lines.
    """
    sentences = [*_pass_at_1_sentence(figures.get("pass_at_1"), [line for line in lines if line.get("evaluation")])]
    rewards = {role: figures[f"{role}_reward"] for role in ("coder", "tester") if f"{role}_reward" in figures}
    if rewards:
        parts = ", and ".join(f"the {role}'s reward {_change(figure)}" for role, figure in rewards.items())
        size = max(figure.value.n + figure.value.n_masked for figure in rewards.values())
        untested = known_mean(line["figures"].get("untested_share", nan) for line in steps[-size:])
        blind = f"; no case was evidence about {untested:.0%} of the last programs that load" * (untested >= MUCH)
        sentences.append(f"In training, {parts} (first and last {size} of {len(steps)} steps){blind}.")
    if "right_kill_rate" in figures:
        sentences.append(f"The share of suites that beat a program {_change(figures['right_kill_rate'])}.")
    elif "kill_rate" in figures:  # of a run before 2026-11-28
        sentences.append(
            f"The share of suites that beat a program, wrong answers too, {_change(figures['kill_rate'])}."
        )
    return tuple(sentences)


def _pass_at_1_sentence(figure: Figure | None, evaluated: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if figure is None or figure.before is None or figure.change is None:
        return
    last, name = evaluated[-1], "coder_pass_at_1"
    best = max(evaluated, key=lambda line: line["evaluation"].get(name, -1.0))
    most = best["evaluation"][name]
    passed = f", the best being {most:.3f} at step {best['step']}" if best not in (evaluated[0], last) else ""
    yield (
        f"On held-out problems the coder's pass@1 {_change(figure, 'problems', 3)}{passed}"
        f" (steps {evaluated[0]['step']} to {last['step']}, {last['evaluation'].get('problems', 0):g} problems)."
    )


def _change(figure: Figure, units: str = "steps", digits: int = 2) -> str:
    change, now = figure.change, _with_interval(figure.value, digits)
    if figure.before is None or change is None:
        is_late = figure.value.n + figure.value.n_masked >= WINDOW
        return f"is {now}, {'unknown in the first steps' if is_late else f'too few {units} to tell a change'}"
    word = direction(change)
    known = f"from {now}" if word == "did not change" else f"from {_with_interval(figure.before, digits)} to {now}"
    return f"{word} {known}" if word else f"went {known}, too few {units} to tell a change"


def _with_interval(value: Estimate, digits: int = 2) -> str:
    interval = "" if isnan(value.low) else f" ({value.low:.{digits}f} to {value.high:.{digits}f})"
    return f"{value.mean:.{digits}f}{interval}"


def of_games(summary: Summary, coder: str, tester: str) -> tuple[str, ...]:
    """Return what games of fixed agents show.

    Args:
        summary: of all episodes.
        coder: name of the coder.
        tester: name of the tester.
    """
    beaten, sentences = summary.right_kill_rate, []
    if not isnan(beaten.mean):
        ahead = tester if beaten.low > _HALF else coder if beaten.high < _HALF else ""
        interval = "" if isnan(beaten.low) else f" ({beaten.low:.0%} to {beaten.high:.0%})"
        wins = f"{ahead} wins more often: " if ahead else ""
        sentences.append(
            f"{wins}{tester}'s suites beat {beaten.mean:.0%} of the programs of {coder} that load{interval}."
        )
    earned = [(coder, summary.coder_reward), (tester, summary.tester_reward)]
    earnings = [f"{name} earns {_with_interval(reward)}" for name, reward in earned if not isnan(reward.mean)]
    sentences += [f"{', '.join(earnings)}."] if earnings else []
    return tuple(sentences)
