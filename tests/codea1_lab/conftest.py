"""The fixtures of the agents' tests, which the lab's use as well, and a browser."""

from __future__ import annotations

import runpy
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.codea1_agents.conftest import *  # noqa: F403
from tests.support import ROOT
from tests.support.waiting import wait_until


class Browser:
    """A page, and what a person does with it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, path: Path | str, *, before: str = "", address: str = "") -> float:
        """Open a file or an address; return the seconds until the page can be used."""
        if before:
            script = self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": before})
        begun = time.monotonic()
        self.driver.get((path if isinstance(path, str) else path.as_uri()) + address)
        self.until("document.documentElement.dataset.ready === 'yes'")
        if before:
            self.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
        return time.monotonic() - begun

    def ask(self, script: str) -> Any:
        return self.driver.execute_script(f"return {script}")

    def until(self, condition: str, seconds: float = 20) -> None:
        """Wait for a condition; one that cannot be evaluated yet, since its element is still to come, does not hold."""
        script = f"(() => {{ try {{ return Boolean({condition}) }} catch (error) {{ return String(error) }} }})()"
        last = wait_until(lambda: (answer := self.ask(script)) is True and answer, seconds)
        assert last, f"in vain: {condition}; {self.ask(script)}; {self.driver.get_log('browser')}"

    def fill(self, field: str, value: str) -> None:
        script = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))"
        self.driver.execute_script(script, self.driver.find_element("id", field), value)

    def focus(self) -> str:
        """Return what has the focus: `H3`, or the number of a row in the list."""
        return str(self.ask("document.activeElement.dataset.row ?? document.activeElement.tagName"))

    def press(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]


@contextmanager
def screen(browser: Browser, width: int, scheme: str = "light") -> Iterator[None]:
    """Let the window be so wide, and its reader prefer a scheme; afterwards there are no cookies."""
    driver = browser.driver
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    try:
        yield
    finally:
        driver.delete_all_cookies()
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.fixture(scope="module")  # or its processes would come and go beside tests that count processes
def _driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("selenium", reason="needs the extra dev-browser")
    if missing := [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]:
        pytest.skip(f"needs {' and '.join(missing)}")
    script = runpy.run_path(str(ROOT / "benchmarks" / "pictures.py"))
    made = script["chromium"](tmp_path_factory.mktemp("profile"))
    yield made
    made.quit()


@pytest.fixture
def browser(_driver: Any) -> Browser:
    _driver.get("about:blank")
    _driver.get_log("browser")
    return Browser(_driver)
