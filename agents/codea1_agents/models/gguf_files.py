"""Reads GGUF files: one file with a model's weights, mostly quantised, its tokenizer and its chat template."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from contextlib import redirect_stderr
from dataclasses import asdict, dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from codea1_env.errors import BrokenInput, extra_needed
from codea1_env.records.faults import read_file, read_json

ENDING = ".gguf"
_SOURCE = "gguf.json"
"""File of a converted model that says what it was converted from; it is written last."""
_STORED_AS = {"F32": "float32", "F16": "float16"}
"""Data type in which weights are written, by how most of them were stored; others: bfloat16."""
_SAME_MATRIX = 0.9
"""Least cosine between embedding and head that are one matrix in two precisions; of two matrices it is far less."""


@dataclass(frozen=True, slots=True)
class GgufSource:
    """The file that a model was converted from."""

    file: str
    """Its name."""
    sha256: str
    quantisation: str
    """The types in which its weights were stored, the type of most of them first, e.g. `Q4_1, Q8_0, F32`."""


def read_source(folder: Path) -> GgufSource | None:
    """Return what a model was converted from; None: it has always been a folder."""
    file = folder / _SOURCE
    return GgufSource(**read_json(str(file), read_file(file))) if file.is_file() else None


def sources_of(agents: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return what the models of agents were converted from, by role, as plain data; nothing of those that always were
    folders."""
    sources = {role: getattr(agent, "source", None) for role, agent in agents.items()}
    return {role: asdict(source) for role, source in sources.items() if isinstance(source, GgufSource)}


def digest_of_file(file: Path) -> str:
    """Return the SHA-256 of a file, computed once in a process while the file is the same."""
    state = file.stat()
    return _digest(file.resolve(), state.st_size, state.st_mtime_ns)


@cache
def _digest(file: Path, _size: int, _changed_ns: int) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def convert_gguf(file: Path, folder: Path) -> None:
    """Write the model of a GGUF file, with its tokenizer and chat template, as a folder of `transformers`.

    Quantised weights become bfloat16. Embedding and head are one matrix, the finer one, where the model ties them: a
    file may hold it twice, in two precisions.

    Raises:
        MissingExtra: gguf, torch or transformers is not installed.
        BrokenInput: the file is damaged, or `transformers` reads not all of it.
        Exception: whatever `transformers` raises for an architecture or a tokenizer that it does not know.
    """
    with extra_needed("a GGUF file", "gguf"):
        import gguf  # noqa: PLC0415  an extra
    with extra_needed("a language model", "transformers"):
        import torch  # noqa: PLC0415  heavy, and an extra
        import transformers  # noqa: PLC0415  heavy, and an extra
    tensors = _tensors(gguf, file)
    with TemporaryDirectory() as alone, redirect_stderr(StringIO()):  # tqdm's bar
        Path(alone, file.name).symlink_to(file.resolve())  # files beside it would be read as parts of the model
        model, loaded = transformers.AutoModelForCausalLM.from_pretrained(
            alone, gguf_file=file.name, dtype=torch.float32, output_loading_info=True
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(alone, gguf_file=file.name)
    config, weights = model.config, model.state_dict(keep_vars=True)
    n_read = sum(parameter.numel() for parameter in model.parameters())
    n_stored = sum(int(tensor.n_elements) for tensor in tensors.values())
    if loaded["missing_keys"] or n_read != n_stored:
        raise BrokenInput(f"{file}: transformers reads {n_read:,} weights of its kind, and it holds {n_stored:,}")
    if not all(bool(weight.isfinite().all()) for weight in weights.values()):
        raise BrokenInput(f"{file}: damaged: a weight is no finite number")
    head, embedding = model.get_output_embeddings().weight, model.get_input_embeddings().weight
    if head is not embedding and head.shape == embedding.shape and _cosine(torch, head, embedding) > _SAME_MATRIX:
        config.tie_word_embeddings = True
        finer = head if tensors["output.weight"].n_bytes >= tensors["token_embd.weight"].n_bytes else embedding
        weights = {name: finer if each is head or each is embedding else each for name, each in weights.items()}
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    types = _types(tensors)
    config.dtype = getattr(torch, _STORED_AS.get(types[0], "bfloat16"))
    with torch.device("meta"):
        plain = type(model)(config)
    plain.load_state_dict({name: each.data.to(config.dtype) for name, each in weights.items()}, assign=True)
    plain.tie_weights()
    plain.generation_config = model.generation_config
    plain.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    source = GgufSource(file.name, digest_of_file(file), ", ".join(types))
    (folder / _SOURCE).write_text(json.dumps(asdict(source)), "utf-8")


def _tensors(gguf: Any, file: Path) -> dict[str, Any]:
    try:
        return {tensor.name: tensor for tensor in gguf.GGUFReader(file).tensors}
    except Exception as error:  # the package checks nothing, so anything can fail
        raise BrokenInput(f"{file}: no GGUF file, or damaged or cut short ({' '.join(str(error).split())})") from error


def _types(tensors: dict[str, Any]) -> list[str]:
    """Return the types of weights, the one of most first."""
    numbers: Counter[str] = Counter()
    for tensor in tensors.values():
        numbers[tensor.tensor_type.name] += int(tensor.n_elements)
    return [name for name, _ in numbers.most_common()]


def _cosine(torch: Any, one: Any, other: Any) -> float:
    return float(torch.nn.functional.cosine_similarity(one.data.flatten(), other.data.flatten(), dim=0))
