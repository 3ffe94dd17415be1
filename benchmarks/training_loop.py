"""Measures the cost of RLlib: the same training as a plain loop and as `GRPO`, in processor time of the process trees.

    python benchmarks/training_loop.py --model DIR [--steps 50] [--runners N] [--rounds N] [--json]

Both arms train the two roles of Code-A1 from one model (of `codea1 pretrain`) with the same functions for rollouts,
judging, groups, sampling, the loss and the Mistake Book. Only the caller differs: RLlib, or a loop of a hundred lines
without actors, messages, configurations or checkpoints, which samples and learns with one copy of each model. Each arm
runs in its own process with one thread of torch, and the arms alternate. There are two figures for each arm:

- *steps*: from the first step to the last;
- *whole*: since the start of the process, with imports, Ray's own processes and the loading of models. The plain loop
  imports RLlib only because its modules also define classes of RLlib, so its figure excludes the processor time of that
  import.

Both must have the same weights and the same rewards after the first two steps; otherwise the comparison is void. Later,
the last bits, which depend on memory addresses, change some sampled token. From then on the arms differ like two runs
of different seeds, but their cost stays comparable.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from measuring import Spread, machine, option_parser
from rich.console import Console
from rich.table import Table

from codea1_agents.train.loop.processor_time import processor_seconds

if TYPE_CHECKING:
    from codea1_agents.train.grpo.rollout import RolledTree

_CLOSE = 1e-5
_STEPS_COMPARED = 2
_ARMS = ("plain", "rllib")


@dataclass
class Run:
    """Measurements of one arm."""

    whole_s: float = 0.0
    """Processor seconds of the process tree since its start."""
    steps_s: float = 0.0
    """The part of the steps."""
    import_s: float = 0.0
    """The part of the import of RLlib."""
    wall_s: float = 0.0
    """Wall-clock seconds of the steps."""
    rewards: list[list[float]] = field(default_factory=list)
    """Mean rewards of coder and tester, by step; nan where there is no reward."""
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    """Weights after the steps that are compared."""


# -- the arms --------------------------------------------------------------------------------------


def run_plain(options: argparse.Namespace) -> Run:
    """Train with the plain loop."""
    import torch  # noqa: F401, PLC0415  -- before the clock starts, as both arms need it

    begun = processor_seconds()
    importlib.import_module("ray.rllib.algorithms.algorithm")
    importlib.import_module("ray.rllib.core.learner.torch.torch_learner")
    run = Run(import_s=processor_seconds() - begun)
    from plain_loop import PlainLoop, config_of  # noqa: PLC0415  -- it imports RLlib

    loop = PlainLoop(config_of(options))
    started, clock = processor_seconds(), time.perf_counter()
    for number in range(options.steps):
        run.rewards.append(mean_rewards(loop.step(number)))
        if number + 1 == _STEPS_COMPARED:
            run.weights = loop.weights()
    ended = processor_seconds()
    run.steps_s, run.whole_s, run.wall_s = ended - started, ended, time.perf_counter() - clock
    return run


def run_rllib(options: argparse.Namespace) -> Run:
    """Train with `GRPO`."""
    import ray  # noqa: PLC0415  -- not in the comparing process
    from plain_loop import config_of  # noqa: PLC0415  -- likewise

    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    ray.init("local", num_cpus=max(2, options.runners), include_dashboard=False, log_to_driver=False)
    algorithm = config_of(options).build_algo()
    run = Run()
    started, clock = processor_seconds(), time.perf_counter()
    for number in range(options.steps):
        algorithm.train()
        run.rewards.append(mean_rewards(algorithm.last_trees))
        if number + 1 == _STEPS_COMPARED:
            state = algorithm.learner_group.get_state(components="learner/rl_module")["learner"]["rl_module"]
            run.weights = {f"{role}/{name}": array for role, arrays in state.items() for name, array in arrays.items()}
    ended = processor_seconds()
    run.steps_s, run.whole_s, run.wall_s = ended - started, ended, time.perf_counter() - clock
    algorithm.stop()
    ray.shutdown()
    return run


def mean_rewards(trees: Sequence[RolledTree]) -> list[float]:
    """Return the mean rewards of coders and of testers over trees."""
    of_role = ([tree.coder_rewards for tree in trees], [tree.tester_rewards for tree in trees])
    known = [np.concatenate([each[~np.isnan(each)] for each in rewards]) for rewards in of_role]
    return [float(each.mean()) if each.size else math.nan for each in known]


def run_in_process(arm: str, arguments: Sequence[str]) -> Run:
    """Run one arm in its own process and return its measurements."""
    with tempfile.TemporaryDirectory(prefix="codea1-loop-") as folder:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_AUTH_MODE": "disabled", "TOKENIZERS_PARALLELISM": "0"}
        command = [sys.executable, __file__, *arguments, "--arm", arm, "--into", folder]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"the arm {arm} failed:\n{done.stderr[-4000:]}")
        measured = json.loads((Path(folder) / "run.json").read_text())
        with np.load(Path(folder) / "weights.npz") as arrays:
            return Run(**measured, weights={name: arrays[name] for name in arrays.files})


def write(run: Run, folder: Path) -> None:
    """Write the measurements for the comparing process."""
    measured = {name: value for name, value in vars(run).items() if name != "weights"}
    (folder / "run.json").write_text(json.dumps(measured))
    np.savez(folder / "weights.npz", allow_pickle=False, **run.weights)


# -- the comparison --------------------------------------------------------------------------------


def largest_difference(one: Run, other: Run) -> float:
    """Return the largest difference of two weights."""
    if one.weights.keys() != other.weights.keys():
        sys.exit("the arms trained different models")
    return max(float(np.abs(one.weights[name] - other.weights[name]).max()) for name in one.weights)


def compared(rounds: Sequence[dict[str, Run]], options: argparse.Namespace) -> dict[str, Any]:
    """Return all figures as plain data."""
    plain, rllib = [each["plain"] for each in rounds], [each["rllib"] for each in rounds]
    return {
        "machine": machine(),
        "options": {name: value for name, value in vars(options).items() if name not in ("arm", "into", "json")},
        "steps_cpu_s": {arm: Spread.of([each[arm].steps_s for each in rounds]).to_json() for arm in _ARMS},
        "whole_cpu_s": {
            "plain": Spread.of([each.whole_s - each.import_s for each in plain]).to_json(),
            "rllib": Spread.of([each.whole_s for each in rllib]).to_json(),
        },
        "import_cpu_s": Spread.of([each.import_s for each in plain]).to_json(),
        "steps_wall_s": {arm: Spread.of([each[arm].wall_s for each in rounds]).to_json() for arm in _ARMS},
        "steps_ratio": Spread.of([b.steps_s / a.steps_s for a, b in zip(plain, rllib, strict=True)]).to_json(),
        "whole_ratio": Spread.of(
            [b.whole_s / (a.whole_s - a.import_s) for a, b in zip(plain, rllib, strict=True)]
        ).to_json(),
        "weights_differ_by": max(largest_difference(each["plain"], each["rllib"]) for each in rounds),
        "same_rewards": all(
            np.allclose(
                each["plain"].rewards[:_STEPS_COMPARED], each["rllib"].rewards[:_STEPS_COMPARED], equal_nan=True
            )
            for each in rounds
        ),
        "rewards_at_the_end": {arm: [each[arm].rewards[-1] for each in rounds] for arm in _ARMS},
    }


def show(found: dict[str, Any]) -> None:
    """Print a table."""
    table = Table("processor seconds", "plain", "RLlib", "ratio")
    for name in ("steps", "whole"):
        of_arms = [Spread(**found[f"{name}_cpu_s"][arm]) for arm in _ARMS]
        cells = [f"{each.median:.1f} ({each.min:.1f} to {each.max:.1f})" for each in of_arms]
        ratio = Spread(**found[f"{name}_ratio"])
        table.add_row(name, *cells, f"{ratio.median:.2f} ({ratio.min:.2f} to {ratio.max:.2f})")
    console = Console()
    console.print(table)
    console.print(
        f"importing RLlib: {found['import_cpu_s']['median']:.1f} s; after {_STEPS_COMPARED} steps weights differ by "
        f"{found['weights_differ_by']:.1e}, rewards are {'the same' if found['same_rewards'] else 'DIFFERENT'};"
        f" last step (coder, tester): {found['rewards_at_the_end']}"
    )


def parsed() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    parser = option_parser(__doc__, json="one JSON object")
    parser.add_argument("--model", required=True, help="directory of a small causal language model")
    parser.add_argument("--problems", default="tiny:train")
    parser.add_argument("--prompts", default="tiny")
    parser.add_argument("--steps", type=int, default=50, help=f"at least {_STEPS_COMPARED}")
    parser.add_argument("--problems-per-step", type=int, default=8)
    parser.add_argument("--tests", type=int, default=4, help="per suite")
    parser.add_argument("--coder-tokens", type=int, default=56)
    parser.add_argument("--tester-tokens", type=int, default=96)
    parser.add_argument("--runners", type=int, default=0, help="RLlib's remote runners; 0: one in its own process")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--arm", choices=_ARMS, help=argparse.SUPPRESS)
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    return parser


def main() -> None:
    parser = parsed()
    options = parser.parse_args()
    if options.steps < _STEPS_COMPARED:
        parser.error(f"--steps must be at least {_STEPS_COMPARED}")
    if options.arm:
        import torch  # noqa: PLC0415  -- not in the comparing process

        torch.set_num_threads(1)
        write(run_plain(options) if options.arm == "plain" else run_rllib(options), options.into)
        return
    arguments = [each for each in sys.argv[1:] if each != "--json"]
    rounds = []
    for number in range(options.rounds):
        order = _ARMS if number % 2 == 0 else _ARMS[::-1]
        rounds.append({arm: run_in_process(arm, arguments) for arm in order})
    found = compared(rounds, options)
    print(json.dumps(found, indent=2)) if options.json else show(found)
    if not found["same_rewards"] or found["weights_differ_by"] > _CLOSE:
        sys.exit("void: the two arms have different weights or rewards")


if __name__ == "__main__":
    main()
