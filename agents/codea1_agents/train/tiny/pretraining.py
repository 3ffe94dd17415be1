"""Pretrains a language model that writes programs and tests of the family, most of them wrong.

The settings decide everything: with one thread, two runs in one environment give the same bits.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from codea1_agents.models.model_files import no_progress_bars, writing_errors
from codea1_agents.train.declared import CountOrZero, check_values, values_of
from codea1_agents.train.tiny.corpus import KINDS, Corpus, CorpusRules, Document
from codea1_agents.train.tiny.family import VERSION
from codea1_agents.train.torch_threads import torch_threads
from codea1_env.errors import UserError, extra_needed
from codea1_env.records.faults import read_file, read_json

with extra_needed("pretraining", "transformers"):
    import torch
    from torch import Tensor
    from torch.nn.functional import cross_entropy
    from transformers import GenerationConfig, Qwen2Config, Qwen2ForCausalLM

    from codea1_agents.train.sft.supervised import supervised_steps
    from codea1_agents.train.tiny.muon import Muon
    from codea1_agents.train.tiny.tokenizer import END, GO, PAD, new_tokenizer, save_tokenizer, text_of

RECORD = "pretraining.json"
"""File with the settings, in the folder of the weights."""

_IGNORED = -100
_INITIAL_STD = 0.04  # of the initial weights
_RUNNING = 50  # steps over which a reported loss is averaged, about


STEPS = 1600
"""Steps of a whole pretraining."""
_HIDDEN, _LAYERS, _FEED_FORWARD, _HEADS, _KEY_VALUE_HEADS = 96, 4, 288, 4, 2  # about 0.5 million parameters
_DOCUMENTS_PER_STEP = 24
_MUON_LR, _ADAM_LR = 0.02, 3e-3


@dataclass(frozen=True, slots=True)
class PretrainingSettings:
    """Settings that decide every weight.

    Raises:
        UserError: a number is negative.
    """

    seed: CountOrZero = 0
    """Seed of the weights and of the corpus."""
    steps: CountOrZero = 0
    """0: `STEPS`."""
    rules: CorpusRules = field(default_factory=CorpusRules)
    muon: Literal["float32", "bfloat16"] = "float32"
    """Data type of Muon's directions. `bfloat16` is PyTorch's own Muon, with which older bases were made; without
    instructions for it, most of a pretraining goes there."""

    def __post_init__(self) -> None:
        check_values(type(self), values_of(self))

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return self.steps or STEPS

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        rules = asdict(self.rules) | {"variant": self.rules.variant.value}
        return {
            "family": VERSION,
            "seed": self.seed,
            "steps": self.n_steps,
            "muon": self.muon,
            "rules": rules,
        }


Losses: TypeAlias = Mapping[str, float]
"""Running means of the loss per token of a reply, by kind of document; nan before the first of a kind."""


@dataclass(frozen=True, slots=True)
class Base:
    """A pretrained model that is not on disk yet."""

    settings: PretrainingSettings
    model: Any
    tokenizer: Any
    losses: Losses
    n_tokens: int
    """Tokens of the training, including prompts."""

    @property
    def n_parameters(self) -> int:
        """Number of parameters, tied ones counted once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def save(self, folder: Path) -> None:
        """Write model, tokenizer and settings as a plain folder of `transformers`.

        Raises:
            UserError: the folder cannot be written.
            CodeA1Error: the tokenizer loaded from the folder gives other tokens.
        """
        with writing_errors(folder):
            self._save(folder)

    def _save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        with no_progress_bars():
            self.model.save_pretrained(folder)
        save_tokenizer(self.tokenizer, folder)
        record = self.settings.to_dict() | {
            "parameters": self.n_parameters,
            "tokens": self.n_tokens,
            "losses": self.losses,
        }
        (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", "utf-8")


Progress = Callable[[int, Losses], None]
"""Called after each step with the number of steps done."""


def pretrain(settings: PretrainingSettings, *, progress: Progress | None = None) -> Base:
    """Return a model that was trained on the corpus.

    It uses one CPU thread and leaves the global random state unchanged.

    Raises:
        MissingExtra: torch or transformers is not installed.
    """
    tokenizer = new_tokenizer(settings.rules.variant)
    corpus, tally = Corpus(settings.rules, settings.seed), _Tally()
    with torch_threads(1):  # more threads are slower at this size, and their sums may differ
        model = _new_model(settings, tokenizer)

        def losses_of(batch: _Batch) -> Iterator[Tensor]:
            losses = _token_losses(model, batch)
            tally.add(batch, losses.detach())
            yield losses

        batches = (_Batch.of(corpus.batch(step, _DOCUMENTS_PER_STEP), tokenizer) for step in range(settings.n_steps))
        for step in supervised_steps(batches, losses_of, _Optimisers(model, settings)):
            if progress is not None:
                progress(step.number + 1, tally.losses)
    return Base(settings, model.eval(), tokenizer, tally.losses, tally.n_tokens)


class _Measured(Exception):
    """Ends a pretraining that only measures."""


def seconds_per_step(settings: PretrainingSettings, *, measured_s: float = 10.0) -> float:
    """Return how long a step takes on this machine now, from steps that are made for some seconds and discarded."""
    ends: list[float] = []

    def measure(_step: int, _losses: Losses) -> None:
        ends.append(time.perf_counter())
        if ends[-1] - ends[0] >= measured_s:
            raise _Measured

    with suppress(_Measured):
        pretrain(settings, progress=measure)
    return (ends[-1] - ends[0]) / max(1, len(ends) - 1)  # the first step also warms up


def load_settings(folder: Path) -> Mapping[str, Any]:
    """Return the record of a pretrained folder.

    Raises:
        UserError: the folder has none.
    """
    try:
        found: dict[str, Any] = read_json(RECORD, read_file(folder / RECORD))
    except (OSError, ValueError) as error:
        raise UserError(f"{folder}: not a folder that codea1 pretrain wrote ({error})") from error
    return found


# The model


def _new_model(settings: PretrainingSettings, tokenizer: Any) -> Any:
    end, pad = tokenizer.convert_tokens_to_ids([END, PAD])
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=_HIDDEN,
        intermediate_size=_FEED_FORWARD,
        num_hidden_layers=_LAYERS,
        num_attention_heads=_HEADS,
        num_key_value_heads=_KEY_VALUE_HEADS,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=end,
        pad_token_id=pad,
        attn_implementation="sdpa",
    )
    with torch.random.fork_rng(devices=[]):
        model = Qwen2ForCausalLM(config)
    draws = torch.Generator().manual_seed(settings.seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.copy_(torch.randn(parameter.shape, generator=draws) * _INITIAL_STD)
    model.generation_config = GenerationConfig(
        do_sample=True, temperature=1.0, top_k=0, top_p=1.0, eos_token_id=end, pad_token_id=pad
    )
    return model.train()


class _Optimisers:
    """Muon for the hidden matrices, AdamW for everything else."""

    def __init__(self, model: Any, settings: PretrainingSettings) -> None:
        named = list(model.named_parameters())
        matrices = [p for name, p in named if p.ndim == 2 and "embed" not in name and "lm_head" not in name]
        is_matrix = {id(parameter) for parameter in matrices}
        others = [parameter for _, parameter in named if id(parameter) not in is_matrix]
        is_own = settings.muon == "float32"
        muon = Muon(matrices, _MUON_LR) if is_own else torch.optim.Muon(matrices, _MUON_LR, weight_decay=0.0)
        adam = torch.optim.AdamW(others, lr=_ADAM_LR, betas=(0.9, 0.99), weight_decay=0.0)
        self._rates = ((muon, _MUON_LR), (adam, _ADAM_LR))
        self._model, self._n_steps = model, settings.n_steps

    def step(self, number: int) -> None:
        """Apply and clear the gradients of a step, numbered from 0."""
        share = _lr_share(number, self._n_steps)
        for optimiser, lr in self._rates:
            for group in optimiser.param_groups:
                group["lr"] = lr * share
            optimiser.step()
        self._model.zero_grad(set_to_none=True)


def _lr_share(step: int, n_steps: int) -> float:
    """Return the factor of the learning rate: rising for 30 steps, 1 up to 40 % of the steps, then falling to 5 %."""
    warm = min(1.0, (step + 1) / 30)
    done = step / n_steps
    return warm * (1.0 if done < 0.4 else 1.0 - 0.95 * (done - 0.4) / 0.6)


# Batches


_ROW = 128  # tokens; documents of a step share rows, as otherwise half of a step is padding


@dataclass(frozen=True, slots=True)
class _Batch:
    """Documents packed into rows, shapes (B, T). A token attends only to earlier tokens of its own document."""

    ids: Tensor
    """Input tokens."""
    positions: Tensor
    """Positions in the documents."""
    targets: Tensor
    """The token after each input if it belongs to a reply, else `_IGNORED`."""
    kinds: Tensor
    """Position in `KINDS` of the kind of the token's document."""
    mask: Tensor
    """(B, 1, T, T), added to the attention scores: 0, or the lowest number."""
    n_tokens: int

    @property
    def n_targets(self) -> int:
        """Tokens with a loss."""
        return int((self.targets != _IGNORED).sum())

    @classmethod
    def of(cls, documents: Sequence[Document], tokenizer: Any) -> _Batch:
        encoded = tokenizer([text_of(each) for each in documents], add_special_tokens=False)["input_ids"]
        go, pad = tokenizer.convert_tokens_to_ids([GO, PAD])
        rows = _packed([len(ids) - 1 for ids in encoded])
        width = max(sum(len(encoded[number]) - 1 for number in row) for row in rows)
        shape = (len(rows), width)
        filled = {"ids": torch.full(shape, pad), "targets": torch.full(shape, _IGNORED)}
        filled |= {name: torch.zeros(shape, dtype=torch.int64) for name in ("positions", "kinds", "owners")}
        for row, numbers in enumerate(rows):
            start = 0
            for number in numbers:
                ids = encoded[number]
                first, length = ids.index(go), len(ids) - 1
                place = (row, slice(start, start + length))
                filled["ids"][place] = torch.tensor(ids[:-1])
                filled["targets"][place] = torch.tensor([_IGNORED] * first + ids[first + 1 :])
                filled["positions"][place] = torch.arange(length)
                filled["kinds"][place] = KINDS.index(documents[number].kind)
                filled["owners"][place] = 1 + number
                start += length
        owners = filled.pop("owners")
        seen = (owners.unsqueeze(1) == owners.unsqueeze(2)).tril().unsqueeze(1)
        mask = torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)
        return cls(**filled, mask=mask, n_tokens=sum(map(len, encoded)))


