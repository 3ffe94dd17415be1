"""Measures how much time sampling beside learning saves: iterations with `overlap=0` and `overlap=1`, in pairs.

    python benchmarks/overlap.py --model DIR [--pairs 10] [--steps 4] [--epochs 2] [--json]

Two remote runners sample, one remote learner learns, each with one thread of torch. As on devices of their own, the
runners and their sandboxes have the first half of the processor's cores, the learner the others. `--epochs` makes
learning cost as much as sampling; the ratio of the two is printed. The learning rate is so small that all iterations
cost alike. The arms of a pair follow each other in the same processes; every other pair begins with `overlap=1`. The
first iteration of an arm is left out: it begins or ends with the rollouts of the other arm. Two more come before all
pairs, since processes still load code.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from statistics import median
from typing import Any

from measuring import Spread, descendants, machine

_WARM_UP = 2
_RUNNERS = 2

Figures = dict[str, float]


def prepared(options: argparse.Namespace) -> Any:
    """Return a training whose runners and learner have cores of their own."""
    import ray  # noqa: PLC0415  -- not before the environment is set
    from plain_loop import config_of  # noqa: PLC0415  -- likewise

    ray.init("local", num_cpus=_RUNNERS + 2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    config = config_of(options).copy(copy_frozen=False).learners(num_learners=1, num_cpus_per_learner=1)
    algorithm = config.training(epochs_per_step=options.epochs, lr=1e-12).build_algo()
    cores = sorted(os.sched_getaffinity(0))
    half = len(cores) // 2
    algorithm.env_runner_group.foreach_env_runner(lambda _: keep_to(cores[:half]), local_env_runner=False)
    algorithm.learner_group.foreach_learner(lambda _: keep_to(cores[half:]))
    return algorithm


def keep_to(cores: list[int]) -> None:
    """Let all threads of this process and of its descendants run on these cores only."""
    for process in (os.getpid(), *descendants()):
        for thread in os.listdir(f"/proc/{process}/task"):
            os.sched_setaffinity(int(thread), cores)


def arm(algorithm: Any, overlap: int, n_steps: int) -> Figures:
    """Return the mean seconds of an iteration: of all, of waiting for rollouts, and of learning."""
    algorithm.config = algorithm.config.copy(copy_frozen=False).training(overlap=overlap)
    found = [iteration(algorithm) for _ in range(1 + n_steps)][1:]
    return {name: sum(each[name] for each in found) / n_steps for name in found[0]}


def iteration(algorithm: Any) -> Figures:
    """Return the seconds of one iteration."""
    begun = time.perf_counter()
    algorithm.train()
    facts = algorithm.last_step
    return {"step_s": time.perf_counter() - begun, "rollout_s": facts.rollout_s, "learn_s": facts.learn_s}


def measured(options: argparse.Namespace) -> list[tuple[Figures, Figures]]:
    """Return pairs of an arm without overlap and one with it."""
    algorithm, pairs = prepared(options), []
    for _ in range(_WARM_UP):
        algorithm.train()
    for number in range(options.pairs):
        first, second = [arm(algorithm, overlap, options.steps) for overlap in ((0, 1) if number % 2 == 0 else (1, 0))]
        pairs.append((first, second) if number % 2 == 0 else (second, first))
    algorithm.stop()
    return pairs


def compared(pairs: list[tuple[Figures, Figures]]) -> dict[str, Any]:
    """Return all figures as plain data."""
    return {
        "machine": machine(),
        "pairs": len(pairs),
        "step_s": {
            "overlap=0": Spread.of([after["step_s"] for after, _ in pairs]).to_json(),
            "overlap=1": Spread.of([beside["step_s"] for _, beside in pairs]).to_json(),
        },
        "rollout_over_learn": median(after["rollout_s"] / after["learn_s"] for after, _ in pairs),
        "ratio": Spread.of([beside["step_s"] / after["step_s"] for after, beside in pairs]).to_json(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="directory of a small causal language model")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=4, help="iterations of an arm that count")
    parser.add_argument("--epochs", type=int, default=2, help="of learning")
    parser.add_argument("--problems-per-step", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(
        problems="tiny:train", prompts="tiny", tests=4, coder_tokens=56, tester_tokens=96, runners=_RUNNERS, seed=0
    )
    options = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "RAY_AUTH_MODE": "disabled", "TOKENIZERS_PARALLELISM": "0"}
    found = compared(measured(options))
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for name, spread in found["step_s"].items():
        print(f"{name}: {spread['median']:.2f} s per iteration ({spread['min']:.2f} to {spread['max']:.2f})")
    ratio = found["ratio"]
    print(f"without overlap, rollouts take {found['rollout_over_learn']:.2f} times as long as learning")
    print(f"overlap=1 over overlap=0: {ratio['median']:.2f} ({ratio['min']:.2f} to {ratio['max']:.2f})")
    print(found["machine"])


if __name__ == "__main__":
    main()
