"""Causal language models of `transformers` as trainings load them, with low-rank adapters by `peft`. Needs no Ray."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from codea1_agents.models.model_files import loading_errors, no_progress_bars, require_model
from codea1_agents.train.grpo.settings import LoraSettings
from codea1_env.errors import UserError, extra_needed

_ADAPTER = "default"  # peft's name of the first adapter


@no_progress_bars()
def load_causal_model(path: str, dtype: str = "float32") -> Any:
    """Return a causal language model in evaluation mode.

    Raises:
        UserError: there is no model, or it cannot be loaded.
    """
    from transformers import AutoModelForCausalLM  # noqa: PLC0415  -- slow to import

    place = require_model("grpo", path)
    with loading_errors(f"model {path!r}"):
        return AutoModelForCausalLM.from_pretrained(place, dtype=getattr(torch, dtype)).eval()


def empty_causal_model(path: str) -> Any:
    """Return the same model as `load_causal_model`, with parameters on the current device that hold nothing yet."""
    from transformers import AutoConfig, AutoModelForCausalLM  # noqa: PLC0415  -- slow to import

    with loading_errors(f"model {path!r}"):
        config = AutoConfig.from_pretrained(require_model("grpo", path))
        return AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


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
        torch.manual_seed(lora.seed)
        try:
            found = peft.get_peft_model(model, config)
        except ValueError as error:
            raise UserError(f"lora: {' '.join(str(error).split())[:200]}") from error
    _refuse_tied(found.get_base_model())
    return found


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
    """Return the model inside the wrapper of adapters, which stay in its layers; any other model as it is."""
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


def save_plain(model: Any, folder: str | Path) -> None:
    """Write a model, with or without adapters, as a plain folder of `transformers`."""
    without_wrapper(model).save_pretrained(
        str(folder), state_dict={name: tensor.cpu().contiguous() for name, tensor in plain_tensors(model)}
    )


def _refuse_tied(base: Any) -> None:
    uses = Counter(id(parameter) for _, parameter in base.named_parameters(remove_duplicate=False))
    for name, layer in base.named_modules():
        if hasattr(layer, "get_delta_weight") and uses[id(layer.get_base_layer().weight)] > 1:
            raise UserError(f"lora: {name} shares its weight with another layer, which an adapter would not change")


def _merged(layer: Any, weight: Tensor) -> Tensor:
    with torch.no_grad():
        return weight + layer.get_delta_weight(_ADAPTER).to(weight.dtype)
