"""The contents of a report, for any kind of run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any

from codea1_agents.statistics import Estimate, change_between
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.problems.problem import Problem
from codea1_env.runs.records import RoundRecord
from codea1_lab.report.palette import tone_of

MAX_BINS = 24
"""Points of a curve at most: each is a mean over a bin of steps."""


@dataclass(frozen=True, slots=True)
class Point:
    """One value of a curve; nan: no value."""

    x: float
    mean: float
    low: float = nan
    """Lower end of the 95 % interval; nan: no interval."""
    high: float = nan
    n: int = 0
    """Number of values in the mean; 0: not counted."""


@dataclass(frozen=True, slots=True)
class Series:
    """One curve of a panel."""

    name: str
    points: tuple[Point, ...]
    tone: str
    """Name of its colour, a class in the style sheet: `coder`, `tester`, `t2`, ..."""
    number: int = 0
    """Number of its dashes and markers."""
    run: int | None = None
    """Number of its run in a chart that compares runs: a legend names it."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart: curves over the same axis."""

    key: str
    """Unique within a run; used in names of files and anchors."""
    title: str
    note: str
    """One sentence on what the chart shows."""
    series: tuple[Series, ...]
    x_label: str
    low: float | None = None
    """Lowest value of the y axis; None: chosen by the curves."""
    high: float | None = None
    stacked: bool = False
    """Whether the curves are parts of a whole and drawn as stacked areas."""
    bar_width: float = 0.0
    """Above 0: each point is a bar of this width, as in the distribution of a figure over problems."""
    y_label: str = "share"
    """The unit of the y axis."""

    @property
    def question(self) -> str:
        """The question of its reader."""
        if self.key == "time":
            return "Where did the time go?"
        if self.key in _OF_HEALTH:
            return HEALTH
        return "How did the games go?" if self.bar_width or self.x_label == "episode" else "Does it learn?"


HEALTH = "Is it healthy?"
_OF_HEALTH = frozenset({"spread", "variety", "tokens", "cut", "kl", "entropy", "clip_share", "grad_norm", "verdicts"})


_UNITS = {
    "rewards": "reward",
    "parts": "part of a reward",
    "tokens": "tokens",
    "kl": "nats per token",
    "entropy": "nats",
    "grad_norm": "norm",
}
_UNITS |= {"time": "seconds", "held-out-tester-aim": "difference of shares"}
"""Key of a panel -> name of its y axis, for those that show no share."""
BAR = 0.4
"""Width of the only bar of a chart."""
SHARE = (0.0, 1.0)
"""Bounds of a panel of shares."""


@dataclass(frozen=True, slots=True)
class PanelSpec:
    """The declaration of a panel, without points."""

    key: str
    title: str
    note: str
    curves: Mapping[str, str]
    """Name of a figure -> name of its curve."""
    bounds: tuple[float | None, float | None] = (None, None)
    """Lower and upper end of the y axis, if they do not depend on the points."""

    def panel(
        self, points_of: Callable[[str], tuple[Point, ...]], x_label: str, *, remark: str = "", bar_width: float = 0.0
    ) -> Panel:
        """Return the panel, without curves for figures that lack points.

        Args:
            points_of: from the name of a figure to its points.
            x_label: label of the x axis.
            remark: follows the note.
            bar_width: above 0: the points are bars.
        """
        named = enumerate(self.curves.items())
        series = (Series(name, points_of(figure), tone_of(name, number), number) for number, (figure, name) in named)
        known = tuple(line for line in series if line.points)
        low, high = (0.0, None) if bar_width else self.bounds
        y_label = "share of problems" if bar_width else _UNITS.get(self.key, "share")
        note = self.note + remark
        return Panel(self.key, self.title, note, known, x_label, low, high, bar_width=bar_width, y_label=y_label)


def reply_panels(loads: str, more: Mapping[str, str]) -> tuple[PanelSpec, PanelSpec]:
    """Return the panels of programs and of suites.

    Args:
        loads: figure of the programs that load.
        more: further curves of programs.
    """
    passes = {"pass_new": "pass new", "pass_replayed": "pass replayed"}
    of_programs = (
        "Share of programs that load, of cases that a valid program passes, and of golden tests if they are run."
    )
    of_suites = (
        "Share of the requested tests that the solution confirms as written; share of suites that beat a program by"
        " such a test, and by any, since a test with a wrong answer runs with the solution's."
    )
    suites = {"suite_validity": "valid", "right_kill_rate": "beat", "kill_rate": "beat, wrong answers too"}
    return (
        PanelSpec("passes", "Programs", of_programs, {loads: "load", **passes, **more}, SHARE),
        PanelSpec("suites", "Suites", of_suites, suites, SHARE),
    )


