"""Computes the curves of judged candidates: means over problems with intervals, per bin of steps. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from math import isnan, nan

from codea1_agents.play.summary import MEASURES, mean, new_cases
from codea1_agents.statistics import mean_interval
from codea1_env.facts.verdicts import Verdict
from codea1_env.rendering import SYMBOLS
from codea1_env.runs.records import RoundRecord
from codea1_lab.report.material import (
    MAX_BINS,
    Group,
    Panel,
    PanelSpec,
    Point,
    ProblemRow,
    Series,
    book_panels,
    by_role,
    reply_panels,
)
from codea1_lab.report.outcomes import Outcome, outcome_of
from codea1_lab.report.palette import TONES

_PANELS = (
    PanelSpec(
        "rewards",
        "Rewards",
        "Mean over problems; the band is the 95 % bootstrap interval over problems.",
        by_role("reward"),
    ),
    *reply_panels("candidate_validity", "kill_rate", {}),
)


@dataclass(slots=True)
class _Values:
    """The values of one bin of steps, or of one problem."""

    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """Measure -> problem -> values."""
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    book: dict[str, int] = field(default_factory=dict)
    """Problem -> number of its entries in the Mistake Book after its last round."""
    last_step: int = 0
    n_added: int = 0
    n_removed: int = 0
    n_evicted: int = 0

    def add(self, measure: str, problem_id: str, value: float | None) -> None:
        if value is not None and not isnan(value):
            self.values.setdefault(measure, {}).setdefault(problem_id, []).append(float(value))


class CurveTally:
    """Collects groups in order; then `panels` and `problem_rows` return the results."""

    def __init__(self, n_steps: int, axis: str, *, tests_per_suite: int) -> None:
        """Make a tally.

        Args:
            n_steps: number of the last step plus one.
            axis: label of the x axis.
            tests_per_suite: number of requested cases.
        """
        self._width = max(1, -(-n_steps // MAX_BINS))
        self._axis = axis
        self._tests_per_suite = tests_per_suite
        self._bins: dict[int, _Values] = {}
        self._reward_parts: dict[str, None] = {}
        self._by_problem: dict[str, _Values] = {}
        self._outcomes: dict[str, Counter[Outcome]] = {}

    def add(self, group: Group) -> None:
        """Add one group; steps must not decrease."""
        of_bin = self._bins.setdefault(group.step // self._width, _Values())
        of_bin.last_step = group.step
        of_problem = self._by_problem.setdefault(group.problem_id, _Values())
        outcomes = self._outcomes.setdefault(group.problem_id, Counter())
        for played in group.members.values():
            outcomes[outcome_of(played)] += 1
            for case in chain(new_cases(played), played.replayed):
                of_bin.verdicts[case.verdict] += 1
            if played.book is not None:
                of_bin.book[group.problem_id] = of_problem.book[group.problem_id] = played.book.size
                of_bin.n_added += played.book.added
                of_bin.n_removed += played.book.removed
                of_bin.n_evicted += played.book.evicted
            if played.rewards.coder.value is None:
                continue
            for name, measure in MEASURES.items():
                value = measure(played, self._tests_per_suite)
                of_bin.add(name, group.problem_id, value)
                of_problem.add(name, group.problem_id, value)
            self._add_reward_parts(of_bin, group.problem_id, played)

    def _add_reward_parts(self, of_bin: _Values, problem_id: str, played: RoundRecord) -> None:
        rewards = [("coder", played.rewards.coder)]
        if played.tester_reply is not None:
            rewards += [("tester", reward) for reward in played.rewards.testers]
        for role, reward in rewards:
            for each in reward.parts:
                name = f"{role} {each.name}"
                self._reward_parts.setdefault(name)
                of_bin.add(name, problem_id, each.weight * each.value)

    def panels(self) -> tuple[Panel, ...]:
        """Return the charts that have at least one curve."""
        specs = (*_PANELS, *(self._reward_parts_spec(role) for role in ("coder", "tester")))
        found = [spec.panel(self._points, self._axis) for spec in specs]
        return tuple(panel for panel in (*found, self._verdicts_panel(), *self._book_panels()) if panel.series)

    def problem_rows(self) -> tuple[ProblemRow, ...]:
        """Return one row per problem, the hardest for the coder first."""
        rows = []
        for problem_id, of_problem in self._by_problem.items():
            outcomes = self._outcomes[problem_id]
            valid = sum(outcomes.values()) - outcomes[Outcome.INVALID] - outcomes[Outcome.MASKED]
            means = {
                name: mean(of_problem.values.get(name, {}).get(problem_id, []))
                for name in ("coder_reward", "tester_reward")
            }
            rows.append(
                ProblemRow(
                    problem_id,
                    sum(outcomes.values()),
                    means["coder_reward"],
                    means["tester_reward"],
                    outcomes[Outcome.BEATEN] / valid if valid else nan,
                    of_problem.book.get(problem_id, 0),
                )
            )
        return tuple(sorted(rows, key=lambda row: (row.coder_reward, row.problem_id)))

    def _reward_parts_spec(self, role: str) -> PanelSpec:
        names = [name for name in self._reward_parts if name.startswith(f"{role} ")]
        curves = {name: (_curve_name(name), TONES[i % len(TONES)]) for i, name in enumerate(names)}
        note = f"Weight times value of each part of the {role}'s reward, over the rewards that have this part."
        return PanelSpec(f"{role}-parts", f"Parts of the {role}'s reward", note, curves)

    def _verdicts_panel(self) -> Panel:
        totals = {number: sum(of_bin.verdicts.values()) for number, of_bin in self._bins.items()}
        series = []
        for verdict in SYMBOLS:
            if not any(of_bin.verdicts[verdict] for of_bin in self._bins.values()):
                continue
            points = tuple(
                Point(of_bin.last_step, of_bin.verdicts[verdict] / totals[number], n=totals[number])
                for number, of_bin in sorted(self._bins.items())
                if totals[number]
            )
            series.append(Series(verdict.value.replace("_", " "), points, f"v-{verdict.value}"))
        note = "Share of all cases, new and replayed, by verdict."
        return Panel("verdicts", "Verdicts", note, tuple(series), self._axis, 0.0, 1.0, stacked=True)

    def _book_panels(self) -> list[Panel]:
        if not any(of_bin.book for of_bin in self._bins.values()):
            return []
        sizes: dict[str, int] = {}
        size: list[Point] = []
        moves: dict[str, list[Point]] = {"entered": [], "left": [], "pushed out": []}
        for _, of_bin in sorted(self._bins.items()):
            sizes |= of_bin.book
            size.append(Point(of_bin.last_step, sum(sizes.values())))
            for points, n in zip(moves.values(), (of_bin.n_added, of_bin.n_removed, of_bin.n_evicted), strict=True):
                points.append(Point(of_bin.last_step, n))
        return [*book_panels(size, moves, self._axis, "; an entry leaves when a program passes it")]

    def _points(self, measure: str) -> tuple[Point, ...]:
        points = []
        for _, of_bin in sorted(self._bins.items()):
            values = of_bin.values.get(measure)
            if values:
                found = mean_interval(values, n_resamples=1000)
                points.append(Point(of_bin.last_step, found.mean, found.low, found.high, found.n))
        return tuple(points)


def _curve_name(part: str) -> str:
    return part.partition(" ")[2].replace("_", " ")
