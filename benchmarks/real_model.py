"""Compares a step of two adapters on one base with two models with adapters, and with two of TRL's GRPOTrainers.

    python benchmarks/real_model.py --model FOLDER [--before CHECKOUT] [--trl] [--pairs 5] [--problems 4] [--group 4]
        [--tokens 256 192] [--threads 2]

Each way has a process of its own, whose first step is not counted; they take turns. Ours and `two` sample and learn
everything, on prompts of HumanEval, with `packing` and bfloat16. `two` is the code of CHECKOUT (by default this one)
with two models, checkpointed, whose learners compute in bfloat16 by autocast. TRL gets the prompts of our first step, a
trainer per role, and rewards that are drawn. Figures are processor seconds of the process, without those of a sandbox,
also per token that was sampled and learned, since replies end where they like; and its largest memory.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measuring import machine, option_parser

RANK = 16
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def main() -> None:
    options = _options()
    if options.serve:
        _serve(options)
        return
    ways = ["ours", "two", *(["trl"] if options.trl else [])]
    print(f"{machine()}; {options.problems} problems, groups of {options.group}, tokens {options.tokens}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        prompts = Path(folder, "prompts.json")
        processes = {way: _Process(way, options, prompts) for way in ways}
        steps: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
        for number in range(options.pairs + 1):
            for way, process in processes.items():
                step = process.step()
                print(f"{number or 'warm-up'}: {way}: {step}", flush=True)
                steps[way] += [step] if number else []
    costs = {way: [step["cpu_s"] / step["tokens"] for step in of_way] for way, of_way in steps.items()}
    for way, of_way in steps.items():
        ratios = [own / other for own, other in zip(costs["ours"], costs[way], strict=True)]
        print(
            f"{way:>5}: {statistics.median(step['cpu_s'] for step in of_way):.0f} s of processor time a step, "
            f"{1000 * statistics.median(costs[way]):.1f} ms per token, peak {of_way[-1]['peak_gb']:.1f} GB; ours takes "
            f"{statistics.median(ratios):.2f} [{min(ratios):.2f}, {max(ratios):.2f}] of it"
        )


def _options() -> Any:
    parser = option_parser(__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--before", default="", help="a checkout whose code the way `two` runs")
    parser.add_argument("--trl", action="store_true")
    parser.add_argument("--tokens", type=int, nargs=2, default=[256, 192], help="longest program and longest suite")
    parser.add_argument("--serve", default="", help="what the processes are started with")
    parser.add_argument("--prompts", default="")
    for name, default in {"pairs": 5, "problems": 4, "group": 4, "threads": 2}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


class _Process:
    """A way, in a process of its own."""

    def __init__(self, way: str, options: Any, prompts: Path) -> None:
        root = Path(options.before or Path(__file__).parents[1]) if way == "two" else Path(__file__).parents[1]
        paths = os.pathsep.join(map(str, (root, root / "agents")))
        sizes = [f"--{name}={getattr(options, name)}" for name in ("model", "problems", "group", "threads")]
        tokens = ["--tokens", *map(str, options.tokens)]
        command = [sys.executable, __file__, "--serve", way, "--prompts", str(prompts), *sizes, *tokens]
        environment = {**os.environ, "PYTHONPATH": paths, "RAY_AUTH_MODE": "disabled", "HF_HUB_OFFLINE": "1"}
        environment["OMP_NUM_THREADS"] = str(options.threads)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def step(self) -> dict[str, float]:
        """Have it run a step and return its figures."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("step\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith('{"cpu_s"'):
                figures: dict[str, float] = json.loads(line)
                return figures
        sys.exit(f"{self._process.args[3]} ended with {self._process.wait()}")  # type: ignore[index]


def _serve(options: Any) -> None:
    import torch  # noqa: PLC0415  in the processes only

    torch.set_num_threads(options.threads)
    way = _Trl(options) if options.serve == "trl" else _Ours(options)
    for _ in sys.stdin:
        before = time.process_time()
        n_tokens = way.step()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps({"cpu_s": time.process_time() - before, "tokens": n_tokens, "peak_gb": peak}), flush=True)


