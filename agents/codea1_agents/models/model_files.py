"""Checks early whether a model can be loaded or written, and turns errors of both into one sentence."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from codea1_agents.models.gguf_files import ENDING, convert_gguf, digest_of_file, read_source
from codea1_env.errors import BrokenInput, CodeA1Error, UserError, extra_needed
from codea1_env.records.faults import read_file, read_json
from codea1_env.records.file_errors import file_errors
from codea1_env.records.locks import hold_lock
from codea1_env.records.whole_files import cache_folder, new_folder, require_folder

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_CONVERSION = 1
"""Version of the conversion of GGUF files; another one has other folders."""


HUB = "hub:"
"""Begins the digest of a model that is no folder."""
_ADAPTER = "adapter_config.json"


def require_model(agent: str, name: str, *, is_trained: bool = False) -> str:
    """Return the folder's path or the hub id; for a GGUF file, the folder into which it was converted.

    Args:
        agent: for errors: who needs it.
        name: a folder of a model, or of an adapter alone, or a hub id.
        is_trained: whether it is to be trained, for which an adapter alone is refused.

    Raises:
        UserError: no model was named, or a GGUF file's folder cannot be written.
        BrokenInput: the folder or file is not a model, or the name is neither one of both nor a possible hub id.
        MissingExtra: a GGUF file needs a package that is not installed.
    """
    if not name:
        raise UserError(f"agent {agent!r} needs model=: a folder, a GGUF file or an id on the HuggingFace hub")
    folder = model_folder(name)
    if (folder / _ADAPTER).is_file():
        if is_trained:
            raise BrokenInput(
                f"{name!r} is an adapter alone, which cannot be trained; export the model without --adapter"
            )
        _require_base(folder)
        return str(folder)
    if folder.is_dir():
        missing = _missing(folder)
        if missing:
            raise BrokenInput(f"{name!r} is a folder without {missing}, so it cannot be loaded as a model")
        return str(folder)
    if folder.is_file():
        raise BrokenInput(
            f"{name!r} is a file, expected a {ENDING} file, or a folder with config.json, weights and a tokenizer"
        )
    near = _nearest(folder)
    hint = f"; did you mean {str(near)!r}?" if near else ""
    if near and "/" not in name:  # old ids on the hub lack an owner, but each has a name with one, too
        raise BrokenInput(f"the folder {name!r} does not exist{hint} A model on the HuggingFace hub is owner/name")
    if not _HUB_ID.fullmatch(name) or name.startswith((".", "models/")):  # no account on the hub has such a name
        raise BrokenInput(f"the folder {name!r} does not exist, and no model on the hub can have this name{hint}")
    return name


def model_folder(name: str) -> Path:
    """Return the folder that a model's name means, if it is no hub id: the folder may be missing.

    A GGUF file is converted, once for each content, into the user's cache.

    Raises:
        UserError, BrokenInput, MissingExtra: as `require_model`, about a GGUF file.
    """
    file = Path(name).expanduser()
    if file.suffix.lower() != ENDING or file.is_dir():
        return file
    if not file.is_file():
        raise BrokenInput(f"the file {name!r} does not exist")
    with file_errors(file):
        place = cache_folder("gguf") / f"{digest_of_file(file)[:32]}-{_CONVERSION}"
    if read_source(place) is None:
        with writing_errors(place), hold_lock(place.with_suffix(".lock")):
            if read_source(place) is None:
                with new_folder(place) as draft, loading_errors(f"model {name!r}"), no_progress_bars():
                    convert_gguf(file, draft)
    return place


def model_digest(model: str) -> str:
    """Return a digest of all bytes of a model's directory or GGUF file; a hub id stands for itself.

    A file is read once in a process while it is the same, in .6 s/GB where the processor has instructions for SHA-256.
    """
    folder = model_folder(model)
    if not folder.is_dir():
        return f"{HUB}{model}"
    if (source := read_source(folder)) is not None:
        return source.sha256[:16]
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in (".safetensors", ".bin") or path.name in ("config.json", "tokenizer.json"):
            digest.update(f"{path.name} {digest_of_file(path)}\n".encode())
    return digest.hexdigest()[:16]


def adapter_digest(folder: Path, tensors: Mapping[str, Any]) -> str:
    """Return a digest of an adapter: of its configuration, except for where the model under it is, and its weights.

    Args:
        folder: has the configuration.
        tensors: arrays of numpy by name.
    """
    settings = read_json(_ADAPTER, read_file(folder / _ADAPTER), is_strict=False)
    del settings["base_model_name_or_path"]
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].shape} ".encode() + tensors[name].tobytes())
    return digest.hexdigest()[:16]


def _require_base(folder: Path) -> None:
    """Check that an adapter is as it was exported, and the model under it the one on which it was trained.

    Raises:
        MissingExtra: peft is not installed.
        BrokenInput: the folder is damaged or was edited, or the model is missing or another one.
    """
    with extra_needed("an adapter alone", "lora"):
        import peft  # noqa: F401, PLC0415  an extra, which transformers needs for it
    with loading_errors(f"adapter {str(folder)!r}"):
        base = read_json(_ADAPTER, read_file(folder / _ADAPTER), is_strict=False)["base_model_name_or_path"]
        from safetensors import safe_open  # noqa: PLC0415  an extra

        with safe_open(folder / "adapter_model.safetensors", framework="np") as file:
            stored = file.metadata() or {}  # of an adapter that another program wrote, no digests
            exported = stored.get("adapter_digest")
            arrays = {name: file.get_tensor(name) for name in file.keys()} if exported else {}  # noqa: SIM118  no dict
    if exported and exported != adapter_digest(folder, arrays):
        raise BrokenInput(f"{str(folder)!r} is an adapter whose weights or {_ADAPTER} changed since it was exported")
    try:
        require_model("transformers", base)
    except BrokenInput as error:
        raise BrokenInput(f"{str(folder)!r} is an adapter, and the model under it is missing: {error}") from error
    if (digest := stored.get("base_digest")) and digest != model_digest(base):
        raise BrokenInput(f"{str(folder)!r} is an adapter on another model: {base!r} changed since it was trained")


@contextmanager
def loading_errors(what: str) -> Iterator[None]:
    """Turn every error of loading a model into one sentence."""
    try:
        yield
    except CodeA1Error:
        raise
    except MemoryError as error:
        raise UserError(f"{what} does not fit into memory") from error
    except Exception as error:
        message = " ".join(str(error).split())
        raise BrokenInput(f"{what} cannot be loaded: {_first_sentence(message) or type(error).__name__}") from error


@contextmanager
def writing_errors(folder: Path) -> Iterator[None]:
    """Turn an error of writing a model, such as a full disk, into one sentence."""
    from safetensors import SafetensorError  # noqa: PLC0415  an extra

    try:
        with file_errors(folder):
            yield
    except SafetensorError as error:  # safetensors raises it instead of an OSError
        raise UserError(f"{folder}: {error}") from error


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """Turn off the progress bars of transformers inside the block."""
    from transformers.utils import logging  # noqa: PLC0415  an extra, and slow to import

    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            logging.enable_progress_bar()


def require_new(folder: Path) -> None:
    """Raise UserError if no new model could be written to the folder; call it before the work begins."""
    require_folder(folder)
    with file_errors(folder):
        if folder.exists() and any(folder.iterdir()):
            raise UserError(f"{folder} exists already; the model's folder must be new or empty")


def _nearest(folder: Path) -> Path | None:
    """Return the model with the most similar name in the same place as a missing folder; None without one."""
    models = [path.parent.name for path in folder.parent.glob("*/config.json")]
    near = get_close_matches(folder.name, sorted(models), n=1)
    return folder.parent / near[0] if near else None


def _missing(folder: Path) -> str:
    if not (folder / "config.json").is_file():
        return "config.json"
    if not any(True for pattern in ("*.safetensors", "*.bin") for _ in folder.glob(pattern)):
        return "weights (*.safetensors or *.bin)"
    if not any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer_config.json", "tokenizer.model")):
        return "a tokenizer"
    return ""


def _first_sentence(message: str) -> str:
    first = re.split(r"(?<=[.!?])\s", message, maxsplit=1)[0]
    return first[:300].rstrip(".")
