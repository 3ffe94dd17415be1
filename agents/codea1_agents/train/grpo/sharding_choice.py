"""Whether a training is sharded. Needs neither torch nor Ray."""

from __future__ import annotations

from collections.abc import Iterable

from codea1_agents.models.shapes import UnknownShape, shape_of

SHARDINGS = ("auto", "full", "none")
SHARDS = "shards"
"""Folder of a checkpoint with the parts of all learners."""
SHARDED_ABOVE = 1_000_000_000
"""Parameters of all models of a run above which `auto` shards them; with gradients and AdamW these are 16 GB."""


def is_sharded(sharding: str, n_learners: int, models: Iterable[str]) -> bool:
    """Return whether each learner holds a part of every model.

    Args:
        sharding: one of `SHARDINGS`.
        n_learners: of the run.
        models: folders or hub ids. A model of unknown shape counts nothing.
    """
    if sharding != "auto" or n_learners < 2:
        return sharding == "full"
    return sum(map(_parameters, models)) > SHARDED_ABOVE


def _parameters(model: str) -> int:
    try:
        return shape_of(model).parameters
    except UnknownShape:
        return 0
