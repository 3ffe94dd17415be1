from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import tomli_w

from tests.codea1_lab.conftest import screen

pytest.importorskip("fastapi", reason="fastapi is not installed")

from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.records.journal import last_line
from codea1_env.service.admission import Admission
from codea1_lab.web.app import BOUNDS, WebServer
from codea1_lab.web.watch import _Runs, watch_part
from tests.codea1_lab.report.conftest import HOSTILE, written_run

NAMES = "[...document.querySelectorAll('.runs-list th a')].map(a => a.textContent)"
READY = "document.documentElement.dataset.ready === 'yes'"
LAST_X = "JSON.parse(document.querySelector('.plot').dataset.chart).xs.at(-1)"
KICKER = "document.querySelector('.kicker').textContent"
BAD = "<img src=x onerror=document.title=1>\u202e"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    with WebServer([watch_part(folder)], Admission(BOUNDS.n_running, 0), port=0) as server:
        yield server.url


def answer_of(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def training_in(path: Path, n_steps: int, of: int) -> Path:
    """A training run without rollouts."""
    path.mkdir(parents=True)
    (path / "config.toml").write_text(tomli_w.dumps({"about": HOSTILE, "run": {"steps": of}}))
    (path / "run.json").write_text(json.dumps({"judge_version": JUDGE_VERSION}))
    with (path / "metrics.jsonl").open("w") as lines:
        lines.writelines(step_line(step) for step in range(1, n_steps + 1))
    return path


def step_line(step: int, **alarms: str) -> str:
    figures = {"coder_reward": step / 10, "tester_reward": 0.5, "right_kill_rate": 0.25}
    return json.dumps({"step": step, "figures": figures, "times": {}, "alarms": alarms}) + "\n"


def append(path: Path, text: str) -> None:
    with path.open("a") as lines:
        lines.write(text)


def test_the_list_tells_what_each_run_does(folder: Path) -> None:
    written_run(folder / "deep" / "games", 3, lambda number: "def f(x): return x")
    training_in(folder / "training", 4, 9)
    (folder / "training" / "samples" / "step-0001").mkdir(parents=True)
    shutil.copy(folder / "deep" / "games" / "episodes.jsonl", folder / "training" / "samples" / "step-0001")
    append(folder / "training" / "metrics.jsonl", step_line(5, cut_coder="90% are cut") + '{"step": 6, "fig')
    (folder / "broken").mkdir()
    (folder / "broken" / "metrics.jsonl").write_text("nothing\n")
    shutil.copytree(folder / "deep" / "games", folder / "both")
    shutil.copy(folder / "training" / "metrics.jsonl", folder / "both")
    found = {each["name"]: each for each in _Runs(folder).list_runs()}
    assert found.keys() == {"deep/games", "training", "broken", "both"}  # a run's rollouts are no run of their own
    games, training = found["deep/games"], found["training"]
    assert (games["kind"], games["state"], games["step"], games["of"]) == ("games", "complete", 3, 3)
    assert (training["state"], training["step"], training["of"]) == ("going on", 5, 9)
    assert (training["figures"]["coder_reward"], training["alarms"]) == (0.5, ["90% are cut"])
    assert found["broken"]["state"] == found["both"]["state"] == "unreadable"
    assert "got metrics.jsonl and episodes.jsonl" in found["both"]["alarms"][0]


def test_a_run_hides_no_run_within_its_folder(folder: Path, address: str) -> None:
    training_in(folder / "outer", 3, 9)
    written_run(folder / "outer" / "games", 3, lambda number: "def f(x): return x")
    training_in(folder / "outer" / "games" / "deep" / "inner", 2, 9)
    (folder / "metrics.jsonl").write_text("")  # of the folder itself
    names = {each["name"] for each in json.loads(answer_of(f"{address}/watch/runs")[1])["runs"]}
    assert names == {".", "outer", "outer/games", "outer/games/deep/inner"}
    assert answer_of(f"{address}/watch/report?run=outer/games/deep/inner")[0] == 200


def test_games_show_the_last_round_and_when_all_are_played_the_means(folder: Path) -> None:
    path = written_run(folder / "games", 10, lambda number: "def f(x): return x")
    whole = (path / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    (path / "episodes.jsonl").write_bytes(b"".join(whole[:7]))  # a program that is beaten by a suite of half the size
    last = {"coder_reward": 0.75, "tester_reward": 0.25, "right_kill_rate": 1.0, "suite_validity": 0.5}
    (path / "metrics.json").write_text(means := json.dumps({"summary": {key: {"mean": None} for key in last}}))
    assert [each["figures"] for each in _Runs(folder).list_runs()] == [last]  # the means are of a shorter run
    (path / "episodes.jsonl").write_bytes(b"".join(whole))
    assert [each["figures"] for each in _Runs(folder).list_runs()] == [dict.fromkeys(last)]
    (path / "metrics.json").write_text(means.replace("null", "0.5"))
    assert [each["figures"] for each in _Runs(folder).list_runs()] == [dict.fromkeys(last, 0.5)]
    (path / "metrics.json").unlink()  # the run ended between its last line and its means; the tester had no turn
    assert [each["figures"]["right_kill_rate"] for each in _Runs(folder).list_runs()] == [None]


@pytest.mark.parametrize(
    ("content", "why"), [("[1", "delimiter"), ('{"summary": 3}', "int"), ("NaN", "finite"), ("1e999", "finite")]
)
def test_means_may_be_anything(folder: Path, address: str, content: str, why: str) -> None:
    path = written_run(folder / "games", 3, lambda number: "def f(x): return x")
    keys = ("coder_reward", "tester_reward", "right_kill_rate", "suite_validity")
    means = ", ".join(f'"{key}": {{"mean": {content}}}' for key in keys)
    (path / "metrics.json").write_text(f'{{"summary": {{{means}}}}}' if why == "finite" else content)
    (found,) = json.loads(answer_of(f"{address}/watch/runs")[1])["runs"]
    assert found["state"] == "unreadable"
    assert why in found["alarms"][0]


@pytest.mark.parametrize(
    ("file", "content", "why"),
    [
        ("metrics.jsonl", b'{"step": 1, "figures": {"coder_reward": NaN}}\n', "finite number"),
        ("metrics.jsonl", b'{"step": 1, "figures": {"coder_reward": 1e999}}\n', "finite number"),
        ("metrics.jsonl", b'{"step": %d}\n' % 10**4000, "less than or equal"),
        ("metrics.jsonl", b"[" * 10**5 + b"\n", "not a JSON object"),
        ("metrics.jsonl", b'{"step": 1, "alarms": {"a": [[[1]]]}}\n', "alarms"),
        ("config.toml", b"a = " + b"[" * 10**5, "recursion"),
        ("config.toml", b"\xff", "decode"),
        ("config.toml", b"run.steps = nan", "integer"),
    ],
)
def test_files_may_hold_anything(folder: Path, address: str, file: str, content: bytes, why: str) -> None:
    (training_in(folder / "t", 3, 9) / file).write_bytes(content)
    training_in(folder / "intact", 3, 9)
    found = {each["name"]: each for each in json.loads(answer_of(f"{address}/watch/runs")[1])["runs"]}
    assert (found["t"]["state"], found["intact"]["state"]) == ("unreadable", "going on")
    assert why in found["t"]["alarms"][0]
    assert answer_of(f"{address}/watch/report?run=t")[0] == (200 if b"nan" in content else 422)


def test_what_is_no_plain_file_is_not_opened_and_texts_that_are_no_text_are_listed(folder: Path, address: str) -> None:
    for name, file in (("a", "config.toml"), ("b", "metrics.jsonl"), ("c", "run.json"), ("d", "metrics.jsonl")):
        (training_in(folder / name, 3, 9) / file).unlink()
        os.mkfifo(folder / name / file) if name != "d" else (folder / name / file).symlink_to("/dev/zero")
    found = {each["name"]: each["state"] for each in json.loads(answer_of(f"{address}/watch/runs")[1])["runs"]}
    assert found == {"a": "unreadable", "c": "going on"}
    assert [answer_of(f"{address}/watch/report?run={name}")[0] for name in "abcd"] == [422, 404, 422, 404]
    training_in(folder / os.fsdecode(b"bad\xff"), 3, 9)
    path = training_in(folder / "t", 3, 9)
    append(path / "metrics.jsonl", '{"step": 4, "alarms": {"a": "\\ud800", "b": "%s"}}\n' % ("x" * 10**6))
    found = {each["name"]: each for each in json.loads(answer_of(f"{address}/watch/runs")[1])["runs"]}
    assert found["bad\udcff"]["state"] == "unreadable"
    assert [len(text) for text in found["t"]["alarms"]] == [1, 500]


@pytest.mark.parametrize(
    ("content", "last"),
    [(b"", b""), (b"half", b""), (b"one\n", b"one"), (b"one\ntwo\nhalf", b"two"), (b"x" * 99 + b"\n", b"")],
)
def test_the_last_line_is_the_last_whole_one(tmp_path: Path, content: bytes, last: bytes) -> None:
    (tmp_path / "lines").write_bytes(content)
    assert last_line(tmp_path / "lines", most=50) == last


def test_a_page_is_made_again_when_its_files_have_changed(folder: Path) -> None:
    path, runs = training_in(folder / "t", 3, 9), _Runs(folder)
    first = runs.of(["t"], lambda made: made)
    assert runs.of(["t"], lambda made: made) is first
    append(path / "metrics.jsonl", step_line(4))
    first.good_until = float("inf")  # it took long, and leaves the run in peace
    assert runs.of(["t"], lambda made: made) is first
    first.good_until = 0.0
    assert "step 4" in runs.of(["t"], lambda made: made.page)


def test_only_runs_of_the_folder_are_shown(folder: Path, address: str) -> None:
    training_in(folder / "t", 3, 9)
    training_in(folder.parent / "outside", 3, 9)
    (folder / "link").symlink_to(folder.parent / "outside")
    assert answer_of(f"{address}/watch/report?run=t")[0] == 200
    for name in ("../outside", "link", "t/../../outside", str(folder.parent / "outside"), "", "."):
        status, said = answer_of(f"{address}/watch/report?{urlencode({'run': name})}")
        assert (status, "in this folder" in said) == (404, True), name
    assert answer_of(f"{address}/watch/data?run=t&part=index")[0] == 404
    (folder / "t" / "metrics.jsonl").write_text('{"step": "x"}\n')
    status, said = answer_of(f"{address}/watch/report?run=t")
    assert (status, "metrics.jsonl line 1" in said, "← runs" in said) == (422, True, True)


@pytest.mark.browser
def test_a_page_follows_its_run_and_drops_half_lines(browser: Any, folder: Path, address: str) -> None:
    path = training_in(folder / "t", 3, 6)
    browser.open(f"{address}/watch/report?run=t")
    assert "going on" in browser.ask(KICKER)
    browser.ask("document.querySelector('.question').open = true")
    append(path / "metrics.jsonl", step_line(4, cut="<b>90%</b> are cut") + step_line(5)[:20])
    browser.until("document.querySelector('.alarm')?.textContent.includes('<b>90%</b> are cut')", 60)
    assert browser.ask(LAST_X) == 4
    assert browser.ask("document.querySelector('.question').open")
    append(path / "metrics.jsonl", step_line(5)[20:] + step_line(6))
    browser.until(f"{LAST_X} === 6", 60)
    browser.until(f"{KICKER} === 'training'")
    assert browser.complaints() == []


@pytest.mark.browser
def test_games_are_followed_and_compared(browser: Any, folder: Path, address: str) -> None:
    path = written_run(folder / "a", 6, lambda number: f"def f(x):\n    return x + {number}\n")
    whole = (path / "episodes.jsonl").read_text().splitlines(keepends=True)
    (path / "episodes.jsonl").write_text("".join(whole[:4]))
    browser.open(f"{address}/watch/report?run=a")
    count = "document.getElementById('count').textContent"
    assert browser.ask(count) == "6 of 6 candidates"
    assert "The last duel" in browser.ask("document.querySelector('.duel').textContent")
    (path / "episodes.jsonl").write_text("".join(whole))
    browser.until(f"{count} === '9 of 9 candidates'")
    browser.until("document.querySelector('.duel').textContent.includes('The duel to read first')")
    shutil.copytree(path, folder / "b")
    browser.driver.get(f"{address}/#watch")
    browser.until(f"{NAMES}.length === 2")
    browser.ask("document.querySelectorAll('.runs-list input').forEach(box => box.click())")
    browser.ask("[...document.querySelectorAll('#watch a')].find(a => a.textContent === 'Compare 2 runs').click()")
    browser.until("document.querySelectorAll('[data-toggles]').length === 2")
    browser.until(READY)
    assert browser.ask(count) == "18 of 18 candidates"
    assert browser.complaints() == []


@pytest.mark.browser
def test_rows_are_kept_from_poll_to_poll_and_fit_a_phone(browser: Any, folder: Path, address: str) -> None:
    path = training_in(folder / "t", 3, 90)
    training_in(folder / ("long-" * 20), 3, 9)
    with screen(browser, 390):
        browser.driver.get("about:blank")
        browser.driver.get(f"{address}/#watch")
        browser.until(f"{NAMES}.length === 2")
        row = "[...document.querySelectorAll('.runs-list tbody tr')].find(r => r.textContent.trim().startsWith('t'))"
        browser.ask(f"(window.kept = {row}).querySelector('input').focus()")
        assert browser.ask("document.querySelector('.runs-list').parentElement.scrollWidth") <= 390
        assert browser.ask("document.documentElement.scrollWidth") <= 390
        heights = "[...window.kept.querySelectorAll('td')].map(cell => cell.getBoundingClientRect().height)"
        assert max(browser.ask(heights)) < 34  # labels and values are of one line
        append(path / "metrics.jsonl", step_line(4, cut="90% are cut"))
        browser.until("document.querySelector('.runs-list .alarm') !== null")
        assert "4 of 90" in browser.ask("window.kept.textContent")
        assert browser.ask(f"window.kept === {row} && window.kept.contains(document.activeElement)")
    assert browser.complaints() == []


@pytest.mark.browser
def test_names_and_contents_of_runs_are_text(browser: Any, folder: Path, address: str) -> None:
    written_run(folder / BAD, 3, lambda number: HOSTILE)
    path = training_in(folder / "</script><script>document.title=1<", 3, 9)
    append(path / "metrics.jsonl", step_line(4, **{BAD: BAD}))
    for number in range(2):
        browser.driver.get("about:blank")
        browser.driver.get(f"{address}/#watch")
        browser.until(f"{NAMES}.length === 2")
        assert "<img src=x onerror=document.title=1>\\u202e" in browser.ask(NAMES)
        browser.ask(f"document.querySelectorAll('.runs-list th a')[{number}].click()")
        browser.until(f"document.querySelector('.tile') !== null && {READY}")
        assert browser.ask("document.querySelectorAll('main img, main script').length") == 0
        assert browser.ask("document.title") != "1"
    assert browser.complaints() == []


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.ray
def test_a_training_is_watched_live_to_its_end(
    browser: Any, folder: Path, address: str, phrase_folders: dict[str, str], increments: str, tmp_path: Path
) -> None:
    settings = {
        "run": {"steps": 4},
        "game": {"problems": increments},
        "agents": {role: {"model": place, "max_tokens": 2} for role, place in phrase_folders.items()},
        "rollout": {"problems_per_step": 2, "problems_at_once": 2, "n_candidates": 3, "n_suites": 2},
        "training": {"minibatches_per_epoch": 1, "micro_batch_size": 0},
        "cluster": {"torch_threads": 1, "cpus_per_env_runner": 0.5},
        "logging": {"tensorboard": False, "samples_every": 2},
    }
    (tmp_path / "t.toml").write_text(tomli_w.dumps(settings))
    command = "from codea1_agents.cli import main; main()"
    arguments = ["train", str(tmp_path / "t.toml"), "-o", str(folder / "live")]
    with subprocess.Popen([sys.executable, "-c", command, *arguments], stdout=subprocess.DEVNULL) as run:
        browser.driver.get(f"{address}/#watch")
        browser.until(f"{NAMES}.includes('live')", 200)
        browser.ask("document.querySelector('.runs-list th a').click()")
        browser.until(f"{KICKER} === 'training' && {LAST_X} === 4", 200)
        assert run.wait(100) == 0
    browser.until("!document.querySelector('.duel').hidden", 60)
    assert browser.complaints() == []
