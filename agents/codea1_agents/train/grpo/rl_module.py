"""A causal language model as an RLModule: it gives the learner token log-probabilities, and others its weights.

The `model_config` of its spec is the result of `ModelSettings.to_dict`. The frozen reference is not part of the state:
learners load it. With adapters, the reference is the model with its adapters off, and the state holds only the
adapters. With `ModelSettings.sharded`, each learner holds a part of the model and of the reference; see `sharded`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import InferenceOnlyAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from torch import Tensor

from codea1_agents.models.chat_format import ChatFormat, load_tokenizer
from codea1_agents.models.model_files import adapter_digest, model_digest, no_progress_bars, require_model
from codea1_agents.models.sampling import SamplingRules, sample_responses
from codea1_agents.prompts import Message
from codea1_agents.train.grpo.batch import Column
from codea1_agents.train.grpo.causal_models import (
    ADAPTER,
    Abilities,
    FrozenBase,
    ResponsePass,
    TokenFigures,
    adapted,
    autocast,
    checkpoint_activations,
    empty_causal_model,
    frozen_base,
    is_first_learner,
    leave_casts_to_autocast,
    load_causal_model,
    load_generation_config,
    mesh_of_learners,
    part_of,
    peft_tensors,
    policies_of,
    save_plain,
    set_attention,
    sharded,
    untied,
    whole_tensor,
)
from codea1_agents.train.grpo.settings import ModelSettings
from codea1_agents.train.grpo.weights import array_of, copy_into, tensor_of
from codea1_env.errors import UserError

_LOG = logging.getLogger(__name__)


@no_progress_bars()
def export_state(
    settings: ModelSettings, state: Mapping[str, Any], folder: str | Path, *, file_size: str = "1GB"
) -> None:
    """Write a module's state as a plain folder of `transformers`, with its tokenizer.

    Without adapters nothing is held in memory beside the state but one file of it.

    Args:
        settings: with which the module was trained. The state may hold only its adapters.
        state: result of `CausalLMModule.get_state`, e.g. from a checkpoint or a learner.
        folder: is created if it is missing.
        file_size: of the largest file, unless a single weight is larger.

    Raises:
        UserError: there is no model any more at the path in the settings.
        ValueError: the state is that of another model.
    """
    if settings.lora is None:
        (model,) = _empty(settings)
        _require_state_of(model, state)
        model.generation_config = load_generation_config(settings.path) or model.generation_config
        tensors = {name: tensor_of(array, copies=False) for name, array in state.items()}
        model.save_pretrained(str(folder), state_dict=tensors, max_shard_size=file_size)
    else:
        model = _build(settings, "float32")
        _copy_state(model, state)
        save_plain(model, folder)
    load_tokenizer(require_model("grpo", settings.path)).save_pretrained(str(folder))


def export_adapter(settings: ModelSettings, state: Mapping[str, Any], folder: str | Path) -> None:
    """Write a module's adapter as a folder of peft, with the tokenizer and the digest of the model under it.

    `transformers` loads it where peft is installed, and so does the agent `transformers`.

    Args:
        settings: with which the module was trained.
        state: result of `CausalLMModule.get_state`.
        folder: is created if it is missing.

    Raises:
        UserError: all weights of the module were trained, or the model under the adapter is gone.
        ValueError: the state is that of another model.
    """
    from safetensors.torch import save_file  # noqa: PLC0415  comes with transformers

    if settings.lora is None:
        raise UserError(f"{settings.path}: all of its weights were trained, so there is no adapter to export alone")
    (model,) = _empty(settings)
    _require_state_of(model, state)
    place = require_model("grpo", settings.path)
    config = model.peft_config[ADAPTER]
    config.base_model_name_or_path = str(Path(place).absolute()) if Path(place).is_dir() else place
    config.inference_mode = True
    config.save_pretrained(str(folder))
    tensors = peft_tensors({name: tensor_of(array) for name, array in state.items()})
    own = adapter_digest(Path(folder), {name: tensor.numpy() for name, tensor in tensors.items()})
    about = {"format": "pt", "base_digest": model_digest(place), "adapter_digest": own}
    save_file(tensors, Path(folder, "adapter_model.safetensors"), about)
    load_tokenizer(place).save_pretrained(str(folder))


def _build(settings: ModelSettings, dtype: str) -> Any:
    if settings.lora is None:
        return load_causal_model(settings.path, dtype=dtype)
    if settings.shares_base:
        model = frozen_base(settings.path, dtype, on_gpu=settings.on_gpu).new_model()
    else:
        model = load_causal_model(settings.path, dtype=dtype)
    return adapted(model, settings.lora)


def _empty(*settings: ModelSettings, dtype: str = "float32") -> list[Any]:
    """Return models without memory: one without adapters, or several with adapters around the same parameters."""
    with torch.device("meta"):
        model = empty_causal_model(settings[0].path, dtype)
        if settings[0].lora is None:
            return [model]
        base = FrozenBase(model)
        return [adapted(base.new_model(), each.lora) for each in settings if each.lora is not None]


def _parts_of(models: Sequence[ModelSettings], prepare: Sequence[Callable[[Any], object]]) -> list[ResponsePass]:
    """Return this learner's parts of models; if there are several, of adapters on one base."""
    first = models[0]
    return sharded(
        lambda: [_build(each, first.base_dtype) for each in models],
        lambda: _empty(*models, dtype=first.base_dtype),
        mesh_of_learners(),
        prepare=prepare,
        policies=policies_of(first.gathering_dtype, is_offloaded=first.offloaded),
    )


