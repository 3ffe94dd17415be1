"""Takes the pictures of docs/report.md in headless Chromium: `python benchmarks/report_pictures.py [--training RUN]`.

Plays three runs of games, writes a report on one and on all of them, and opens these. With the folder of a training
run it also takes its pictures and those of its cross-play. On the page the training is
`codea1 demo coevolve -o coevolve`, seed 0, and the cross-play `codea1 crossplay coevolve/run@base coevolve/run@50
coevolve/run -p tiny:held-out-eval --tests 4 -o coevolve/run/crossplay`. Needs Chromium with its driver, and the extras
`dev` and `dev-browser`. The sizes of the pictures are fixed; their letters depend on the installed fonts.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

GAMES = {
    "fuzz": ("mutant,strength=0.6", "fuzz"),
    "boundary": ("mutant,strength=0.6", "boundary"),
    "weaker": ("mutant,strength=0.9", "boundary"),
}
"""Name of a run of games -> coder and tester."""


@dataclass(frozen=True)
class Shot:
    """One picture of the report."""

    name: str
    size: tuple[int, int]
    """Width and height in pixels."""
    address: str = ""
    script: str = ""
    """Runs before the picture is taken."""
    scheme: str = "light"


FIRST = Shot("report-first", (1280, 860))
COMPARED = Shot("report-curves", (1280, 900), script="document.getElementById('compared-title').scrollIntoView()")
SECOND_ROUND = "document.querySelectorAll('.members button')[1].click()"
EPISODE = Shot("report-episode", (1280, 1010), "#run-0-episode-4", SECOND_ROUND, "dark")
PHONE = Shot("report-phone", (390, 780), "#run-0-episode-4", SECOND_ROUND)
TRAINING = (
    Shot("report-training", (1280, 900), "#curves-0"),
    Shot("report-crossplay", (1280, 900), "#matrices-0"),
)


def chromium(profile: Path) -> Any:
    """Start a headless Chromium with a new profile; `quit` ends it."""
    from selenium import webdriver  # noqa: PLC0415  an extra

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
        "--window-size=1280,900",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


def take(driver: Any, report: Path, shots: Sequence[Shot], folder: Path) -> None:
    """Take pictures of a report, each as `NAME.png` with 256 colours."""
    from PIL import Image  # noqa: PLC0415  comes with matplotlib

    for shot in shots:
        width, height = shot.size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = {"prefers-color-scheme": shot.scheme, "prefers-reduced-motion": "reduce"}
        media = [{"name": name, "value": value} for name, value in features.items()]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
        driver.get("about:blank")  # or an address with another fragment would not load the page again
        driver.get(report.as_uri() + shot.address)
        time.sleep(1)  # for the texts to be unpacked
        driver.execute_script(shot.script)
        time.sleep(0.5)
        picture = Image.open(BytesIO(driver.get_screenshot_as_png())).convert("RGB")
        path = folder / f"{shot.name}.png"
        picture.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
        print(path)


def codea1(*arguments: str | Path) -> None:
    command = "from codea1_agents.cli import main; main()"
    subprocess.run([sys.executable, "-c", command, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--training", type=Path, help="folder of a training run")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "docs" / "pictures")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, (coder, tester) in GAMES.items():
            agents = ("--coder", coder, "--tester", tester)
            codea1("play", "-p", "starter", *agents, "-n", "104", "--rounds", "2", "-q", "-o", folder / name)
        codea1("report", folder / "boundary")
        reports = [(folder / "boundary.html", (FIRST,)), (folder / "games.html", (COMPARED, EPISODE, PHONE))]
        codea1("report", *(folder / name for name in GAMES), "-o", reports[1][0])
        if options.training is not None:
            codea1("report", options.training, "-o", folder / "training.html")
            reports.append((folder / "training.html", TRAINING))
        driver = chromium(folder / "profile")
        try:
            for report, shots in reports:
                take(driver, report, shots, options.out)
        finally:
            driver.quit()


if __name__ == "__main__":
    main()
