"""Runs one benchmark on two checkouts alternately, and prints ratios with an interval.

    python benchmarks/pairs.py OLD NEW --figure 'per_candidate_ms/one group/total/median' [--pairs N] [--json] \
        -- judge.py --rounds 1 --json

OLD and NEW are checkouts. The benchmark is the script of that name in this folder, with all options after `--`; it
imports the packages of a checkout. With `--of-checkout` it is the script in the checkout itself, for changes of the
functions that benchmarks call. `--figure` is a path of keys in the benchmark's JSON and may occur several times. The
script prints the medians of both checkouts, and the median of NEW / OLD over pairs with a 95 % interval (bootstrap over
pairs, seed 0). The checkout that runs first changes from pair to pair.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from measuring import machine, option_parser

_N_RESAMPLES = 10_000


@dataclass(frozen=True)
class Ratio:
    """One figure of two checkouts."""

    figure: str
    n_pairs: int
    old: float
    """Median of the old checkout."""
    new: float
    """Median of the new checkout."""
    ratio: float
    """Median of new / old over pairs."""
    low: float
    """2.5 % quantile of the bootstrap."""
    high: float
    """97.5 % quantile of the bootstrap."""


def main() -> None:
    options = arguments()
    found: dict[str, list[tuple[float, float]]] = {figure: [] for figure in options.figure}
    for number in range(options.pairs):
        checkouts = (options.old, options.new)
        ran = {
            each: run(each, options.benchmark, of_checkout=options.of_checkout)
            for each in (checkouts if number % 2 else checkouts[::-1])
        }
        for figure, pairs in found.items():
            old, new = (reduce(lambda at, key: at[key], figure.split("/"), ran[each]) for each in checkouts)
            pairs.append((float(old), float(new)))
        print(f"pair {number + 1} of {options.pairs}", file=sys.stderr)
    ratios = [ratio_of(figure, np.array(pairs)) for figure, pairs in found.items()]
    if options.json:
        print(json.dumps({"about": machine(), "ratios": [asdict(each) for each in ratios]}, indent=1))
        return
    print(machine())
    for each in ratios:
        print(
            f"{each.figure}: {each.old:.3f} -> {each.new:.3f}, ratio {each.ratio:.3f}"
            f" [{each.low:.3f}, {each.high:.3f}] over {each.n_pairs} pairs"
        )


def arguments() -> argparse.Namespace:
    parser = option_parser(__doc__, json="figures for programs")
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--figure", action="append", required=True)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--of-checkout", action="store_true", help="run each checkout's own benchmark of that name")
    own, benchmark = sys.argv[1:], []
    if "--" in own:
        own, benchmark = own[: own.index("--")], own[own.index("--") + 1 :]
    options = parser.parse_args(own)
    if not benchmark:
        parser.error("name a benchmark after --")
    options.benchmark = benchmark
    return options


def run(checkout: Path, benchmark: list[str], *, of_checkout: bool) -> Any:
    """Run a benchmark with the packages of a checkout and return its JSON."""
    root = checkout.resolve()
    path = os.pathsep.join([str(root), str(root / "agents")])
    script = str((root / "benchmarks" if of_checkout else Path(__file__).parent) / benchmark[0])
    done = subprocess.run(
        [sys.executable, script, *benchmark[1:]],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        check=True,
    )
    return json.loads(done.stdout)


def ratio_of(figure: str, pairs: np.ndarray) -> Ratio:
    ratios = pairs[:, 1] / pairs[:, 0]
    draws = np.random.default_rng(0).choice(ratios, (_N_RESAMPLES, len(ratios)))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
    old, new = np.median(pairs, axis=0)
    return Ratio(figure, len(ratios), float(old), float(new), float(np.median(ratios)), float(low), float(high))


if __name__ == "__main__":
    main()
