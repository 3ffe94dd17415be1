"""Compares bases whose Muon computes in float32 with bases of PyTorch's own, which computes in bfloat16.

    python benchmarks/muon.py [--seeds 3] [--steps 1600] [--json]

Per seed, both learn from the same weights and documents, each in a process of its own. Printed are losses per token
along the way, and processor seconds. With `ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2
ONEDNN_MAX_CPU_ISA=AVX2` before it, it is as on a processor without AVX-512.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from measuring import option_parser

from codea1_agents.play.versions import processor_kind

_TYPES = ("float32", "bfloat16")
_POINTS = 4


def base(muon: str, seed: int, steps: int) -> dict[str, Any]:
    """Return the losses and the processor seconds of one base."""
    from codea1_agents.train.tiny.pretraining import PretrainingSettings, pretrain  # noqa: PLC0415  needs torch

    curve: dict[str, dict[str, float]] = {}

    def note(done: int, losses: Any) -> None:
        if done % max(1, steps // _POINTS) == 0:
            curve[str(done)] = dict(losses)

    begun = time.process_time()
    pretrain(PretrainingSettings(seed=seed, steps=steps, muon=muon), progress=note)  # type: ignore[arg-type]
    return {"losses": curve, "cpu_s": time.process_time() - begun}


def one(muon: str, seed: int, steps: int) -> dict[str, Any]:
    """Return `base` of a process of its own."""
    command = [sys.executable, __file__, "--base", muon, "--seed", str(seed), "--steps", str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{muon}, seed {seed}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = option_parser(__doc__, json="print all figures as JSON")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1600)
    parser.add_argument("--base", choices=_TYPES, help="only one base, of --seed")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.base:
        print(json.dumps(base(options.base, options.seed, options.steps)))
        return
    with ThreadPoolExecutor(2) as pool:
        found = {
            muon: list(pool.map(lambda seed, muon=muon: one(muon, seed, options.steps), range(options.seeds)))
            for muon in _TYPES
        }
    if options.json:
        print(json.dumps(found))
        return
    print(f"{processor_kind()}; seeds 0 to {options.seeds - 1}; mean over seeds (each), float32 - bfloat16 ± its 95 %")
    rows: list[tuple[str, ...]] = [("cpu_s",)]
    some = found["float32"][0]["losses"]
    rows += [("losses", step, kind) for step in some for kind in some[step]]
    for path in rows:
        of_type = {muon: np.array([_at(each, path) for each in found[muon]]) for muon in _TYPES}
        told = "; ".join(f"{muon} {v.mean():.3f} ({', '.join(f'{x:.3f}' for x in v)})" for muon, v in of_type.items())
        print(f"{' '.join(path)}: {told}; {_difference(of_type['float32'] - of_type['bfloat16'])}")


def _at(found: Any, path: tuple[str, ...]) -> float:
    for name in path:
        found = found[name]
    return float(found)


def _difference(pairs: np.ndarray[Any, Any]) -> str:
    from scipy.stats import t  # noqa: PLC0415

    half = t.ppf(0.975, len(pairs) - 1) * pairs.std(ddof=1) / len(pairs) ** 0.5 if len(pairs) > 1 else np.nan
    return f"{pairs.mean():+.3f} ± {half:.3f}"


if __name__ == "__main__":
    main()
