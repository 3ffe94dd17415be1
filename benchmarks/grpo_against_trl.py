"""Compares an iteration of our GRPO with a step of TRL's GRPOTrainer: same model, prompts, lengths, groups and judge.

    pip install trl datasets
    python benchmarks/grpo_against_trl.py [--rounds N] [--steps N] [--words N] [--json]

Both run in one process with one thread, without a GPU. The model has random weights. Some words of its vocabulary are
whole programs, so rewards differ within groups and both learn. Only the coder plays, with golden tests, as TRL has one
role. A round is some iterations of ours and then as many steps of TRL's. Everything before the first round is not
counted. The time is that of the whole step: hand-over of weights, sampling, judging, and one optimiser step of a
clipped token-mean loss with a divergence term. A step of TRL is counted from `on_step_begin` to `on_step_end`, without
its logging. An iteration of ours is all of `algorithm.train()`.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measuring import Spread, machine, option_parser
from rich.console import Console
from rich.table import Table

GROUP, PROBLEMS = 8, 4
ROWS = GROUP * PROBLEMS
LONGEST = 64
QUIET = {"use_cpu": True, "bf16": False, "gradient_checkpointing": False, "save_strategy": "no", "report_to": []}
QUIET |= {"disable_tqdm": True, "logging_steps": 1000}
"""TRL's settings for a CPU, without files and logs."""
BODIES = ("return x + 1", "return 1 + x", "return x", "return 2 * x", "return [", "raise ValueError")
PROGRAMS = [f"\n```python\ndef f(x):\n    {body}\n```\n" for body in BODIES]
N_FILLERS = 250


