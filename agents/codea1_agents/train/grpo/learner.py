"""RLlib's learner with the loss of GRPO. It makes its own epochs, minibatches (optimiser steps) and micro-batches."""

from __future__ import annotations

import contextlib
import gc
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from itertools import chain
from typing import Any

import torch
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.utils.framework import get_device
from ray.rllib.utils.metrics import WEIGHTS_SEQ_NO
from torch import Tensor
from torch.distributed.distributed_c10d import _set_pg_timeout

from codea1_agents.train.failures import NotFinite
from codea1_agents.train.grpo.batch import (
    Batch,
    Budget,
    Column,
    ScoredResponse,
    micro_batches,
    nothing_of,
    padded_batch,
)
from codea1_agents.train.grpo.causal_models import clip_gradients
from codea1_agents.train.grpo.loss import LossParts, grpo_loss, importance_weights, sampler_gap
from codea1_agents.train.grpo.rl_module import shard_together
from codea1_env.errors import UserError

_MAXIMA = frozenset({"ratio_gap", "sampler_gap_max"})  # figures that are combined by their maximum, not their sum
_OF_FIRST_STEP = frozenset({"sampler_gap", "sampler_gap_max", "sampler_ess", "sampler_truncated_share"})
"""Figures of the first optimiser step of an iteration, when learner and sampler have the same weights."""


class ResponsesToBatch(ConnectorV2):  # type: ignore[misc]  # Ray has no types
    """The learner's last connector: makes one padded batch per module."""

    def __call__(
        self, *, rl_module: Any, batch: Mapping[str, Batch], episodes: Sequence[ScoredResponse], **_: Any
    ) -> dict[str, dict[str, Tensor]]:
        """Return the columns of each module that has a response.

        Args:
            rl_module: the modules.
            batch: columns (B, ...) of earlier connectors, by module. They stay, as with RLlib's own connectors.
            episodes: the responses. Rows are in their order.

        Raises:
            UserError: earlier connectors left no response, or a column that has not one row per response.
        """
        if not episodes:
            raise UserError("learner_connector: its connectors left no response to learn from")
        by_module: dict[str, list[ScoredResponse]] = {}
        for each in episodes:
            by_module.setdefault(each.module, []).append(each)
        found = {}
        for module, responses in by_module.items():
            device = next(rl_module[module].parameters()).device
            columns = {**padded_batch(responses), **batch.get(module, {})}
            for name, column in columns.items():
                if len(column) != len(responses):
                    raise UserError(f"learner_connector: column {name!r} has {len(column)} rows, not {len(responses)}")
            shape, expected = columns[Column.ADVANTAGES].shape, columns[Column.RESPONSE_MASK].shape
            if shape != expected:
                raise UserError(
                    f"learner_connector: column 'advantages' has shape {tuple(shape)}, not {tuple(expected)}"
                )
            found[module] = {name: column.to(device) for name, column in columns.items()}
        return found


