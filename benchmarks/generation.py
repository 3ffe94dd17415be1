"""Compares our sampler with `generate` of transformers, in tokens per second of processor time, on a random model.

python benchmarks/generation.py [--rows 256] [--distinct 64] [--prompt 37] [--tokens 64] [--repeats 3]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from measuring import option_parser
from transformers import GenerationConfig, Qwen2Config, Qwen2ForCausalLM

from codea1_agents.models.sampling import SamplingRules, left_padded, sample_responses

_END, _PAD = 1, 2


def main() -> None:
    options = _options()
    torch.set_num_threads(1)
    model = _model()
    prompts = _prompts(options)
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {len(prompts)} responses, one thread")
    for name, sample in {"sample_responses": _ours, "generate": _theirs}.items():
        sample(model, prompts, options.tokens)  # the first call is slower
        rates = [_speed(lambda sample=sample: sample(model, prompts, options.tokens)) for _ in range(options.repeats)]
        print(f"{name:>17}: {statistics.median(rates):6.0f} tokens/CPU-s ({min(rates):.0f} to {max(rates):.0f})")


def _options() -> argparse.Namespace:
    parser = option_parser(__doc__)
    for name, default in {"rows": 256, "distinct": 64, "prompt": 37, "tokens": 64, "repeats": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


def _model() -> Any:
    shape = {"vocab_size": 400, "hidden_size": 96, "intermediate_size": 288, "num_hidden_layers": 4}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True}
    ends = {"eos_token_id": _END, "pad_token_id": _PAD, "bos_token_id": None}
    torch.manual_seed(0)
    config = Qwen2Config(**shape, **heads, **ends, initializer_range=0.04, max_position_embeddings=1024)
    return Qwen2ForCausalLM(config).eval()


def _prompts(options: argparse.Namespace) -> list[tuple[int, ...]]:
    """Return prompts of about the requested length; each distinct one occurs equally often."""
    draw = np.random.default_rng(0)
    lengths = options.prompt + draw.integers(-3, 4, options.distinct)
    distinct = [tuple(draw.integers(3, 400, length).tolist()) for length in lengths]
    return [prompt for prompt in distinct for _ in range(options.rows // options.distinct)]


def _ours(model: Any, prompts: Sequence[tuple[int, ...]], n_tokens: int) -> int:
    rules = SamplingRules(max_tokens=n_tokens, micro_batch_size=len(prompts))
    seeds = [[0, number] for number in range(len(prompts))]
    found = sample_responses(model, prompts, seeds, end_tokens=[], rules=rules)
    return sum(len(response.tokens) for response in found)


def _theirs(model: Any, prompts: Sequence[tuple[int, ...]], n_tokens: int) -> int:
    ids, mask = left_padded(prompts)
    rules = GenerationConfig(
        do_sample=True, top_k=0, top_p=1.0, max_new_tokens=n_tokens, min_new_tokens=n_tokens, pad_token_id=_PAD
    )
    model.generate(input_ids=ids, attention_mask=mask.long(), generation_config=rules)
    return len(prompts) * n_tokens


def _speed(sample: Callable[[], int]) -> float:
    begun = time.process_time()
    n_tokens = sample()
    return n_tokens / (time.process_time() - begun)


if __name__ == "__main__":
    main()