class _Ours:
    """Iterations of `GRPO`: of two adapters on one base, or of two models with adapters."""

    def __init__(self, options: Any) -> None:
        from codea1_agents.train.grpo import GRPOConfig, LoraSettings, ModelSettings  # noqa: PLC0415

        lora = LoraSettings(rank=RANK, alpha=2.0 * RANK, target_modules=TARGETS)
        common: dict[str, Any] = {"sampling_dtype": "bfloat16", "autocast": "bfloat16"}
        common["gradient_checkpointing"] = options.serve != "ours"  # as in the preset `laptop`
        config = GRPOConfig().environment(rules="fixed").problems("humaneval")
        if options.serve == "ours":
            config.llm_agents(
                base=ModelSettings(options.model, base_dtype="bfloat16", **common, lora=lora), coder=lora, tester=lora
            )
        else:
            model = ModelSettings(options.model, lora=lora, **common)
            config.llm_agents(coder=model, tester=model)
        group, (program, suite) = options.group, options.tokens
        config.training(lr=1e-4, kl_coeff=0.001, n_candidates=group, n_suites=group, n_kept=group, packing=True)
        config.training(problems_per_step=options.problems, problems_at_once=options.problems, warmup_steps=0)
        config.training(keep_zero_std_groups=True, minibatches_per_epoch=1, micro_batch_size=group)
        config.training(sampling_batch_size=64, max_tokens={"coder": program, "tester": suite})
        self._algorithm, self._prompts = config.build_algo(), Path(options.prompts)

    def step(self) -> int:
        """Run an iteration; return how many tokens were sampled."""
        self._algorithm.train()
        if not self._prompts.exists():
            self._write_prompts()
        return int(self._algorithm.last_step.n_tokens)

    def _write_prompts(self) -> None:
        texts: dict[str, list[str]] = {"coder": [], "tester": []}
        for tree in self._algorithm.last_trees:
            for reply in tree.trained_responses(self._algorithm.settings):
                chat = self._algorithm.env_runner.module[reply.module].chat
                texts[reply.role].append(chat.tokenizer.decode(reply.prompt))
        distinct = {role: list(dict.fromkeys(of_role)) for role, of_role in texts.items()}
        self._prompts.write_text(json.dumps(distinct))


class _Trl:
    """Steps of two trainers of TRL."""

    def __init__(self, options: Any) -> None:
        self._options = options
        self._trainers: list[Any] = []

    def step(self) -> int:
        """Run a step of each trainer; return how many tokens were sampled."""
        if not self._trainers:
            prompts = json.loads(Path(self._options.prompts).read_text())
            lengths = dict(zip(("coder", "tester"), self._options.tokens, strict=True))
            self._trainers = [_trainer(self._options, prompts[role], longest) for role, longest in lengths.items()]
        n_tokens = 0
        for number, trainer in enumerate(self._trainers):
            trainer.args.max_steps = trainer.state.global_step + 1
            trainer.train()
            mean = next(
                entry["completions/mean_length"]
                for entry in reversed(trainer.state.log_history)
                if "completions/mean_length" in entry
            )
            n_tokens += round(mean * len(trainer.train_dataset) * self._options.group)
            self._trainers[number].state.global_step = 0
        return n_tokens


def _trainer(options: Any, prompts: Sequence[str], longest: int) -> Any:
    import datasets  # noqa: PLC0415  in the process of TRL only
    import peft  # noqa: PLC0415
    import trl  # noqa: PLC0415

    rows, group = len(prompts) * options.group, options.group
    settings = trl.GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        use_cpu=True,
        bf16=True,
        gradient_checkpointing=True,
        model_init_kwargs={"dtype": "bfloat16"},
        per_device_train_batch_size=min(rows, 16),
        gradient_accumulation_steps=max(1, rows // 16),
        num_generations=group,
        max_completion_length=longest,
        max_steps=1,
        learning_rate=1e-4,
        lr_scheduler_type="constant",
        beta=0.001,
        epsilon_high=0.28,
        loss_type="dapo",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        logging_steps=1000,
    )
    return trl.GRPOTrainer(
        model=options.model,
        reward_funcs=lambda completions, **_: [float(hash(text) % 2) for text in completions],
        args=settings,
        train_dataset=datasets.Dataset.from_list([{"prompt": prompt} for prompt in prompts]),
        peft_config=peft.LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules=list(TARGETS), task_type="CAUSAL_LM"),
    )


if __name__ == "__main__":
    main()
