"""Loads a HuggingFace dataset: a folder that `save_to_disk` wrote, or an id of the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codea1_env.errors import BrokenInput, UserError, extra_needed
from codea1_env.problems.layouts import FoundRow, read_rows
from codea1_env.problems.problem import ProblemSet


def is_saved_dataset(folder: Path) -> bool:
    """Return whether `save_to_disk` wrote the folder."""
    return any((folder / name).is_file() for name in ("dataset_info.json", "dataset_dict.json"))


def load_dataset_problems(path_or_id: str | Path, *, split: str | None = None, strict: bool = False) -> ProblemSet:
    """Return the problems of a dataset in any of the known row layouts.

    Args:
        path_or_id: a folder, if it exists; else an id of the hub, which is downloaded.
        split: needed only if the dataset has several.
        strict: fail at the first broken row instead of skipping it.

    Raises:
        MissingExtra: `codea1-env[datasets]` is not installed.
        UserError: an unknown dataset or split, or several splits and `split` is None.
        BrokenInput: no row is usable; or, if `strict`, a row is not.
    """
    with extra_needed("reading a HuggingFace dataset", "datasets"):
        import datasets  # noqa: PLC0415  -- heavy, and an extra
    name = str(path_or_id)
    try:
        local = Path(name).is_dir() and is_saved_dataset(Path(name))
        dataset = datasets.load_from_disk(name) if local else datasets.load_dataset(name)
    except Exception as error:  # its reader of names and files raises anything
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise BrokenInput(f"dataset {name!r} cannot be loaded: {reason}") from error
    chosen = _split(name, dataset, split)
    rows = (FoundRow(f"{name} row {number}", row) for number, row in enumerate(chosen, start=1))
    return read_rows(name, rows, strict=strict)


def _split(name: str, loaded: Any, split: str | None) -> Any:
    if not isinstance(loaded, dict):
        if split is not None and str(loaded.split) != split:
            raise UserError(f"dataset {name!r} was saved without splits; leave out {split!r}")
        return loaded
    if split is None and len(loaded) == 1:
        return next(iter(loaded.values()))
    if split not in loaded:
        reason = "name one of its splits" if split is None else f"there is no split {split!r}"
        raise UserError(f"dataset {name!r}: {reason}: {', '.join(loaded)}")
    return loaded[split]
