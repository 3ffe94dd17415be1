"""Draws panels as SVG text. Pure.

Colours come from classes of the style sheet, so that one drawing serves the light and the dark theme. A chart has 400 x
250 units. In pixels, that is about a third of a desktop's page or the whole width of a phone, so that text is readable
on both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from math import ceil, floor, isfinite, log10

from codea1_env.rendering import harmless
from codea1_lab.report.material import Panel, Point, Series
from codea1_lab.report.palette import DASHES

WIDTH, HEIGHT = 400.0, 250.0
_LEFT, _TOP, _BOTTOM = 40.0, 26.0, 38.0
_LETTER = 6.1  # average width of a letter at the size of the labels
_LABEL_GAP = 13.0
_MARKERS = (  # paths around a point: circle, square, triangle
    "m-3,0a3,3 0 1 0 6,0a3,3 0 1 0 -6,0z",
    "m-2.8,-2.8h5.6v5.6h-5.6z",
    "m0,-3.6l3.5,6h-7z",
)

NOTHING = "\N{EN DASH}"
"""The text for a missing number."""


def number_text(value: float) -> str:
    """Return a number as text: three decimals below 100, one below 1000, none for larger and for whole numbers."""
    if not isfinite(value):
        return NOTHING
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 100 else f"{value:z.3f}"


def nice_ticks(low: float, high: float, n_wanted: int = 5) -> list[float]:
    """Return at least two round numbers that cover [low, high]: the first is at most `low`, the last at least `high`.

    Raises:
        ValueError: an end is not finite.
    """
    if not (isfinite(low) and isfinite(high)):
        raise ValueError(f"both ends of an axis must be finite, got {low} and {high}")
    if high <= low:
        low, high = low - 0.5, high + 0.5
    rough = (high - low) / max(1, n_wanted - 1)
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, max(last, first + 1) + 1)]


def panel_svg(panel: Panel, *, title_id: str) -> str:
    """Return a chart as one `<svg>` element; `title_id` is the id of its title's element, for screen readers."""
    panel = _lay_out(panel)
    frame = _Frame.around(panel)
    parts = [_grid(frame), _axes(frame, panel)]
    kind = "area" if panel.stacked else "band"
    parts += [_of_run(_band(frame, series, kind), series) for series in panel.series]
    if not panel.stacked:
        parts += [_of_run(_line(frame, series), series) for series in panel.series]
    if not is_comparison(panel):
        parts.append(_labels(frame, panel))
    label = f'role="img" aria-labelledby="{escape(title_id)}"'
    return f'<svg class="chart" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" {label}>{"".join(parts)}</svg>'


def is_comparison(panel: Panel) -> bool:
    """Return whether a chart compares runs, so that a legend names its curves."""
    return any(series.run is not None for series in panel.series)


def swatch_svg(series: Series) -> str:
    """Return the sample of a curve that compares runs, for a legend."""
    line = f'<polyline class="{_line_class(series)}" points="1,7 39,7"/>'
    return f'<svg class="chart" viewBox="0 0 40 14" aria-hidden="true">{line}{_marker(series, 20, 7)}</svg>'


def chart_frame(panel: Panel) -> tuple[float, float]:
    """Return the horizontal positions of a chart's first and last x, in the chart's units."""
    return _LEFT, _Frame.around(_lay_out(panel)).right


class _Frame:
    """The positions of values in a chart."""

    def __init__(self, x: tuple[float, float], ticks: Sequence[float], right: float) -> None:
        self.x_low, self.x_high = x
        self.ticks = ticks
        self.right = right

    @classmethod
    def around(cls, panel: Panel) -> _Frame:
        points = [point for series in panel.series for point in series.points]
        xs = [point.x for point in points]
        ys = [y for p in points for y in (p.mean, p.low, p.high) if isfinite(y)] or [0.0]
        low = min(ys) if panel.low is None else min(panel.low, *ys)
        high = max(ys) if panel.high is None else max(panel.high, *ys)
        if low == high == panel.low:  # all values are at the lower end
            high += 1.0
        longest = 0 if is_comparison(panel) else max((len(harmless(s.name)) for s in panel.series), default=0)
        right = WIDTH - min(130.0, longest * _LETTER + 14)
        return cls((min(xs), max(xs)), nice_ticks(low, high), right)

    def x(self, value: float) -> float:
        span = self.x_high - self.x_low
        share = (value - self.x_low) / span if span else 0.5
        return _LEFT + share * (self.right - _LEFT)

    def y(self, value: float) -> float:
        low, high = self.ticks[0], self.ticks[-1]
        return HEIGHT - _BOTTOM - (value - low) / (high - low) * (HEIGHT - _BOTTOM - _TOP)


def _grid(frame: _Frame) -> str:
    lines = "".join(
        f'<line x1="{_LEFT:g}" x2="{frame.right:.1f}" y1="{frame.y(tick):.1f}" y2="{frame.y(tick):.1f}"/>'
        for tick in frame.ticks
    )
    names = "".join(
        f'<text x="{_LEFT - 6:g}" y="{frame.y(tick) + 3.8:.1f}" text-anchor="end">{_tick(tick)}</text>'
        for tick in frame.ticks
    )
    return f'<g class="grid">{lines}</g><g class="ticks">{names}</g>'


