from __future__ import annotations

import base64
import json
import math
import re
import shutil
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codea1_env.errors import BrokenInput, UserError
from codea1_env.runs.folder import iter_episodes
from codea1_lab.report.archive import Archive
from codea1_lab.report.charts import nice_ticks, panel_svg
from codea1_lab.report.comparison import comparison_panels
from codea1_lab.report.curves import _bars_of
from codea1_lab.report.material import RunMaterial
from codea1_lab.report.outcomes import Outcome, outcome_of
from codea1_lab.report.page import data_of, page_of
from codea1_lab.report.writing import file_names, read_run, write_pictures, write_report
from tests.codea1_lab.report.conftest import written_run


def unpacked(page: str, name: str) -> Any:
    found = re.search(rf'<script type="text/plain" id="{name}">([^<]*)</script>', page)
    return json.loads(zlib.decompress(base64.b64decode(found[1])))


def test_the_page_holds_every_round_with_its_outcome_and_rewards(small_run: Path, small_report: Path) -> None:
    index = unpacked(small_report.read_text(), "index")
    columns = index["columns"]
    rounds = [(record, played) for record in iter_episodes(small_run) for played in record.rounds]
    assert columns["step"] == [record.episode for record, _ in rounds]
    assert columns["coder"] == [played.rewards.coder.value for _, played in rounds]
    named = [index["outcomes"][number] for number in columns["outcome"]]
    assert named == [outcome_of(played).value for _, played in rounds]
    assert f"&lt;b&gt; · episode {max(columns['step'])}</title>" in small_report.read_text()
    assert set(named) == {Outcome.PASSED, Outcome.BEATEN, Outcome.INVALID}


def test_nothing_is_loaded_and_nothing_of_a_run_stands_in_the_page_as_markup(small_report: Path) -> None:
    page = small_report.read_text()
    assert re.findall(r'(?:src|href)="(?!#|data:,)[^"]*"', page) == []
    assert "pwned" not in page  # it travels packed
    assert page.count("<script") == page.count("</script>")
    assert "a &lt;b&gt;coder&lt;/b&gt;" in page
    assert "default-src &#x27;none&#x27;" in page
    assert "unsafe" not in page


def test_a_report_too_large_loses_replies_then_episodes(small_run: Path, tmp_path: Path, changed_run: Path) -> None:
    run = read_run(small_run, "run")
    whole = write_report([run], tmp_path / "whole.html", "title")
    texts = sum(len(m) for m in re.findall(r'id="page-\d+">([^<]*)', (tmp_path / "whole.html").read_text()))
    written = write_report([run], tmp_path / "small.html", "title", max_bytes=int(texts * 0.6))
    assert whole.notes == ()
    assert written.n_candidates < whole.n_candidates
    assert any("raw replies" in note for note in written.notes)
    assert any("Only one of" in note for note in written.notes)
    index = unpacked((tmp_path / "small.html").read_text(), "index")
    assert index["notes"] == list(written.notes)
    runs = [read_run(small_run, "small"), read_run(changed_run, "changed")]
    charts = len(page_of("title", runs, comparison_panels(runs), {}).encode())
    path, max_bytes = tmp_path / "small.html", charts + 9_000
    written = write_report(runs, path, "title", max_bytes=max_bytes)
    assert path.stat().st_size == written.n_bytes <= max_bytes
    assert 0 < written.n_candidates < 49


@given(st.lists(st.text("a/ .-2", max_size=4)))
@example(["../a b/c", "a_b", "a b", "a b-2", "a/b", "a b"])
def test_names_of_files_differ_and_lead_nowhere(names: list[str]) -> None:
    made = file_names(names)
    assert len(set(made)) == len(names)
    assert all(re.fullmatch(r"[\w-][\w.-]*", name) for name in made)
    assert names[:1] != ["../a b/c"] or made == ["_a_b_c", "a_b", "a_b-2", "a_b-2-2", "a_b-3", "a_b-4"]


def test_no_run_hides_another(small_run: Path, tmp_path: Path) -> None:
    runs = [replace(read_run(small_run, name), panels=read_run(small_run, name).panels[:1]) for name in ("a b", "a_b")]
    assert len(set(write_pictures(runs, tmp_path / "pictures"))) == 2
    shutil.copytree(small_run, tmp_path / "both")
    (tmp_path / "both" / "metrics.jsonl").touch()
    with pytest.raises(BrokenInput, match=r"expected one run, got metrics\.jsonl and episodes\.jsonl"):
        read_run(tmp_path / "both", "both")


