"""Causal language models of `transformers` as trainings load, adapt, run and shard them. Needs no Ray.

**Adapters** of low rank are those of `peft`.

**Forward passes** over prompts and responses: a group of responses has one prompt. Where the model's cache allows it,
the prompt is computed once, and its keys and values are repeated for each response, with gradients. Packed, all tokens
of a pass are one row in which each response sees its own prompt only; that needs no cache, which checkpointed layers do
not have. Log-probabilities and entropies are computed from hidden states some tokens at a time: the logits of one
response of 4,096 tokens at a vocabulary of 152,000 take 2.5 GB, and several times that with their gradients. The
backward pass computes them again, unless the output layer is frozen.

**Sharding**: each learner holds its part of every parameter (FSDP2 of PyTorch), gathered when it is needed. The root of
the sharding runs a `ResponsePass`, whose forward pass computes prompts, responses and logits in pieces. Backbone and
output layer called apart would mix gathered and sharded tensors. Models on one base have one root.
"""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.utils import clip_grad_norm_, get_total_norm
from torch.utils.checkpoint import checkpoint
from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

from codea1_agents.models.model_files import loading_errors, model_digest, no_progress_bars, require_model
from codea1_agents.models.processor_attention import NAME, Part
from codea1_agents.train.grpo.batch import Column
from codea1_agents.train.grpo.settings import LoraSettings
from codea1_env.errors import UserError, extra_needed

ADAPTER = "default"
"""Peft's name of a model's adapter."""


@no_progress_bars()
def load_causal_model(path: str, dtype: str = "float32") -> Any:
    """Return a causal language model in evaluation mode.

    Raises:
        UserError: there is no model, or it cannot be loaded.
    """
    from transformers import AutoModelForCausalLM  # noqa: PLC0415  -- slow to import

    place = require_model("grpo", path, is_trained=True)
    with loading_errors(f"model {path!r}"):
        return AutoModelForCausalLM.from_pretrained(place, dtype=getattr(torch, dtype)).eval()


class FrozenBase:
    """The weights of a model under several adapters. They are in a process once, as nothing ever changes them.

    Each adapter gets a model of its own, which has its own layers around the same tensors. So no adapter is switched on
    or off for another one: what belongs to a model, such as its mode, its attention and which of its parameters have
    gradients, does not depend on what the others do.

    Args:
        model: without adapters.
    """

    def __init__(self, model: Any) -> None:
        self._model = model.requires_grad_(False)

    def new_model(self) -> Any:
        """Return a model with the tensors of this one, which keeps them known to the process."""
        model = copy.deepcopy(self._model, {id(weight): weight for weight in self._model.parameters()})
        model.frozen_base = self
        return model


_BASES: WeakValueDictionary[tuple[str, str, bool], FrozenBase] = WeakValueDictionary()


def frozen_base(path: str, dtype: str, *, on_gpu: bool = False) -> FrozenBase:
    """Return the weights of a model that this process has, or load them. They stay as long as a model uses them.

    Args:
        path: a directory or hub id.
        dtype: of the weights.
        on_gpu: whether they are to be on a GPU; moving one model moves the weights of all.

    Raises:
        UserError: there is no model, or it cannot be loaded.
    """
    key = f"{path}:{model_digest(path)}", dtype, on_gpu
    base = _BASES.get(key)
    if base is None:
        base = _BASES[key] = FrozenBase(load_causal_model(path, dtype))
    return base


def empty_causal_model(path: str, dtype: str = "float32") -> Any:
    """Return the same model as `load_causal_model`, with parameters on the current device that hold nothing yet."""
    from transformers import AutoConfig, AutoModelForCausalLM  # noqa: PLC0415  -- slow to import

    with loading_errors(f"model {path!r}"):
        config = AutoConfig.from_pretrained(require_model("grpo", path))
        return AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype)).eval()


def load_generation_config(path: str) -> Any:
    """Return the settings of generation that come with a model; None if none do."""
    from transformers import GenerationConfig  # noqa: PLC0415  -- slow to import

    try:
        return GenerationConfig.from_pretrained(require_model("grpo", path))
    except OSError:
        return None


def autocast(device: torch.device | str, dtype: str) -> torch.autocast:
    """Return a context that computes in a data type, such as `bfloat16`; empty: in the types of the tensors."""
    return torch.autocast(torch.device(device).type, dtype=getattr(torch, dtype or "float32"), enabled=bool(dtype))