def _axes(frame: _Frame, panel: Panel) -> str:
    inner = [t for t in nice_ticks(frame.x_low, frame.x_high, 5) if frame.x_low <= t <= frame.x_high]
    ticks = [t for t in inner if panel.bar_width or t == int(t)] or [frame.x_low]
    if panel.stacked and panel.bar_width:  # a single bar has no x
        ticks = []
    names = "".join(
        f'<text x="{frame.x(tick):.1f}" y="{HEIGHT - _BOTTOM + 16:.1f}" text-anchor="middle">{_tick(tick)}</text>'
        for tick in ticks
    )
    middle = (_LEFT + frame.right) / 2
    title = (
        f'<text class="axis" x="{middle:.1f}" y="{HEIGHT - 5:.1f}" text-anchor="middle">{safe(panel.x_label)}</text>'
    )
    upright = f'<text class="axis" x="2" y="12">{safe(panel.y_label)}</text>'
    return f'<g class="ticks">{names}{title}{upright}</g>'


def _band(frame: _Frame, series: Series, kind: str) -> str:
    known = [p for p in series.points if isfinite(p.low) and isfinite(p.high)]
    if len(known) < 2:
        ends = ((f"{frame.x(p.x):.1f}", f"{frame.y(p.low):.1f}", f"{frame.y(p.high):.1f}") for p in known)
        tone = escape(series.tone)
        return "".join(f'<line class="line {tone}" x1="{x}" x2="{x}" y1="{low}" y2="{high}"/>' for x, low, high in ends)
    upper = [f"{frame.x(p.x):.1f},{frame.y(p.high):.1f}" for p in known]
    lower = [f"{frame.x(p.x):.1f},{frame.y(p.low):.1f}" for p in reversed(known)]
    return f'<polygon class="{kind} {escape(series.tone)}" points="{" ".join(upper + lower)}"/>'


def _line(frame: _Frame, series: Series) -> str:
    known = [p for p in series.points if isfinite(p.mean)]
    path = " ".join(f"{frame.x(p.x):.1f},{frame.y(p.mean):.1f}" for p in known)
    line = f'<polyline class="{_line_class(series)}" points="{path}"/>' if len(known) > 1 else ""
    return line + "".join(_marker(series, frame.x(p.x), frame.y(p.mean)) for p in known[:: len(known) // 8 or 1])


def _of_run(shape: str, series: Series) -> str:
    return shape if series.run is None else f'<g data-run="{series.run}">{shape}</g>'


def _line_class(series: Series) -> str:
    return f"line {escape(series.tone)} dash{series.number % len(DASHES)}"


def _marker(series: Series, x: float, y: float) -> str:
    shape = _MARKERS[series.number % len(_MARKERS)]
    return f'<path class="marker {escape(series.tone)}" d="M{x:.1f},{y:.1f}{shape}"/>'


def _lay_out(panel: Panel) -> Panel:
    """Return a panel whose points are where they are drawn; `low` of a point is the lower edge of its area."""
    half = panel.bar_width / 2
    below: dict[float, float] = {}
    placed = []
    for series in panel.series:
        points = []
        for p in series.points:
            low, high = (0.0, p.mean) if half else (p.low, p.high)
            if panel.stacked:
                low = below.get(p.x, 0.0)
                high = below[p.x] = low + p.mean
            mean = high if panel.stacked else p.mean
            points += [Point(x, mean, low, high) for x in ((p.x - half, p.x + half) if half else (p.x,))]
        placed.append(replace(series, points=tuple(points)))
    return replace(panel, series=tuple(placed))


def _labels(frame: _Frame, panel: Panel) -> str:
    """Write each curve's name at its end, or next to the middle of its area; move names apart that would touch."""
    heights = []
    for series in panel.series:
        last = next((p for p in reversed(series.points) if isfinite(p.mean)), None)
        if last is not None:
            height = (last.low + last.mean) / 2 if panel.stacked else last.mean
            is_thin = panel.stacked and frame.y(last.low) - frame.y(last.mean) < 3  # too thin for a name inside
            if not is_thin or len(panel.series) == 1:
                heights.append((frame.y(height), series))
    heights.sort(key=lambda each: each[0])
    places = _apart([y for y, _ in heights], _TOP + 2, HEIGHT - _BOTTOM)
    return "".join(
        f'<text class="name {escape(series.tone)}" x="{frame.right + 7:.1f}" y="{y + 4:.1f}">{safe(series.name)}</text>'
        for y, (_, series) in zip(places, heights, strict=True)
    )


def _apart(heights: Sequence[float], top: float, bottom: float) -> list[float]:
    """Return heights in the same order, at least `_LABEL_GAP` apart where they fit, by one pass down and one up."""
    places = list(heights)
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + _LABEL_GAP)
    limit = bottom
    for i in range(len(places) - 1, -1, -1):
        places[i] = max(top, min(places[i], limit))
        limit = places[i] - _LABEL_GAP
    return places


def _tick(value: float) -> str:
    text = f"{value:,.10f}".rstrip("0").rstrip(".") if abs(value) < 1e4 else f"{value / 1000:,.10g}k"
    return text.replace("-", "\N{MINUS SIGN}")


def safe(text: str) -> str:
    """Return untrusted text as HTML that only shows it."""
    return escape(harmless(text))