def by_role(figure: str) -> dict[str, str]:
    """Return the curves of a figure of both roles, for a `PanelSpec`."""
    return {f"{role}_{figure}": role for role in ("coder", "tester")}


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a run."""

    label: str
    value: Estimate
    """With `n` 0: a count."""
    tone: str = ""
    before: Estimate | None = None
    """The same at the beginning of the run."""

    @property
    def change(self) -> Estimate | None:
        """From the beginning to the end."""
        return None if self.before is None else change_between(self.before, self.value)

    @classmethod
    def plain(cls, label: str, value: float, tone: str = "") -> Figure:
        """Return a count."""
        return cls(label, Estimate(value, nan, nan, 0, 0, 0), tone)


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence at the head of a run: an alarm, or a note on missing data."""

    text: str
    is_alarm: bool = False


def judge_text(versions: Iterable[int]) -> str:
    """Return the text for the versions of the judge that made the verdicts; without versions, for this version."""
    return "version " + " and ".join(map(str, sorted(versions) or [JUDGE_VERSION]))


def judge_remark(versions: Iterable[int]) -> tuple[Remark, ...]:
    """Return an alarm if another version of the judge made some of the verdicts."""
    others = set(versions) - {JUDGE_VERSION}
    text = f"Judged by {judge_text(others)} of the judge: not comparable with verdicts of version {JUDGE_VERSION}."
    return (Remark(text, is_alarm=True),) if others else ()


@dataclass(frozen=True, slots=True)
class Group:
    """The rounds of one episode, or the candidates for one problem in a training step."""

    step: int
    """Number of the episode or of the training step."""
    id: str
    problem_id: str
    members: Mapping[str, RoundRecord]
    """The judged candidates by label, e.g. `round 2`, `candidate 3`."""


@dataclass(frozen=True, slots=True)
class RunMaterial:
    """The contents of the report on one run."""

    name: str
    kind: str
    """`games` or `training`."""
    axis: str
    """Label of the x axis: `episode` or `step`."""
    facts: tuple[tuple[str, str], ...]
    """Labels and texts of the run's configuration."""
    conclusion: tuple[str, ...]
    """Sentences that say what the run shows."""
    figures: tuple[Figure, ...]
    """The first three are shown large."""
    panels: tuple[Panel, ...]
    groups: Callable[[], Iterable[Group]]
    """Reads the groups from disk, in order; each call reads them again."""
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """All settings by dotted name, for the table of those in which runs differ."""
    defaults: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The values of settings that the rules set, where `settings` does not."""
    remarks: tuple[Remark, ...] = ()
    tests: Mapping[str, int] = field(default_factory=dict)
    """Tests by the reason why they beat no program (`codea1_env.rules.funnel`); empty: not counted."""
    book: Mapping[str, int] = field(default_factory=dict)
    """Problem -> its entries in the Mistake Book at the end; empty: not known."""
    is_going: bool = False
    """Whether more is to come."""
    problems: tuple[Problem, ...] = field(default=(), repr=False)
    """The problems, if their source is available."""


MOVES = ("entered", "left", "pushed out")
"""The moves of entries of a Mistake Book."""


def book_panels(
    size: Sequence[Point], moves: Mapping[str, Sequence[Point]], axis: str, remark: str = ""
) -> Iterator[Panel]:
    """Yield the charts of a Mistake Book.

    Args:
        size: number of entries; at most `MAX_BINS` points and the last are drawn.
        moves: some of `MOVES` -> number of entries since the start.
        axis: label of the x axis.
        remark: follows the note on the moves.
    """
    every = -(-len(size) // MAX_BINS)
    cases = (Series("cases", (*size[:-1:every], *size[-1:]), tone_of("cases", 0)),)
    yield Panel("book", "Size of the Mistake Book", "Cases in the book.", cases, axis, 0.0, y_label="cases")
    known = {name: points for name, points in moves.items() if points and points[-1].mean}
    if known:
        numbered = enumerate(known.items())
        counted = tuple(Series(name, (*p[:-1:every], *p[-1:]), tone_of(name, 0), n) for n, (name, p) in numbered)
        title, note = "Cases that entered and left the Mistake Book", f"Counted from the start{remark}."
        yield Panel("book-moves", title, note, counted, axis, 0.0, y_label="cases")