@dataclass
class Measured:
    """Times and tokens, one entry per step."""

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return medians and ranges."""
        rates = [tokens / wall for tokens, wall in zip(self.tokens, self.wall_s, strict=True)]
        found = {"wall_s": self.wall_s, "cpu_s": self.cpu_s, "tokens_per_s": rates, "tokens": self.tokens}
        return {name: Spread.of(values).to_json() for name, values in found.items()}  # type: ignore[arg-type]


class Stopwatch:
    """Wall and processor time of this process since `start`."""

    def start(self) -> None:
        """Start both clocks."""
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def stop(self, into: Measured, n_tokens: int) -> None:
        """Stop both clocks and add a step."""
        into.cpu_s.append(time.process_time() - self._cpu)
        into.wall_s.append(time.perf_counter() - self._wall)
        into.tokens.append(n_tokens)


def make_model(folder: Path, replies: Sequence[str] = PROGRAMS, n_fillers: int = N_FILLERS) -> str:
    """Write a model, some of whose tokens are these replies, and its tokenizer; return the folder."""
    import torch  # noqa: PLC0415
    from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: PLC0415
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM  # noqa: PLC0415

    words = ["<unk>", "<end>", "<pad>", *replies, *(f"word{number}" for number in range(n_fillers))]
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"unk_token": "<unk>", "eos_token": "<end>", "pad_token": "<pad>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    config = Qwen2Config(
        vocab_size=len(words),
        hidden_size=128,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        eos_token_id=1,
        pad_token_id=2,
        bos_token_id=None,
    )
    torch.manual_seed(0)
    Qwen2ForCausalLM(config).save_pretrained(folder)
    return str(folder)


def make_problems(path: Path, n_words: int = 0, n_problems: int = PROBLEMS) -> str:
    """Write the problems, with statements longer by some words; return the path."""
    more = " ".join(f"word{number % N_FILLERS}" for number in range(n_words))
    rows = [
        {
            "id": f"toy/{number}",
            "statement": f'def f(x):\n    """Return x plus one ({number}). {more}"""\n',
            "entry_point": "f",
            "solution": "def f(x):\n    return x + 1\n",
            "golden": [{"expression": "f(1)", "expected": "2"}, {"expression": "f(0)", "expected": "1"}],
        }
        for number in range(n_problems)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


class Ours:
    """Iterations of `GRPO`."""

    def __init__(self, model: str, problems: str) -> None:
        from codea1_agents.train.grpo import GRPOConfig  # noqa: PLC0415

        config = (
            GRPOConfig()
            .environment(rules="golden")
            .problems(problems)
            .llm_agents(coder=model)
            .training(lr=1e-4, kl_coeff=0.001, n_candidates=GROUP, n_suites=0, problems_per_step=PROBLEMS)
            .training(problems_at_once=PROBLEMS, minibatches_per_epoch=1, warmup_steps=0, weight_decay=0.0)
            .training(micro_batch_size=ROWS, sampling_batch_size=ROWS, max_tokens={"coder": LONGEST, "tester": LONGEST})
        )
        self._algorithm = config.build_algo()
        self.measured, self.split = Measured(), {name: [] for name in ("sync_s", "generate_s", "judge_s", "learn_s")}

    def steps(self, n: int) -> None:
        """Run some iterations."""
        watch = Stopwatch()
        for _ in range(n):
            watch.start()
            self._algorithm.train()
            answers = [answer for tree in self._algorithm.last_trees for answer in tree.candidates]
            watch.stop(self.measured, sum(answer.response.n_tokens for answer in answers))
            for name, values in self.split.items():
                values.append(getattr(self._algorithm.last_step, name))

    def prompts(self) -> list[str]:
        """Return the prompts of the model, in the order of the problems."""
        from codea1_agents.prompts import load_prompts, plain_text  # noqa: PLC0415
        from codea1_agents.train.grpo.rollout import Task  # noqa: PLC0415
        from codea1_env.problems import load_problems  # noqa: PLC0415

        roller, wording = self._algorithm.env_runner._roller, load_prompts("default")
        problems = load_problems(self._algorithm.config.problem_source)
        turns = roller.coder_turns([Task(0, problem.id) for problem in problems])[::GROUP]
        return [plain_text(wording.messages(turn.observation, turn.info)) for turn in turns]

    def close(self) -> None:
        """Stop the algorithm."""
        self._algorithm.stop()


def judge_of(problems: str) -> Callable[..., list[float | None]]:
    """Return the reward function for TRL: the same judge, with golden tests."""
    from codea1_env.rounds.referee import Referee  # noqa: PLC0415

    referee = Referee(problems, "golden")

    def reward(completions: Sequence[str], problem: Sequence[str], **_: Any) -> list[float | None]:
        return [each.coder for each in referee.rewards(problem, completions)]

    return reward


class Theirs:
    """Steps of TRL's trainer."""

    def __init__(self, model: str, problems: str, prompts: Sequence[str], folder: str) -> None:
        import datasets  # noqa: PLC0415
        import trl  # noqa: PLC0415

        from codea1_agents.models.chat_format import load_tokenizer  # noqa: PLC0415

        tokenizer = load_tokenizer(model)  # AutoTokenizer would use the tokenizer class of Qwen2
        self.count_tokens = lambda text: len(tokenizer(text)["input_ids"])
        self.version = trl.__version__
        self.measured = Measured()
        self._rows = datasets.Dataset.from_list(
            [{"prompt": prompt, "problem": f"toy/{number}"} for number, prompt in enumerate(prompts)]
        )
        self._new = lambda n: trl.GRPOTrainer(
            model=model,
            reward_funcs=judge_of(problems),
            args=trl.GRPOConfig(
                output_dir=folder,
                per_device_train_batch_size=ROWS,
                num_generations=GROUP,
                max_completion_length=LONGEST,
                max_steps=n,
                learning_rate=1e-4,
                lr_scheduler_type="constant",
                beta=0.001,
                epsilon=0.2,
                epsilon_high=0.28,
                loss_type="dapo",
                **QUIET,
            ),
            train_dataset=self._rows,
            processing_class=tokenizer,
        )
        self._trainer: Any = None

    def steps(self, n: int) -> None:
        """Run some steps."""
        if self._trainer is None:
            self._trainer = self._new(n)
            self._trainer.add_callback(_callback(self))
        self._trainer.train()

    @property
    def n_tokens(self) -> int:
        """Tokens of the replies of the last step."""
        mean = self._trainer._metrics["train"]["completions/mean_length"][-1]
        return round(mean * ROWS)