@pytest.mark.slow
def test_pictures_stand_alone(small_run: Path, tmp_path: Path) -> None:
    from xml.etree import ElementTree

    run = read_run(small_run, "run")
    written = write_pictures([run], tmp_path)
    assert {path.stem for path in written} == {panel.key for panel in run.panels}
    for path in written:
        root = ElementTree.fromstring(path.read_text())
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "var(" not in path.read_text()


def test_games_are_shown_as_distributions_over_their_problems(small_run: Path) -> None:
    run = read_run(small_run, "run")
    assert {panel.key for panel in run.panels if panel.x_label == "episode"} <= {"book", "book-moves"}
    (rewards,) = [panel for panel in run.panels if panel.key == "rewards"]
    by_problem: dict[str, list[float]] = {}
    for record in iter_episodes(small_run):
        known = [played.rewards.coder.value for played in record.rounds]
        by_problem.setdefault(record.problem_id, []).extend(value for value in known if value is not None)
    means = [fmean(values) for values in by_problem.values()]
    for point in rewards.series[0].points:
        low, high = point.x - 0.05, point.x + 0.05
        n = sum(low <= value + 1e-9 < high or (value == 1 and point.x > 0.9) for value in means)
        assert (point.n, point.mean) == (n, n / len(means))
    assert sum(point.n for point in rewards.series[0].points) == len(means)


@pytest.mark.parametrize("value", [-1e18, -0.3, 0.0, 1.0, 1e18])
def test_a_value_beyond_all_bars_is_in_the_last_and_a_masked_one_in_none(value: float) -> None:
    points = _bars_of({"x": {"p": [value], "q": [0.5]}}, "x")
    assert sum(point.mean for point in points) == pytest.approx(1)
    assert len(points) <= 60
    masked = _bars_of({"x": {"p": [math.nan], "q": [math.nan, 0.5]}}, "x")
    assert [point.n for point in masked if point.n] == [1]


def test_problems_that_cannot_be_found_are_said(small_run: Path, tmp_path: Path) -> None:
    shutil.copytree(small_run, tmp_path / "run")
    config = tmp_path / "run" / "config.toml"
    config.write_text(config.read_text().replace("limit = 6", "limit = 5"))
    run = read_run(tmp_path / "run", "run")
    assert run.problems == ()
    assert any("has changed since the run" in remark.text for remark in run.remarks)


def test_the_same_run_gives_the_same_page_and_what_is_none_is_told(small_run: Path, tmp_path: Path) -> None:
    with pytest.raises(BrokenInput, match="neither"):
        read_run(tmp_path, "run")
    with pytest.raises(UserError, match="cannot be written"):
        write_report([read_run(small_run, "run")], small_run / "config.toml" / "report.html", "title")
    for name in ("first", "second"):
        write_report([read_run(small_run, "run")], tmp_path / name, "title")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(0, 1, [0, 0.25, 0.5, 0.75, 1]), (0.5, 0.5, [0, 0.25, 0.5, 0.75, 1]), (-3, 97, [-25, 0, 25, 50, 75, 100])],
)
def test_ticks_are_round_and_cover(low: float, high: float, ticks: list[float]) -> None:
    assert nice_ticks(low, high) == ticks


def test_texts_that_could_act_are_no_markup_and_lines_of_a_million_characters_are_cut(several_report: Path) -> None:
    page = several_report.read_text()
    found: list[tuple[str, list[str]]] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append((tag, [name for name, _ in attrs]))

    Tags().feed(page)
    assert len(found) > 1000
    assert [tag for tag, names in found if any(name.startswith("on") for name in names)] == []
    assert [names for tag, names in found if tag in ("b", "i", "img") and names] == []
    assert sum(tag == "script" for tag, _ in found) == page.count("</script>")
    assert "\u202e" not in page
    assert "&lt;b onclick=alert(1)&gt;" in page  # the name of a run, as text
    assert len(page) < 300_000


