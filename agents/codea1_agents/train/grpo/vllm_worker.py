"""A mixin of vLLM's workers that loads weights piece by piece and verifies that vLLM computes with them."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from codea1_agents.train.grpo.weights import checksum, sum_in_place

_HEAD, _EMBEDDING = "lm_head", "model.embed_tokens"


class WeightLoader:
    """A `worker_extension_cls`: its methods become methods of vLLM's worker."""

    _received: ReceivedWeights

    def end_with(self, runner: int) -> None:
        """End this process, if it is not the runner's, as soon as the runner has ended, even if it was killed."""
        if os.getpid() != runner:
            threading.Thread(target=_end_after, args=(os.pidfd_open(runner),), daemon=True).start()

    def begin_weights(self, version: int) -> None:
        """Prepare vLLM's model for new weights.

        Args:
            version: number of the weights. It also selects the column that `finish_weights` compares.
        """
        from vllm.model_executor.model_loader.reload import initialize_layerwise_reload  # noqa: PLC0415

        model = _model(self)
        self._received = ReceivedWeights(version, {name for name, _ in model.named_parameters()})
        with _current_config(self):
            initialize_layerwise_reload(model)

    def load_weights_file(self, path: str) -> None:
        """Load a safetensors file with HuggingFace names."""
        from safetensors import safe_open  # noqa: PLC0415  comes with vllm

        with safe_open(path, framework="pt") as file:
            self._load((name, file.get_tensor(name)) for name in file.keys())  # noqa: SIM118  -- the file is no mapping

    def load_weights_shared(self, handles: bytes) -> None:
        """Load tensors from the memory of the runner's process; `handles` is what torch pickles of them by name."""
        self._load(pickle.loads(handles).items())  # by this project, in the process that started this one

    def _load(self, tensors: Iterable[tuple[str, Tensor]]) -> None:
        with _current_config(self):
            self._received.loaded |= _model(self).load_weights(self._received.noted(tensors)) or set()

    def finish_weights(self) -> list[str]:
        """Complete the loading; return the names of vLLM's parameters and layers that do not have the new weights.

        On a CPU vLLM packs the weight of each linear layer and drops the original. It packs again what it has loaded.
        It never loads a tied head, so the head would keep its pack of the old embedding.
        """
        from vllm.model_executor.model_loader.reload import finalize_layerwise_reload  # noqa: PLC0415

        worker: Any = self
        model = _model(self)
        with _current_config(self):
            finalize_layerwise_reload(model, worker.model_config)
            pack_tied_head(model)
            wrong = {*stale_layers(model, self._received), *stale_vectors(model, self._received)}
            return sorted(self._received.not_loaded()) + sorted(wrong)

    def adapter_checksums(self, number: int, rank: int) -> dict[str, int]:
        """Return the checksum of each tensor of an adapter with which vLLM's layers compute, by its name for peft.

        Those that tensor parallelism divides are compared as vLLM has read them.

        Args:
            number: vLLM's, of the adapter.
            rank: of its matrices; vLLM's have room for larger ones.
        """
        manager = _lora_manager(self)
        slot, read = manager.lora_index_to_id.index(number), manager.get_adapter(number)
        sums: dict[str, int] = {}
        for name, layer in manager.modules.items():
            weights = read.get_lora(name)
            if weights is None:
                continue
            for part, place in enumerate(_parts(manager.model, name)):
                if layer.tp_size == 1:
                    a, b = (each[part][slot, 0] for each in (layer.lora_a_stacked, layer.lora_b_stacked))
                    held = {"lora_A": a[:rank], "lora_B": b[:, :rank]}
                else:
                    both = weights.lora_a, weights.lora_b
                    a, b = (each[part] if isinstance(each, list | tuple) else each for each in both)
                    held = {"lora_A": a, "lora_B": b}
                sums |= {f"base_model.model.{place}.{kind}.weight": checksum(value) for kind, value in held.items()}
        return sums

    def received_checksums(self) -> dict[str, int]:
        """Return the checksum of each tensor that vLLM has read since `begin_weights`, by its HuggingFace name."""
        return dict(self._received.checksums)


