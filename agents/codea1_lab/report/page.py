"""Builds the page: one HTML file that loads nothing and runs no script but its own.

All text of a run is escaped here, or packed as data that the page's script turns into text nodes. A content security
policy allows only the script and the style with the digests of the page's own.

`codea1 web` serves the same page. There the header of the response has the policy, the script and the style are files,
and the script asks the server for the data that this file would hold.
"""

from __future__ import annotations

import base64
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from html import escape
from math import isfinite
from string import Template

from codea1_agents.play.person import why_dropped
from codea1_agents.statistics import Estimate
from codea1_env.differences import comparable
from codea1_env.problems.problem import Problem
from codea1_env.rules.funnel import funnel
from codea1_lab.report.archive import Archive, Duel, cut, finite, pack
from codea1_lab.report.charts import (
    NOTHING,
    chart_frame,
    number_text,
    panel_svg,
    safe,
    swatch_svg,
)
from codea1_lab.report.material import HEALTH, Figure, Panel, RunMaterial
from codea1_lab.report.palette import DARK, LIGHT, asset, chart_rules, variables

_SCRIPTS = ("text.js", "unpack.js", "charts.js", "difference.js", "detail.js", "browser.js")
_N_TILES = 3
_HELD_OUT = {"evaluation.problems", "evaluation.limit"}  # settings that decide which figures they are
_SERVED, _BACK = '<link rel="stylesheet" href="report.css">', '<a href="../#watch">← runs</a>'


def page_of(title: str, runs: Sequence[RunMaterial], overview: Sequence[Panel], data: Mapping[str, str]) -> str:
    """Return the page as one file.

    Args:
        title: title of the page.
        runs: in order.
        overview: charts that compare runs; empty for one run.
        data: of all runs, as `data_of` returns it; empty: no episodes.
    """
    sheet, code = style(), script()
    policy = (
        f"default-src 'none'; script-src {_digest(code)}; style-src {_digest(sheet)}; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
    head = f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}"><style>{sheet}</style>'
    held = "".join(f'<script type="text/plain" id="{name}">{text}</script>\n' for name, text in data.items())
    return _whole(title, runs, overview, head, f"{held}<script>{code}</script>", has_episodes=bool(data))


def served_page(title: str, runs: Sequence[RunMaterial], overview: Sequence[Panel], source: str) -> str:
    """Return the page for a server: its script asks `source` for the parts of the data, and then for changes."""
    head = f'<meta name="source" content="{escape(source)}">{_SERVED}'
    has_episodes = any(next(iter(run.groups()), None) is not None for run in runs)
    end = '<script src="report.js"></script>'
    return _whole(title, runs, overview, head, end, has_episodes=has_episodes, back=_BACK)


def page_of_error(title: str, message: str) -> str:
    """Return the page of a server for runs that cannot be read."""
    content = f'<section><p class="notice">{safe(message)}</p></section>'
    return frame(title, _SERVED, [], content, "", tab=title, back=_BACK, footer="")


def _whole(
    title: str,
    runs: Sequence[RunMaterial],
    overview: Sequence[Panel],
    head: str,
    end: str,
    *,
    has_episodes: bool,
    back: str = "",
) -> str:
    sections = [_overview(runs, overview)] if len(runs) > 1 else []
    runs_compared = {series.run for panel in overview for series in panel.series}
    sections += [_run_section(number, run, is_folded=number in runs_compared) for number, run in enumerate(runs)]
    if has_episodes:
        sections.append(asset("episodes.html"))
    step = _last_step(runs)
    links = [(f"#{anchor}", name) for anchor, name in _anchors(runs)] + [("#episodes", "Episodes")] * has_episodes
    footer = (
        "Written by <code>codea1</code>. Intervals are 95 % intervals: of games and held-out problems by bootstrap over"
        " problems, of training steps by Student's t over steps, unless said otherwise."
        " Nothing on this page comes from another machine."
    )
    tab = f"{title}{f' · {step}' if step else ''}"
    return frame(title, head, links, "".join(sections), end, tab=tab, back=back, footer=footer)


def frame(
    title: str, head: str, links: Iterable[tuple[str, str]], content: str, end: str, *, tab: str, back: str, footer: str
) -> str:
    """Return a page around a content: its head, menu, colours and notice.

    Args:
        title: text of its heading.
        head: HTML of the policy and style.
        links: address and text of the menu's items.
        content: HTML of the sections.
        end: HTML of the scripts.
        tab: text of the browser's tab.
        back: HTML before the heading.
        footer: HTML after the content.
    """
    items = "".join(f'<li><a href="{escape(address)}">{safe(name)}</a></li>' for address, name in links)
    named = {"head": head, "tab": safe(tab), "back": back, "title": safe(title), "items": items}
    return Template(asset("frame.html")).substitute(named, content=content, footer=footer, end=end)


