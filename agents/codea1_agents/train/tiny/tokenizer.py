"""A byte-pair tokenizer of some 400 tokens for programs and asserts of the family, and its chat format."""

from __future__ import annotations

import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from codea1_agents.models.chat_format import ChatFormat, load_tokenizer
from codea1_agents.prompts import Message
from codea1_agents.train.tiny.corpus import Corpus, CorpusRules, Document
from codea1_agents.train.tiny.family import Variant
from codea1_env.errors import CodeA1Error

PAD, END, UNKNOWN, GO = "<pad>", "<end>", "<unk>", "<go>"

_VOCABULARY = 400
_RAREST_VOCABULARY = 540  # so that none of the conditions of its 128 triggers is left out; 415 are made
_N_DOCUMENTS = 4000
_BATCH = 100
_PIECES = "|".join(
    (
        r"\n?assert f\(",
        r"\]?\) == ",
        r"def f\([a-z, ]+\):\n    [a-z]+ = ",
        r"\n    return ",
        r"\n    [a-z] = ",
        r"if \(a, b\) != \(-?[0-9], [0-9]\) else ",
        r"for [a-z] in [a-z]+",
        r"(?:, )?-?[0-9]",
        r"\n *",
        r"[A-Za-z_]+ ?",
        r"[^A-Za-z0-9\s-]+ ?",
        r"- ?",
        r" +",
    )
)
"""Pieces that no token crosses. Text that all replies share is one piece, and a signed digit with its comma is another.
This keeps replies short, and their length decides the time of training. The condition of a rare mistake of four steps
becomes one token: a model of half a million parameters learns to look it up, and not to copy its numbers."""
_CHAT = (
    "{% for message in messages %}{% if not loop.first %}{{ '\\n' }}{% endif %}{{ message['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}" + GO + "{% endif %}"
)


def new_tokenizer(variant: Variant = Variant.PLAIN) -> Any:
    """Return the tokenizer that was trained on a corpus of all variants that have the problems of one."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: PLC0415  heavy
    from transformers import PreTrainedTokenizerFast  # noqa: PLC0415  heavy

    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_pieces(variant)), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    trainer = trainers.BpeTrainer(
        vocab_size=_RAREST_VOCABULARY if variant is Variant.RAREST else _VOCABULARY,
        special_tokens=[PAD, END, UNKNOWN, GO],
        initial_alphabet=[*string.ascii_letters, *string.digits, *string.punctuation, " ", "\n"],
        limit_alphabet=len(string.printable),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_texts(variant), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        unk_token=UNKNOWN,
        additional_special_tokens=[GO],
        chat_template=_CHAT,
        clean_up_tokenization_spaces=False,
    )


def _pieces(variant: Variant) -> str:
    """Return the pieces; only the rarest mistakes have conditions with a negative second number."""
    return _PIECES.replace(", [0-9]", ", -?[0-9]") if variant is Variant.RAREST else _PIECES


def _texts(variant: Variant) -> Iterator[str]:
    variants = [each for each in Variant if each.shapes == variant.shapes]
    for each in variants:
        corpus = Corpus(CorpusRules(each), 0)
        for number in range(_N_DOCUMENTS // len(variants) // _BATCH):
            for document in corpus.batch(number, _BATCH):
                yield document.prompt
                # Letters in string literals are data: no pair of them may become a token.
                if document.kind == "coder" or "'" not in document.reply:
                    yield document.reply


def text_of(document: Document) -> str:
    """Return a document as one text, control tokens included."""
    return f"{document.prompt}{GO}{document.reply}{END}"


def save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Write a tokenizer, and check that loading it gives the same token ids.

    Raises:
        CodeA1Error: the loaded tokenizer gives other token ids.
    """
    tokenizer.save_pretrained(folder)
    loaded = load_tokenizer(str(folder))
    for document in Corpus(CorpusRules(), 0).batch(0, _BATCH):
        text = text_of(document)
        prompt = ChatFormat(loaded, str(folder)).prompt_ids([Message("user", document.prompt)])
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        if loaded(text, add_special_tokens=False)["input_ids"] != ids or ids[: len(prompt)] != prompt:
            raise CodeA1Error(f"the tokenizer loaded from {folder} gives other tokens for {text!r} than the saved one")
