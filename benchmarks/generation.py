"""Compares our sampler with `generate` of transformers, in batches of 16, and with vLLM, in bfloat16.

python benchmarks/generation.py [--model FOLDER] [--vllm PYTHON] [--prompts 16] [--replies 4] [--length 700]
    [--tokens 192] [--rounds 3] [--threads 2] [--equal] [--frozen]

All ways take turns. Figures are processor time of all threads and processes, and wall-clock time. The first token of
each reply costs the reading of its prompt, all further ones are writing. Without `--model` it is a random model of
400,000 parameters. With `--equal` all prompts have one length; with `--frozen` no weight has gradients, as in the
runners of a training. PYTHON is of an environment with vLLM, such as `build/adapters/vllm/bin/python` after
`make vllm-test`.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from measuring import TreeClock, machine, option_parser

Prompts: TypeAlias = Sequence[Sequence[int]]
Way: TypeAlias = Callable[[Prompts, int], object]
_END, _PAD, _BATCH = 1, 2, 16


def main() -> None:
    options = _options()
    torch.set_num_threads(options.threads)
    if options.serve:
        _serve(_vllm(options.model))
        return
    model = _model(options.model).requires_grad_(not options.frozen)
    ways: dict[str, Way] = {"sampler": _ours(model), "generate": _theirs(model)}
    if options.vllm:
        ways["vLLM"] = _Remote(options.vllm, options.model)
    n_replies = options.prompts * options.replies
    print(f"{machine()}; {n_replies} replies of {options.tokens} tokens to {options.prompts} prompts", flush=True)
    spent: dict[str, list[tuple[_Time, _Time]]] = {name: [] for name in ways}
    clock = TreeClock()
    for round_ in range(options.rounds + 1):  # the first call of each is slower and not counted
        for name, way in ways.items():
            prompts = _prompts(options, round_)[: None if round_ else 2]
            reading, whole = (_time(clock, way, prompts, n) for n in (1, options.tokens if round_ else 2))
            spent[name] += [(reading, whole)] if round_ else []
    for name, pairs in spent.items():
        for unit, times in {
            "CPU-s": [(reading.cpu_s, whole.cpu_s) for reading, whole in pairs],
            "s": [(reading.wall_s, whole.wall_s) for reading, whole in pairs],
        }.items():
            reading, whole = (statistics.median(column) for column in zip(*times, strict=True))
            speed = n_replies * (options.tokens - 1) / (whole - reading)
            facts = f"reads for {reading:.1f} {unit}, writes {speed:.1f} tokens/{unit}, together {whole:.1f} {unit}"
            print(f"{name:>8}: {facts}")


@dataclass(frozen=True)
class _Time:
    cpu_s: float
    wall_s: float


def _options() -> Any:
    parser = option_parser(__doc__)
    parser.add_argument("--model", default="")
    parser.add_argument("--vllm", default="")
    parser.add_argument("--serve", action="store_true", help="what the process of --vllm is started with")
    parser.add_argument("--equal", action="store_true")
    parser.add_argument("--frozen", action="store_true")
    for name, default in {"prompts": 16, "replies": 4, "length": 700, "tokens": 192, "rounds": 3, "threads": 2}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


def _model(folder: str) -> Any:
    from transformers import AutoModelForCausalLM, Qwen2Config, Qwen2ForCausalLM  # noqa: PLC0415  vLLM's has others

    if folder:
        return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()
    shape = {"vocab_size": 400, "hidden_size": 96, "intermediate_size": 288, "num_hidden_layers": 4}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True}
    ends = {"eos_token_id": _END, "pad_token_id": _PAD, "bos_token_id": None}
    torch.manual_seed(0)
    config = Qwen2Config(**shape, **heads, **ends, initializer_range=0.04, max_position_embeddings=4096)
    return Qwen2ForCausalLM(config).eval()


def _prompts(options: Any, round_: int) -> list[list[int]]:
    """Return prompts of about the requested length, other ones in each round; each occurs `replies` times."""
    draw = np.random.default_rng(round_)
    most = 0 if options.equal else options.length // 10
    lengths = options.length + draw.integers(-most, most + 1, options.prompts)
    distinct = [draw.integers(3, 400, length).tolist() for length in lengths]
    return [prompt for prompt in distinct for _ in range(options.replies)]


def _time(clock: TreeClock, way: Way, prompts: Prompts, n_tokens: int) -> _Time:
    begun, cpu = time.perf_counter(), clock.now()
    way(prompts, n_tokens)
    return _Time(clock.now().since(cpu).total_s, time.perf_counter() - begun)


def _ours(model: Any) -> Way:
    from codea1_agents.models.sampling import SamplingRules, sample_responses  # noqa: PLC0415  as above

    def sample(prompts: Prompts, n_tokens: int) -> None:
        seeds = [[0, number] for number in range(len(prompts))]
        sample_responses(model, prompts, seeds, end_tokens=[], rules=SamplingRules(max_tokens=n_tokens))

    return sample


def _theirs(model: Any) -> Way:
    from transformers import GenerationConfig  # noqa: PLC0415  as above

    from codea1_agents.models.sampling import left_padded  # noqa: PLC0415  as above

    def sample(prompts: Prompts, n_tokens: int) -> None:
        rules = GenerationConfig(
            do_sample=True, top_k=0, top_p=1.0, max_new_tokens=n_tokens, min_new_tokens=n_tokens, pad_token_id=_PAD
        )
        for start in range(0, len(prompts), _BATCH):
            ids, mask = left_padded(prompts[start : start + _BATCH])
            model.generate(input_ids=ids, attention_mask=mask.long(), generation_config=rules)

    return sample


def _vllm(folder: str) -> Way:
    import vllm  # noqa: PLC0415  in the process of --vllm only

    engine = vllm.LLM(model=folder, dtype="bfloat16", max_model_len=2048, max_num_seqs=64, seed=0)

    def sample(prompts: Prompts, n_tokens: int) -> None:
        engine.reset_prefix_cache()
        params = [vllm.SamplingParams(max_tokens=n_tokens, ignore_eos=True, seed=n) for n in range(len(prompts))]
        engine.generate([{"prompt_token_ids": prompt} for prompt in prompts], params, use_tqdm=False)

    return sample


class _Remote:
    """A way in another environment."""

    def __init__(self, python: str, model: str) -> None:
        command = [python, __file__, "--serve", "--model", model]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, prompts: Prompts, n_tokens: int) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"prompts": prompts, "n_tokens": n_tokens}) + "\n")
        self._process.stdin.flush()
        while self._process.stdout.readline().strip() != "done":
            if self._process.poll() is not None:
                sys.exit(f"the process of --vllm ended with {self._process.returncode}")


def _serve(way: Way) -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        way(asked["prompts"], asked["n_tokens"])
        print("done", flush=True)


if __name__ == "__main__":
    main()