def _callback(theirs: Theirs) -> Any:
    from transformers import TrainerCallback  # noqa: PLC0415

    class Timed(TrainerCallback):  # type: ignore[misc]
        """Measures the time of steps."""

        def __init__(self) -> None:
            self._watch = Stopwatch()

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            """Start the clocks."""
            self._watch.start()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            """Stop the clocks."""
            self._watch.stop(theirs.measured, theirs.n_tokens)

    return Timed()


def measured(n_rounds: int, n_steps: int, n_words: int = 0) -> dict[str, Any]:
    """Run both alternately."""
    import ray  # noqa: PLC0415
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, problems = make_model(folder / "model"), make_problems(folder / "problems.jsonl", n_words)
        ours = Ours(model, problems)
        prompts = ours.prompts()
        theirs = Theirs(model, problems, prompts, str(folder / "trl"))
        ours.steps(2)
        theirs.steps(n_steps)
        ours.measured, theirs.measured = Measured(), Measured()
        for values in ours.split.values():
            values.clear()
        ratios: dict[str, list[float]] = {"wall": [], "cpu": []}
        for _ in range(n_rounds):
            ours.steps(n_steps)
            theirs.steps(n_steps)
            for ratio, kind in (("wall", "wall_s"), ("cpu", "cpu_s")):
                one, other = (sum(getattr(each.measured, kind)[-n_steps:]) for each in (ours, theirs))
                ratios[ratio].append(one / other)
        ours.close()
    ray.shutdown()
    return {
        "machine": machine(),
        "trl": theirs.version,
        "rows": ROWS,
        "prompt_tokens": theirs.count_tokens(prompts[0]),
        "ours": ours.measured.to_json(),
        "theirs": theirs.measured.to_json(),
        "split": {name: Spread.of(values).to_json() for name, values in ours.split.items()},
        "ours_over_theirs": {name: Spread.of(values).to_json() for name, values in ratios.items()},
    }


def show(found: dict[str, Any]) -> None:
    """Print tables."""
    what = f"{found['rows']} responses, up to {LONGEST} tokens; prompts of {found['prompt_tokens']}"
    table = Table(what, "smallest", "median", "largest")
    for who, name in (("ours", "ours"), ("theirs", f"TRL {found['trl']}")):
        for kind, label in (("wall_s", "seconds"), ("cpu_s", "processor seconds"), ("tokens_per_s", "tokens/s")):
            spread = found[who][kind]
            digits = 0 if kind == "tokens_per_s" else 3
            table.add_row(f"{name}: {label}", *[f"{spread[each]:,.{digits}f}" for each in ("min", "median", "max")])
    for kind, spread in found["ours_over_theirs"].items():
        table.add_row(f"ours / TRL, {kind}, per round", *[f"{spread[e]:.2f}" for e in ("min", "median", "max")])
    for part, spread in found["split"].items():
        table.add_row(f"ours: {part.removesuffix('_s')}, s", *[f"{spread[e]:.3f}" for e in ("min", "median", "max")])
    Console(width=110).print(table)
    Console(width=110).print(found["machine"])


def main() -> None:
    """Measure and print."""
    parser = option_parser(__doc__, json="one JSON object")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=5, help="per round")
    parser.add_argument("--words", type=int, default=0, help="further words of each statement")
    options = parser.parse_args()
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    found = measured(options.rounds, options.steps, options.words)
    print(json.dumps(found)) if options.json else show(found)


if __name__ == "__main__":
    main()
