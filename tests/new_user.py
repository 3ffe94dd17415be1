"""Plays a new user: installs the wheel in a new environment and runs the code blocks of README and the task pages.

python -m tests.new_user [--pages NAME ...] [--all] [--keep] [--venv PATH]

Each page has a folder of its own outside the clone. Its blocks run there in order, as printed, so later blocks see the
files and the exported variables of earlier ones. Of blocks that need a GPU or a cluster, the lines `codea1 train` run
as dry runs. Blocks marked `minutes` run with `--all`; blocks with other marks are skipped. Exit code 1: a block failed.
The wheel is built with hatchling of the Python that runs this; pip downloads the rest, about 1 GB with torch for CPUs.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support import ROOT
from tests.support.code_blocks import SHELLS, Block, blocks_of, commands_of, task_pages

EXTRAS = "rllib"
"""What the pages tell to install."""
DRY_RUN = ("--dry-run", "--on", "8 x 96GB")
BLOCK_S = 1800
"""Time for a block that is not marked `minutes`."""
SHOWN_LINES = 25
_ENVIRONMENT = ".environment"


@dataclass(frozen=True, slots=True)
class Step:
    """One block, and what is done with it: `run`, `dry-run`, `save`, or the mark because of which it is skipped."""

    block: Block
    action: str
    code: str  # as printed, or its dry runs


def steps_of(blocks: list[Block], *, minutes: bool) -> list[Step]:
    """Return what is done with the blocks of a page, in order, without those that are only shown.

    `minutes`: whether blocks that need minutes run.
    """
    return [step for block in blocks if (step := _step(block, minutes)) is not None]


def _step(block: Block, minutes: bool) -> Step | None:
    if block.language not in (*SHELLS, "python"):
        return Step(block, "save", block.code) if block.file_name else None
    if not block.needs or (minutes and block.needs == "minutes"):
        return Step(block, "run", block.code)
    dry = dry_runs(block) if block.needs in ("gpu", "cluster") else ""
    return Step(block, "dry-run" if dry else block.needs, dry)


def dry_runs(block: Block) -> str:
    """Return the commands `codea1 train` of a shell block as dry runs on GPUs that are large enough, one per line."""
    trainings = [words for words in commands_of(block) if words[:2] == ["codea1", "train"]]
    return "".join(f"{shlex.join([*words, *(() if '--dry-run' in words else DRY_RUN)])}\n" for words in trainings)


def report_of(page: str, outcomes: list[tuple[Step, bool]]) -> str:
    """Return one line on a page, whose steps come each with whether it failed."""
    done = Counter("failed" if failed else step.action for step, failed in outcomes if step.action != "save")
    counts = [f"{action} {done.pop(action, 0)}" for action in ("run", "dry-run", "failed")]
    reasons = ", ".join(f"{needs} {count}" for needs, count in sorted(done.items()))
    skipped = f"skipped {done.total()}" + (f" ({reasons})" if reasons else "")
    return "  ".join([f"{page:<16}", *counts, skipped])


def play(step: Step, folder: Path, environment: dict[str, str]) -> str:
    """Do a step in its page's folder and return what it printed if it failed, otherwise an empty text."""
    file = folder / (step.block.file_name or f"block_{step.block.line}.py")
    if step.action == "save":
        with file.open("a") as rows:
            rows.write(step.code)
    if step.action not in ("run", "dry-run"):
        return ""
    command = ["bash", "-euo", "pipefail", "-c", _kept(step.code)]
    if step.block.language == "python":
        file.write_text(step.code)
        command = ["python", file.name]
    return _failure(command, folder, environment, None if step.block.needs == "minutes" else BLOCK_S)


def _kept(code: str) -> str:
    """Return a block that begins with the exported variables of earlier blocks and keeps its own."""
    return f"[ ! -f {_ENVIRONMENT} ] || . ./{_ENVIRONMENT}\n{code}\nexport -p > {_ENVIRONMENT}"


def _failure(command: list[str], folder: Path, environment: dict[str, str], limit_s: int | None) -> str:
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        done = subprocess.run(command, cwd=folder, env=environment, **streams, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return f"no end after {limit_s} s"
    lines = [*done.stdout.splitlines()[-SHOWN_LINES:], f"exit code {done.returncode}"]
    return "\n".join(lines) if done.returncode else ""


def play_page(page: Path, folder: Path, environment: dict[str, str], minutes: bool) -> Iterator[tuple[Step, bool]]:
    """Do the steps of a page in a new folder, print each with its seconds, and yield whether it failed."""
    folder.mkdir()
    for step in steps_of(blocks_of(page), minutes=minutes):
        began = time.monotonic()
        failure = play(step, folder, environment)
        print(f"  {step.block}: {step.action}, {time.monotonic() - began:.0f} s", flush=True)
        if failure:
            print(f"FAILED {step.block}\n{step.code}{failure}", flush=True)
        yield step, bool(failure)


def install(venv: Path, folder: Path) -> None:
    """Build the wheel in a folder and install it with its extras in a new environment."""
    pip_wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip_wheel, "-w", folder, ROOT], check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    pip_install = [venv / "bin" / "python", "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip_install, "-c", ROOT / "constraints.txt", f"{wheel}[{EXTRAS}]"], check=True)


def environment_of(venv: Path) -> dict[str, str]:
    """Return the environment of a shell in which `venv` is active and nothing leads to the clone."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return {**kept, "PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}", "VIRTUAL_ENV": str(venv)}


def new_user(options: argparse.Namespace, folder: Path) -> int:
    """Install the package, do the pages, print a line for each, and return how many blocks failed."""
    venv = (options.venv or folder / "venv").absolute()
    if not options.venv:
        install(venv, folder)
    pages = [page for page in task_pages() if not options.pages or page.stem in options.pages]
    reports, failed = [], 0
    for page in pages:
        outcomes = list(play_page(page, folder / page.stem, environment_of(venv), options.all))
        failed += sum(has_failed for _, has_failed in outcomes)
        reports.append(report_of(page.stem, outcomes))
    print(*reports, sep="\n")
    print(f"{failed} blocks failed")
    return failed


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", nargs="+", choices=[page.stem for page in task_pages()], help="only these pages")
    parser.add_argument("--all", action="store_true", help="run the blocks that need minutes or hours, too")
    parser.add_argument("--keep", action="store_true", help="keep the folders of the pages and the environment")
    parser.add_argument("--venv", type=Path, help="use this environment and install nothing")
    return parser.parse_args()


if __name__ == "__main__":
    options = arguments()
    folder = Path(tempfile.mkdtemp(prefix="new-user-"))
    print(f"in {folder}", flush=True)
    try:
        failed = new_user(options, folder)
    finally:
        if not options.keep:
            shutil.rmtree(folder)
    sys.exit(failed > 0)
