"""What a run shows, in two or three computed sentences: who gained, from what to what, and what to look at. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from typing import Any

from codea1_agents.play.summary import Summary
from codea1_agents.statistics import Estimate, mean_interval
from codea1_lab.report.material import ProblemRow

_TENTH, _HALF = 10, 0.5
_FEW = 3  # steps below which there is no first and no last part


def of_training(steps: Sequence[Mapping[str, Any]], lines: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return what a training shows.

    Args:
        steps: the lines of `metrics.jsonl` with figures, in order.
        lines: all lines.
    """
    found = [*_held_out([line for line in lines if line.get("evaluation")])]
    if len(steps) >= _FEW:
        size = max(1, len(steps) // _TENTH)
        first, last = steps[:size], steps[-size:]
        parts = [f"the {role}'s reward {_moved(first, last, f'{role}_reward')}" for role in ("coder", "tester")]
        if any(_known(first, f"{role}_reward") for role in ("coder", "tester")):
            found.append(f"In training, {' and '.join(parts)} (first and last {size} of {len(steps)} steps).")
        if _known(first, "kill_rate") and _known(last, "kill_rate"):
            found.append(f"The share of suites that beat a program {_moved(first, last, 'kill_rate')}.")
    alarms = {name: text for line in steps[-_TENTH:] for name, text in dict(line.get("alarms") or {}).items()}
    if alarms:
        found.append(f"Look first at: {next(iter(alarms.values()))}.")
    return tuple(found)


def _held_out(evaluated: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if len(evaluated) < 2:
        return
    first, last = evaluated[0], evaluated[-1]
    name = "coder_pass_at_1"
    before, after = first["evaluation"].get(name), last["evaluation"].get(name)
    if before is None or after is None:
        return
    best = max(evaluated, key=lambda line: line["evaluation"].get(name, -1.0))
    passed = f" after {best['evaluation'][name]:.3f} at step {best['step']}" if best["evaluation"][name] > after else ""
    word = "rose" if after > before else "fell" if after < before else "stayed"
    yield (
        f"On held-out problems the coder's pass@1 {word} from {before:.3f} to {after:.3f}{passed} "
        f"(steps {first['step']} to {last['step']}, {last['evaluation'].get('problems', 0):g} problems)."
    )


def _known(lines: Sequence[Mapping[str, Any]], name: str) -> dict[str, list[float]]:
    return {str(line["step"]): [line["figures"][name]] for line in lines if name in line["figures"]}


def _moved(first: Sequence[Mapping[str, Any]], last: Sequence[Mapping[str, Any]], name: str) -> str:
    before, after = (mean_interval(_known(lines, name)) for lines in (first, last))
    is_apart = before.high < after.low or after.high < before.low
    word = "rose" if after.mean > before.mean else "fell"
    return f"{word if is_apart else 'hardly moved,'} from {_told(before)} to {_told(after)}"


def _told(value: Estimate) -> str:
    return f"{value.mean:.2f}" + ("" if isnan(value.low) else f" ({value.low:.2f} to {value.high:.2f})")


def of_games(summary: Summary, rows: Sequence[ProblemRow], coder: str, tester: str) -> tuple[str, ...]:
    """Return what games of fixed agents show.

    Args:
        summary: of all episodes.
        rows: one per problem, the hardest for the coder first.
        coder: name of the coder.
        tester: name of the tester.
    """
    beaten, found = summary.kill_rate, []
    if not isnan(beaten.mean):
        ahead = tester if beaten.low > _HALF else coder if beaten.high < _HALF else ""
        interval = "" if isnan(beaten.low) else f" ({beaten.low:.0%} to {beaten.high:.0%})"
        wins = f"{ahead} wins more often: " if ahead else ""
        found.append(f"{wins}{tester}'s suites beat {beaten.mean:.0%} of the programs of {coder} that load{interval}.")
    earned = [(coder, summary.coder_reward), (tester, summary.tester_reward)]
    told = [f"{name} earns {_told(reward)}" for name, reward in earned if not isnan(reward.mean)]
    found += [f"{', '.join(told)}."] if told else []
    if rows and rows[0].coder_reward < 1:
        found.append(f"Look first at {rows[0].problem_id}, where the coder earns least ({rows[0].coder_reward:.2f}).")
    return tuple(found)
