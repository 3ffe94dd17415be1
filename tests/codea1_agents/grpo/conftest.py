"""A tiny language model with random weights: real `transformers` code, no download."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

N_BYTES = 256
END, PAD = 256, 257


def tiny_model(seed: int = 0, *, hidden: int = 32, is_tied: bool = True) -> Any:
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(
        vocab_size=260,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=4096,
        tie_word_embeddings=is_tied,
        eos_token_id=END,
        pad_token_id=PAD,
        bos_token_id=None,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Qwen2ForCausalLM(config).eval()


def byte_tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {character: number for number, character in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<end>", pad_token="<pad>", additional_special_tokens=["<a>", "<b>"]
    )


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers", reason="transformers is not installed")
    folder = tmp_path_factory.mktemp("model")
    tiny_model().save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


PROGRAMS = ["return x + 1", "return 1 + x", "return x", "return 2 * x", "return [", "raise ValueError"]
TESTS = ["f(1) == 2", "f(2) == 3", "f(3) == 9", "f(0) == 1", "f(None) == 1"]
PHRASES = [
    *(f"```python\ndef f(x):\n    {body}\n```" for body in PROGRAMS),
    *(f"```python\nassert {one}\nassert {other}\n```" for one, other in pairwise(TESTS)),
    "nothing",
]


def phrase_tokenizer(phrases: Sequence[str] = PHRASES) -> Any:
    """A tokenizer whose tokens are whole replies: even a model that knows nothing writes programs and tests with it."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = ["<unk>", "<end>", "<pad>", *phrases]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", eos_token="<end>", pad_token="<pad>", model_max_length=64
    )


def phrase_model(seed: int, phrases: Sequence[str] = PHRASES) -> Any:
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(
        vocab_size=3 + len(phrases),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=64,
        tie_word_embeddings=False,
        eos_token_id=1,
        pad_token_id=2,
        bos_token_id=None,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Qwen2ForCausalLM(config).eval()


def phrase_folder(folder: Path, phrases: Sequence[str], seed: int = 0) -> str:
    """Write a model that can say these phrases and nothing else."""
    phrase_model(seed, phrases).save_pretrained(folder)
    phrase_tokenizer(phrases).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def phrase_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Models of a coder and a tester whose every reply is a program or a suite for `f(x) = x + 1`."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    folders = {}
    for seed, role in enumerate(("coder", "tester")):
        folders[role] = phrase_folder(tmp_path_factory.mktemp(role), PHRASES, seed)
    return folders


@pytest.fixture(scope="session")
def increments(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A problem set of three problems, all of them `f(x) = x + 1`."""
    import json

    rows = [
        {
            "id": f"toy/{number}",
            "statement": 'def f(x):\n    """Return x plus one."""\n',
            "entry_point": "f",
            "solution": "def f(x):\n    return x + 1\n",
            "golden": [{"expression": "f(1)", "expected": "2"}],
        }
        for number in range(3)
    ]
    path = tmp_path_factory.mktemp("problems") / "toys.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def tiny_config(folders: dict[str, str], problems: str) -> Any:
    """Both roles learn, everything in this process."""
    from codea1_agents.grpo import GRPOConfig

    return (
        GRPOConfig()
        .environment(rules="fixed")
        .problems(problems)
        .llm_agents(**folders)
        .training(
            lr=3e-3,
            n_candidates=6,
            n_suites=4,
            problems_per_step=4,
            problems_at_once=2,
            max_tokens={"coder": 2, "tester": 2},
            minibatches_per_epoch=1,
            warmup_steps=0,
            rows_at_once=5,
        )
    )


@pytest.fixture
def config(phrase_folders: dict[str, str], increments: str) -> Any:
    return tiny_config(phrase_folders, increments)


Weights = dict[str, dict[str, Any]]


def weights_of(algorithm: Any) -> Weights:
    found: Weights = algorithm.learner_group.get_state(components="learner/rl_module")["learner"]["rl_module"]
    return found


def distance(a: Weights, b: Weights) -> float:
    """The largest difference of a weight."""
    assert a.keys() == b.keys()
    return max(float(abs(a[m][name] - b[m][name]).max()) for m in a for name in a[m])


def scored(module: str, n_prompt: int, n_response: int, *, advantage: float = 1.0, seed: int = 0) -> Any:
    """A response of tokens drawn from the phrase model's vocabulary."""
    import numpy as np

    from codea1_agents.grpo.episodes import ScoredResponse
    from codea1_agents.grpo.sampling import Response

    draw = np.random.default_rng([seed, n_prompt, n_response])
    return ScoredResponse(
        role=module,
        module=module,
        problem_id="toy/0",
        candidate=0,
        suite=-1,
        prompt=tuple(draw.integers(3, 10, n_prompt).tolist()),
        response=Response(
            tuple(draw.integers(3, 10, n_response).tolist()),
            tuple((-draw.random(n_response) - 2.0).tolist()),
            is_cut=True,
        ),
        reward=0.5,
        advantage=advantage,
        weights_version=0,
    )
