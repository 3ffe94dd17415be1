"""Kills a training at random moments, resumes it each time, and compares it with one that ran undisturbed.

    python benchmarks/kills.py --model DIR [--kills 20] [--steps 40] [--seed 0]

`DIR` is a folder of `codea1 pretrain`. Both runs have the same settings, tiny problems, and a checkpoint after each
step. A kill falls on a rollout, an update or a checkpoint, at a moment drawn from the seconds after the first step of a
start; in a quarter of the cases, on the seconds before it, in which Ray starts and models load. The exit status is 1 if
a figure differs that measures neither time nor memory, or if the killed run's folder has other names than the calm one.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from measuring import option_parser

_CLOCKS = ("times", "memory", "cpu_s")
_CODEA1 = (sys.executable, "-c", "from codea1_agents.cli import main; main()")
_LOADING = 0.25


def settings(options: argparse.Namespace) -> list[str]:
    """Return the arguments of a training that saves after every step."""
    sets = [
        "rollout.problems_per_step=4",
        "rollout.prompts=tiny",
        "training.lr=1e-3",
        "checkpoints.every=1",
        "evaluation.every=0",
    ]
    models = ["--coder", options.model, "--tester", options.model, "--problems", "tiny:train"]
    return ["code-a1", *models, "--steps", str(options.steps), *(word for each in sets for word in ("--set", each))]


def start(arguments: list[str], said: Path) -> subprocess.Popen[bytes]:
    """Start `codea1 train` as the leader of a group of processes; what it says on stderr replaces a file's text."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_AUTH_MODE": "disabled"}
    with said.open("wb") as errors:
        streams = {"stdout": subprocess.DEVNULL, "stderr": errors}
        return subprocess.Popen([*_CODEA1, "train", *arguments], env=environment, start_new_session=True, **streams)


def finish(process: subprocess.Popen[bytes], said: Path) -> None:
    """Wait for a training that is to succeed."""
    if process.wait():
        sys.exit(f"a run failed:\n{said.read_text(errors='replace')[-3000:]}")


def n_steps(folder: Path) -> int:
    """Return how many steps a run has written."""
    path = folder / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kill(process: subprocess.Popen[bytes], folder: Path, rng: np.random.Generator, training_s: float) -> str:
    """Kill all processes of a training at a random moment; return which, or nothing if it ended by itself."""
    before, begun = n_steps(folder), time.monotonic()
    loads = bool(rng.random() < _LOADING)
    while not loads and n_steps(folder) <= before and process.poll() is None:
        time.sleep(0.02)
    wait = float(rng.uniform(0, 8.0 if loads else training_s))
    try:
        process.wait(timeout=wait)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"{time.monotonic() - begun:.1f} s after its start, {n_steps(folder) - before} lines further"
    return ""


def figures(folder: Path) -> list[dict[str, Any]]:
    """Return the figures of each step that no clock and no memory decides."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: line[name] for name in line if not any(each in name for each in _CLOCKS)} for line in lines]


def names(folder: Path) -> set[str]:
    """Return the names in a run's folder and among its checkpoints, but for events, which each start has its own of."""
    places = [*folder.iterdir(), *(folder / "checkpoints").iterdir()]
    return {each.relative_to(folder).as_posix() for each in places if "events" not in each.name}


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--model", required=True, help="folder of a small causal language model")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory(prefix="codea1-kills-") as place:
        calm, killed, said = (Path(place) / name for name in ("calm", "killed", "stderr.txt"))
        process = start([*settings(options), "-o", str(calm)], said)
        while not n_steps(calm) and process.poll() is None:
            time.sleep(0.02)
        begun = time.monotonic()
        finish(process, said)
        training_s = time.monotonic() - begun
        each_s = 2 * training_s / max(1, options.kills)
        n = 0
        while n < options.kills:
            again = ["--resume", str(killed)] if killed.exists() else [*settings(options), "-o", str(killed)]
            process = start(again, said)
            moment = kill(process, killed, rng, each_s)
            if not moment:
                finish(process, said)
                sys.exit(f"all {options.steps} steps were done after {n} kills: ask for more --steps")
            n += 1
            print(f"kill {n}: {moment}", flush=True)
        finish(start(["--resume", str(killed)], said), said)
        left = names(killed) ^ names(calm)
        pairs = list(zip(figures(killed), figures(calm), strict=True))
        other = sorted({name for one, two in pairs for name in one.keys() | two if one.get(name) != two.get(name)})
    print(f"{n} kills in {options.steps} steps; other figures: {other}; names in one folder only: {sorted(left)}")
    sys.exit(bool(left or other))


if __name__ == "__main__":
    main()