def style() -> str:
    """Return the style of the page, light and dark."""
    light, dark = variables(LIGHT), variables(DARK)
    themes = (
        f":root{{{light}}}"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
        f":root[data-theme=dark]{{{dark}color-scheme:dark}}:root[data-theme=light]{{color-scheme:light}}"
    )
    return themes + asset("report.css") + chart_rules()


def script() -> str:
    """Return the script of the page."""
    return "\n".join(map(asset, _SCRIPTS))


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def data_of(runs: Sequence[RunMaterial], archive: Archive, notes: Sequence[str]) -> dict[str, str]:
    """Return by name the packed parts from which the script shows episodes; empty: there are none.

    Args:
        runs: in order.
        archive: their groups.
        notes: sentences on what the archive leaves out.
    """
    if not archive.n_rows:
        return {}
    index = {**archive.index(), "notes": list(notes)}
    shown_ids = {(run, problem_id) for run, problem_id in index["problems"]}
    index["problems"] = [[run, name, runs[run].book.get(name)] for run, name in index["problems"]]
    problems = [
        {p.id: [cut(p.statement), cut(p.solution), cut(p.imports)] for p in run.problems if (number, p.id) in shown_ids}
        for number, run in enumerate(runs)
    ]
    index["duels"] = [
        _duel(run, (archive.last if run.is_going else archive.closest).get(number)) if number in archive.last else None
        for number, run in enumerate(runs)
    ]
    named = pack([{"name": run.name, "axis": run.axis} for run in runs])
    pages = {f"page-{number}": page for number, page in enumerate(archive.pages)}
    return {"runs": named, "index": pack(index), "problems": pack(problems), **pages}


def _duel(run: RunMaterial, duel: Duel | None) -> list[object]:
    """Return heading and row of the duel to show first, and its program beside the solution, if that is known.

    Without a duel, the only item is a sentence.
    """
    if duel is None:
        return ["There is no duel to read, since no recorded program loads."]
    texts = next(
        (comparable_programs(p, p.solution, duel.program) for p in run.problems if p.id == duel.problem_id), ()
    )
    heading = "The duel to read first" + ("" if duel.is_won_right else " (no right test beats a program)")
    return ["The last duel" if run.is_going else heading, duel.row, *map(cut, texts)]


def comparable_programs(problem: Problem, *programs: str) -> tuple[str, ...]:
    """Return programs as they are compared, below the imports that their problem gives them."""
    return comparable(*(f"{problem.imports}\n{text}".strip() for text in programs))


def _anchors(runs: Sequence[RunMaterial]) -> Iterable[tuple[str, str]]:
    if len(runs) > 1:
        yield "overview", "All runs"
        yield from ((f"run-{number}", run.name) for number, run in enumerate(runs))
    else:
        yield "run-0", "Overview"
        if runs[0].panels:
            yield "curves-0", "Charts"


def _overview(runs: Sequence[RunMaterial], panels: Sequence[Panel]) -> str:
    labels = list(dict.fromkeys(figure.label for run in runs for figure in run.figures[:_N_TILES]))
    rows = []
    for number, run in enumerate(runs):
        by_label = {figure.label: figure for figure in run.figures}
        cells = [f"<td>{_figure_cell(by_label.get(label))}</td>" for label in labels]
        rows.append((f'<a href="#run-{number}">{safe(run.name)}</a>', cells))
    table = _table("All runs", ("run", *labels), rows, "<table><caption>Means, and their 95 % intervals.</caption>")
    return (
        '<section id="overview" aria-labelledby="overview-title"><h2 id="overview-title">All runs: means'
        f"{' and charts' if panels else ''}</h2>{table}{_differing(runs)}"
        f"{_comparison(runs, panels) if panels else ''}</section>"
    )


