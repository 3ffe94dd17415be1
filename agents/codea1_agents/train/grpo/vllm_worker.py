"""What is mixed into vLLM's workers: taking weights from a file, so that the new ones are really used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class WeightTaker:
    """A `worker_extension_cls`: its methods become methods of vLLM's worker."""

    def take_weights(self, path: str, version: int) -> int:
        """Load a safetensors file of plain HuggingFace names and return its version.

        On a CPU vLLM packs each linear layer's weight and drops the original. `reload_weights` packs anew what it
        loads; a tied head is never loaded, so its pack of the old embedding would stay.
        """
        worker: Any = self
        worker.reload_weights(weights_iterator=_tensors(path))
        model = worker.model_runner.get_model()
        head, embedding = getattr(model, "lm_head", None), getattr(getattr(model, "model", None), "embed_tokens", None)
        if head is not None and embedding is not None and _is_tied(head, embedding):
            head.quant_method.process_weights_after_loading(head)
        self._taken_version = version
        return version


def _tensors(path: str) -> Iterator[tuple[str, Any]]:
    from safetensors import safe_open  # noqa: PLC0415  comes with vllm

    with safe_open(path, framework="pt") as file:
        for name in file.keys():  # noqa: SIM118  -- the file is no mapping
            yield name, file.get_tensor(name)


def _is_tied(head: Any, embedding: Any) -> bool:
    return bool(head.weight.data_ptr() == embedding.weight.data_ptr())
