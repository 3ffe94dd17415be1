"""The report as people meet it: opened from disk in headless Chromium."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from codea1_agents.lab.report.writing import read_run, write_report
from codea1_agents.play.summary import summarise
from codea1_env.rules.ruleset import preset
from codea1_env.runs.folder import iter_episodes

pytest.importorskip("selenium", reason="needs the extra dev-browser")
if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
    pytest.skip("needs chromium and chromedriver", allow_module_level=True)

N_ROUNDS = 45  # of 30 episodes, every second of which has two
N_SHOWN = "document.querySelectorAll('#list button').length"
COUNT = "document.getElementById('count').textContent"
DETAIL = "document.getElementById('detail').textContent"
NO_STREAM = "delete window.DecompressionStream"


def test_it_loads_from_disk_without_a_complaint_and_shows_the_runs_numbers(
    browser: Any, small_report: Path, small_run: Path
) -> None:
    browser.open(small_report)
    assert browser.ask(COUNT) == f"{N_ROUNDS} of {N_ROUNDS} candidates"
    summary = summarise(iter_episodes(small_run), tests_per_suite=preset("fixed").tests_per_suite, seed=0)
    tiles = browser.ask(
        "[...document.querySelectorAll('.tile')].map(t => [t.children[0].textContent, t.children[1].dataset.value])"
    )
    shown = {label: float(value) for label, value in tiles}
    assert shown["coder reward"] == summary.coder_reward.mean
    assert shown["tester reward"] == summary.tester_reward.mean
    assert shown["cases in the Mistake Book"] == summary.book_size
    assert browser.complaints() == []


def test_filters_choose_and_count(browser: Any, small_report: Path, small_run: Path) -> None:
    browser.open(small_report)
    records = list(iter_episodes(small_run))
    of_problem = sum(len(r.rounds) for r in records if r.problem_id == records[2].problem_id)
    browser.fill("f-problem", records[2].problem_id)
    browser.until(f"{COUNT} === '{of_problem} of {N_ROUNDS} candidates'")
    browser.fill("f-problem", "")
    browser.fill("f-from", "3")
    browser.fill("f-to", "4")
    browser.until(f"{COUNT} === '3 of {N_ROUNDS} candidates'")
    browser.ask("document.querySelector('button[type=reset]').click()")
    browser.until(f"{COUNT} === '{N_ROUNDS} of {N_ROUNDS} candidates'")
    n_invalid = sum(len(r.rounds) for r in records if r.episode % 10 == 9)
    others = "[...document.querySelectorAll('#picks label')].filter(l => !l.textContent.includes('invalid'))"
    browser.ask(f"{others}.forEach(l => l.click())")
    browser.until(f"{COUNT} === '{n_invalid} of {N_ROUNDS} candidates'")
    assert browser.ask(N_SHOWN) == n_invalid
    assert browser.complaints() == []


def test_hostile_text_stays_text_and_hidden_characters_are_seen(browser: Any, small_report: Path) -> None:
    browser.open(small_report)
    browser.ask("document.querySelector('#list button').click()")
    browser.until(f"{DETAIL}.includes('pwned')")
    assert browser.ask("document.title").endswith("· small </title><script>1</script>")
    code = browser.ask("document.querySelector('#detail .code').textContent")
    assert "# </script><script>document.title='pwned'</script><img src=x onerror=" in code
    assert "\\u202eevil\\u202c \\x1b[31m" in code
    assert "\u202e" not in code
    assert browser.ask("document.querySelectorAll('#detail img, #detail script, main b script').length") == 0
    assert "<b>7</b>" in browser.ask(DETAIL)
    assert "a <b>coder</b>" in browser.ask("document.querySelector('.facts').textContent")
    assert browser.complaints() == []


def test_one_can_read_everything_with_the_keyboard(browser: Any, small_report: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.open(small_report)
    browser.press(Keys.TAB)
    assert browser.ask("document.activeElement.className") == "skip"
    browser.ask("document.querySelector('#list button').focus()")
    browser.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert browser.ask("document.activeElement.dataset.row") == "2"
    browser.press(Keys.ENTER)
    browser.until("document.activeElement.tagName === 'H3'")
    title = browser.ask("document.activeElement.textContent")
    assert title.endswith("· episode 1 · round 2")
    assert browser.ask("document.getElementById('announcement').textContent") == title
    browser.press("j")
    browser.until("document.querySelector('#list [aria-current=true]').dataset.row === '3'")
    browser.until("document.querySelector('#detail h3').textContent.includes('episode 2')")
    browser.press(Keys.ESCAPE)
    assert browser.ask("document.activeElement.dataset.row") == "3"
    assert browser.ask("location.hash") == "#episodes"
    browser.ask("document.querySelector('.plot').focus()")
    browser.press(Keys.END)
    assert "coder" in browser.ask("document.querySelector('.plot .tip').textContent")
    assert browser.complaints() == []


def test_every_control_has_a_name_and_every_picture_a_title(browser: Any, small_report: Path) -> None:
    browser.open(small_report)
    browser.ask("document.querySelectorAll('#list button')[3].click()")
    browser.until("document.querySelector('#detail h3') !== null")
    nameless = """[...document.querySelectorAll('button, input, select, [role=region], [role=group], svg[role=img]')]
        .filter(e => !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length
            || document.getElementById(e.getAttribute('aria-labelledby') || '')?.textContent)).map(e => e.outerHTML)"""
    assert browser.ask(nameless) == []
    ids = browser.ask("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    assert browser.ask("document.querySelectorAll('main, header, nav, footer').length") == 4
    assert browser.ask("document.documentElement.lang") == "en"


def test_the_cases_of_an_episode_stand_in_the_matrix_and_in_the_table(browser: Any, small_report: Path) -> None:
    browser.open(small_report)
    browser.ask("document.querySelectorAll('#list button')[4].click()")  # episode 3, round 1: beaten
    browser.until("document.querySelector('.matrix') !== null")
    rows = browser.ask("[...document.querySelectorAll('.matrix tr')].map(r => [...r.cells].map(c => c.textContent))")
    read = [": 1 of 5 cases failed", "·passed", "Wwrong answer", "·passed", "·passed", "·passed"]
    assert rows == [["", "replayed", "new tests"], ["round 1" + read[0], *read[1:]], ["round 2" + read[0], *read[1:]]]
    verdicts = browser.ask("[...document.querySelectorAll('.cases .word')].map(c => c.textContent)")
    assert verdicts == ["wrong answer", "passed", "passed", "passed", "passed"]
    browser.ask("document.querySelectorAll('.members button')[1].click()")
    browser.until("document.querySelector('#detail h3').textContent.endsWith('round 2')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_nothing_hangs_over_and_colours_follow_the_reader(
    browser: Any, small_report: Path, scheme: str, width: int
) -> None:
    driver = browser.driver
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    try:
        browser.open(small_report)
        browser.ask("document.querySelectorAll('#list button')[0].click()")
        browser.until("document.querySelector('#detail h3') !== null")
        assert browser.ask("document.documentElement.scrollWidth") <= width
        background = "getComputedStyle(document.body).backgroundColor"
        first = browser.ask(background)
        assert (int(first.split("(")[1].split(",")[0]) < 128) == (scheme == "dark")
        browser.ask("document.getElementById('theme').click()")  # light, whatever the reader's machine prefers
        assert browser.ask(background) == "rgb(247, 245, 240)"
        browser.ask("document.getElementById('theme').click()")
        browser.ask("document.getElementById('theme').click()")
        assert browser.ask(background) == first
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_browser_that_cannot_inflate_shows_the_same(browser: Any, small_report: Path) -> None:
    texts = []
    for before in ("", NO_STREAM):
        browser.open(small_report, before=before)
        assert browser.ask("typeof DecompressionStream") == ("undefined" if before else "function")
        browser.ask("document.querySelectorAll('#list button')[7].click()")
        browser.until("document.querySelector('#detail h3') !== null")
        texts.append(browser.ask(DETAIL))
    assert texts[0] == texts[1]
    assert browser.complaints() == []


@pytest.mark.slow
def test_ten_thousand_episodes_fit_and_are_quick(browser: Any, large_run: Path, tmp_path: Path) -> None:
    path = tmp_path / "large.html"
    written = write_report([read_run(large_run, "large")], path, "large")
    assert (written.n_candidates, written.notes) == (15_000, ())
    assert path.stat().st_size < 20e6
    seconds = browser.open(path)
    browser.fill("f-from", "9990")
    browser.until(f"{COUNT} === '15 of 15,000 candidates'", seconds=10)
    assert seconds < 15  # 3 where nothing else runs; a loaded machine must not turn this into a failure
    browser.ask("document.querySelectorAll('#list button')[14].click()")
    browser.until(f"{DETAIL}.includes('x + 9999')")
    assert browser.complaints() == []