class ReceivedWeights:
    """What a worker remembers of the weights of one hand-over.

    Args:
        version: number of the weights.
        parameters: names of vLLM's parameters.
    """

    def __init__(self, version: int, parameters: set[str]) -> None:
        self._version, self._parameters = version, parameters
        self.loaded: set[str] = set()
        """Names of vLLM's parameters."""
        self.checksums: dict[str, int] = {}
        """By HuggingFace name."""
        self._columns: dict[str, Tensor] = {}

    def noted(self, tensors: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
        """Yield tensors by name; remember the checksum of each, one column of each matrix, and each vector."""
        for name, tensor in tensors:
            self.checksums[name] = sum_in_place(tensor)
            if tensor.ndim in (1, 2):
                column = tensor if tensor.ndim == 1 else tensor[:, self.column(tensor.shape[1])]
                self._columns[name] = column.clone()
            yield name, tensor

    def not_loaded(self) -> set[str]:
        """Return the names of vLLM's parameters that got no weights."""
        return self._parameters - self.loaded

    def column(self, width: int) -> int:
        """Return the number of the column that is compared; each version has another one."""
        return (self._version * 7919 + 13) % width

    def columns(self, names: Sequence[str]) -> Tensor | None:
        """Return that column of some matrices, or some vectors, below each other; None if one was not received."""
        found = [self._columns[name] for name in names if name in self._columns]
        return torch.cat(found) if len(found) == len(names) else None


def _end_after(process: int) -> None:
    select.select([process], [], [])
    os._exit(1)  # vLLM would wait for requests for ever, and a new runner needs the memory


def pack_tied_head(model: Any) -> None:
    """Have vLLM pack the weight of a head again that shares it with the embedding."""
    head, embedding = getattr(model, _HEAD, None), getattr(getattr(model, "model", None), "embed_tokens", None)
    if head is not None and embedding is not None and head.weight.data_ptr() == embedding.weight.data_ptr():
        head.quant_method.process_weights_after_loading(head)


def stale_layers(model: Any, received: ReceivedWeights) -> list[str]:
    """Return the names of the matrices of vLLM's model that do not have the received column.

    A linear layer's output for a unit vector is one column of its weight, without any rounding, whether the weight is
    packed or not. Embedding and head are compared on each rank; other layers only without tensor parallelism, and if
    vLLM has them under their HuggingFace names.
    """
    wrong = []
    for name, layer in model.named_modules():
        is_vocabulary = name in (_HEAD, _EMBEDDING)
        expected = _rank_column(name, layer, received) if is_vocabulary else _layer_column(model, name, layer, received)
        if expected is None:
            continue
        found = _column_in_use(name, layer, received)[: len(expected)]
        if not torch.equal(found, expected.to(found)):
            wrong.append(name)
    return wrong


def stale_vectors(model: Any, received: ReceivedWeights) -> list[str]:
    """Return the names of the norms and biases of vLLM's model that are not those received.

    With tensor parallelism, those that are divided among ranks are not compared.
    """
    wrong = []
    for name, vector in model.named_parameters():
        layer, _, kind = name.rpartition(".")
        expected = received.columns([f"{each}.{kind}" for each in _parts(model, layer)])
        if expected is None or expected.shape != vector.shape:
            continue
        if not torch.equal(vector, expected.to(vector)):
            wrong.append(name)
    return wrong


def _rank_column(name: str, layer: Any, received: ReceivedWeights) -> Tensor | None:
    """Return this rank's part of a column of the embedding or the head; None if the rank has none."""
    column = received.columns([f"{name}.weight"])
    if column is None:  # a tied head
        column = received.columns([f"{_EMBEDDING}.weight"])
    if column is None or not hasattr(layer, "shard_indices"):
        return None
    return column[layer.shard_indices.org_vocab_start_index : layer.shard_indices.org_vocab_end_index]


def _layer_column(model: Any, name: str, layer: Any, received: ReceivedWeights) -> Tensor | None:
    """Return a column of a linear layer; None for other layers."""
    from vllm.model_executor.layers.linear import LinearBase  # noqa: PLC0415

    if not isinstance(layer, LinearBase) or layer.tp_size != 1:
        return None
    return received.columns([f"{each}.weight" for each in _parts(model, name)])


def _parts(model: Any, name: str) -> list[str]:
    """Return the HuggingFace names of the layers that vLLM has merged into one."""
    place, _, last = name.rpartition(".")
    merged: dict[str, list[str]] = getattr(model, "packed_modules_mapping", {})
    return [f"{place}.{each}".removeprefix(".") for each in merged.get(last, [last])]


def _column_in_use(name: str, layer: Any, received: ReceivedWeights) -> Tensor:
    """Return the compared column of the weight with which a layer computes."""
    if name == _EMBEDDING:
        column: Tensor = layer.weight[:, received.column(layer.embedding_dim)]
        return column.cpu()
    width = layer.embedding_dim if name == _HEAD else layer.input_size
    unit = torch.zeros(1, width, dtype=layer.weight.dtype, device=layer.weight.device)
    unit[0, received.column(width)] = 1.0
    with torch.inference_mode():
        output: Tensor = layer.quant_method.apply(layer, unit)
    return output[0].cpu()


def _model(worker: Any) -> Any:
    return worker.model_runner.get_model()


def _lora_manager(worker: Any) -> Any:
    return worker.model_runner.lora_manager._adapter_manager


def _current_config(worker: Any) -> contextlib.AbstractContextManager[Any]:
    from vllm.config import set_current_vllm_config  # noqa: PLC0415

    context: contextlib.AbstractContextManager[Any] = set_current_vllm_config(worker.vllm_config)
    return context
