"""Fine-tunes a causal language model on the replies of examples. The result is a plain folder of `transformers`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal, get_args

from codea1_agents.models.model_files import no_progress_bars, writing_errors
from codea1_agents.train.declared import Count, CountOrZero, NotNegative, Positive, check_values, values_of
from codea1_agents.train.sft.examples import SftExample
from codea1_env.agent import Role
from codea1_env.errors import CodeA1Error, UserError, extra_needed

with extra_needed("fine-tuning", "transformers"):
    import torch
    from torch import Tensor

    from codea1_agents.models.chat_format import ChatFormat, load_tokenizer
    from codea1_agents.train.grpo.batch import Budget, micro_batches, token_columns
    from codea1_agents.train.grpo.causal_models import (
        Abilities,
        ResponsePass,
        adapted,
        autocast,
        checkpoint_activations,
        load_causal_model,
        save_plain,
    )
    from codea1_agents.train.grpo.settings import LoraSettings
    from codea1_agents.train.sft.supervised import StepLoss, supervised_steps

RECORD = "sft.json"
"""File with settings and figures, in the folder of the weights."""

_ADAM_BETAS = (0.9, 0.999)
_PROBE = "def f(x):\n    return [x, -12]\nassert f(1) == [1, -12]"


Progress = Callable[[int, int], None]
"""Called after each step with the number of steps done and of all steps."""


@dataclass(frozen=True, slots=True)
class SftSettings:
    """The optimiser of a fine-tuning, and how much of a step is in memory at a time.

    Raises:
        UserError: a number out of range.
    """

    epochs: Count = 2
    examples_per_step: Count = 16
    lr: Positive = 1e-5
    """Highest learning rate. It rises over the first tenth of the steps and then falls to 0, both linearly."""
    weight_decay: NotNegative = 0.0
    grad_clip: Positive = 1.0
    lora: LoraSettings | None = None
    """Adapters to train instead of the whole model."""
    seed: CountOrZero = 0
    """Seed of the order of examples."""
    max_tokens: Count = 4096
    """Longest prompt and reply together, in tokens; longer examples are left out."""
    micro_batch_tokens: Count = 8192
    """Most tokens of a forward pass, with padding; a longer example has a pass of its own."""
    logits_chunk_tokens: CountOrZero = 256
    """Reply tokens whose logits exist at the same time; 0: all."""
    autocast: Literal["", "bfloat16", "float16"] = ""
    """Data type of the computation, e.g. `bfloat16`; empty: float32. The weights are always float32."""
    gradient_checkpointing: bool = False

    def __post_init__(self) -> None:
        check_values(type(self), values_of(self))


@dataclass(frozen=True, slots=True)
class Row:
    """An example in tokens; the reply includes the end token."""

    role: Role
    prompt: tuple[int, ...]
    reply: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.prompt) + len(self.reply)


@dataclass(frozen=True, slots=True)
class RowBatch:
    """The rows of one optimiser step."""

    rows: tuple[Row, ...]

    @property
    def n_targets(self) -> int:
        """Reply tokens."""
        return sum(len(row.reply) for row in self.rows)


@dataclass(frozen=True, slots=True)
class FineTuned:
    """A fine-tuned model that is not on disk yet."""

    model: Any
    """In evaluation mode; with its adapters if it has some."""
    tokenizer: Any
    n_steps: int
    """Steps done."""
    n_planned: int
    """Steps of the whole training; more than `n_steps` if it was interrupted."""
    losses: tuple[float, ...]
    """Mean per token of the replies, epoch by epoch; the last epoch may be interrupted."""
    n_tokens: int
    """Tokens of all replies, each reply counted once."""
    n_too_long: int
    """Examples left out since they are longer than `max_tokens` or than the model's context."""
    held_out_before: Mapping[str, float] = field(default_factory=dict)
    """By role, the mean loss per token of the held-out replies before training."""
    held_out_after: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_interrupted(self) -> bool:
        """Whether the training stopped before its last step."""
        return self.n_steps < self.n_planned

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, without the weights."""
        return {
            "losses": list(self.losses),
            "steps": self.n_steps,
            "planned_steps": self.n_planned,
            "reply_tokens": self.n_tokens,
            "too_long": self.n_too_long,
            "held_out_loss": {"before": dict(self.held_out_before), "after": dict(self.held_out_after)},
        }

    def save(self, folder: Path, record: Mapping[str, Any]) -> None:
        """Write model, tokenizer and `sft.json` as a plain folder of `transformers`.

        Args:
            folder: is created if it is missing.
            record: content of `sft.json`.

        Raises:
            UserError: the folder cannot be written.
            CodeA1Error: the tokenizer loaded from the folder gives other tokens.
        """
        with writing_errors(folder), no_progress_bars():
            folder.mkdir(parents=True, exist_ok=True)
            save_plain(self.model, folder)
            self.tokenizer.save_pretrained(folder)
            (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", "utf-8")
        if load_tokenizer(str(folder))(_PROBE)["input_ids"] != self.tokenizer(_PROBE)["input_ids"]:
            raise CodeA1Error(f"the tokenizer loaded from {folder} gives other tokens than the one that was saved")


def fine_tuned(
    place: str,
    examples: Sequence[SftExample],
    settings: SftSettings,
    *,
    held_out: Sequence[SftExample] = (),
    progress: Progress = lambda done, total: None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> FineTuned:
    """Return a model that was trained on the replies of the examples.

    The loss is the mean over the reply tokens of a step. On a CPU, the same settings give the same weights. The global
    random state is neither used nor changed.

    Args:
        place: directory or hub id of a causal language model.
        examples: at least one.
        settings: the optimiser's settings.
        held_out: examples whose loss is measured before and after.
        progress: called after each step.
        is_stopped: called around each step; once it returns True, no further step is made.

    Raises:
        KeyboardInterrupt: stopped before the first step.
        UserError: no example, no model, a chat template that fails, or too little memory.
        LossNotFinite: a loss is nan or infinite.
    """
    if not examples:
        raise UserError("nothing to fine-tune on: no problem gives an example for these roles")
    training = _Training(place, settings)
    rows, unseen = training.rows(examples), training.rows(held_out)
    if not rows:
        raise UserError(f"nothing to fine-tune on: all {len(examples)} examples exceed {training.longest} tokens")
    batches = list(_batches(rows, settings))
    try:
        before = training.losses_by_role(unseen)
        steps = training.run(batches, progress, is_stopped)
        after = training.losses_by_role(unseen)
    except torch.OutOfMemoryError as error:
        raise UserError(
            f"model {place!r} does not fit into the memory of {training.model.device}: lower micro_batch_tokens"
            f" ({settings.micro_batch_tokens}), or use gradient_checkpointing or lora"
        ) from error
    return FineTuned(
        model=training.model,
        tokenizer=training.tokenizer,
        losses=tuple(_by_epoch(steps, len(batches) // settings.epochs)),
        n_steps=len(steps),
        n_planned=len(batches),
        n_tokens=RowBatch(tuple(rows)).n_targets,
        n_too_long=len(examples) - len(rows),
        held_out_before=before,
        held_out_after=after,
    )


class _Training:
    """A model in training, with its tokenizer and its losses."""

    def __init__(self, place: str, settings: SftSettings) -> None:
        self._settings = settings
        with no_progress_bars():
            plain = load_causal_model(place)
        self.model = plain if settings.lora is None else adapted(plain, settings.lora)
        self.model.to("cuda" if torch.cuda.is_available() else "cpu")
        self.tokenizer = load_tokenizer(place)
        self._format = ChatFormat(self.tokenizer, place)
        self._format.require_embedding_of(plain)
        self._ends = self._format.ends(plain.generation_config)
        self._pass = ResponsePass(self.model, Abilities.of(self.model))
        context = getattr(plain.config.get_text_config(), "max_position_embeddings", None)
        self.longest = min(settings.max_tokens, context or settings.max_tokens)
        if settings.gradient_checkpointing:
            checkpoint_activations(self.model)

    def rows(self, examples: Sequence[SftExample]) -> list[Row]:
        """Return the examples in tokens, without those that are too long."""
        found = [
            Row(
                each.role,
                tuple(self._format.prompt_ids(each.messages)),
                tuple(self._format.reply_ids(each.messages, each.reply, self._ends)),
            )
            for each in examples
        ]
        return [row for row in found if len(row) <= self.longest]

    def run(self, batches: Sequence[RowBatch], progress: Progress, is_stopped: Callable[[], bool]) -> list[StepLoss]:
        """Train on the batches and return the losses of the steps done."""
        if is_stopped():
            raise KeyboardInterrupt
        self.model.train(self._settings.gradient_checkpointing)  # else no dropout: nothing random
        done = []
        for step in supervised_steps(batches, self._losses, _AdamW(self.model, self._settings, len(batches))):
            done.append(step)
            progress(len(done), len(batches))
            if is_stopped():
                break
        self.model.eval()
        return done

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def losses_by_role(self, rows: Sequence[Row]) -> dict[str, float]:
        """Return the mean loss per reply token of each role that has rows."""
        found = {}
        for role in get_args(Role):
            batch = RowBatch(tuple(row for row in rows if row.role == role))
            if batch.rows:
                found[role] = sum(float(part.sum()) for part in self._losses(batch)) / batch.n_targets
        return found

    def _losses(self, batch: RowBatch) -> Iterator[Tensor]:
        """Yield the losses (B, R) of the reply tokens of parts of a batch, 0 on padding."""
        columns = token_columns([row.prompt for row in batch.rows], [row.reply for row in batch.rows])
        on_device = {name: column.to(self.model.device) for name, column in columns.items()}
        for part in micro_batches(on_device, Budget(tokens=self._settings.micro_batch_tokens)):
            yield self._losses_of(part)

    def _losses_of(self, part: Mapping[str, Tensor]) -> Tensor:
        with autocast(self.model.device, self._settings.autocast):
            found = self._pass(part, prompt_once=False, logits_chunk_tokens=self._settings.logits_chunk_tokens)
        return -found.log_probs


class _AdamW:
    """AdamW over the trained weights, with a bound on the gradient's norm."""

    def __init__(self, model: Any, settings: SftSettings, n_steps: int) -> None:
        self._settings, self._n_steps = settings, n_steps
        self._weights = [each for each in model.parameters() if each.requires_grad]
        self._adam = torch.optim.AdamW(
            self._weights, lr=settings.lr, betas=_ADAM_BETAS, weight_decay=settings.weight_decay
        )

    def step(self, number: int) -> None:
        """Apply and clear the gradients of a step, numbered from 0."""
        for group in self._adam.param_groups:
            group["lr"] = self._settings.lr * _lr_share(number, self._n_steps)
        torch.nn.utils.clip_grad_norm_(self._weights, self._settings.grad_clip)
        self._adam.step()
        self._adam.zero_grad(set_to_none=True)


def _batches(rows: Sequence[Row], settings: SftSettings) -> Iterator[RowBatch]:
    for epoch in range(settings.epochs):
        order = list(range(len(rows)))
        Random(f"{settings.seed}/{epoch}").shuffle(order)
        for start in range(0, len(order), settings.examples_per_step):
            yield RowBatch(tuple(rows[place] for place in order[start : start + settings.examples_per_step]))


def _by_epoch(steps: Sequence[StepLoss], n_per_epoch: int) -> Iterator[float]:
    for start in range(0, len(steps), n_per_epoch):
        epoch = steps[start : start + n_per_epoch]
        yield sum(each.summed for each in epoch) / sum(each.n_tokens for each in epoch)


def _lr_share(step: int, n_steps: int) -> float:
    """Return the factor of the learning rate in a step, numbered from 0; it is above 0 in the last step."""
    warm = max(1, n_steps // 10)
    return min(1.0, (step + 1) / warm) if step < warm else (n_steps - step) / (n_steps - warm)