def set_attention(model: Any, implementation: str) -> None:
    """Choose how a model computes its attention; empty: as it does.

    Raises:
        BrokenInput: there is no such implementation for it on this machine.
    """
    if implementation:
        base = without_wrapper(model)
        with loading_errors(f"attention={implementation!r}"):
            base.set_attn_implementation(implementation)


def checkpoint_activations(model: Any) -> None:
    """Let a model compute its activations again in the backward pass, while it is in training mode."""
    base = without_wrapper(model)
    renamed = getattr(base, "activation_checkpointing_enable", None)
    if renamed is not None:
        renamed(activation_checkpointing_kwargs={"use_reentrant": False})
    else:  # its name in older versions
        base.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})


def adapted(model: Any, lora: LoraSettings) -> Any:
    """Return the model with adapters. Only these have gradients; the outputs stay the same.

    Raises:
        MissingExtra: peft is not installed.
        UserError: the model has no such layers, or an adapted weight is tied.
    """
    peft = load_peft()
    config = peft.LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=0.0,  # the learner must compute the log-probabilities that the sampler had
        target_modules=list(lora.target_modules),
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)  # peft uses it
        warnings.filterwarnings("ignore", "Model has `tie_word_embeddings=True`", UserWarning)  # refused below
        torch.manual_seed(lora.seed)
        try:
            found = peft.get_peft_model(model, config)
        except ValueError as error:
            raise UserError(f"lora: {' '.join(str(error).split())[:200]}") from error
    base, names = found.get_base_model(), [f".{each}" for each in found.base_model.targeted_module_names]
    for target in lora.target_modules:
        if not any(each.endswith(f".{target}") for each in names):
            raise UserError(f"lora: target_modules: no layer is named {target!r}, which would have no adapter")
    uses = Counter(id(parameter) for _, parameter in base.named_parameters(remove_duplicate=False))
    for name, layer in base.named_modules():
        if hasattr(layer, "get_delta_weight") and uses[id(layer.get_base_layer().weight)] > 1:
            raise UserError(f"lora: {name} shares its weight with another layer, which an adapter would not change")
    return found


def leave_casts_to_autocast(model: Any) -> None:
    """Let adapters read states as they are. Peft converts each to float32, which autocast converts back."""
    for layer in model.modules():
        if hasattr(layer, "get_delta_weight"):
            layer.cast_input_dtype_enabled = False


def load_peft() -> Any:
    """Return the package that makes adapters.

    Raises:
        MissingExtra: it is not installed.
    """
    with extra_needed("LoRA", "lora"):
        import peft  # noqa: PLC0415  an extra
    return peft


def is_adapted(model: Any) -> bool:
    """Whether a model has adapters."""
    return hasattr(model, "disable_adapter")


def untied(model: Any) -> dict[str, Tensor]:
    """Return the tensors of a state, tied ones once: all parameters and buffers, or the adapters' only."""
    found: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if is_adapted(model) and ".lora_" not in name:
            continue
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found[name] = tensor
    return found


def without_wrapper(model: Any) -> Any:
    """Return the model that peft has wrapped, whose layers keep the adapters; a model without adapters as it is."""
    return model.get_base_model() if is_adapted(model) else model


