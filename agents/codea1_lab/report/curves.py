"""Computes the charts of games of fixed agents. Pure.

Nothing is learned from one game to the next, so a curve over games would draw lines between unrelated problems. The
charts show how a figure is distributed over problems instead; only the Mistake Book has a history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from math import floor, isnan

from codea1_agents.play.summary import new_cases
from codea1_agents.statistics import known_mean
from codea1_env.facts.verdicts import Verdict
from codea1_env.rendering import SYMBOLS
from codea1_lab.report.material import (
    BAR,
    MOVES,
    SHARE,
    Group,
    Panel,
    PanelSpec,
    Point,
    Series,
    book_panels,
    by_role,
    reply_panels,
)

_BARS = 10
"""Bars between 0 and 1; values far beyond are in the first or last of all bars."""
_FIRST, _LAST = -2 * _BARS, 3 * _BARS
_REMARK = " Each problem has the mean of its games; heights are shares of problems."
_ValuesByProblem = Mapping[str, Sequence[float]]

_PANELS = (
    PanelSpec("rewards", "Rewards", "The rewards.", by_role("reward")),
    *reply_panels("candidate_validity", {}),
)


@dataclass(slots=True)
class GameCharts:
    """Collects groups in order; then `panels` returns the charts."""

    _verdicts: Counter[Verdict] = field(default_factory=Counter)
    sizes: dict[str, int] = field(default_factory=dict)
    """Problem -> its entries in the Mistake Book."""
    _moves: Counter[str] = field(default_factory=Counter)
    """The changes of the book so far."""
    _book: list[tuple[int, Counter[str]]] = field(default_factory=list)
    """The same by episode."""

    def add(self, group: Group) -> None:
        """Add one group; steps must not decrease."""
        for played in group.members.values():
            self._verdicts.update(case.verdict for case in chain(new_cases(played), played.replayed))
            if (book := played.book) is not None:
                change = book.size - self.sizes.get(group.problem_id, 0)
                self._moves.update(dict(zip(MOVES, (book.added, book.removed, book.evicted), strict=True)), size=change)
                self.sizes[group.problem_id] = book.size
                self._book.append((group.step, self._moves.copy()))

    def panels(self, measures: Mapping[str, _ValuesByProblem]) -> tuple[Panel, ...]:
        """Return the charts that have something to show.

        Args:
            measures: figure of `codea1_agents.play.summary` -> problem -> values.
        """
        points_of = partial(_bars_of, measures)
        panels = [spec.panel(points_of, "mean of a problem", remark=_REMARK, bar_width=1 / _BARS) for spec in _PANELS]
        return tuple(panel for panel in (*panels, self._of_verdicts(), *self._of_book()) if panel.series)

    def _of_verdicts(self) -> Panel:
        n = self._verdicts.total()
        points = {
            verdict: (Point(0.0, self._verdicts[verdict] / n, n=n),) for verdict in SYMBOLS if self._verdicts[verdict]
        }
        series = tuple(Series(name.replace("_", " "), shares, f"v-{name}") for name, shares in points.items())
        note = "Share of all cases by verdict."
        return Panel("verdicts", "Verdicts", note, series, "run", *SHARE, stacked=True, bar_width=BAR)

    def _of_book(self) -> Iterator[Panel]:
        points = {name: [Point(step, moves[name]) for step, moves in self._book] for name in ("size", *MOVES)}
        if self._book:
            yield from book_panels(points.pop("size"), points, "episode", "; an entry leaves when a program passes it")


def _bars_of(measures: Mapping[str, _ValuesByProblem], name: str) -> tuple[Point, ...]:
    """Return the share of problems by the mean of their values: bars of a tenth, from 0 to 1 or as far as needed."""
    means = [mean for mean in map(known_mean, measures.get(name, {}).values()) if not isnan(mean)]
    bars_of = (floor(mean * _BARS + 1e-9) - (mean == 1) for mean in means)
    counts = Counter(max(_FIRST, min(_LAST, bar)) for bar in bars_of)
    bars = range(min(0, *counts), max(_BARS - 1, *counts) + 1) if counts else ()
    return tuple(Point((bar + 0.5) / _BARS, counts[bar] / len(means), n=counts[bar]) for bar in bars)