def _differing(runs: Sequence[RunMaterial]) -> str:
    """Return a table of the settings in which runs differ, a column for each run; of several kinds, those of all."""
    kinds = {run.kind for run in runs}

    def brief(name: str) -> str:
        return re.sub(r"^(game|rules|run)\.(?!name$)", "", name) if len(kinds) > 1 else name

    settings = [{brief(name): value for name, value in {**run.defaults, **run.settings}.items()} for run in runs]
    kinds_with = defaultdict(set)
    for run, known in zip(runs, settings, strict=True):
        for name in known:
            kinds_with[name].add(run.kind)
    stated = dict.fromkeys(brief(name) for run in runs for name in run.settings)
    names = [name for name in stated if kinds_with[name] == kinds]
    values = {name: [str(known.get(name, NOTHING)) for known in settings] for name in names}
    differing = {name: texts for name, texts in values.items() if len(set(texts)) > 1}
    rows = [(safe(name), [f"<td>{safe(cut(text))}</td>" for text in texts]) for name, texts in differing.items()]
    heads = ("setting", *(run.name for run in runs))
    table = _table("Settings", heads, rows, "<table><caption>Settings in which the runs differ.</caption>")
    apart = {
        "Rewards": [name for name in differing if re.match(r"(game\.)?(rules\b|reward\.)", name)],
        "Figures of held-out problems": sorted(differing.keys() & _HELD_OUT),
    }
    warned = "".join(
        f"<p>{what} of these runs are not comparable, since they differ in {safe(', '.join(those))}.</p>"
        for what, those in apart.items()
        if those
    )
    return warned + table if rows else "<p>The runs do not differ in any setting that all have.</p>"


def _comparison(runs: Sequence[RunMaterial], panels: Sequence[Panel]) -> str:
    """Return the charts that compare runs, below the legend whose buttons hide and show the lines of a run."""
    lines = {series.run: series for panel in panels for series in panel.series}
    buttons = "".join(
        f'<button type="button" class="plain {escape(lines[number].tone)}" data-toggles="{number}" aria-pressed="true">'
        f"{swatch_svg(lines[number])}<span>{safe(run.name)}</span></button>"
        for number, run in enumerate(runs)
        if number in lines
    )
    return (
        '<div id="compared"><h3 id="compared-title">Charts of all runs</h3>'
        f'<div class="runs" role="group" aria-label="Runs to show">{buttons}</div>'
        f"{_questions([(panel.question, _chart(panel, 'all')) for panel in panels], is_open=True)}</div>"
    )


def _last_step(runs: Sequence[RunMaterial]) -> str:
    """Return the last step of runs of one kind, e.g. `step 60`; empty: none is known."""
    axes = {run.axis for run in runs}
    xs = [p.x for run in runs for panel in run.panels if panel.x_label in axes for s in panel.series for p in s.points]
    return f"{axes.pop()} {number_text(max(xs))}" if len(axes) == 1 and xs else ""


def _figure_cell(figure: Figure | None) -> str:
    if figure is None:
        return NOTHING
    return f"{_figure_text(figure)}<br><span class='quiet small'>{_interval(figure.value)}</span>"


def _run_section(number: int, run: RunMaterial, *, is_folded: bool) -> str:
    alarms = "".join(
        f'<li class="alarm"><b>Alarm.</b> {safe(remark.text)}</li>' for remark in run.remarks if remark.is_alarm
    )
    notes = "".join(f"<li>{safe(remark.text)}</li>" for remark in run.remarks if not remark.is_alarm)
    facts = "".join(f"<div><dt>{safe(name)}</dt><dd>{safe(value)}</dd></div>" for name, value in run.facts)
    more = run.figures[_N_TILES:]
    rows = [(safe(figure.label), [f"<td>{_figure_cell(figure)}</td>"]) for figure in more]
    kind = safe(run.kind) + (", going on" if run.is_going else "")
    first = _chart(run.panels[0], f"{number}") if run.panels else ""
    parts = [
        f'<section id="run-{number}" aria-labelledby="run-{number}-title"><p class="kicker">{kind}</p>',
        f'<h2 id="run-{number}-title">{safe(run.name)}</h2>',
        "".join(f'<p class="conclusion">{safe(sentence)}</p>' for sentence in run.conclusion),
        f'<ul class="remarks">{alarms}</ul>' if alarms else "",
        f'<dl class="tiles">{"".join(map(_tile, run.figures[:_N_TILES]))}</dl>',
        f'<div class="first">{first}<article class="card duel" data-duel="{number}" hidden></article></div>',
        _charts(number, run, is_folded=is_folded),
        f'<details class="question" data-problems="{number}" hidden><summary>Which problems are hard?</summary>',
        '</details><details class="question"><summary>All figures and settings</summary>',
        _table("Further figures", ("figure", "value"), rows) if rows else "",
        f'<dl class="facts">{facts}</dl>{f"<ul class=remarks>{notes}</ul>" if notes else ""}</details></section>',
    ]
    return "".join(parts)


