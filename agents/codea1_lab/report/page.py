"""Builds the page: one HTML file that loads nothing and runs no script but its own.

All text of a run is escaped here, or packed as data that the page's script turns into text nodes. A content security
policy allows only the script and the style with the digests of the page's own.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from math import isfinite

from codea1_lab.report.archive import Archive, cut, packed
from codea1_lab.report.charts import (
    NOTHING,
    chart_frame,
    heat_map_svg,
    panel_svg,
    safe,
    shown,
    swatch_svg,
)
from codea1_lab.report.material import Figure, HeatMap, Panel, ProblemRow, RunMaterial
from codea1_lab.report.palette import DARK, LIGHT, chart_rules, variables

_SCRIPTS = ("text.js", "unpack.js", "charts.js", "difference.js", "detail.js", "browser.js")


def page_of(title: str, runs: Sequence[RunMaterial], overview: Sequence[Panel], archive: Archive) -> str:
    """Return the page.

    Args:
        title: title of the page.
        runs: in order.
        overview: charts that compare runs; empty for one run.
        archive: the groups of all runs, in the same order.
    """
    sheet = style()
    script = "\n".join(asset(name) for name in _SCRIPTS)
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(sheet)}; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
    sections = [_overview(runs, overview)] if len(runs) > 1 else []
    sections += [_run_section(number, run, is_folded=bool(overview)) for number, run in enumerate(runs)]
    if archive.n_rows:
        sections.append(asset("episodes.html"))
    step = _last_step(runs)
    links = "".join(f'<li><a href="#{anchor}">{safe(name)}</a></li>' for anchor, name in _anchors(runs, archive))
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        '<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">',
        f"<title>{safe(title)}{f' · {step}' if step else ''}</title><style>{sheet}</style></head><body>",
        '<a class="skip" href="#main">Skip to the content</a>',
        '<header class="top"><div class="wrap">',
        f"<h1>{safe(title)}</h1>",
        '<button type="button" class="plain" id="menu" popovertarget="sections">Menu</button>',
        f'<nav aria-label="Sections"><ul id="sections" popover>{links}</ul></nav>',
        '<button type="button" class="plain" id="theme" hidden>◐</button></div></header>',
        '<main id="main" tabindex="-1"><div class="wrap"><p id="notice" class="notice" role="alert" hidden></p>',
        f"{''.join(sections)}</div></main>",
        '<footer class="wrap">Written by <code>codea1 report</code>. Intervals are 95 % bootstrap intervals over'
        " problems unless said otherwise. Nothing on this page is loaded from anywhere.</footer>",
        *_data(runs, archive),
        f"<script>{script}</script></body></html>\n",
    ]
    return "\n".join(parts)


def style() -> str:
    """Return the style of the page, light and dark."""
    light, dark = variables(LIGHT), variables(DARK)
    themes = (
        f":root{{{light}}}"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
        f":root[data-theme=dark]{{{dark}color-scheme:dark}}:root[data-theme=light]{{color-scheme:light}}"
    )
    return themes + asset("report.css") + chart_rules()


def asset(name: str) -> str:
    """Return the text of a file in `assets/`."""
    return files("codea1_lab.report").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def _data(runs: Sequence[RunMaterial], archive: Archive) -> Iterable[str]:
    if not archive.n_rows:
        return
    index = archive.index()
    shown_ids = {(run, problem_id) for run, problem_id in index["problems"]}
    problems = [
        {p.id: [cut(p.statement), cut(p.solution)] for p in run.problems if (number, p.id) in shown_ids}
        for number, run in enumerate(runs)
    ]
    named = packed([{"name": run.name, "axis": run.axis} for run in runs])
    yield f'<script type="text/plain" id="runs">{named}</script>'
    yield f'<script type="text/plain" id="index">{packed(index)}</script>'
    yield f'<script type="text/plain" id="problems">{packed(problems)}</script>'
    for number, page in enumerate(archive.pages):
        yield f'<script type="text/plain" id="page-{number}">{page}</script>'


def _anchors(runs: Sequence[RunMaterial], archive: Archive) -> Iterable[tuple[str, str]]:
    if len(runs) > 1:
        yield "overview", "All runs"
        yield from ((f"run-{number}", run.name) for number, run in enumerate(runs))
    else:
        yield "run-0", "Overview"
        if runs[0].panels:
            yield "curves-0", "Curves"
        if runs[0].heat_maps:
            yield "matrices-0", "Payoffs"
        if runs[0].problem_rows:
            yield "problems-0", "Problems"
    if archive.n_rows:
        yield "episodes", "Episodes"


def _overview(runs: Sequence[RunMaterial], panels: Sequence[Panel]) -> str:
    labels = list(dict.fromkeys(figure.label for run in runs for figure in run.figures))
    rows = []
    for number, run in enumerate(runs):
        by_label = {figure.label: figure for figure in run.figures}
        cells = [f"<td>{_figure_cell(by_label.get(label))}</td>" for label in labels]
        rows.append((f'<a href="#run-{number}">{safe(run.name)}</a>', cells))
    table = _table("All runs", ("run", *labels), rows, "<table><caption>Means, and their 95 % intervals.</caption>")
    return (
        '<section id="overview" aria-labelledby="overview-title"><h2 id="overview-title">All runs: means'
        f"{' and curves' if panels else ''}</h2>{table}{_compared(runs, panels) if panels else ''}</section>"
    )


def _compared(runs: Sequence[RunMaterial], panels: Sequence[Panel]) -> str:
    """Return the charts that compare runs, below the legend whose buttons hide and show the lines of a run."""
    lines = {series.run: series for panel in panels for series in panel.series}
    buttons = "".join(
        f'<button type="button" class="plain {escape(lines[number].tone)}" data-toggles="{number}" aria-pressed="true">'
        f"{swatch_svg(lines[number])}<span>{safe(run.name)}</span></button>"
        for number, run in enumerate(runs)
        if number in lines
    )
    return (
        f'<h3 id="compared-title">Curves of all runs by {safe(panels[0].x_label)}</h3><div id="compared">'
        f'<div class="runs" role="group" aria-label="Runs to show">{buttons}</div>'
        f'<div class="charts">{"".join(_chart(panel, "all") for panel in panels)}</div></div>'
    )


def _last_step(runs: Sequence[RunMaterial]) -> str:
    """Return the last step of runs of one kind, e.g. `step 60`; empty: none is known."""
    axes = {run.axis for run in runs}
    xs = [p.x for run in runs for panel in run.panels if panel.x_label in axes for s in panel.series for p in s.points]
    return f"{axes.pop()} {shown(max(xs))}" if len(axes) == 1 and xs else ""


def _figure_cell(figure: Figure | None) -> str:
    if figure is None:
        return NOTHING
    return f"{_figure_text(figure)}<br><span class='quiet small'>{_interval(figure)}</span>"


def _run_section(number: int, run: RunMaterial, *, is_folded: bool) -> str:
    facts = "".join(f"<div><dt>{safe(name)}</dt><dd>{safe(value)}</dd></div>" for name, value in run.facts)
    remarks = "".join(
        f'<li class="{"alarm" if remark.is_alarm else "remark"}">{"<b>Alarm.</b> " if remark.is_alarm else ""}'
        f"{safe(remark.text)}</li>"
        for remark in run.remarks
    )
    parts = [
        f'<section id="run-{number}" aria-labelledby="run-{number}-title"><p class="kicker">{safe(run.kind)}</p>',
        f'<h2 id="run-{number}-title">{safe(run.name)}</h2>',
        "".join(f'<p class="conclusion">{safe(sentence)}</p>' for sentence in run.conclusion),
        f'<dl class="facts">{facts}</dl>',
        f'<ul class="remarks">{remarks}</ul>' if remarks else "",
        f'<dl class="tiles">{"".join(map(_tile, run.figures))}</dl>',
        _curves(number, run, is_folded=is_folded),
    ]
    if run.heat_maps:
        maps = "".join(_heat_card(heat, number) for heat in run.heat_maps)
        title = "Payoffs of coders against testers"
        parts.append(f'<div id="matrices-{number}"><h3>{title}</h3><div class="charts">{maps}</div></div>')
    if run.problem_rows:
        parts.append(_problems(number, run.problem_rows))
    return "".join([*parts, "</section>"])


def _curves(number: int, run: RunMaterial, *, is_folded: bool) -> str:
    """Return the charts of one run, folded if other charts of the page compare it with the other runs."""
    if not run.panels:
        return ""
    title = f"Curves by {safe(run.axis)}"
    charts = ""
    for question in dict.fromkeys(panel.question for panel in run.panels):
        some = "".join(_chart(panel, f"{number}") for panel in run.panels if panel.question == question)
        is_open = " open" if not charts else ""
        asked = "How did the games go?" if run.kind == "games" and not charts else question
        charts += f'<details class="question"{is_open}><summary>{asked}</summary><div class="charts">{some}</div>'
        charts += "</details>"
    if is_folded:
        return f'<details id="curves-{number}"><summary><h3>{title} of this run alone</h3></summary>{charts}</details>'
    return f'<div id="curves-{number}"><h3>{title}</h3>{charts}</div>'


def _tile(figure: Figure) -> str:
    return (
        f'<div class="tile"><dt>{safe(figure.label)}</dt><dd class="{escape(figure.tone)}"'
        f' data-value="{figure.value.mean!r}">{_figure_text(figure)}'
        f"<small>{_interval(figure) or '&nbsp;'}</small></dd></div>"
    )


def _figure_text(figure: Figure) -> str:
    """Return a mean with three decimals, a count without."""
    return f"{figure.value.mean:.3f}" if figure.value.n else shown(figure.value.mean)


def _interval(figure: Figure) -> str:
    value = figure.value
    return f"{value.low:.3f} to {value.high:.3f}" if isfinite(value.low) else ""


def _chart(panel: Panel, owner: str) -> str:
    title_id = f"chart-{owner}-{panel.key}"
    data = escape(json.dumps(_chart_data(panel), separators=(",", ":")))
    return (
        f'<figure class="card"><figcaption><h4 id="{title_id}">{safe(panel.title)}</h4><p>{safe(panel.note)}</p>'
        f'</figcaption><div class="plot" tabindex="0" role="group" aria-label="{safe(panel.title)}: left and right'
        f' arrow read the points" data-chart="{data}">{panel_svg(panel, title_id=title_id)}</div>'
        f"<details><summary>Numbers</summary>{_numbers(panel)}</details></figure>"
    )


def _chart_data(panel: Panel) -> dict[str, object]:
    """Return the data from which the script shows numbers next to the pointer."""
    left, right = chart_frame(panel)
    xs = sorted({point.x for series in panel.series for point in series.points})
    series = [
        {
            "name": s.name,
            "tone": s.tone,
            "run": s.run,
            "points": [[p.x, *map(_finite, (p.mean, p.low, p.high)), p.n] for p in s.points],
        }
        for s in panel.series
    ]
    return {"x": panel.x_label, "left": left, "right": right, "xs": xs, "series": series}


def _finite(value: float) -> float | None:
    return round(value, 6) if isfinite(value) else None


def _numbers(panel: Panel) -> str:
    at = [{point.x: point for point in series.points} for series in panel.series]
    rows = []
    for x in sorted({x for points in at for x in points}):
        cells = []
        for points in at:
            p = points.get(x)
            interval = (
                f" <span class='quiet'>({shown(p.low)} to {shown(p.high)})</span>" if p and isfinite(p.low) else ""
            )
            cells.append(f"<td>{shown(p.mean) + interval if p else NOTHING}</td>")
        rows.append((shown(x), cells))
    return _table(panel.title, (panel.x_label, *(s.name for s in panel.series)), rows)


def _heat_card(heat: HeatMap, number: int) -> str:
    title_id = f"matrix-{number}-{heat.key}"
    cells = ([f"<td>{shown(value)}</td>" for value in row] for row in heat.values)
    table = _table(heat.title, ("", *heat.columns), zip(map(safe, heat.rows), cells, strict=True))
    return (
        f'<figure class="card"><figcaption><h4 id="{title_id}">{safe(heat.title)}</h4><p>{safe(heat.note)}</p>'
        f'</figcaption><div class="plot">{heat_map_svg(heat, title_id=title_id)}</div>'
        f"<details><summary>Numbers</summary>{table}</details></figure>"
    )


def _problems(number: int, rows: Sequence[ProblemRow]) -> str:
    heads = ("problem", "candidates", "coder reward", "tester reward", "beaten", "in the book")
    body = []
    for row in rows:
        values = (row.n, row.coder_reward, row.tester_reward, row.beaten_share, row.n_entries)
        cells = [f'<td data-value="{value if isfinite(value) else ""}">{shown(value)}</td>' for value in values]
        body.append((safe(row.problem_id), cells))
    opening = (
        '<table class="sortable"><caption>Means of each problem; <i>beaten</i> is the'
        " share of valid programs that a new test beat.</caption>"
    )
    return (
        f'<div id="problems-{number}" class="card"><h3>Problems, the hardest for the coder first</h3>'
        f"<details{' open' if len(rows) <= 12 else ''}>"
        f"<summary>{len(rows)} problems</summary>{_table('Problems', heads, body, opening)}</details></div>"
    )


def _table(
    label: str, heads: Iterable[str], rows: Iterable[tuple[str, Sequence[str]]], opening: str = "<table>"
) -> str:
    """Return a table that scrolls sideways; a row is HTML: its heading, and its cells with their tags."""
    head = "".join(f'<th scope="col">{safe(name)}</th>' for name in heads)
    body = "".join(f'<tr><th scope="row">{first}</th>{"".join(cells)}</tr>' for first, cells in rows)
    table = f"{opening}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll" tabindex="0" role="group" aria-label="{safe(label)}">{table}</div>'
