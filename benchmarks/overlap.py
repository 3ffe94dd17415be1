"""Measures how much time sampling beside learning saves: iterations with `overlap=0` and `overlap=1`, in pairs.

    python benchmarks/overlap.py --model DIR [--pairs 10] [--steps 6] [--epochs 2] [--json]

Two remote runners sample, one remote learner learns, each with one thread of torch. As on devices of their own, the
runners and their sandboxes have the first half of the processor's cores, the learner the others. `--epochs` makes
learning cost as much as sampling; the ratio of the two is printed. Each arm runs in its own process and the arms
alternate. The first two iterations of an arm are left out: nothing is sampled ahead of the first one, and processes
still load code.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from statistics import median
from typing import Any

from measuring import Spread, descendants, machine

_LEFT_OUT = 2
_RUNNERS = 2


def run_arm(options: argparse.Namespace, overlap: int) -> list[dict[str, float]]:
    """Return the seconds of each iteration that counts: of all, of waiting for rollouts, and of learning."""
    import ray  # noqa: PLC0415  -- not in the comparing process
    from plain_loop import config_of  # noqa: PLC0415  -- likewise

    ray.init("local", num_cpus=_RUNNERS + 2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    config = config_of(options).copy(copy_frozen=False).learners(num_learners=1, num_cpus_per_learner=1)
    config.training(overlap=overlap, epochs_per_step=options.epochs)
    algorithm = config.build_algo()
    cores = sorted(os.sched_getaffinity(0))
    half = len(cores) // 2
    algorithm.env_runner_group.foreach_env_runner(lambda _: keep_to(cores[:half]), local_env_runner=False)
    algorithm.learner_group.foreach_learner(lambda _: keep_to(cores[half:]))
    found = []
    for number in range(_LEFT_OUT + options.steps):
        begun = time.perf_counter()
        algorithm.train()
        facts = algorithm.last_step
        if number >= _LEFT_OUT:
            step_s = time.perf_counter() - begun
            found.append({"step_s": step_s, "rollout_s": facts.rollout_s, "learn_s": facts.learn_s})
    algorithm.stop()
    ray.shutdown()
    return found


def keep_to(cores: list[int]) -> None:
    """Let all threads of this process and of its descendants run on these cores only."""
    for process in (os.getpid(), *descendants()):
        for thread in os.listdir(f"/proc/{process}/task"):
            os.sched_setaffinity(int(thread), cores)


def measured(arguments: list[str], overlap: int) -> list[dict[str, float]]:
    """Run one arm in its own process and return what it measured."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_AUTH_MODE": "disabled", "TOKENIZERS_PARALLELISM": "0"}
    command = [sys.executable, __file__, *arguments, "--arm", str(overlap)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"the arm with overlap={overlap} failed:\n{done.stderr[-4000:]}")
    found: list[dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def mean(figures: list[dict[str, float]], name: str) -> float:
    """Return the mean of a figure over iterations."""
    return sum(each[name] for each in figures) / len(figures)


def compared(pairs: list[tuple[list[dict[str, float]], list[dict[str, float]]]]) -> dict[str, Any]:
    """Return all figures as plain data; a pair has an arm without overlap and one with it."""
    ratios = [mean(beside, "step_s") / mean(after, "step_s") for after, beside in pairs]
    return {
        "machine": machine(),
        "pairs": len(pairs),
        "step_s": {
            "overlap=0": Spread.of([mean(after, "step_s") for after, _ in pairs]).to_json(),
            "overlap=1": Spread.of([mean(beside, "step_s") for _, beside in pairs]).to_json(),
        },
        "rollout_over_learn": median(mean(after, "rollout_s") / mean(after, "learn_s") for after, _ in pairs),
        "ratio": Spread.of(ratios).to_json(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="directory of a small causal language model")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=6, help="iterations of an arm that count")
    parser.add_argument("--epochs", type=int, default=2, help="of learning")
    parser.add_argument("--problems-per-step", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--arm", type=int, choices=(0, 1), help=argparse.SUPPRESS)
    parser.set_defaults(
        problems="tiny:train", prompts="tiny", tests=4, coder_tokens=56, tester_tokens=96, runners=_RUNNERS, seed=0
    )
    options = parser.parse_args()
    if options.arm is not None:
        print(json.dumps(run_arm(options, options.arm)))
        return
    arguments = [each for each in sys.argv[1:] if each != "--json"]
    pairs = []
    for number in range(options.pairs):
        first, second = [measured(arguments, overlap) for overlap in ((0, 1) if number % 2 == 0 else (1, 0))]
        pairs.append((first, second) if number % 2 == 0 else (second, first))
    found = compared(pairs)
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for name, spread in found["step_s"].items():
        print(f"{name}: {spread['median']:.2f} s per iteration ({spread['min']:.2f} to {spread['max']:.2f})")
    ratio = found["ratio"]
    print(f"without overlap, rollouts take {found['rollout_over_learn']:.2f} times as long as learning")
    print(f"overlap=1 over overlap=0: {ratio['median']:.2f} ({ratio['min']:.2f} to {ratio['max']:.2f})")


if __name__ == "__main__":
    main()