def plain_tensors(model: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield weights with their names in a HuggingFace folder, tied ones once. Adapters are merged into copies, one at a
    time."""
    if not is_adapted(model):
        yield from ((name, tensor.detach()) for name, tensor in untied(model).items())
        return
    base = model.get_base_model()
    layers = {name: layer for name, layer in base.named_modules() if hasattr(layer, "get_delta_weight")}
    seen: set[int] = set()
    for name, tensor in base.state_dict().items():
        if ".lora_" in name or tensor.data_ptr() in seen:
            continue
        seen.add(tensor.data_ptr())
        place, is_wrapped, rest = name.partition(".base_layer.")
        plain = f"{place}.{rest}" if is_wrapped else name
        yield plain, _merged(layers[place], tensor) if is_wrapped and rest == "weight" else tensor


def peft_tensors(tensors: Mapping[str, Tensor], scale: float = 1.0) -> dict[str, Tensor]:
    """Return an adapter's tensors with their names in a file of peft; those of `lora_B` times a scale."""
    return {
        name.replace(f".{ADAPTER}.", "."): tensor.detach().cpu() * (scale if ".lora_B." in name else 1.0)
        for name, tensor in tensors.items()
    }


def save_plain(model: Any, folder: str | Path) -> None:
    """Write a model, with or without adapters, as a plain folder of `transformers`."""
    without_wrapper(model).save_pretrained(
        str(folder), state_dict={name: tensor.cpu().contiguous() for name, tensor in plain_tensors(model)}
    )


def _merged(layer: Any, weight: Tensor) -> Tensor:
    with torch.no_grad():
        return weight + layer.get_delta_weight(ADAPTER).to(weight.dtype)


_REPEATABLE = (DynamicLayer, DynamicSlidingWindowLayer)  # others are recurrent, compressed or indexed


@dataclass(frozen=True, slots=True)
class Abilities:
    """Which savings a model allows."""

    has_plain_head: bool
    """Whether its logits are what its output layer makes of its last hidden states. Some models change them afterwards,
    by a soft cap or a scale."""
    repeats_prompts: bool
    """Whether its cache of a prompt can be repeated for several responses."""
    packs: bool
    """Whether it computes several responses in one row as each alone, under a mask of pairs of tokens."""
    attends_in_parts: bool
    """Whether it also does so by `processor_attention`, which processors compute faster."""

    @classmethod
    def of(cls, model: Any) -> Abilities:
        """Return the abilities of a model, which computes two tokens."""
        base = without_wrapper(model)
        given = {"input_ids": torch.arange(2, device=base.device).unsqueeze(0)}
        with torch.no_grad():
            packs = _packs(base, given)
            in_parts = packs and _attends_in_parts(base, given)
            return cls(_has_plain_head(base, given), _repeats_prompts(base, given), packs, in_parts)


class TokenFigures(NamedTuple):
    """Figures of the tokens of B responses, padded to R; 0 on padding."""

    log_probs: Tensor
    """(B, R) float32."""
    entropy: Tensor
    """(B, R) float32, in nats."""


class ResponsePass(torch.nn.Module):  # type: ignore[misc]  # torch is not read
    """A model, with or without adapters, whose forward pass returns the figures of the responses' tokens."""

    def __init__(self, model: Any, abilities: Abilities) -> None:
        super().__init__()
        self.model = model
        self.abilities = abilities
        if abilities.attends_in_parts:
            without_wrapper(model).set_attn_implementation(NAME)

    def forward(
        self,
        batch: Mapping[str, Tensor],
        *,
        prompt_once: bool,
        packed: bool = False,
        in_step: bool = False,
        **settings: Any,
    ) -> TokenFigures:
        """Return the figures of the responses' tokens.

        Args:
            batch: the columns of prompts and responses.
            prompt_once: whether each distinct prompt is computed once.
            packed: whether all tokens are one row.
            in_step: whether any batch takes the same number of passes, as learners of a sharded model must.
            settings: of `token_figures`.
        """
        is_plain = self.abilities.has_plain_head
        head = without_wrapper(self.model).get_output_embeddings() if is_plain else torch.nn.Identity()
        numbers, which = batch[Column.PROMPT_NUMBER].unique(return_inverse=True)
        if packed:
            states = self._in_one_row(batch, which if prompt_once else torch.arange(len(which), device=which.device))
        elif not prompt_once or (len(numbers) == len(which) and not in_step):
            states = self._of_whole_rows(batch)
        else:
            states = self._after_prompts(batch, which)
        return token_figures(states, head, batch[Column.RESPONSE_IDS], batch[Column.RESPONSE_MASK], **settings)

    def _of_whole_rows(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Return what predicts each token of the responses: hidden states (B, R, H), or logits (B, R, V).

        They are logits if the model has no plain head.
        """
        ids = torch.cat([batch[Column.PROMPT_IDS], batch[Column.RESPONSE_IDS]], dim=-1)
        mask = torch.cat([batch[Column.PROMPT_MASK], batch[Column.RESPONSE_MASK]], dim=-1)
        return self._last(batch[Column.RESPONSE_IDS].shape[-1] + 1, ids, mask, use_cache=False)[:, :-1]

    def _after_prompts(self, batch: Mapping[str, Tensor], which: Tensor) -> Tensor:
        """Return the same: compute each distinct prompt once, then the responses.

        Args:
            batch: of B rows.
            which: (B,), number of each row's prompt among the distinct ones.
        """
        first = _one_row_of_each(which)
        cache = DynamicCache(config=without_wrapper(self.model).config)
        prompts, mask = batch[Column.PROMPT_IDS][first], batch[Column.PROMPT_MASK][first]
        of_prompts = self._last(1, prompts, mask, use_cache=True, past_key_values=cache)
        n_tokens = batch[Column.RESPONSE_IDS].shape[1]
        n_predicting = max(n_tokens - 1, 1)  # the last token predicts nothing
        ids = batch[Column.RESPONSE_IDS][:, :n_predicting]
        cache.reorder_cache(which)
        mask = torch.cat([batch[Column.PROMPT_MASK], batch[Column.RESPONSE_MASK][:, :n_predicting]], dim=-1)
        of_tokens = self._last(n_predicting, ids, mask, use_cache=True, past_key_values=cache)
        return torch.cat([of_prompts[which], of_tokens], dim=1)[:, :n_tokens]

    def _in_one_row(self, batch: Mapping[str, Tensor], which: Tensor) -> Tensor:
        """Return the same: compute all tokens in one row without padding, prompts before responses.

        A token sees those before it of its own prompt and its own response.

        Args:
            batch: of B rows.
            which: (B,), number of each row's prompt among those in the row.
        """
        first = _one_row_of_each(which)
        prompts, responses = batch[Column.PROMPT_MASK][first], batch[Column.RESPONSE_MASK]
        lengths, of_prompt, of_response = prompts.sum(-1), prompts.nonzero()[:, 0], responses.nonzero()[:, 0]
        group = torch.cat([of_prompt, which[of_response]])
        response = torch.cat([torch.full_like(of_prompt, -1), of_response])
        places = (prompts.cumsum(-1) - 1)[prompts], (lengths[which, None] + responses.cumsum(-1) - 1)[responses]
        is_own = (response == -1) | (response == response[:, None])
        sees = (is_own & (group == group[:, None])).tril()
        ids = torch.cat([batch[Column.PROMPT_IDS][first][prompts], batch[Column.RESPONSE_IDS][responses]])
        given: dict[str, Any] = {"input_ids": ids[None], "position_ids": torch.cat(places)[None]}
        given["attention_mask"] = sees[None, None]
        if self.abilities.attends_in_parts:
            given["parts"] = _parts(lengths.tolist(), responses.sum(-1).tolist(), which.tolist())
        states = self._output(len(ids), **given, use_cache=False)[0]
        last = lengths.cumsum(-1) - 1  # the prompts' last tokens predict the responses' first ones
        own = torch.zeros_like(batch[Column.RESPONSE_IDS]).masked_scatter(
            responses, torch.arange(len(of_prompt), len(ids), device=ids.device)
        )
        return states[torch.cat([last[which, None], own[:, :-1]], dim=-1)]

    def _last(self, n: int, ids: Tensor, mask: Tensor, **more: Any) -> Tensor:
        """Return the output (rows, n, H or V) at the last `n` positions."""
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        return self._output(n, input_ids=ids, attention_mask=mask, position_ids=positions, **more)

    def _output(self, n: int, **given: Any) -> Tensor:
        base = without_wrapper(self.model)
        if self.abilities.has_plain_head:
            found: Tensor = base.base_model(**given)[0][:, -n:]
        else:
            found = base(**given, logits_to_keep=n).logits
        return found


def _parts(prompts: Sequence[int], responses: Sequence[int], which: Sequence[int]) -> tuple[Part, ...]:
    """Return the parts of a row of prompts, then responses: from their lengths and each response's prompt's number."""
    ends = list(accumulate([*prompts, *responses]))
    spans = [slice(end - n, end) for end, n in zip(ends, [*prompts, *responses], strict=True)]
    of_responses = (Part(span, spans[number]) for span, number in zip(spans[len(prompts) :], which, strict=True))
    return (*map(Part, spans[: len(prompts)]), *of_responses)


def _one_row_of_each(which: Tensor) -> Tensor:
    """Return for each number in (B,) a row that has it."""
    return which.new_empty(int(which.max()) + 1).scatter_(0, which, torch.arange(len(which), device=which.device))


def _has_plain_head(base: Any, given: Mapping[str, Tensor]) -> bool:
    body, head = base.base_model, base.get_output_embeddings()
    if head is None or body is base:
        return False
    try:
        logits = head(body(**given, use_cache=False)[0])
    except (RuntimeError, TypeError):  # there is a layer between the two
        return False
    return bool(torch.equal(logits, base(**given, use_cache=False).logits))


def _repeats_prompts(base: Any, given: Mapping[str, Tensor]) -> bool:
    try:
        cache = DynamicCache(config=base.config)
        base(**given, use_cache=True, past_key_values=cache)
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError):  # it has a cache of its own kind
        return False
    n_tokens = given["input_ids"].shape[1]
    return all(type(layer) in _REPEATABLE and layer.get_seq_length() == n_tokens for layer in cache.layers)


def _packs(base: Any, given: Mapping[str, Tensor], **more: Any) -> bool:
    """Return whether two copies of a row in one are computed as one alone. A window of attention would not show."""
    n = given["input_ids"].shape[1]
    sees = torch.block_diag(*[torch.ones(n, n, device=base.device)] * 2).tril().bool()[None, None]
    ids, places = given["input_ids"].repeat(1, 2), torch.arange(n, device=base.device).repeat(1, 2)
    try:
        found = base(input_ids=ids, attention_mask=sees, position_ids=places, use_cache=False, **more).logits
        alone = base(**given, use_cache=False).logits
        is_full = all(type(layer) is DynamicLayer for layer in DynamicCache(config=base.config).layers)
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError):  # it takes another mask
        return False
    near = 1e-4 * max(1.0, float(alone.abs().max()))  # what rounding does grows with the largest logits
    return is_full and torch.allclose(found, alone.repeat(1, 2, 1), rtol=1e-4, atol=near)


def _attends_in_parts(base: Any, given: Mapping[str, Tensor]) -> bool:
    """Return whether a model hands the parts of a row on to its attention."""
    before, n = base.config._attn_implementation, given["input_ids"].shape[1]
    if base.device.type != "cpu" or before not in ("sdpa", NAME):
        return False
    base.set_attn_implementation(NAME)
    found = _packs(base, given, parts=_parts([n, n], [], []))
    base.set_attn_implementation(before)
    return found


def token_figures(
    states: Tensor,
    head: Callable[[Tensor], Tensor],
    tokens: Tensor,
    mask: Tensor,
    *,
    logits_chunk_tokens: int = 0,
    temperature: float = 1.0,
    entropy_gradient: bool = False,
) -> TokenFigures:
    """Return the figures of some responses.

    Args:
        states: (B, R, H), hidden states of the positions that predict the tokens.
        head: makes logits (n, V) of hidden states (n, H).
        tokens: (B, R), int64.
        mask: (B, R), bool: the response's own tokens. The others cost nothing.
        logits_chunk_tokens: tokens whose logits exist at the same time; 0: all. It does not change results.
        temperature: of the distribution, by which logits are divided.
        entropy_gradient: whether the entropy has a gradient.
    """

    def figures(of_states: Tensor, of_tokens: Tensor) -> tuple[Tensor, Tensor]:
        torch.clear_autocast_cache()  # or all parts shared one cast of the weights, and their gradients its few bits
        logits = _logits(of_states, head, temperature)
        with contextlib.nullcontext() if entropy_gradient else torch.no_grad():
            spread = logits.log_softmax(-1)
            entropy = -(spread.exp() * spread).sum(-1)
        return token_log_probs(logits, of_tokens), entropy

    kept_states, kept_tokens = states[mask], tokens[mask]
    size = logits_chunk_tokens or max(len(kept_tokens), 1)
    pieces = list(zip(kept_states.split(size), kept_tokens.split(size), strict=True))
    is_frozen = isinstance(head, torch.nn.Linear) and not any(each.requires_grad for each in head.parameters())
    if is_frozen and not entropy_gradient and kept_states.requires_grad and torch.is_grad_enabled():
        found = [_UnderFrozenHead.apply(*piece, head, temperature) for piece in pieces]
    elif len(pieces) > 1 and torch.is_grad_enabled():
        found = [checkpoint(figures, *piece, use_reentrant=False) for piece in pieces]
    else:
        found = [figures(*piece) for piece in pieces]
    log_probs, entropies = (torch.cat(each) for each in zip(*found, strict=True))
    return TokenFigures(_padded(log_probs, mask), _padded(entropies, mask))


class _UnderFrozenHead(torch.autograd.Function):  # type: ignore[misc]  # torch is not read
    """Figures of tokens under an output layer that has no gradients, as in a training of adapters.

    What a log-probability adds to the gradient of its state is known as soon as its logits are. So these are computed
    once, and nothing of the size of a vocabulary is kept.
    """

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, tokens: Tensor, head: torch.nn.Linear, temperature: float
    ) -> tuple[Tensor, Tensor]:
        """Return log-probabilities and entropies (n,) of tokens (n,) by the states (n, H) that predict them."""
        logits = _logits(states, head, temperature)
        spread = logits.sub_(logits.logsumexp(-1, keepdim=True))
        log_probs = spread.gather(-1, tokens[:, None]).squeeze(-1)
        probs = spread.exp()
        entropies = -torch.linalg.vecdot(probs, spread)
        slope = probs.neg_().scatter_add_(-1, tokens[:, None], torch.ones_like(probs[:, :1]))
        ctx.save_for_backward((slope.to(head.weight.dtype) @ head.weight).to(states.dtype).div_(temperature))
        ctx.mark_non_differentiable(entropies)
        return log_probs, entropies

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient of the states."""
        (slope,) = ctx.saved_tensors
        return (gradients[0][:, None] * slope).to(slope.dtype), None, None, None


def _logits(states: Tensor, head: Callable[[Tensor], Tensor], temperature: float) -> Tensor:
    """Return the logits (n, V) of states (n, H) in float32, divided by the temperature."""
    logits = head(states).float()
    return logits if temperature == 1 else logits / temperature


def token_log_probs(logits: Tensor, tokens: Tensor) -> Tensor:
    """Return the log-probability of each token.

    Args:
        logits: (..., V), of the position that predicts the token.
        tokens: (...), int64.

    Returns:
        (...), float32.
    """
    logits = logits.float()
    chosen = logits.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    return chosen - logits.logsumexp(dim=-1)


def _padded(values: Tensor, mask: Tensor) -> Tensor:
    """Return (B, R) of one value per True in `mask`, in order."""
    return torch.zeros(mask.shape, dtype=values.dtype, device=values.device).masked_scatter(mask, values)


def is_first_learner() -> bool:
    """Return whether this process is the only learner, or the first of them."""
    is_alone = not (torch.distributed.is_available() and torch.distributed.is_initialized())
    return is_alone or torch.distributed.get_rank() == 0


def mesh_of_learners() -> DeviceMesh:
    """Return all learners as one row of devices. The process group exists."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return init_device_mesh(device, (torch.distributed.get_world_size(),))


class _Gathering(torch.nn.Module):  # type: ignore[misc]  # torch is not read
    """Modules whose parameters are gathered together, when any of them runs.

    FSDP2 gathers what belongs to a module before its forward pass. Here each of the modules runs as that forward pass,
    so a parameter that several of them have is held in parts once.
    """

    def __init__(self, modules: Sequence[torch.nn.Module], inner: Sequence[_Gathering] = ()) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleList([*modules, *inner])
        for module in modules:
            module.forward = partial(self.__call__, module.forward)

    def forward(self, run: Callable[..., Any], *given: Any, **settings: Any) -> Any:
        """Run the forward pass of one of the modules."""
        return run(*given, **settings)


def sharded(
    load: Callable[[], Sequence[Any]],
    empty: Callable[[], Sequence[Any]],
    mesh: DeviceMesh,
    *,
    prepare: Sequence[Callable[[Any], object]],
    policies: Mapping[str, Any],
) -> list[ResponsePass]:
    """Return models of which each learner holds its part. All learners call this at the same time.

    Parameters that models have in common are held once. The first learner loads the models whole, in the memory of its
    host, and sends the others their parts, one parameter at a time. The others never hold them.

    Args:
        load: returns the whole models, which are alike but for adapters; only the first learner calls it.
        empty: returns the same models without memory, on the device `meta`.
        mesh: the learners.
        prepare: of each model; is called with it before it is sharded.
        policies: of `policies_of`.
    """
    whole = load() if mesh.get_rank() == 0 else []
    sent: list[Any] = [[Abilities.of(each) for each in whole]]
    torch.distributed.broadcast_object_list(sent, src=0)
    models = empty()
    for model, prepare_one in zip(models, prepare, strict=True):
        prepare_one(model)
    layers = [_Gathering(layers) for layers in zip(*map(_layers, models), strict=True)]
    for layer in layers:
        fully_shard(layer, mesh=mesh, reshard_after_forward=True, **policies)
    found = [ResponsePass(model, abilities) for model, abilities in zip(models, sent[0], strict=True)]
    root = _Gathering(found, layers)
    in_layers = {each for layer in layers for each in layer.parameters()}
    fully_shard(root, mesh=mesh, reshard_after_forward=True, ignored_params=in_layers, **policies)
    of_parts = "cpu" if isinstance(policies["offload_policy"], CPUOffloadPolicy) else mesh.device_type
    root._apply(lambda each: torch.empty_like(each, device=of_parts if isinstance(each, DTensor) else mesh.device_type))
    filled: set[Tensor] = set()
    for number, model in enumerate(models):
        _fill(model, whole[number] if whole else None, mesh, filled)
    return found


def policies_of(gathering_dtype: str = "", *, is_offloaded: bool = False) -> dict[str, Any]:
    """Return how FSDP2 computes with the parts and where it keeps them, as arguments of `fully_shard`.

    Args:
        gathering_dtype: data type in which parameters are gathered, and so in which layers compute; empty: float32.
        is_offloaded: whether parts and gradients are in the host's memory.
    """
    return {
        "mp_policy": MixedPrecisionPolicy(
            param_dtype=getattr(torch, gathering_dtype) if gathering_dtype else None,
            reduce_dtype=torch.float32,
            cast_forward_inputs=False,  # the batch holds log-probabilities; hidden states have the embedding's type
        ),
        "offload_policy": CPUOffloadPolicy(torch.cuda.is_available()) if is_offloaded else OffloadPolicy(),
    }


def _layers(model: Any) -> list[torch.nn.Module]:
    """Return the decoder layers; all other parameters belong to the root."""
    base = without_wrapper(model)
    names = set(getattr(base, "_no_split_modules", None) or ())
    return [module for module in base.modules() if type(module).__name__ in names]


@torch.no_grad()  # type: ignore[untyped-decorator]
def _fill(model: Any, whole: Any, mesh: DeviceMesh, filled: set[Tensor]) -> None:
    """Copy the first learner's parameters and buffers, also those that no state contains, into the sharded model.

    Args:
        model: sharded.
        whole: None on the other learners.
        mesh: the learners.
        filled: tensors that are left as they are; gets those of the model.
    """
    source: Mapping[str, Tensor] = {} if whole is None else dict([*whole.named_parameters(), *whole.named_buffers()])
    for name, own in [*model.named_parameters(), *model.named_buffers()]:
        if own in filled:
            continue
        filled.add(own)
        value = torch.empty(own.shape, dtype=own.dtype, device=mesh.device_type) if isinstance(own, DTensor) else own
        if source:
            value.copy_(source[name])
        if isinstance(own, DTensor):
            own.copy_(distribute_tensor(value, own.device_mesh, own.placements, src_data_rank=0))
        else:
            torch.distributed.broadcast(own, src=0)


def whole_tensor(tensor: Tensor) -> Tensor:
    """Return a tensor whole, on the device; of a sharded one, all learners must call this at the same time."""
    return tensor.to(tensor.device_mesh.device_type).full_tensor() if isinstance(tensor, DTensor) else tensor


@torch.no_grad()  # type: ignore[untyped-decorator]
def clip_gradients(parameters: Sequence[Tensor], most: float) -> float:
    """Scale gradients so that their norm is at most `most`; return the norm before.

    All learners of sharded parameters call this at the same time. Their parts may be in the host's memory, and the
    learners' process group exchanges tensors of the device only.
    """
    gradients = [each.grad for each in parameters if isinstance(each.grad, DTensor)]
    if not gradients:
        return float(clip_grad_norm_(parameters, most))
    parts = [each.to_local() for each in gradients]
    square = get_total_norm(parts).square().to(gradients[0].device_mesh.device_type)
    torch.distributed.all_reduce(square)
    norm = float(square.sqrt())
    for part in parts:
        part.mul_(min(1.0, most / (norm + 1e-6)))
    return norm


def part_of(value: Tensor, own: Tensor) -> Tensor:
    """Return the same part of a whole tensor that this learner holds of another one; all of it, if it holds all."""
    if not isinstance(own, DTensor):
        return value
    return distribute_tensor(value.to(own.device), own.device_mesh, own.placements, src_data_rank=None)