def _charts(number: int, run: RunMaterial, *, is_folded: bool) -> str:
    """Return all charts of a run but the first, and its funnel; folded twice if other charts compare the run."""
    cards = [(panel.question, _chart(panel, f"{number}")) for panel in run.panels[1:]]
    if run.tests:
        cards.append((HEALTH, _funnel(run)))
    asked = _questions(cards)
    if is_folded:
        asked = f"<details><summary><h3>Charts of this run alone</h3></summary>{asked}</details>"
    return f'<div id="curves-{number}">{asked}</div>'


def _questions(cards: Sequence[tuple[str, str]], *, is_open: bool = False) -> str:
    """Return charts under the questions that they answer, folded; `is_open` opens the first question."""
    return "".join(
        f'<details class="question"{" open" if is_open and not n else ""}><summary>{question}</summary>'
        f'<div class="charts">{"".join(card for of, card in cards if of == question)}</div></details>'
        for n, question in enumerate(dict.fromkeys(of for of, _ in cards))
    )


def _funnel(run: RunMaterial) -> str:
    stages = funnel(run.tests)
    rows = []
    for stage in stages:
        lost = "; ".join(f"{why_dropped(why, '')}: {n:,}" for why, n in stage.lost.items())
        share = f'<meter value="{stage.n}" max="{max(1, stages[0].n)}" aria-hidden="true"></meter>'
        rows.append((safe(stage.name), [f"<td>{share}{stage.n:,}</td>", f"<td>{safe(lost)}</td>"]))
    table = _table("Funnel of tests", ("tests", "", "lost because"), rows)
    of = " of the last steps" if run.kind == "training" else ""
    return f'<figure class="card funnel"><figcaption><h3>Where tests{of} are lost</h3></figcaption>{table}</figure>'


def _tile(figure: Figure) -> str:
    change = figure.change
    change_text = "" if change is None else f"{_with_sign(change.mean)} since the start"
    if change is not None and isfinite(change.low):
        change_text += f" ({_with_sign(change.low)} to {_with_sign(change.high)})"
    lines = "".join(f"<small>{line}</small>" for line in (_interval(figure.value), change_text) if line)
    return (
        f'<div class="tile"><dt>{safe(figure.label)}</dt><dd class="{escape(figure.tone)}"'
        f' data-value="{figure.value.mean!r}">{_figure_text(figure)}{lines}</dd></div>'
    )


def _figure_text(figure: Figure) -> str:
    """Return a mean with three decimals, a count without."""
    return f"{figure.value.mean:.3f}" if figure.value.n else number_text(figure.value.mean)


def _with_sign(value: float) -> str:
    return f"{round(value, 3) or 0.0:+.3f}".replace("-", "\N{MINUS SIGN}")


def _interval(value: Estimate) -> str:
    return f"{value.low:.3f} to {value.high:.3f}" if isfinite(value.low) else ""


def _chart(panel: Panel, owner: str) -> str:
    title_id = f"chart-{owner}-{panel.key}"
    data = escape(json.dumps(_chart_data(panel), separators=(",", ":")))
    return (
        f'<figure class="card"><figcaption><h3 id="{title_id}">{safe(panel.title)}</h3><p>{safe(panel.note)}</p>'
        f'</figcaption><div class="plot" tabindex="0" role="group" aria-label="{safe(panel.title)}: left and right'
        f' arrow read the points" data-chart="{data}">{panel_svg(panel, title_id=title_id)}</div>'
        "<details data-numbers><summary>Numbers</summary></details></figure>"
    )


def _chart_data(panel: Panel) -> dict[str, object]:
    """Return the data from which the script shows numbers next to the pointer, and as a table."""
    left, right = chart_frame(panel)
    xs = sorted({point.x for series in panel.series for point in series.points})
    series = [
        {
            "name": s.name,
            "tone": s.tone,
            "run": s.run,
            "points": [[p.x, *map(finite, (p.mean, p.low, p.high)), p.n] for p in s.points],
        }
        for s in panel.series
    ]
    return {"x": panel.x_label, "left": left, "right": right, "half": panel.bar_width / 2, "xs": xs, "series": series}


def _table(
    label: str, heads: Iterable[str], rows: Iterable[tuple[str, Sequence[str]]], opening: str = "<table>"
) -> str:
    """Return a table that scrolls sideways; a row is HTML: its heading, and its cells with their tags."""
    head = "".join(f'<th scope="col">{safe(name)}</th>' for name in heads)
    body = "".join(f'<tr><th scope="row">{first}</th>{"".join(cells)}</tr>' for first, cells in rows)
    table = f"{opening}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll" tabindex="0" role="group" aria-label="{safe(label)}">{table}</div>'
