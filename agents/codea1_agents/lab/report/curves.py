"""Judged candidates in, curves out: means over problems with intervals, in stretches of play. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from math import isnan, nan

from codea1_agents.lab.report.material import Group, Panel, Point, ProblemRow, Series, book_panels
from codea1_agents.lab.report.outcomes import Outcome, outcome_of
from codea1_agents.lab.report.palette import TONES
from codea1_agents.play.summary import MEASURES, mean, new_cases
from codea1_agents.statistics import mean_interval
from codea1_env.facts.verdicts import Verdict
from codea1_env.rendering import SYMBOLS
from codea1_env.runs.records import RoundRecord

_MAX_STRETCHES = 24


@dataclass(slots=True)
class _Stretch:
    """Values of one stretch of play: measure -> problem -> values."""

    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    book: dict[str, int] = field(default_factory=dict)
    """Entries of each problem after the stretch, where it was played."""
    last_step: int = 0
    n_added: int = 0
    n_removed: int = 0
    n_evicted: int = 0

    def add(self, measure: str, problem_id: str, value: float | None) -> None:
        if value is not None and not isnan(value):
            self.values.setdefault(measure, {}).setdefault(problem_id, []).append(float(value))


class CurveTally:
    """Takes in one group after the other, in order; `panels` may be asked for at the end."""

    def __init__(self, n_steps: int, axis: str, *, tests_per_suite: int) -> None:
        """Make a tally.

        Args:
            n_steps: number of the last step plus one.
            axis: what a step is.
            tests_per_suite: cases that a suite was asked for.
        """
        self._width = max(1, -(-n_steps // _MAX_STRETCHES))
        self._axis = axis
        self._tests_per_suite = tests_per_suite
        self._stretches: dict[int, _Stretch] = {}
        self._parts: dict[str, None] = {}
        self._by_problem: dict[str, _Stretch] = {}
        self._outcomes: dict[str, Counter[Outcome]] = {}

    def add(self, group: Group) -> None:
        """Take in one group."""
        stretch = self._stretches.setdefault(group.step // self._width, _Stretch())
        stretch.last_step = group.step
        of_problem = self._by_problem.setdefault(group.problem_id, _Stretch())
        outcomes = self._outcomes.setdefault(group.problem_id, Counter())
        for part in group.parts:
            played = part.played
            outcomes[outcome_of(played)] += 1
            for case in chain(new_cases(played), played.replayed):
                stretch.verdicts[case.verdict] += 1
            if played.book is not None:
                stretch.book[group.problem_id] = of_problem.book[group.problem_id] = played.book.size
                stretch.n_added += played.book.added
                stretch.n_removed += played.book.removed
                stretch.n_evicted += played.book.evicted
            if played.rewards.coder.value is None:
                continue
            for name, measure in MEASURES.items():
                value = measure(played, self._tests_per_suite)
                stretch.add(name, group.problem_id, value)
                of_problem.add(name, group.problem_id, value)
            self._add_parts(stretch, group.problem_id, played)

    def _add_parts(self, stretch: _Stretch, problem_id: str, played: RoundRecord) -> None:
        rewards = [("coder", played.rewards.coder)]
        if played.tester_reply is not None:
            rewards += [("tester", reward) for reward in played.rewards.testers]
        for role, reward in rewards:
            for each in reward.parts:
                name = f"{role} {each.name}"
                self._parts.setdefault(name)
                stretch.add(name, problem_id, each.weight * each.value)

    # -- what came out --

    def panels(self) -> tuple[Panel, ...]:
        """Return the charts that have something to show."""
        x = self._axis
        found = [
            self._panel(
                "rewards",
                "Rewards",
                "Mean over problems; the band is the 95 % bootstrap interval over problems.",
                {"coder_reward": ("coder", "coder"), "tester_reward": ("tester", "tester")},
            ),
            self._panel(
                "passes",
                "Programs",
                "Share of programs that load, and of cases that a valid program passes.",
                {
                    "candidate_validity": ("load", "t1"),
                    "pass_new": ("pass new", "coder"),
                    "pass_replayed": ("pass replayed", "t4"),
                },
                (0.0, 1.0),
            ),
            self._panel(
                "suites",
                "Suites",
                "Share of the tests asked for that the solution confirms, and of suites that beat a program.",
                {"suite_validity": ("valid", "t1"), "kill_rate": ("beat", "tester")},
                (0.0, 1.0),
            ),
            *(self._parts_panel(role) for role in ("coder", "tester")),
            self._verdicts_panel(x),
            *self._book_panels(x),
        ]
        return tuple(panel for panel in found if panel.series)

    def problem_rows(self) -> tuple[ProblemRow, ...]:
        """Return one line per problem, the hardest for the coder first."""
        rows = []
        for problem_id, stretch in self._by_problem.items():
            outcomes = self._outcomes[problem_id]
            valid = sum(outcomes.values()) - outcomes[Outcome.INVALID] - outcomes[Outcome.MASKED]
            means = {
                name: mean(stretch.values.get(name, {}).get(problem_id, []))
                for name in ("coder_reward", "tester_reward")
            }
            rows.append(
                ProblemRow(
                    problem_id,
                    sum(outcomes.values()),
                    means["coder_reward"],
                    means["tester_reward"],
                    outcomes[Outcome.BEATEN] / valid if valid else nan,
                    stretch.book.get(problem_id, 0),
                )
            )
        return tuple(sorted(rows, key=lambda row: (row.coder_reward, row.problem_id)))

    def _panel(
        self,
        key: str,
        title: str,
        note: str,
        measures: dict[str, tuple[str, str]],
        bounds: tuple[float | None, float | None] = (None, None),
    ) -> Panel:
        series = (Series(name, self._points(measure), tone) for measure, (name, tone) in measures.items())
        return Panel(key, title, note, tuple(s for s in series if s.points), self._axis, *bounds)

    def _parts_panel(self, role: str) -> Panel:
        names = [name for name in self._parts if name.startswith(f"{role} ")]
        measures = {name: (_words(name), TONES[i % len(TONES)]) for i, name in enumerate(names)}
        note = f"What each part adds to the {role}'s reward (weight times value), where it is part of it."
        return self._panel(f"{role}-parts", f"Parts of the {role}'s reward", note, measures)

    def _verdicts_panel(self, x: str) -> Panel:
        totals = {number: sum(stretch.verdicts.values()) for number, stretch in self._stretches.items()}
        series = []
        for verdict in SYMBOLS:
            if not any(stretch.verdicts[verdict] for stretch in self._stretches.values()):
                continue
            points = tuple(
                Point(stretch.last_step, stretch.verdicts[verdict] / totals[number], n=totals[number])
                for number, stretch in sorted(self._stretches.items())
                if totals[number]
            )
            series.append(Series(verdict.value.replace("_", " "), points, f"v-{verdict.value}"))
        note = "Share of all cases, new and replayed, by what they say about the program."
        return Panel("verdicts", "Verdicts", note, tuple(series), x, 0.0, 1.0, stacked=True)

    def _book_panels(self, x: str) -> list[Panel]:
        if not any(stretch.book for stretch in self._stretches.values()):
            return []
        sizes: dict[str, int] = {}
        size: list[Point] = []
        moves: dict[str, list[Point]] = {"entered": [], "left": [], "pushed out": []}
        for _, stretch in sorted(self._stretches.items()):
            sizes |= stretch.book
            size.append(Point(stretch.last_step, sum(sizes.values())))
            for points, n in zip(moves.values(), (stretch.n_added, stretch.n_removed, stretch.n_evicted), strict=True):
                points.append(Point(stretch.last_step, n))
        return [*book_panels(size, moves, x, "; an entry that a program passes leaves")]

    def _points(self, measure: str) -> tuple[Point, ...]:
        points = []
        for _, stretch in sorted(self._stretches.items()):
            values = stretch.values.get(measure)
            if values:
                found = mean_interval(values, n_resamples=1000)
                points.append(Point(stretch.last_step, found.mean, found.low, found.high, found.n))
        return tuple(points)


def _words(name: str) -> str:
    return name.partition(" ")[2].replace("_", " ")