def test_several_runs_have_one_chart_per_curve_with_a_line_per_run(small_run: Path, changed_run: Path) -> None:
    runs = [read_run(small_run, "small"), read_run(changed_run, "changed")]
    panels = {panel.key: panel for panel in comparison_panels(runs)}
    coder = panels["games-rewards-coder"]
    assert [(line.name, line.run) for line in coder.series] == [("small", 0), ("changed", 1)]
    assert [line.points for line in coder.series] == [run.panels[0].series[0].points for run in runs]
    assert coder.title == "Rewards: coder"
    shared = [{(panel.key, curve.name) for panel in run.panels for curve in panel.series} for run in runs]
    assert len(panels) == len({key for key in shared[0] & shared[1] if key[0] not in ("verdicts", "time")})
    assert comparison_panels(runs[:1]) == ()
    training = replace(runs[1], kind="training", axis="step")  # runs of different kinds share no chart
    assert comparison_panels([runs[0], training]) == ()
    for panel in comparison_panels([runs[0], training, runs[1]]):
        assert [line.run for line in panel.series] == [0, 2]


@pytest.mark.parametrize("by", ["an agent", "the sandbox", "the rules"])
def test_a_masked_round_is_an_alarm_with_problem_and_reason(small_run: Path, tmp_path: Path, by: str) -> None:
    path = shutil.copytree(small_run, tmp_path / "run")
    first, rest = (path / "episodes.jsonl").read_text().split("\n", 1)
    line = json.loads(first)
    (played,) = line["rounds"]
    played["rewards"]["coder"]["value"] = None
    why = {"an agent": "the tester <b> was unavailable", "the rules": "the rules mask it for lack of evidence"}.get(by)
    if by == "an agent":
        played["candidate"] |= {"verdict": "internal_error", "detail": why}
    elif by == "the sandbox":
        played["suites"][0]["cases"][0] |= {"verdict": "internal_error", "actual": "killed"}
        why = "the sandbox failed on f(0): killed"
    (path / "episodes.jsonl").write_text(f"{json.dumps(line)}\n{rest}")
    found = read_run(path, "run")
    (alarm,) = [remark.text for remark in found.remarks if remark.is_alarm]
    assert alarm == f"1 of 45 rounds is masked, and in no figure: {line['problem_id']} ({why})."
    page = page_of("run", [found], (), {})
    assert page.index("Alarm.") < page.index('<dl class="tiles">')


def test_the_first_duel_is_compared_without_layout(tmp_path: Path) -> None:
    path = written_run(tmp_path / "run", 2, lambda number: "# no\ndef f(x):\n    return ((x))")
    found = read_run(path, "run")
    problem = replace(found.problems[0], solution='def f(x):\n    """Twice."""\n    return (x) * 2\n')
    found = replace(found, problems=(problem,))
    archive = Archive()
    for group in found.groups():
        archive.add(0, group)
    archive.close()

    def duels(run: RunMaterial) -> object:
        data = zlib.decompress(base64.b64decode(data_of([run], archive, ())["index"]))
        return json.loads(data)["duels"]

    first = "The duel to read first"
    assert duels(found) == [[first, 0, "def f(x):\n    return x * 2", "def f(x):\n    return x"]]
    assert duels(replace(found, problems=())) == [[first, 0]]
    below = duels(replace(found, problems=(replace(problem, imports="import re"),)))
    assert below == [[first, 0, *(f"import re\n\ndef f(x):\n    return x{end}" for end in (" * 2", ""))]]
    assert duels(replace(found, is_going=True)) == [["The last duel", 2]]


def test_wrong_and_replayed_tests_make_no_program_harder_to_beat(tmp_path: Path) -> None:
    """The first program fails its only right test of many, the second one of two."""
    (group, *_) = read_run(written_run(tmp_path / "run", 1, str), "run").groups()
    (played,) = group.members.values()
    (suite,) = played.suites
    right = next(case for case in suite.cases if case.verdict.is_failure)
    passed = next(c for c in suite.cases if not c.verdict.is_failure and not c.is_example)
    lie, copied = passed.model_copy(update={"prediction_right": False}), passed.model_copy(update={"is_example": True})
    archive = Archive()
    for n, (cases, n_replayed) in enumerate((((right, *[lie, copied] * 5), 9), ((right, passed), 0))):
        update = {"suites": (suite.model_copy(update={"cases": cases}),), "replayed": (passed,) * n_replayed}
        archive.add(0, replace(group, step=n, members={"": played.model_copy(update=update)}))
    assert (archive.closest[0].row, archive.closest[0].beaten_share) == (1, 0.5)


