"""Takes the pictures of README and docs: `python benchmarks/pictures.py [--training RUN]`.

Draws the duel of the terminal, plays three runs of games, writes a report on one and on all of them, serves `codea1
web`, and opens these in headless Chromium. With the folder of a training run it also takes its picture and the table
of `codea1 train`. On the pages the training is `codea1 train code-a1 --steps 24 --set
logging.samples_every=4 --set evaluation.every=8 -o runs/first` after `codea1 pretrain --steps 150 -o models/tiny`, seed
0. Needs Chromium with its driver, and the extras `dev`, `dev-browser` and `serve`. The sizes of the
pictures are fixed; their letters depend on the installed fonts.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType

from codea1_agents.cli.training_table import tables_of
from codea1_agents.scripted.duels import duel
from codea1_agents.scripted.fences import fenced_reply
from codea1_env import code_a1_v0
from codea1_env.problems import ProblemSet
from codea1_env.rendering import duel_picture

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
    """Runs before the picture is taken; a line `---` waits."""
    scheme: str = "light"


FIRST = Shot("report-first", (1280, 860))
COMPARED = Shot("report-curves", (1280, 900), script="document.getElementById('compared-title').scrollIntoView()")
SECOND_ROUND = "document.querySelectorAll('.members button')[1].click()"
EPISODE = Shot("report-episode", (1280, 1010), "#run-0-episode-4", SECOND_ROUND, "dark")
PHONE = Shot("report-phone", (390, 780), "#run-0-episode-4", SECOND_ROUND)
PLAY = Shot(
    "web-play",
    (1000, 1180),
    script="""[...document.querySelectorAll('button')].find(b => b.textContent.startsWith('Duel 1')).click()
---
const reply = document.getElementById('reply')
reply.value = "assert is_balanced('(') == True"
reply.dispatchEvent(new Event('input', {bubbles: true}))
;[...document.querySelectorAll('button')].find(b => b.textContent.startsWith('Send')).click()
---
scrollTo(0, 0)""",
)
WATCH = Shot("web-watch", (1000, 400), "/#watch")
TRAINING = Shot("report-training", (1280, 900))


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


def take(driver: Any, page: str, shots: Sequence[Shot], folder: Path) -> None:
    """Take pictures of the page at an address, each as `NAME.png` with 256 colours."""
    from PIL import Image  # noqa: PLC0415  comes with matplotlib

    for shot in shots:
        width, height = shot.size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = {"prefers-color-scheme": shot.scheme, "prefers-reduced-motion": "reduce"}
        media = [{"name": name, "value": value} for name, value in features.items()]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
        driver.get("about:blank")  # or an address with another fragment would not load the page again
        driver.get(page + shot.address)
        time.sleep(1)  # for the texts to be unpacked
        for part in shot.script.split("---"):
            driver.execute_script(part)
            time.sleep(1.5)
        picture = Image.open(BytesIO(driver.get_screenshot_as_png())).convert("RGB")
        path = folder / f"{shot.name}.png"
        picture.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
        print(path)


def draw(what: RenderableType, path: Path) -> None:
    """Draw what a terminal of 96 columns shows, as SVG that loads no font."""
    console = Console(record=True, width=96, file=StringIO(), force_terminal=True)
    console.print(what)
    text = console.export_svg(title="codea1", unique_id=path.stem)
    path.write_text(re.sub(r"@font-face \{.*?\}\s*", "", text, flags=re.DOTALL), encoding="utf-8")
    print(path)


def won_duel() -> RenderableType:
    """Return the second duel of `codea1 demo duel` as it ends if the tester wins it."""
    chosen = duel(2)
    suite = "assert rotate_window([1, 2, 3], 0, 3, 1) == [2, 3, 1]\nassert rotate_window([7, 8], 0, 2, 5) == [8, 7]"
    with code_a1_v0.env(ProblemSet("duels", (chosen.problem,))) as env:
        env.reset(seed=0)
        env.step(fenced_reply(chosen.program))
        env.step(suite)
        return duel_picture(env.unwrapped.last_round, width=96, reveals=True)


COMMAND = (sys.executable, "-c", "from codea1_agents.cli import main; main()")


def codea1(*arguments: str | Path) -> None:
    subprocess.run([*COMMAND, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


@contextmanager
def web(folder: Path) -> Iterator[str]:
    """Serve `codea1 web` for the runs of a folder, and yield its address."""
    server = subprocess.Popen([*COMMAND, "web", str(folder), "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().split()[1]
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--training", type=Path, help="folder of a training run")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "docs" / "pictures")
    options = parser.parse_args()
    draw(won_duel(), options.out / "duel.svg")
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
            reports.append((folder / "training.html", (TRAINING,)))
            shutil.copytree(options.training, folder / "training", ignore=shutil.ignore_patterns("checkpoints"))
            lines = (options.training / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
            draw(Group(*tables_of([json.loads(line) for line in lines])), options.out / "live-table.svg")
        driver = chromium(folder / "profile")
        try:
            for report, shots in reports:
                take(driver, report.as_uri(), shots, options.out)
            with web(folder) as address:
                take(driver, address, (PLAY, WATCH), options.out)
        finally:
            driver.quit()


if __name__ == "__main__":
    main()