def _packed(lengths: Sequence[int]) -> list[list[int]]:
    """Return rows of positions in `lengths`: the longest first, each in the first row that has enough space."""
    rows: list[list[int]] = []
    space: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda number: -lengths[number]):
        row = next((row for row, left in enumerate(space) if left >= lengths[number]), len(rows))
        if row == len(rows):
            rows.append([])
            space.append(max(_ROW, lengths[number]))
        rows[row].append(number)
        space[row] -= lengths[number]
    return rows


def _token_losses(model: Any, batch: _Batch) -> Tensor:
    """Return losses (B, T), 0 at positions without a target."""
    logits = model(
        input_ids=batch.ids, position_ids=batch.positions, attention_mask=batch.mask.to(model.dtype), use_cache=False
    ).logits.float()
    flat = cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), ignore_index=_IGNORED, reduction="none")
    return flat.view_as(batch.targets)


class _Tally:
    """The number of tokens and the running losses so far."""

    def __init__(self) -> None:
        self.n_tokens = 0
        self.losses = dict.fromkeys(KINDS, math.nan)

    def add(self, batch: _Batch, losses: Tensor) -> None:
        self.n_tokens += batch.n_tokens
        is_target = batch.targets != _IGNORED
        for number, kind in enumerate(KINDS):
            mine = losses[is_target & (batch.kinds == number)]
            if len(mine):
                mean = float(mine.mean())
                before = mean if math.isnan(self.losses[kind]) else self.losses[kind]
                self.losses[kind] = before + (mean - before) / _RUNNING