def batch_loss(config: Any, batch: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> LossParts:
    """Return the loss of a batch; see `grpo_loss`.

    Args:
        config: of the module.
        batch: its columns.
        found: outputs of `forward_train`.
    """
    sampled = batch[Column.SAMPLED_LOG_PROBS]
    old = batch.get(Column.OLD_LOG_PROBS, sampled)
    return grpo_loss(
        log_probs=found[Column.LOG_PROBS],
        old_log_probs=old,
        importance=importance_weights(old, sampled, config.tis_cap) if config.tis_cap else None,
        reference_log_probs=found.get(Column.REFERENCE_LOG_PROBS),
        entropy=found.get(Column.ENTROPY),
        advantages=batch[Column.ADVANTAGES],
        mask=batch[Column.RESPONSE_MASK],
        token_weight=batch[Column.TOKEN_WEIGHT],
        settings=config,
    )


class GRPOTorchLearner(TorchLearner):  # type: ignore[misc]  # Ray has no types
    """Trains each module on its own responses."""

    def build(self) -> None:
        """Build modules and optimisers. From then on the time limit on waiting holds; loading may take longer."""
        self._of_loss: dict[str, float] = {}  # figures of the losses of one optimiser step
        device = get_device(self.config, self.config.num_gpus_per_learner)
        if device.type == "cuda":
            torch.cuda.set_device(device)  # Ray's; a mesh would guess one from the rank, wrong if nodes differ in size
        super().build()
        if self.config.num_learners > 1:
            _set_pg_timeout(timedelta(seconds=self.config.learner_timeout_s))
        if self.config.num_learners:
            gc.freeze()  # as in `GRPO.setup`

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """Register AdamW over the trained parameters, without the reference."""
        module = self._module[module_id]
        params = [parameter for parameter in module.parameters() if parameter.requires_grad]
        optimizer = torch.optim.AdamW(params, betas=(0.9, 0.999), weight_decay=config.weight_decay)
        self.register_optimizer(module_id=module_id, optimizer=optimizer, params=params, lr_or_lr_schedule=config.lr)

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Load a state, also an older one. RLlib's own method ignores weights with a lower number."""
        if WEIGHTS_SEQ_NO in state:
            self._weights_seq_no = 0
        super().set_state(state)

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: Batch, fwd_out: Mapping[str, Tensor]
    ) -> Tensor:
        """Return the loss of a part of an optimiser step; see `grpo_loss`.

        The losses of all parts and learners are added up. So what a derived class adds must be a sum over tokens,
        weighted by `batch["token_weight"]` (B,) and `batch["response_mask"]` (B, R).
        """
        found = batch_loss(config, batch, fwd_out)
        _accumulate(self._of_loss, _figures(found))
        return found.loss

    def _update(self, batch: Mapping[str, Batch], **_: Any) -> tuple[dict[str, Any], dict[str, Tensor], dict[str, Any]]:
        """Run all epochs over the batch. RLlib's own minibatches would train the smaller module more often."""
        losses = {}
        if not self.config.offload_parameters:
            self._move_optimizers(self._device)
        for module_id in sorted(batch):
            config = self.config.get_config_for_module(module_id)
            step = self._weights_seq_no - 1  # number of updates so far, part of the state
            lr = config.lr * lr_factor(step, warmup_steps=config.warmup_steps, total_steps=config.total_steps)
            for group in self.get_optimizer(module_id).param_groups:
                group["lr"] = lr
            self.metrics.log_value((module_id, "learning_rate"), lr, window=1)
            steps = self._steps(module_id, config, batch[module_id])
            sums: dict[str, float] = {}
            for number, parts in enumerate(steps * config.epochs_per_step):
                _accumulate(sums, self._step(module_id, config, parts, is_first=number == 0))
            n_steps = len(steps) * config.epochs_per_step
            for name, value in sums.items():
                mean = value if name in _MAXIMA | _OF_FIRST_STEP else value / n_steps
                self.metrics.log_value((module_id, name), mean, window=1)
            losses[module_id] = torch.tensor(sums["loss"] / n_steps)
        if self.config.offload_optimizer:
            self._move_optimizers("cpu")
        if self.config.placement == "colocated" and torch.cuda.is_available():
            torch.cuda.empty_cache()  # PyTorch would keep what the engine of this device is to use
        return {}, losses, {}

    def _move_optimizers(self, device: torch.device | str) -> None:
        """Move the states of AdamW to a device; a state that is there already stays."""
        for module_id in sorted(self.module.keys()):
            for _, optimizer in self.get_optimizers_for_module(module_id):
                for state in optimizer.state.values():
                    state |= {name: state[name].to(device) for name in ("exp_avg", "exp_avg_sq") if name in state}

    def _steps(self, module_id: str, config: Any, batch: Batch) -> list[list[dict[str, Tensor]]]:
        """Return the parts of each optimiser step of an epoch.

        With `old_log_probs = "learner"` those of later steps hold these; the first step's own passes compute the same
        ones. Each epoch has the same parts, so the first ratios are exactly 1.
        """
        module = self._module[module_id].unwrapped()  # DDP's own forward pass would wait for the other learners
        limits = config.micro_batch_size, config.micro_batch_tokens
        budget = Budget(*limits, module.computes_prompts_once, module.settings.packing)
        numbers = batch[Column.MINIBATCH]
        steps = [
            micro_batches({name: column[numbers == number] for name, column in batch.items()}, budget)
            for number in numbers.unique().tolist()
        ]
        if config.old_log_probs == "learner" and len(steps) > 1:
            parts = list(chain.from_iterable(steps[1:]))
            for part in parts:
                part[Column.OLD_LOG_PROBS] = module.log_probs(part)
            if module.settings.sharded:  # each pass gathers parameters from all learners
                for _ in range(self._max_over_learners(len(parts)) - len(parts)):
                    module.log_probs(nothing_of(parts[0]))
        return steps

    def _step(
        self, module_id: str, config: Any, parts: Sequence[dict[str, Tensor]], *, is_first: bool = False
    ) -> dict[str, float]:
        module = self._module[module_id]
        optimizer = self.get_optimizer(module_id)
        optimizer.zero_grad(set_to_none=True)
        n_passes = self._max_over_learners(len(parts))
        found: dict[str, float] = {}
        self._of_loss = found
        for number in range(n_passes):
            part = parts[number] if number < len(parts) else nothing_of(parts[0])
            with self._synced(module, is_last=number == n_passes - 1):
                forward = module(part)
                if config.old_log_probs == "learner":
                    part.setdefault(Column.OLD_LOG_PROBS, forward[Column.LOG_PROBS].detach())
                losses = self.compute_losses(fwd_out={module_id: forward}, batch={module_id: part})
                (losses[module_id] * max(self.config.num_learners, 1)).backward()
            gap = _gap_figures(config, part, forward) if is_first else {}
            _accumulate(found, {"loss": float(losses[module_id].detach()), **gap})
        params = self._optimizer_parameters[optimizer]
        norm = clip_gradients([self._params[each] for each in params], config.grad_clip or math.inf)
        found = {**self._over_all_learners(found), "grad_norm": norm}
        if not (math.isfinite(found["loss"]) and math.isfinite(found["grad_norm"])):
            optimizer.zero_grad(set_to_none=True)
            raise NotFinite(
                f"stopped: the loss of {module_id!r} is {found['loss']} and its gradient's norm {found['grad_norm']}; "
                "this step changed nothing, the last checkpoint is good; a lower training.lr or grad_clip may help"
            )
        if is_first:
            found["sampler_ess"] = found.pop("sampler_ratio") ** 2 / max(found.pop("sampler_squared_ratio"), 1e-30)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)  # frees the gradients before the next module has its own
        return found

    def _max_over_learners(self, n: int) -> int:
        """Return the largest `n` of all learners: all must run the same number of backward passes."""
        if self.config.num_learners <= 1:
            return n
        largest = torch.tensor(n, device=self._device)
        torch.distributed.all_reduce(largest, op=torch.distributed.ReduceOp.MAX)
        return int(largest)

    def _over_all_learners(self, found: Mapping[str, float]) -> dict[str, float]:
        """Return the figures of the whole batch, the same on each learner, from those of each learner's rows."""
        if self.config.num_learners <= 1:
            return dict(found)
        values = torch.tensor([found[name] for name in sorted(found)], dtype=torch.float32, device=self._device)
        largest = values.clone()
        torch.distributed.all_reduce(values, op=torch.distributed.ReduceOp.SUM)
        torch.distributed.all_reduce(largest, op=torch.distributed.ReduceOp.MAX)
        both = zip(sorted(found), values.tolist(), largest.tolist(), strict=True)
        return {name: maximum if name in _MAXIMA else total for name, total, maximum in both}

    def _make_modules_ddp_if_necessary(self) -> None:
        """Wrap modules in DDP unless they are sharded."""
        if not self.config.is_sharded:
            super()._make_modules_ddp_if_necessary()

    def _map_module_to_device(self, module: Any) -> None:
        """Shard modules on one base, and move all to the device, unless parts are in the host's memory."""
        shard_together(module.values())
        if not self.config.offload_parameters:
            super()._map_module_to_device(module)

    def _synced(self, module: Any, *, is_last: bool) -> contextlib.AbstractContextManager[Any]:
        """Return a context that exchanges gradients with other learners only in the last backward pass of a step.

        Sharded modules exchange them in each, since whole gradients would not fit.
        """
        no_sync = getattr(module, "no_sync", None)
        return contextlib.nullcontext() if is_last or no_sync is None else no_sync()


