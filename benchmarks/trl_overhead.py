"""Compares steps of TRL's GRPOTrainer with our reward functions and with a constant reward: same model, same lengths.

    pip install -e '.[trl]'
    python benchmarks/trl_overhead.py [--pairs N] [--json]

For each role there are two trainers in this process, with one thread and without a GPU. Every reply has the same number
of tokens. Some of the tokens are whole programs or suites, all different: three to a reply, on average. A pair is one
step of each trainer, in alternating order; the first step of each is not counted. A step is counted from
`on_step_begin` to `on_step_end`. Its processor time is that of this process, of the sandbox's processes and its jobs.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from grpo_against_trl import QUIET, make_model, make_problems
from measuring import Metered, Spread, TreeClock, machine, option_parser
from rich.console import Console
from rich.table import Table

ROWS, GROUP, LENGTH, REPLIES, FILLERS = 64, 8, 60, 240, 4560
ROLES = ("coder", "tester")
PROGRAM = "def f(x):\n    return x"


def replies_of(role: str) -> list[str]:
    """Return texts that are one token each: programs, most of them wrong, or suites of eight tests."""
    if role == "coder":
        codes = [f"def f(x):\n    return x + {n % 3} + 0 * {n}" for n in range(REPLIES)]
    else:
        codes = ["\n".join(f"assert f({8 * n + k}) == {8 * n + k + 1}" for k in range(8)) for n in range(REPLIES)]
    return [f"\n```python\n{code}\n```\n" for code in codes]


class Steps:
    """Steps of one trainer, timed."""

    def __init__(self, role: str, model: str, problems: str, rewards: Callable[..., Any], meter: Metered) -> None:
        import trl  # noqa: PLC0415
        from transformers import PrinterCallback  # noqa: PLC0415

        from codea1_agents.adapters.trl import dataset  # noqa: PLC0415
        from codea1_agents.models.chat_format import load_tokenizer  # noqa: PLC0415

        tokenizer = load_tokenizer(model)  # AutoTokenizer would use the tokenizer class of Qwen2
        tokenizer.chat_template = "{{ messages[-1]['content'] }}"
        programs = {f"toy/{n}": [PROGRAM] for n in range(ROWS // GROUP)}
        self.wall_s: list[float] = []
        self.cpu_s: list[float] = []
        self._clock, self._meter = TreeClock(), meter
        self._trainer = trl.GRPOTrainer(
            model=model,
            reward_funcs=rewards,
            train_dataset=dataset(role, problems, against=programs if role == "tester" else None),  # type: ignore[arg-type]
            processing_class=tokenizer,
            args=trl.GRPOConfig(
                output_dir=str(Path(model).parent / "trl"),
                per_device_train_batch_size=ROWS,
                num_generations=GROUP,
                max_completion_length=LENGTH,
                generation_kwargs={"min_new_tokens": LENGTH},
                max_steps=1,
                learning_rate=1e-5,
                **QUIET,
            ),
        )
        self._trainer.remove_callback(PrinterCallback)
        self._trainer.add_callback(_callback(self))

    def step(self) -> None:
        """Run one step."""
        self._trainer.train()

    def begin(self) -> None:
        """Start the clocks."""
        self._from = time.perf_counter(), self._clock.now(), self._meter.jobs_cpu_s

    def end(self) -> None:
        """Stop the clocks."""
        wall, cpu, jobs = self._from
        self.wall_s.append(time.perf_counter() - wall)
        self.cpu_s.append(self._clock.now().since(cpu).total_s + self._meter.jobs_cpu_s - jobs)


def _callback(steps: Steps) -> Any:
    from transformers import TrainerCallback  # noqa: PLC0415

    class Timed(TrainerCallback):  # type: ignore[misc]
        """Measures the time of steps."""

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            """Start the clocks."""
            steps.begin()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            """Stop the clocks."""
            steps.end()

    return Timed()


def constant(completions: list[Any], **_: Any) -> list[float]:
    """A reward that costs nothing; half of the replies get 1, so that there is something to learn."""
    return [float(n % 2) for n in range(len(completions))]


def measured(role: str, n_pairs: int, folder: Path) -> dict[str, Any]:
    """Return the figures of one role."""
    from codea1_agents.adapters.trl import reward_function  # noqa: PLC0415
    from codea1_env import Referee  # noqa: PLC0415
    from codea1_env.sandbox import load_sandbox  # noqa: PLC0415

    model = make_model(folder / role, replies_of(role), FILLERS)
    problems = make_problems(folder / f"{role}.jsonl", n_problems=ROWS // GROUP)
    meter = Metered(load_sandbox("local"))
    referee = Referee(problems, "golden" if role == "coder" else "fixed", sandbox=meter)
    seen: list[float] = []
    ours_function = reward_function(role, referee)  # type: ignore[arg-type]

    def rewards(**given: Any) -> list[float | None]:
        begun = time.perf_counter()
        found = ours_function(**given)
        seen.append(time.perf_counter() - begun)
        return found

    plain, ours = (Steps(role, model, problems, function, meter) for function in (constant, rewards))
    for number in range(n_pairs + 1):
        for each in (plain, ours) if number % 2 else (ours, plain):
            each.step()
    for each in (plain, ours):
        del each.wall_s[0], each.cpu_s[0]
    return {
        "constant_s": Spread.of(plain.wall_s).to_json(),
        "ours_s": Spread.of(ours.wall_s).to_json(),
        "judging_s": Spread.of(seen[1:]).to_json(),
        "ours_over_constant": {
            kind: Spread.of(
                [one / other for one, other in zip(getattr(ours, kind), getattr(plain, kind), strict=True)]
            ).to_json()
            for kind in ("wall_s", "cpu_s")
        },
    }


def show(found: dict[str, Any]) -> None:
    """Print a table."""
    table = Table(f"TRL {found['trl']}: {ROWS} replies of {LENGTH} tokens", "smallest", "median", "largest")
    for role in ROLES:
        figures = found[role]
        for name in ("constant_s", "ours_s", "judging_s"):
            table.add_row(f"{role}: {name}", *Spread(**figures[name]).cells(3))
        for kind, spread in figures["ours_over_constant"].items():
            table.add_row(f"{role}: ours / constant, {kind}", *Spread(**spread).cells())
    Console(width=110).print(table)
    Console(width=110).print(found["machine"])


def main() -> None:
    """Measure and print."""
    parser = option_parser(__doc__, json="one JSON object")
    parser.add_argument("--pairs", type=int, default=10)
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch  # noqa: PLC0415
    import trl  # noqa: PLC0415

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        figures = {role: measured(role, options.pairs, Path(folder)) for role in ROLES}
    found = {"machine": machine(), "trl": trl.__version__, **figures}
    print(json.dumps(found)) if options.json else show(found)


if __name__ == "__main__":
    main()
