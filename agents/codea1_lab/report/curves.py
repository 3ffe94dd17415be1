"""Computes the charts of games of fixed agents. Pure.

Nothing is learned from one game to the next, so a curve over games would draw lines between unrelated problems. The
charts show how a figure is distributed over problems instead; only the Mistake Book has a history.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from math import floor

from codea1_agents.play.summary import mean, new_cases
from codea1_env.facts.verdicts import Verdict
from codea1_env.rendering import SYMBOLS
from codea1_env.runs.records import RoundRecord
from codea1_lab.report.material import (
    MAX_BINS,
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
    *reply_panels("candidate_validity", "kill_rate", {}),
)


@dataclass(slots=True)
class _Moves:
    """What happened to the Mistake Book in one bin of episodes."""

    last_step: int = 0
    size: int = 0
    added: int = 0
    removed: int = 0
    evicted: int = 0


@dataclass(slots=True)
class GameCharts:
    """Collects groups in order; then `panels` returns the charts."""

    n_episodes: int
    _parts: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    """Role and part of its reward -> problem -> weighted values."""
    _verdicts: Counter[Verdict] = field(default_factory=Counter)
    _moves: dict[int, _Moves] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    """Problem -> its entries in the Mistake Book."""
    _n_entries: int = 0

    def add(self, group: Group) -> None:
        """Add one group; steps must not decrease."""
        for played in group.members.values():
            self._verdicts.update(case.verdict for case in chain(new_cases(played), played.replayed))
            if played.book is not None:
                moves = self._moves.setdefault(group.step // max(1, -(-self.n_episodes // MAX_BINS)), _Moves())
                self._n_entries += played.book.size - self.sizes.get(group.problem_id, 0)
                self.sizes[group.problem_id] = played.book.size
                moves.last_step, moves.size = group.step, self._n_entries
                for name in ("added", "removed", "evicted"):
                    setattr(moves, name, getattr(moves, name) + getattr(played.book, name))
            if played.rewards.coder.value is not None:
                self._add_parts(group.problem_id, played)

    def _add_parts(self, problem_id: str, played: RoundRecord) -> None:
        testers = played.rewards.testers if played.tester_reply is not None else ()
        for role, reward in (("coder", played.rewards.coder), *(("tester", each) for each in testers)):
            for part in reward.parts:
                self._parts[f"{role} {part.name}"][problem_id].append(part.weight * part.value)

    def panels(self, measures: Mapping[str, _ValuesByProblem]) -> tuple[Panel, ...]:
        """Return the charts that have something to show.

        Args:
            measures: figure of `codea1_agents.play.summary` -> problem -> values.
        """
        known = {**measures, **self._parts}
        found = []
        for spec in (*_PANELS, *map(self._of_parts, ("coder", "tester"))):
            panel = spec.panel(partial(_bars_of, known), "mean of a problem", remark=_REMARK, bar_width=1 / _BARS)
            found.append(panel)
        return tuple(panel for panel in (*found, self._of_verdicts(), *self._of_book()) if panel.series)

    def _of_parts(self, role: str) -> PanelSpec:
        names = [name for name in self._parts if name.startswith(role)]
        note = f"Weight times value of each part of the {role}'s reward, over the rewards that have this part."
        curves = {name: name.partition(" ")[2].replace("_", " ") for name in names}
        return PanelSpec(f"{role}-parts", f"Parts of the {role}'s reward", note, curves)

    def _of_verdicts(self) -> Panel:
        n = self._verdicts.total()
        series = tuple(
            Series(
                verdict.value.replace("_", " "), (Point(0.0, self._verdicts[verdict] / n, n=n),), f"v-{verdict.value}"
            )
            for verdict in SYMBOLS
            if self._verdicts[verdict]
        )
        return Panel("verdicts", "Verdicts", "Share of all cases by verdict.", series, "run", 0.0, 1.0, stacked=True)

    def _of_book(self) -> list[Panel]:
        moves = [self._moves[number] for number in sorted(self._moves)]
        if not moves:
            return []
        named = {"entered": "added", "left": "removed", "pushed out": "evicted"}
        points = {name: [Point(each.last_step, getattr(each, key)) for each in moves] for name, key in named.items()}
        size = [Point(each.last_step, each.size) for each in moves]
        return [*book_panels(size, points, "episode", "; an entry leaves when a program passes it")]


def _bars_of(measures: Mapping[str, _ValuesByProblem], name: str) -> tuple[Point, ...]:
    """Return the share of problems by the mean of their values: bars of a tenth, from 0 to 1 or as far as needed."""
    means = [mean(each) for each in measures.get(name, {}).values() if each]
    bars_of = (floor(each * _BARS + 1e-9) - (each == 1) for each in means)
    counts = Counter(max(_FIRST, min(_LAST, bar)) for bar in bars_of)
    bars = range(min(0, *counts), max(_BARS - 1, *counts) + 1) if counts else ()
    return tuple(Point((bar + 0.5) / _BARS, counts[bar] / len(means), n=counts[bar]) for bar in bars)
