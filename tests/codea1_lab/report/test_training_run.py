from __future__ import annotations

import json
import re
import shutil
from contextlib import suppress
from functools import reduce
from math import inf, nan
from operator import getitem
from pathlib import Path

import pytest

from codea1_env.errors import BrokenInput
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_lab.report.charts import panel_svg
from codea1_lab.report.writing import read_run, write_report
from tests.support.charts import charts_of_the_page


def test_curves_alarms_and_figures_are_those_of_its_lines(training: Path) -> None:
    run = read_run(training, "training")
    panels = {panel.key: panel for panel in run.panels}
    coder = panels["rewards"].series[0]
    assert [point.x for point in coder.points][:2] == [4, 8]  # four steps at a time
    assert coder.points[0].mean == pytest.approx((1 + 2 + 3 + 4) / 4 / 30)
    assert coder.points[0].low < coder.points[0].mean < coder.points[0].high
    assert [series.name for series in panels["time"].series] == ["sampling", "judging", "learning"]
    assert panels["book-moves"].series[0].points[-1].mean == 30
    figures = {figure.label: figure.value.mean for figure in run.figures}
    tiles = {figure.label: figure.change for figure in run.figures[:3]}
    assert list(tiles) == ["pass@1, held-out problems", "coder reward, last steps", "tester reward, last steps"]
    change = tiles["coder reward, last steps"]
    assert change.mean == pytest.approx(25 / 30)
    assert change.low < change.mean < change.high
    assert run.tests == {"killing": 5, "wrong_prediction": 15}
    assert figures["coder reward, last steps"] == pytest.approx(28 / 30)
    assert (figures["cases in the Mistake Book"], figures["pass@1, held-out problems"]) == (30, 0.25)
    lost = [{"step": step, "fault": f"rank {step} died", "from": 2} for step in (3, 7)]
    (training / "restarts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lost))
    restarts, *_ = [remark.text for remark in read_run(training, "training").remarks if remark.is_alarm]
    assert restarts == "started again after the loss of a learner (2): rank 7 died (step 7)"
    (alarm,) = [remark.text for remark in run.remarks if remark.is_alarm]
    assert alarm == "no spread coder (2 steps from step 29 on): said in step 30 (step 30)"


def test_duels_of_one_candidate_are_put_together_and_none_need_be_there(training: Path, tmp_path: Path) -> None:
    run = read_run(training, "training")
    (group,) = run.groups()
    assert (group.step, group.id, len(group.members)) == (4, "00000007", 2)
    assert [len(played.suites) for played in group.members.values()] == [2, 1]
    assert len(group.members["candidate 1"].rewards.testers) == 2
    assert write_report([run], tmp_path / "r.html", "t").n_candidates == 2
    shutil.rmtree(training / "samples")
    run = read_run(training, "training")
    assert list(run.groups()) == []
    assert any("kept no rollouts" in remark.text for remark in run.remarks)
    assert write_report([run], tmp_path / "r.html", "t").n_candidates == 0
    assert 'id="episodes"' not in (tmp_path / "r.html").read_text()


def test_turns_of_a_candidate_are_read_one_after_the_other(training: Path, tmp_path: Path) -> None:
    episodes = training / "samples" / "step-0004" / "episodes.jsonl"
    lines = [json.loads(line) for line in episodes.read_text().splitlines()]
    for duel in lines[:2]:  # of the first candidate
        (last,) = duel["rounds"]
        duel["rounds"] = [{**lines[0]["rounds"][0], "coder_reply": "```python\nbefore\n```"}, {**last, "round": 1}]
    episodes.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (group,) = read_run(training, "training").groups()
    assert list(group.members) == ["candidate 1, turn 1 of 2", "candidate 1, turn 2 of 2", "candidate 2"]
    assert [len(played.suites) for played in group.members.values()] == [1, 2, 1]
    assert "before" in next(iter(group.members.values())).coder_reply
    assert write_report([read_run(training, "training")], tmp_path / "r.html", "t").n_candidates == 3


def test_a_run_of_another_judge_says_so(training: Path, small_run: Path, tmp_path: Path) -> None:
    games = shutil.copytree(small_run, tmp_path / "games")
    for path in (training, games):
        run = read_run(path, "run")
        assert dict(run.facts)["judge"] == f"version {JUDGE_VERSION}"
        assert not any("of the judge" in remark.text for remark in run.remarks)
    (training / "run.json").write_text("{}")
    lines = games / "episodes.jsonl"
    first, rest = lines.read_text().split("\n", 1)
    unstated = first.replace(f'"judge_version":{JUDGE_VERSION},', "")
    lines.write_text(f"{unstated}\n{rest}")
    for path, told in ((training, "version 1"), (games, f"version 1 and {JUDGE_VERSION}")):
        run = read_run(path, "run")
        assert dict(run.facts)["judge"] == told
        assert any("version 1 of the judge" in remark.text for remark in run.remarks if remark.is_alarm)


ODD = (nan, inf, 1e308, -1, 10**30, "", "x", None, True, [], {}, [[]], {"a": 1})


@pytest.mark.parametrize("value", ODD, ids=repr)
@pytest.mark.parametrize(
    "place",
    [("step",), ("figures",), ("figures", "book_size"), ("times", "judge_s"), ("alarms",), ("evaluation",)],
    ids="-".join,
)
def test_a_line_of_metrics_with_anything_in_it_is_refused_or_drawn(
    training: Path, tmp_path: Path, place: tuple[str, ...], value: object
) -> None:
    lines = [json.loads(line) for line in (training / "metrics.jsonl").read_text().splitlines()]
    *above, last = place
    reduce(getitem, above, lines[5])[last] = value
    (training / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with suppress(BrokenInput):
        write_report([read_run(training, "training")], tmp_path / "report.html", "training", max_bytes=10**7)


def test_curves_of_one_run_differ_in_dashes_and_markers_and_have_the_pages_names(
    training: Path, small_run: Path
) -> None:
    curves, labels = charts_of_the_page("Curves"), charts_of_the_page("Axes")
    for run in (read_run(training, "training"), read_run(small_run, "small")):
        for panel in run.panels:
            assert {panel.x_label, panel.y_label} <= labels, panel.key
            if panel.key not in ("verdicts", "kl"):  # named as verdicts and models are
                assert {series.name for series in panel.series} <= curves, panel.key
            if not panel.stacked:
                drawn = panel_svg(panel, title_id="x")
                looks = re.findall(r'<polyline class="line [-\w]+ (dash\d)', drawn)
                assert len(set(looks)) == len(looks) == len([each for each in panel.series if len(each.points) > 1])
                shapes = set(re.findall(r'class="marker [-\w]+" d="M[-\d.,]+(m[^"]+)"', drawn))
                assert len(shapes) == len(panel.series)