@pytest.mark.parametrize("right", [True, False])
def test_the_duel_to_read_first_is_one_that_a_right_test_wins(right: bool, tmp_path: Path) -> None:
    """The first program fails one wrong test of many, the second two tests of few."""
    (group, *_) = read_run(written_run(tmp_path / "run", 1, str), "run").groups()
    (played,) = group.members.values()
    (suite,) = played.suites
    base = next(case for case in suite.cases if case.verdict.is_failure)
    passed = next(case for case in suite.cases if not case.verdict.is_failure)
    lie, true = (base.model_copy(update={"prediction_right": each, "is_example": False}) for each in (False, True))
    archive = Archive()
    for n, cases in enumerate(((lie, *[passed] * 9), (true if right else lie, lie))):
        members = {"": played.model_copy(update={"suites": (suite.model_copy(update={"cases": cases}),)})}
        archive.add(0, replace(group, step=n, members=members))
    assert (archive.closest[0].row, archive.closest[0].is_won_right) == (int(right), right)
    assert [*Outcome][archive.index()["columns"]["outcome"][0]] is Outcome.FAILED, "its tester earns nothing"


def test_without_a_program_that_loads_there_is_no_duel(small_run: Path) -> None:
    run, archive = read_run(small_run, "run"), Archive()
    group = next(group for group in run.groups() if group.step == 9)
    archive.add(0, group)
    archive.close()
    data = zlib.decompress(base64.b64decode(data_of([run], archive, ())["index"]))
    assert json.loads(data)["duels"] == [["There is no duel to read, since no recorded program loads."]]


def test_the_page_says_of_what_its_intervals_are(training: Path) -> None:
    assert "of training steps by Student's t over steps" in page_of("a", [read_run(training, "a")], (), {})


def test_reports_of_several_runs_say_in_which_settings_they_differ(tmp_path: Path) -> None:
    runs = [read_run(written_run(tmp_path / name, n, str), name) for name, n in (("a", 1), ("b", 2))]
    page = page_of("both", runs, (), {})
    table = page[page.index("Settings in which the runs differ") :].partition("</table>")[0]
    assert '<th scope="row">episodes</th><td>1</td><td>2</td>' in table
    assert "limit" not in table, "both have the same"
    assert '<th scope="row">limit</th><td>6</td><td>\N{EN DASH}</td>' in page_of(
        "both", [runs[0], replace(runs[1], settings={})], (), {}
    )
    assert "do not differ in any setting" in page_of("same", [runs[0], runs[0]], (), {})


def test_settings_of_trainings_and_games_side_by_side_are_effective_ones_of_both(
    small_run: Path, training: Path, tmp_path: Path
) -> None:
    def table(*runs: RunMaterial) -> str:
        return page_of("both", runs, (), {}).partition('id="run-0"')[0]

    plain = read_run(training, "plain")
    other = shutil.copytree(training, tmp_path / "other")
    (other / "config.toml").write_text("[run]\nsteps = 30\n[game.reward]\nalpha = 0.25\n[evaluation]\nlimit = 3\n")
    changed, games = read_run(other, "changed"), read_run(small_run, "games")
    assert "Where tests of the last steps are lost" in page_of("one", [plain], (), {})
    apart = table(plain, changed)
    assert '<th scope="row">game.reward.alpha</th><td>0.5</td><td>0.25</td>' in apart
    assert "Rewards of these runs are not comparable, since they differ in game.reward.alpha." in apart
    assert "Figures of held-out problems of these runs are not comparable" in apart
    assert "not comparable" not in table(plain, plain)
    mixed = table(changed, games)
    assert '<th scope="row">reward.alpha</th><td>0.25</td><td>0.5</td>' in mixed
    assert not re.search(r'<th scope="row">(schema_version|problems_digest|limits|episodes|steps)', mixed)


def test_every_chart_names_both_axes(small_run: Path, training: Path) -> None:
    runs = [read_run(path, path.name) for path in (small_run, training)]
    panels = [*runs[0].panels, *runs[1].panels, *comparison_panels([runs[1], runs[1]])]
    named = [
        (panel.title, re.findall(r'<text class="axis"[^>]*>([^<]+)', panel_svg(panel, title_id="t")))
        for panel in panels
    ]
    assert all(len(names) == 2 for _, names in named)
    known = dict(named)
    assert known["Where the time goes"] == ["step", "seconds"]
    assert known["Rewards: coder"] == ["step", "reward"]
    assert known["Size of the Mistake Book"] == ["step", "cases"]
