"""What a report is made of, whatever kind of run it came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import nan

from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.problems.problem import Problem
from codea1_env.runs.records import RoundRecord


@dataclass(frozen=True, slots=True)
class Point:
    """One value of a curve; nan where there is none."""

    x: float
    mean: float
    low: float = nan
    """Lower end of the 95 % interval; nan: none is known."""
    high: float = nan
    n: int = 0
    """Values that entered; 0: not counted."""


@dataclass(frozen=True, slots=True)
class Series:
    """One curve of a panel."""

    name: str
    points: tuple[Point, ...]
    tone: str
    """Name of its colour: a class in the style sheet, e.g. `coder`, `tester`, `t2`."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart: curves over the same axis."""

    key: str
    """Unique within a run; names files and anchors."""
    title: str
    note: str
    """What is drawn, in one sentence."""
    series: tuple[Series, ...]
    x_label: str
    low: float | None = None
    """Least value that the axis shows; None: what the curves need."""
    high: float | None = None
    stacked: bool = False
    """Whether the curves are parts of a whole, drawn on top of each other."""


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A matrix of numbers with names; e.g. payoffs of coders (rows) against testers (columns)."""

    key: str
    title: str
    note: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    """(rows, columns); nan where there is none."""
    low: tuple[tuple[float, ...], ...] = ()
    """Lower ends of the 95 % intervals; empty: none are known."""
    high: tuple[tuple[float, ...], ...] = ()
    marked: tuple[tuple[int, int], ...] = ()
    """Cells to frame, e.g. an equilibrium's support."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a run."""

    label: str
    mean: float
    low: float = nan
    high: float = nan
    n: int = 0
    """Values that entered a mean; 0: it is a count."""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that a reader must know: an alarm, or what is missing."""

    text: str
    is_alarm: bool = False


def judge_text(versions: Iterable[int]) -> str:
    """Return the versions of the judge whose verdicts are shown; this one's where there is no verdict yet."""
    return "version " + " and ".join(map(str, sorted(versions) or [JUDGE_VERSION]))


def judge_remark(versions: Iterable[int]) -> tuple[Remark, ...]:
    """Return an alarm where another version of the judge than this has made verdicts that are shown."""
    others = set(versions) - {JUDGE_VERSION}
    if not others:
        return ()
    text = f"Judged by {judge_text(others)} of the judge: not comparable with what version {JUDGE_VERSION} judges."
    return (Remark(text, is_alarm=True),)


@dataclass(frozen=True, slots=True)
class Part:
    """One judged candidate of a group."""

    label: str
    """E.g. `round 2`, `candidate 3`."""
    played: RoundRecord


@dataclass(frozen=True, slots=True)
class Group:
    """Candidates that belong together: the rounds of an episode, or a problem's candidates in a training step."""

    step: int
    """Number of the episode, or of the training step."""
    id: str
    problem_id: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """One problem's line in the table of problems."""

    problem_id: str
    n: int
    coder_reward: float
    tester_reward: float
    beaten_share: float
    """Share of valid candidates that a new case beat."""
    n_entries: int
    """Of the Mistake Book at the end."""


@dataclass(frozen=True, slots=True)
class RunMaterial:
    """Everything that the report says about one run."""

    name: str
    kind: str
    """`games` or `training`."""
    axis: str
    """What a step is: `episode` or `step`."""
    facts: tuple[tuple[str, str], ...]
    """Label and text: how the run was configured."""
    figures: tuple[Figure, ...]
    panels: tuple[Panel, ...]
    groups: Callable[[], Iterable[Group]]
    """Reads the groups again from disk, in order."""
    heat_maps: tuple[HeatMap, ...] = ()
    remarks: tuple[Remark, ...] = ()
    problem_rows: tuple[ProblemRow, ...] = ()
    problems: tuple[Problem, ...] = field(default=(), repr=False)
    """Texts of the problems, where their source is here."""


_TONE_OF_MOVE = {"entered": "tester", "left": "coder", "pushed out": "t5"}


def book_panels(
    size: Sequence[Point], moves: Mapping[str, Sequence[Point]], axis: str, remark: str = ""
) -> Iterator[Panel]:
    """Yield the charts of a Mistake Book.

    Args:
        size: entries.
        moves: for those that entered, left and were pushed out, how many since the point before.
        axis: what x counts.
        remark: ends the note on the moves.
    """
    yield Panel("book", "Mistake Book", "Cases in the book.", (Series("cases", tuple(size), "t2"),), axis, 0.0)
    counted = []
    for name, points in moves.items():
        totals = accumulate(p.mean for p in points)
        curve = tuple(Point(p.x, total) for p, total in zip(points, totals, strict=True))
        if curve and curve[-1].mean:
            counted.append(Series(name, curve, _TONE_OF_MOVE[name]))
    if counted:
        note = f"Counted from the start{remark}."
        yield Panel("book-moves", "In and out of the book", note, tuple(counted), axis, 0.0)