def _accumulate(totals: dict[str, float], figures: Mapping[str, float]) -> None:
    """Add figures to totals; for those in `_MAXIMA`, keep the maximum."""
    for name, value in figures.items():
        so_far = totals.get(name, 0.0)
        totals[name] = max(so_far, value) if name in _MAXIMA else so_far + value


def _figures(parts: LossParts) -> dict[str, float]:
    found = {each.name: float(getattr(parts, each.name)) for each in fields(parts) if each.name != "loss"}
    return {"policy_loss": found.pop("policy"), **found}


def _gap_figures(config: Any, batch: Batch, found: Mapping[str, Tensor]) -> dict[str, float]:
    gap = sampler_gap(
        found[Column.LOG_PROBS],
        batch[Column.SAMPLED_LOG_PROBS],
        batch[Column.RESPONSE_MASK],
        batch[Column.TOKEN_WEIGHT],
        config.tis_cap,
    )
    return {f"sampler_{each.name}": float(getattr(gap, each.name)) for each in fields(gap)}


def lr_factor(step: int, *, warmup_steps: int, total_steps: int | None) -> float:
    """Return the factor of the learning rate, in [0, 1].

    Args:
        step: number of the iteration, from 0.
        warmup_steps: iterations of the warm-up; the first has the factor 1/warmup_steps, the last 1.
        total_steps: iterations after which the factor is 0; None: it stays 1.
    """
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    if total_steps is None:
        return 1.0
    progress = (step - warmup_steps) / max(1, total_steps - warmup_steps)
    return 0.5 * (1.0 + math.cos(math.pi * min(progress, 1.0)))
