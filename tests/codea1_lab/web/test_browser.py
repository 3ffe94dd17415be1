"""The page as people meet it: whole games in headless Chromium, by pointer and by keyboard."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest

from codea1_env.problems import ProblemSet
from codea1_env.problems.problem import Problem
from tests.codea1_agents.cli.test_demo_duel import FINDS
from tests.codea1_lab.conftest import screen

Keys: Any = pytest.importorskip("selenium.webdriver.common.keys", reason="needs the extra dev-browser").Keys

WRONG_TEST = "assert is_balanced('(') == True\nhello"
EVIL = "</script><img src=x onerror=\"document.title='pwned'\"><b onclick=alert(1)>\u202eevil"
PLAIN = "document.querySelectorAll('main img, main script, main b b, main [onclick], main [onerror]').length"
LEFT = """performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
    .map(entry => entry.name).filter(name => !name.startsWith(location.origin) && !name.startsWith('data:'))"""
ABOUT = """[...document.querySelectorAll('select[aria-describedby]')].map(
    choice => document.getElementById(choice.getAttribute('aria-describedby')).textContent)"""
FOUND_BY_AXE = """const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ['violations']}).then(found => done(found.violations.map(
    fault => fault.id + ': ' + fault.nodes.map(node => node.html + ' ' + node.failureSummary).join(' | '))))"""


def press_button(browser: Any, label: str) -> None:
    button = f"[...document.querySelectorAll('button')].find(b => b.textContent.startsWith({label!r}))"
    browser.ask(f"{button}.click()")


def tab_to(browser: Any, condition: str) -> None:
    """Press Tab until the focused element fulfils a condition."""
    for _ in range(60):
        if browser.ask(f"(e => {condition})(document.activeElement)"):
            return
        browser.press(Keys.TAB)
    raise AssertionError(f"no way by Tab to {condition}")


def is_clean(browser: Any, width: int) -> None:
    """No complaint of the browser, nothing loaded from elsewhere, nothing wider than the screen."""
    assert browser.complaints() == []
    assert browser.ask(LEFT) == []
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.ask("innerWidth") == width


def has_no_fault(browser: Any) -> None:
    """Contrast, labels, roles, headings, by the rules of axe."""
    axe = pytest.importorskip("axe_core_python", reason="needs the extra dev-browser")
    browser.driver.execute_script(files(axe).joinpath("axe.min.js").read_text(encoding="utf-8"))
    assert browser.driver.execute_async_script(FOUND_BY_AXE) == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_whole_game_as_the_tester(browser: Any, serving_page: Any, width: int, scheme: str) -> None:
    with serving_page() as server, screen(browser, width, scheme):
        browser.open(server.url)
        has_no_fault(browser)
        assert browser.ask(ABOUT) == [
            "mutant knows the solution, and may change it in one place.",
            "fuzz tests programs with random inputs.",
        ]
        press_button(browser, "Duel 1")
        browser.until("document.activeElement.textContent === 'Duel 1: starter/is_balanced'")
        assert browser.ask("document.getElementById('reply').value") == "assert is_balanced("
        has_no_fault(browser)
        browser.fill("reply", WRONG_TEST)
        press_button(browser, "Send")
        browser.until("document.getElementById('last') !== null")
        told = browser.ask("document.getElementById('last').textContent")
        assert "A test with a wrong answer finds nothing" in told
        assert "Line 2 does not count" in told
        assert "Hint: What if the text ends too early?" in told
        assert told.startswith("Try 1: cost a point, 2 left")
        assert "2 of 3 points" in browser.ask("document.querySelector('.chips').textContent")
        assert browser.ask("document.getElementById('reply').value") == WRONG_TEST
        assert browser.ask("document.getElementById('announcement').textContent").endswith("too early?")
        has_no_fault(browser)
        browser.fill("reply", FINDS[1])
        press_button(browser, "Send")
        browser.until("document.activeElement.textContent === 'You have won'")
        assert "test 1 found it" in browser.ask("document.getElementById('story').textContent")
        assert "`" not in browser.ask("document.getElementById('story').textContent")
        assert browser.ask("document.querySelector('#story code').textContent").startswith("return ")
        assert "return not still_open" in browser.ask("document.querySelector('.change').textContent")
        has_no_fault(browser)
        is_clean(browser, width)
        press_button(browser, "Go on to duel 2")
        browser.until("document.activeElement.textContent.startsWith('Duel 2')")
        assert "2 points in all games" in browser.ask("document.querySelector('.chips').textContent")
        browser.fill("reply", "assert 1")
        press_button(browser, "Send")
        browser.until("document.getElementById('last') !== null")
        browser.fill("reply", "assert half")
        browser.driver.refresh()
        browser.until("document.querySelector('h2')?.textContent.startsWith('Duel 2')")  # a reload loses no game
        assert browser.ask("document.getElementById('reply').value") == "assert half"
        assert "Line 1 does not count" in browser.ask("document.getElementById('last').textContent")
        browser.driver.back()
        browser.until("document.querySelector('h2').textContent === 'Play'")
        assert browser.ask("[...document.querySelectorAll('#play option')].map(o => o.textContent)")[0] == "mutant"
        duels = browser.ask("[...document.querySelectorAll('.members button')].map(b => b.textContent)")
        assert duels[:2] == ["Duel 1: brackets, won ✓", "Duel 2: turning part of a list"]
        browser.driver.forward()
        browser.until("document.querySelector('h2').textContent.startsWith('Duel 2')")
        assert browser.ask("document.getElementById('reply').value") == "assert half"


def test_a_lost_game_tells_what_would_have_won_and_a_reload_keeps_its_end(browser: Any, serving_page: Any) -> None:
    with serving_page() as server, screen(browser, 390):
        browser.open(server.url)
        press_button(browser, "Duel 1")
        browser.until("document.getElementById('reply') !== null")
        rows = browser.ask("[...document.querySelectorAll('[aria-label=Problem] .row')].map(r => r.textContent)")
        assert any("close the most recently opened bracket that is still open" in row for row in rows)
        assert {'    >>> is_balanced("(]")', "    False"} <= set(rows)
        for points, text in ((3, "assert 1"), (2, "assert is_balanced('()')"), (1, "assert is_balanced(']') == False")):
            browser.fill("reply", text)
            press_button(browser, "Send")
            browser.until(f"document.querySelector('#last h3')?.textContent.startsWith('Try {4 - points}')")
        assert browser.ask("[...document.querySelectorAll('.card h3')].map(h => h.textContent)") == [
            "Try 3: cost a point, 1 left",
            "Try 2: cost a point, 2 left",
            "Try 1: cost no point",
        ]
        assert browser.ask("document.querySelector('#last p:last-child code').textContent") == "return True"
        assert "`" not in browser.ask("document.getElementById('play').innerText")
        has_no_fault(browser)
        press_button(browser, "Send")
        browser.until("document.activeElement.textContent === 'You have lost'")
        told = "document.querySelector('#play').textContent"
        assert "assert is_balanced('(') == FalseThe solution gives False; the program gives True." in browser.ask(told)
        has_no_fault(browser)
        is_clean(browser, 390)
        browser.driver.refresh()
        browser.until("document.querySelector('#story h3')?.textContent === 'You have lost'")
        assert "A test that would have found it" in browser.ask(told)
        press_button(browser, "Play another game")
        assert browser.ask("document.querySelector('h2').textContent") == "Play"
        browser.driver.refresh()
        browser.until("document.querySelector('h2')?.textContent === 'Play'")


def test_a_whole_game_as_the_coder_by_keyboard_alone(browser: Any, serving_page: Any, toys: ProblemSet) -> None:
    tester, problems = lambda _: "assert add(1, 2) == 3\nassert add(0, 5) == 5", ProblemSet("toys", toys[:1])
    with serving_page(problems, testers=[tester]) as server, screen(browser, 1280):
        browser.open(server.url)
        browser.press(Keys.TAB)
        assert browser.ask("document.activeElement.className") == "skip"
        tab_to(browser, "e.textContent === 'Play as coder'")
        browser.press(Keys.ENTER)
        browser.until("document.activeElement.tagName === 'H2'")
        tab_to(browser, "e.id === 'reply'")
        begun = browser.ask("document.getElementById('reply').value")
        assert begun.startswith("def add(")  # the docstring stands beside it
        assert begun.endswith(":\n    ")
        assert '"""' not in begun
        browser.driver.switch_to.active_element.send_keys(Keys.CONTROL, "a")
        browser.press(Keys.DELETE)
        browser.press("def add(a, b):", Keys.ENTER, "if not a:", Keys.ENTER, "return a")
        assert (
            browser.ask("document.getElementById('reply').value") == "def add(a, b):\n    if not a:\n        return a"
        )
        browser.press(Keys.ENTER, Keys.BACKSPACE * 4, "return a + b")
        browser.driver.switch_to.active_element.send_keys(Keys.CONTROL, Keys.ENTER)
        browser.until("document.getElementById('last') !== null")
        assert "Your program gives 0." in browser.ask("document.getElementById('last').textContent")
        assert browser.ask("document.activeElement.id") == "reply"
        browser.driver.switch_to.active_element.send_keys(Keys.CONTROL, "a")
        browser.press("def add(a, b):", Keys.ENTER, Keys.BACKSPACE * 4, Keys.TAB, "return a + b")
        browser.press(Keys.TAB)  # indents
        assert browser.ask("document.activeElement.id") == "reply"
        browser.press(Keys.ESCAPE, Keys.TAB)  # leaves
        assert browser.ask("document.activeElement.textContent") == "Send the program"
        browser.press(Keys.ENTER)
        browser.until("document.activeElement.textContent === 'You have won'")
        assert "passes 2 of 2 tests" in browser.ask("document.getElementById('story').textContent")
        assert browser.ask("document.querySelector('.change, del') === null")  # what is right is not red
        assert "return a + b" in browser.ask("document.querySelector('[aria-label=\"Your program\"]').textContent")
        has_no_fault(browser)
        is_clean(browser, 1280)


