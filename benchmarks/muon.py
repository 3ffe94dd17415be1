"""Compares bases whose Muon computes in float32 with bases of PyTorch's own, which computes in bfloat16.

    python benchmarks/muon.py [--seeds 3] [--steps 1600] [--json]

Per seed, both learn from the same weights and documents, each in a process of its own. Printed are losses per token
along the way, and processor seconds. With `ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2
ONEDNN_MAX_CPU_ISA=AVX2` before it, it is as on a processor without AVX-512.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import fmean
from typing import Any

from measuring import option_parser, printed_by

from codea1_agents.play.versions import processor_kind
from codea1_lab.experiments.grid import Cell
from codea1_lab.experiments.spread import paired_difference

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
    return printed_by([__file__, "--base", muon, "--seed", str(seed), "--steps", str(steps)])


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
        of_type = [{Cell(muon, seed, 0): _at(each, path) for seed, each in enumerate(found[muon])} for muon in _TYPES]
        told = [f"{fmean(each.values()):.3f} ({', '.join(f'{x:.3f}' for x in each.values())})" for each in of_type]
        difference = paired_difference(*of_type)
        shown = "; ".join(f"{muon} {each}" for muon, each in zip(_TYPES, told, strict=True))
        print(f"{' '.join(path)}: {shown}; {difference.mean:+.3f} ± {difference.half_width:.3f}")


def _at(found: Any, path: tuple[str, ...]) -> float:
    for name in path:
        found = found[name]
    return float(found)


if __name__ == "__main__":
    main()
