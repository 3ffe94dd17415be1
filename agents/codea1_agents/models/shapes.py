"""The shape of a language model, from its configuration, and the numbers of parameters that follow from it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_agents.models.model_files import model_folder
from codea1_env.errors import UserError
from codea1_env.records.faults import read_file, read_json


class UnknownShape(UserError):
    """The shape of a model is unknown: its configuration is not on this machine, or it has another architecture."""


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear layer of a decoder layer."""

    inputs: int
    outputs: int
    has_bias: bool = False

    @property
    def weights(self) -> int:
        """Number of weights, without the bias."""
        return self.inputs * self.outputs


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A decoder with grouped attention, rotary positions and a gated feed-forward part, such as Qwen2 and Llama."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    context: int
    """Most tokens of a prompt and its reply."""
    is_tied: bool
    """Whether the output layer shares the weights of the embedding."""
    has_qkv_bias: bool = False
    has_output_bias: bool = False
    has_mlp_bias: bool = False
    has_qk_norm: bool = False

    @property
    def linear_layers(self) -> Mapping[str, Linear]:
        """The linear layers of one decoder layer, by name."""
        h, i, q, kv = self.hidden, self.intermediate, self.queries, self.kv_heads * self.head_size
        return {
            "q_proj": Linear(h, q, self.has_qkv_bias),
            "k_proj": Linear(h, kv, self.has_qkv_bias),
            "v_proj": Linear(h, kv, self.has_qkv_bias),
            "o_proj": Linear(q, h, self.has_output_bias),
            "gate_proj": Linear(h, i, self.has_mlp_bias),
            "up_proj": Linear(h, i, self.has_mlp_bias),
            "down_proj": Linear(i, h, self.has_mlp_bias),
        }

    @property
    def queries(self) -> int:
        """Size of all queries of a token."""
        return self.heads * self.head_size

    @property
    def head_weights(self) -> int:
        """Number of weights of the output layer."""
        return self.vocabulary * self.hidden

    @property
    def linear_weights(self) -> int:
        """Number of weights of the linear layers of one decoder layer."""
        return sum(layer.weights for layer in self.linear_layers.values())

    @property
    def parameters(self) -> int:
        """Number of parameters, tied ones counted once."""
        biases = sum(layer.outputs for layer in self.linear_layers.values() if layer.has_bias)
        norms = 2 * self.hidden + (2 * self.head_size if self.has_qk_norm else 0)
        embeddings = self.head_weights * (1 if self.is_tied else 2)
        return embeddings + self.layers * (self.linear_weights + biases + norms) + self.hidden

    def adapter_parameters(self, rank: int, target_modules: Collection[str]) -> int:
        """Return the number of parameters of adapters."""
        adapted = [each for name, each in self.linear_layers.items() if name in target_modules]
        head = self.hidden + self.vocabulary if "lm_head" in target_modules else 0
        return rank * (self.layers * sum(each.inputs + each.outputs for each in adapted) + head)

    def why_not_adapted(self, name: str) -> str:
        """Return why no layer of this name gets an adapter; empty: one does. Peft compares ends of names."""
        names = [f"self_attn.{each}" if each[1:] == "_proj" else f"mlp.{each}" for each in self.linear_layers]
        in_layers = [f"model.layers.{number}.{each}" for number in range(self.layers) for each in names]
        ends = {"lm_head", "model.embed_tokens"}
        same = [each for each in (*in_layers, *ends) if f".{each}".endswith(f".{name}")]
        if not same:
            return f"there is none; its linear layers are {', '.join(self.linear_layers)} and lm_head"
        return "embedding and head share their weights" if self.is_tied and ends & set(same) else ""

    def cache_bytes(self, bytes_per_number: int) -> int:
        """Return the bytes of the key-value cache of one token."""
        return 2 * self.layers * self.kv_heads * self.head_size * bytes_per_number


def _qwen_coder(hidden: int, intermediate: int, layers: int, heads: int, **others: Any) -> ModelShape:
    same: dict[str, Any] = {"kv_heads": 2, "head_size": 128, "vocabulary": 151_936, "is_tied": True}
    return ModelShape(hidden, intermediate, layers, heads, context=32_768, has_qkv_bias=True, **same | others)


PUBLISHED: Mapping[str, ModelShape] = {
    "Qwen/Qwen2.5-Coder-0.5B-Instruct": _qwen_coder(896, 4864, 24, 14, head_size=64),
    "Qwen/Qwen2.5-Coder-1.5B-Instruct": _qwen_coder(1536, 8960, 28, 12),
    "Qwen/Qwen2.5-Coder-3B-Instruct": _qwen_coder(2048, 11_008, 36, 16),
    "Qwen/Qwen2.5-Coder-7B-Instruct": _qwen_coder(3584, 18_944, 28, 28, kv_heads=4, vocabulary=152_064, is_tied=False),
}
"""Shapes of the models that presets name, so that their arithmetic needs no download."""

_FAMILIES: Mapping[str, Mapping[str, bool]] = {
    "qwen2": {"has_qkv_bias": True},
    "qwen3": {"has_qk_norm": True},
    "llama": {},
    "mistral": {},
}
"""Architectures, with what their configurations do not state."""


def shape_of(model: str) -> ModelShape:
    """Return the shape of a model from its folder, the table of published shapes or the local cache of the hub.

    Args:
        model: folder, GGUF file or hub id.

    Raises:
        UnknownShape: its configuration is not on this machine, or it has another architecture.
    """
    if model in PUBLISHED:
        return PUBLISHED[model]
    file = model_folder(model) / "config.json"
    if not file.is_file():
        file = _find_in_cache(model)
    try:
        return read_shape(read_json(str(file), read_file(file), is_strict=False), model)
    except (OSError, ValueError) as error:
        raise UnknownShape(f"{model}: its config.json cannot be read ({error})") from error


def _find_in_cache(model: str) -> Path:
    try:
        from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415  comes with transformers

        path = try_to_load_from_cache(model, "config.json")
    except (ImportError, ValueError):  # the name is not a hub id
        path = None
    if not isinstance(path, str):
        raise UnknownShape(f"{model}: its shape is unknown, since its config.json is not on this machine")
    return Path(path)


def read_shape(config: Mapping[str, Any], model: str) -> ModelShape:
    """Return the shape that a model's config.json states.

    Args:
        config: content of the file.
        model: name in error messages.

    Raises:
        UnknownShape: it is of another architecture, or a size is missing.
    """
    family = str(config.get("model_type"))
    if family not in _FAMILIES:
        raise UnknownShape(f"{model}: its architecture must be one of {', '.join(_FAMILIES)}, got {family!r}")
    try:
        return ModelShape(
            hidden=int(config["hidden_size"]),
            intermediate=int(config["intermediate_size"]),
            layers=int(config["num_hidden_layers"]),
            heads=int(config["num_attention_heads"]),
            kv_heads=int(config.get("num_key_value_heads") or config["num_attention_heads"]),
            head_size=int(config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]),
            vocabulary=int(config["vocab_size"]),
            context=int(config["max_position_embeddings"]),
            is_tied=bool(config.get("tie_word_embeddings", False)),
            **_biases(config, family),
        )
    except KeyError as error:
        raise UnknownShape(f"{model}: its config.json does not state {error.args[0]}") from error


def _biases(config: Mapping[str, Any], family: str) -> dict[str, bool]:
    has_bias = bool(config.get("attention_bias", False))
    stated = {"has_qkv_bias": has_bias, "has_output_bias": has_bias, "has_mlp_bias": bool(config.get("mlp_bias"))}
    return {**stated, **_FAMILIES[family]}