def test_texts_of_anybody_stay_texts(browser: Any, serving_page: Any) -> None:
    statement = f'def f(x):\n    """{EVIL}"""\n'
    problem = Problem(EVIL, statement, "f", "def f(x):\n    return x\n", ())

    def coder(_: Any) -> str:
        return f"# {EVIL}\ndef f(x):\n    return x or '''{EVIL}'''"

    coder.__name__ = EVIL.replace(",", "")
    with serving_page(ProblemSet("evil", (problem,)), coders=[coder]) as server, screen(browser, 1280):
        browser.open(server.url)
        press_button(browser, "Play as tester")
        browser.until("document.getElementById('reply') !== null")
        assert browser.ask(PLAIN) == 0
        browser.fill("reply", f"assert f('''{EVIL}''') == 1\nassert f('') == 2\n{EVIL}")
        press_button(browser, "Send")
        browser.until("document.getElementById('last') !== null")
        told = browser.ask("document.getElementById('last').textContent")
        assert "<img src=x onerror=" in told
        assert "\u202e" not in browser.ask("document.querySelector('main').innerText")
        browser.fill("reply", "assert f('') == ''")
        press_button(browser, "Send")
        browser.until("document.getElementById('story') !== null")
        assert "<b onclick" in browser.ask("document.getElementById('play').textContent")
        assert browser.ask(PLAIN) == 0
        assert browser.ask("document.title") == "codea1"
        assert browser.complaints() == []


def test_what_fails_is_said_and_the_text_is_kept(browser: Any, serving_page: Any) -> None:
    with serving_page() as server, screen(browser, 390):
        browser.open(server.url)
        press_button(browser, "Duel 1")
        browser.until("document.getElementById('reply') !== null")
        browser.fill("reply", FINDS[1])
        browser.driver.delete_all_cookies()
        press_button(browser, "Send")
        browser.until("!document.getElementById('notice').hidden")
        assert browser.ask("document.getElementById('notice').textContent") == "you have no game here: begin one"
        assert browser.ask("document.getElementById('reply').value") == FINDS[1]