def _only_adapter(settings: ModelSettings) -> Any:
    """Return a model whose adapter waits for its weights, on a base without memory, which an engine has."""
    model = _empty(settings)[0].requires_grad_(False)
    model.generation_config = load_generation_config(settings.path) or model.generation_config
    for layer in model.modules():
        if hasattr(layer, "get_delta_weight"):
            layer.lora_A.to_empty(device="cpu")
            layer.lora_B.to_empty(device="cpu")
    return model


class CausalLMModule(TorchRLModule, InferenceOnlyAPI):  # type: ignore[misc]  # Ray has no types
    """The policy of one role."""

    def setup(self) -> None:
        """Load the model, and the reference if the loss needs one."""
        self.settings = settings = ModelSettings(**self.model_config)
        self._dtype = settings.sampling_dtype if self.inference_only else settings.base_dtype
        if self.inference_only and settings.rollout_engine == "vllm" and settings.lora is not None:
            self.model = _only_adapter(settings)
            return
        if self.inference_only:
            self.model = _build(settings, self._dtype).requires_grad_(False)
            set_attention(self.model, self.settings.attention)
            return
        if not settings.is_sharded_with_others:  # `shard_together` does it for these
            self._hold(self._pass(self._prepare))
        self.reference = None
        if settings.with_reference and settings.lora is None:
            self.reference = self._pass(self._prepare_reference)

    def _hold(self, policy: ResponsePass) -> None:
        self.policy, self.model = policy, policy.model
        if self.settings.packing and not self.policy.abilities.packs:
            raise UserError(
                f"packing: {self.settings.path} does not compute several responses in one row as each alone"
            )
        if self.settings.prompt_once and not self.computes_prompts_once:
            why = "the model's cache cannot be repeated"
            if self.settings.gradient_checkpointing:
                why = "gradient_checkpointing keeps no cache; training.packing needs none"
            _LOG.warning("%s: each response computes its prompt anew, as %s", self.settings.path, why)

    def _pass(self, prepare: Callable[[Any], object]) -> ResponsePass:
        """Return the model whole, or this learner's part of it."""
        if self.settings.sharded:
            return _parts_of([self.settings], [prepare])[0]
        model = _build(self.settings, self._dtype)
        abilities = Abilities.of(model)
        prepare(model)
        return ResponsePass(model, abilities)

    def _prepare(self, model: Any) -> None:
        set_attention(model, self.settings.attention)
        if self.settings.autocast:
            leave_casts_to_autocast(model)
        if self.settings.gradient_checkpointing:
            checkpoint_activations(model)

    def _prepare_reference(self, model: Any) -> None:
        set_attention(model, self.settings.attention)
        model.requires_grad_(False)

    @property
    def computes_prompts_once(self) -> bool:
        """Whether responses to one prompt share its computation."""
        settings = self.settings
        is_cached = self.policy.abilities.repeats_prompts and not settings.gradient_checkpointing
        return settings.prompt_once and (settings.packing or is_cached)

    def get_non_inference_attributes(self) -> list[str]:
        """Return the names of the attributes that samplers do not need."""
        return ["policy", "reference"]

    def train(self, mode: bool = True) -> CausalLMModule:
        """Keep dropout off: the learner must compute the log-probabilities that the sampler had."""
        super().train(False)
        self.training = mode
        if mode and self.settings.gradient_checkpointing and not self.inference_only:
            self.model.train()  # `transformers` checkpoints in this mode only; these models have no dropout
        return self

    @cached_property
    def chat(self) -> ChatFormat:
        """The model's tokenizer and chat template."""
        settings = self.settings
        chat = ChatFormat(load_tokenizer(settings.path), settings.path, settings.template_arguments)
        chat.require_embedding_of(self.model)
        return chat

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """Ids of the tokens that end a reply."""
        return self.chat.ends(self.model.generation_config)

    def generate(self, text: str, *, max_tokens: int = 512) -> str:
        """Return the greedy reply to a user's message; not of a sharded module, which holds a part of the weights."""
        prompts = [self.chat.prompt_ids([Message("user", text)])]
        (tokens,) = self.forward_inference({Columns.OBS: prompts}, max_tokens=max_tokens)[Columns.ACTIONS]
        return self.chat.reply(tokens)

    def _forward_inference(self, batch: Mapping[str, Any], **sampling: Any) -> dict[str, Any]:
        """Return replies of the most probable tokens; see `_forward_exploration`."""
        return self._forward_exploration(batch, **sampling, temperature=0.0)

    def _forward_exploration(
        self, batch: Mapping[str, Any], *, seed: int = 0, temperature: float | None = None, **sampling: Any
    ) -> dict[str, Any]:
        """Return sampled replies: `actions`, rows of token ids, and `action_logp`, the log-probability of each token.

        Args:
            batch: `obs`: prompts, rows of token ids.
            seed: of all rows.
            temperature: None: that of the training.
            sampling: further fields of `SamplingRules`.
        """
        if self.model.device.type == "meta":
            raise UserError(
                f"{self.settings.path}: only the engine vLLM of this runner has the weights under the adapter"
            )
        prompts = batch[Columns.OBS]
        rules = SamplingRules(temperature=self.settings.temperature if temperature is None else temperature, **sampling)
        seeds = [(seed, row) for row in range(len(prompts))]
        responses = sample_responses(self.model, prompts, seeds, end_tokens=self.ends, rules=rules)
        return {
            Columns.ACTIONS: [each.tokens for each in responses],
            Columns.ACTION_LOGP: [each.log_probs for each in responses],
        }

    def _forward_train(self, batch: Mapping[str, Tensor], **_: Any) -> dict[str, Tensor]:
        """Return log-probabilities of the response's tokens, those of the reference, and entropies, each (B, R)."""
        own = self._figures(self.policy, batch, entropy_gradient=self.settings.entropy_bonus)
        columns: dict[str, Tensor] = {Column.LOG_PROBS: own.log_probs, Column.ENTROPY: own.entropy}
        if self.settings.with_reference:
            with torch.no_grad(), self._as_loaded() as reference:
                columns[Column.REFERENCE_LOG_PROBS] = self._figures(reference, batch).log_probs
        return columns

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def log_probs(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Return the log-probabilities (B, R) of the response's tokens, without gradient."""
        return self._figures(self.policy, batch).log_probs

    @contextlib.contextmanager
    def _as_loaded(self) -> Iterator[ResponsePass]:
        """Yield the model as it was loaded."""
        if self.reference is not None:
            yield self.reference
        else:
            with self.model.disable_adapter():
                yield self.policy

    def _figures(
        self, model: ResponsePass, batch: Mapping[str, Tensor], *, entropy_gradient: bool = False
    ) -> TokenFigures:
        with autocast(batch[Column.PROMPT_IDS].device, self.settings.autocast):
            found: TokenFigures = model(
                dict(batch),
                prompt_once=self.computes_prompts_once,
                packed=self.settings.packing,
                in_step=self.settings.sharded,
                logits_chunk_tokens=self.settings.logits_chunk_tokens,
                temperature=self.settings.temperature,
                entropy_gradient=entropy_gradient,
            )
            return found

    # State for samplers and checkpoints

    def get_state(self, *_: Any, inference_only: bool = False, **__: Any) -> dict[str, Any]:
        """Return the trained weights as copied arrays, tied ones once; see `weights.array_of`.

        With `inference_only` the state is empty: `GRPO.sync_runners` sends weights to samplers, in pieces. The state
        of a sharded model is gathered: all learners must call this at the same time, and only the first gets it.
        """
        if inference_only:
            return {}
        whole = ((name, whole_tensor(tensor.detach())) for name, tensor in untied(self.model).items())
        return {
            name: array_of(tensor.clone()) for name, tensor in whole if is_first_learner() or not self.settings.sharded
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Load weights from `get_state`, converted to the data type of this module.

        Raises:
            ValueError: the state is that of another model.
        """
        _copy_state(self.model, state)


def shard_together(modules: Iterable[CausalLMModule]) -> None:
    """Give each module on a base that learners shard its policy; the parts of the base are those of all of them.

    One root of the sharding has all modules that share parameters, so none can be made before the last is known.
    """
    on_base = [each for each in modules if each.settings.is_sharded_with_others]
    if on_base:
        policies = _parts_of([each.settings for each in on_base], [each._prepare for each in on_base])
        for module, policy in zip(on_base, policies, strict=True):
            module._hold(policy)


def _require_state_of(model: Any, state: Mapping[str, Any]) -> None:
    own = untied(model)
    odd = own.keys() ^ state.keys()
    odd |= {name for name in own.keys() & state.keys() if own[name].shape != tensor_of(state[name], copies=False).shape}
    if odd:
        raise ValueError(f"these are weights of another model: {', '.join(sorted(odd)[:3])} and others differ")


def _copy_state(model: Any, state: Mapping[str, Any]) -> None:
    _require_state_of(model, state)
    for name, tensor in untied(model).items():
        copy_into(tensor, part_of(tensor_of(state[name]), tensor))
