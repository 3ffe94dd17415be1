"""Compares the processor time of a learner's step with prompts computed once per group and once per response.

    python benchmarks/prompt_once.py [--rounds N] [--prompt N] [--json]

Both learners run in one process with one thread and alternate, on the same groups of 8 responses, with the same Qwen2
model of random weights and a divergence term. The figure is the processor time of one update.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from grpo_against_trl import make_model
from measuring import Spread, machine, option_parser
from rich.console import Console
from rich.table import Table

GROUP, GROUPS, LONGEST = 8, 4, 60


def make_learner(folder: str, *, prompt_once: bool) -> Any:
    """Return a learner of one module, in this process."""
    import gymnasium  # noqa: PLC0415

    from codea1_agents.train.grpo import GRPOConfig  # noqa: PLC0415
    from codea1_agents.train.grpo.learner import GRPOTorchLearner  # noqa: PLC0415

    config = GRPOConfig().problems("starter").llm_agents(coder=folder).agents(tester="fuzz")
    config.training(lr=1e-6, minibatches_per_epoch=1, micro_batch_size=GROUP, prompt_once=prompt_once)
    config.validate()
    spaces = {"coder": (gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2))}  # nothing reads them
    learner = GRPOTorchLearner(config=config, module_spec=config.get_multi_rl_module_spec(spaces=spaces))
    learner.build()
    return learner


def episodes(n_prompt: int) -> list[Any]:
    """Return the planned responses of an iteration; lengths are drawn from 1 to `LONGEST`."""
    import numpy as np  # noqa: PLC0415

    from codea1_agents.models.sampling import Response  # noqa: PLC0415
    from codea1_agents.train.grpo.batch import ScoredResponse, planned  # noqa: PLC0415

    draws = np.random.default_rng(0)
    rows = []
    for group in range(GROUPS):
        prompt = tuple(draws.integers(3, 200, n_prompt).tolist())
        for number in range(GROUP):
            tokens = tuple(draws.integers(3, 200, draws.integers(1, LONGEST + 1)).tolist())
            response = Response(tokens, (-5.0,) * len(tokens), is_cut=True)
            advantage = float(draws.normal())
            rows.append(ScoredResponse("coder", f"coder_{number}", "coder", f"{group}", prompt, response, advantage))
    return list(planned(rows, 1, (0,)))


def measured(n_rounds: int, n_prompt: int) -> dict[str, Any]:
    """Run both alternately, after one round that is not counted."""
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    batch = episodes(n_prompt)
    times: dict[bool, list[float]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as name:
        folder = make_model(Path(name) / "model")
        learners = {once: make_learner(folder, prompt_once=once) for once in times}
        for _ in range(n_rounds + 1):
            for once, learner in learners.items():
                begun = time.process_time()
                learner.update(episodes=batch)
                times[once].append(time.process_time() - begun)
    once, plain = (times[each][1:] for each in (True, False))
    return {
        "machine": machine(),
        "prompt_tokens": n_prompt,
        "once_cpu_s": Spread.of(once).to_json(),
        "plain_cpu_s": Spread.of(plain).to_json(),
        "plain_over_once": Spread.of([b / a for a, b in zip(once, plain, strict=True)]).to_json(),
    }


def main() -> None:
    """Measure and print."""
    parser = option_parser(__doc__, json="one JSON object")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--prompt", type=int, default=350, help="tokens of a prompt")
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    found = measured(options.rounds, options.prompt)
    if options.json:
        print(json.dumps(found))
        return
    table = Table(f"prompts of {options.prompt} tokens", "smallest", "median", "largest")
    for name, label in (
        ("once_cpu_s", "prompt once: processor s"),
        ("plain_cpu_s", "plain rows: processor s"),
        ("plain_over_once", "plain / once"),
    ):
        table.add_row(label, *[f"{found[name][each]:.2f}" for each in ("min", "median", "max")])
    Console(width=100).print(table)
    Console(width=100).print(found["machine"])


if __name__ == "__main__":
    main()
