"""Writes small models as GGUF files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_gguf(file: Path, model: Path, quantisation: str = "F16", **changed: Any) -> dict[str, Any]:
    """Write the weights of a folder's Llama or Qwen2 with its byte-pair tokenizer and chat template into one file.

    Args:
        file: is written.
        model: a folder of `transformers`.
        quantisation: the type of all matrices.
        changed: by name in the file: another tensor, a tuple of one and its type, or None for a tensor to leave out;
            `architecture` is the name of another architecture.

    Returns:
        By name in `transformers`: the weights as they are after all rounding.
    """
    import numpy as np
    from gguf import GGMLQuantizationType, GGUFWriter, constants, get_tensor_name_map, quants
    from safetensors.numpy import load_file

    config = json.loads((model / "config.json").read_text("utf-8"))
    kind = str(config["model_type"])
    writer = GGUFWriter(file, changed.pop("architecture", kind))
    writer.add_name(model.name)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    _add_tokenizer(writer, model)
    names = get_tensor_name_map(getattr(constants.MODEL_ARCH, kind.upper()), config["num_hidden_layers"])
    rounded, stored = {}, dict[str, tuple[Any, Any]]()
    for name, weights in load_file(model / "model.safetensors").items():
        is_matrix = weights.ndim == 2
        quant = GGMLQuantizationType[quantisation if is_matrix else "F32"]
        in_file = str(names.get_name(name, try_suffixes=(".weight", ".bias")))
        data = weights
        if kind == "llama" and (
            ".q_proj" in name or ".k_proj" in name
        ):  # llama.cpp has the halves of a head interleaved
            heads = config["num_attention_heads" if ".q_proj" in name else "num_key_value_heads"]
            data = data.reshape(heads, 2, -1, data.shape[1]).swapaxes(1, 2).reshape(data.shape)
        stored[in_file] = np.ascontiguousarray(quants.quantize(data, quant)), quant
        rounded[name] = quants.dequantize(quants.quantize(weights, quant), quant)
    for in_file, (data, quant) in _changed(stored, changed).items():
        writer.add_tensor(in_file, data, raw_dtype=quant)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return rounded


def _changed(stored: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    pairs = {name: value if isinstance(value, tuple | None) else (value, None) for name, value in changed.items()}
    return {name: value for name, value in {**stored, **pairs}.items() if value is not None}


def _add_tokenizer(writer: Any, model: Path) -> None:
    from gguf import TokenType

    tokenizer = json.loads((model / "tokenizer.json").read_text("utf-8"))
    special = {each["content"] for each in tokenizer["added_tokens"]}
    tokens = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].__getitem__)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([TokenType.CONTROL if each in special else TokenType.NORMAL for each in tokens])
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    writer.add_pad_token_id(tokens.index("<|endoftext|>"))
    writer.add_chat_template((model / "chat_template.jinja").read_text("utf-8"))
