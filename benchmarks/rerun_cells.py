"""Runs cells of the committed experiments again, drawn by a seed, and compares every figure bit for bit.

    python benchmarks/rerun_cells.py [--cells 4] [--seed 0] [--out FOLDER]

Only results that name this machine's kind of processor take part, since other kinds give other bits. All that a cell
needs, its base first, is made anew. Processor seconds are not compared. Run it from a clean clone; the exit status is
1 if a figure differs. A cell takes about five minutes; an interrupted call continues in the same folder.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measuring import option_parser

from codea1_agents.play.versions import processor_kind
from codea1_lab.experiments.grid import Cell

_CODEA1 = "from codea1_agents.cli import main; main()"
_COMMITTED = Path(__file__).parents[1] / "docs" / "experiments"


def main() -> int:
    parser = option_parser(__doc__)
    parser.add_argument("--cells", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    kind = processor_kind()
    committed = {
        (path.parent.name, _cell(result)): result
        for path in sorted(_COMMITTED.glob("*/results.jsonl"))
        for result in map(json.loads, path.read_text("utf-8").splitlines())
        if result.get("processor") == kind
    }
    drawn = random.Random(options.seed).sample(sorted(committed), min(options.cells, len(committed)))
    print(f"{len(committed)} committed cells ran on {kind!r}; drawn: {len(drawn)}", flush=True)
    out = options.out or Path(tempfile.mkdtemp())
    differing = [
        _differing(committed[name, cell], _again(name, cell, out), f"{name} {cell.name}") for name, cell in drawn
    ]
    return int(not drawn or any(differing))


def _cell(result: dict[str, Any]) -> Cell:
    return Cell(result["system"], result["base"], result["seed"])


def _again(name: str, cell: Cell, out: Path) -> dict[str, Any]:
    command = ["experiment", name, "--only", cell.name, "--workers", "1"]
    subprocess.run(
        [sys.executable, "-c", _CODEA1, *command, "--out", out / name], check=True, stdout=subprocess.DEVNULL
    )
    result: dict[str, Any] = json.loads((out / name / "cells" / cell.name / "result.json").read_text("utf-8"))
    return result


def _differing(old: dict[str, Any], new: dict[str, Any], name: str) -> bool:
    """Print and return whether a figure of the committed result, or of an evaluation in its curve, differs."""
    before, after = _figures(old), _figures(new)
    differing = sorted(key for key, value in before.items() if after.get(key) != value)
    print(f"{name}: {len(before)} figures, {len(differing)} differ", flush=True)
    for key in differing[:10]:
        print(f"    {key}: {before[key]!r} was committed, now {after.get(key)!r}")
    return bool(differing)


def _figures(result: dict[str, Any]) -> dict[str, float]:
    curve = {f"{key} at step {p['step']}": v for p in result.get("curve", ()) for key, v in p["figures"].items()}
    return {key: value for key, value in {**result["figures"], **curve}.items() if "cpu_s" not in key}


if __name__ == "__main__":
    sys.exit(main())
