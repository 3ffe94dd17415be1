"""Tiny language models with random weights: real `transformers` code, no download."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

END, PAD = 256, 257


def random_model(seed: int, kind: str = "Qwen2", **shape: Any) -> Any:
    """Return a model that is 32 wide, with one layer and heads of 16, but for what `shape` says in the words of its
    configuration."""
    hidden = shape.get("hidden_size", 32)
    small = {
        "hidden_size": hidden,
        "intermediate_size": 2 * hidden,
        "num_hidden_layers": 1,
        "num_attention_heads": hidden // 16,
        "num_key_value_heads": hidden // 32,
        "max_position_embeddings": 64,
        "tie_word_embeddings": False,
        "bos_token_id": None,
    }
    return model_of_kind(kind, seed, **small | shape)


def model_of_kind(kind: str, seed: int = 0, **shape: Any) -> Any:
    """Return a random model of an architecture of `transformers`."""
    import torch
    import transformers

    config = getattr(transformers, f"{kind}Config")(**shape)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return getattr(transformers, f"{kind.removesuffix('Text')}ForCausalLM")(config).eval()


def tiny_model() -> Any:
    shape = {"vocab_size": 260, "num_hidden_layers": 2, "max_position_embeddings": 4096, "tie_word_embeddings": True}
    return random_model(0, **shape, eos_token_id=END, pad_token_id=PAD)


def byte_tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {character: number for number, character in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = {"eos_token": "<end>", "pad_token": "<pad>", "additional_special_tokens": ["<a>", "<b>"]}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


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
    special = {"unk_token": "<unk>", "eos_token": "<end>", "pad_token": "<pad>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special, model_max_length=64)


def phrase_model(seed: int, phrases: Sequence[str] = PHRASES, **shape: Any) -> Any:
    return random_model(seed, vocab_size=3 + len(phrases), eos_token_id=1, pad_token_id=2, **shape)


def phrase_folder(folder: Path, phrases: Sequence[str], seed: int = 0, **shape: Any) -> str:
    """Write a model that can say these phrases and nothing else."""
    return saved(folder, phrase_model(seed, phrases, **shape), phrase_tokenizer(phrases))


def saved(folder: Path, model: Any, tokenizer: Any) -> str:
    """Write a model and its tokenizer; return the folder."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def chat_tokenizer(texts: Sequence[str], phrases: Sequence[str]) -> Any:
    """A byte-pair tokenizer with a chat template, trained on texts; each phrase is one token."""
    from tokenizers import AddedToken

    tokenizer = bpe_tokenizer(CHAT_TEMPLATE, texts, 2000)
    tokenizer.add_tokens([AddedToken(phrase, normalized=False) for phrase in phrases])
    return tokenizer


def chat_phrase_folder(folder: Path, tokenizer: Any, phrases: Sequence[str], seed: int = 0, **shape: Any) -> str:
    """Write a chat model of any vocabulary that says these phrases with about the same probability, and hardly more."""
    import torch

    shape |= {"hidden_size": 64, "num_hidden_layers": 2, "max_position_embeddings": 32768}
    model = random_model(seed, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, **shape)
    said = [tokenizer.eos_token_id, *tokenizer.convert_tokens_to_ids(list(phrases))]
    with torch.no_grad():
        # The first coordinate dominates every hidden state, and the logits of what is said follow it.
        model.get_input_embeddings().weight[:, 0] = 1.0
        model.get_output_embeddings().weight[said, 0] = 5.0
    return saved(folder, model, tokenizer)


CHAT_TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
_CORPUS = (
    "def add(a, b):\n    return a + b\n",
    "assert add(1, 2) == 3\nassert last([]) == None\n",
    "```python\ndef last(items):\n    return items[-1] if items else None\n```\n",
    "Write the function that the following problem asks for. Give the whole program in one block.\n",
)


def chat_folder(folder: Path, chat_template: str | None, kind: str = "Llama", **shape: Any) -> Path:
    """Write a model of 100,000 random parameters with a byte-pair tokenizer that is trained here."""
    import pytest

    pytest.importorskip("transformers")
    pytest.importorskip("torch").set_num_threads(1)
    tokenizer = bpe_tokenizer(chat_template)
    usual = {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,  # of 32 dimensions, the fewest that vLLM takes
        "num_key_value_heads": 1,
        "max_position_embeddings": 2048,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "initializer_range": 0.3,  # spreads the logits, so that greedy choices are not near ties
    }
    model = random_model(0, kind, **usual | shape)
    model.generation_config.do_sample = True  # as published instruct models have it; servers go by it
    saved(folder, model, tokenizer)
    return folder


def bpe_tokenizer(chat_template: str | None, texts: Sequence[str] = _CORPUS, vocabulary: int = 320) -> Any:
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = tokenizers.Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator([*texts] * 4, trainer)
    special = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "additional_special_tokens": ["<|im_start|>"]}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, **special)
    tokenizer.chat_template = chat_template
    return tokenizer
