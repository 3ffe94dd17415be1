"""Public names of the training's packages, which are slow to import. Each name is imported when it is used first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from codea1_env.errors import MissingExtra

TRAINING_PACKAGES = ("ray", "torch", "transformers")
"""Packages that the training needs and that may not be installed."""


def missing_training() -> MissingExtra:
    """Return the error for a package of the training that is not installed."""
    return MissingExtra.of("training with GRPO", "rllib")


def lazy_names(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a package's `__getattr__`.

    Args:
        package: its `__name__`.
        places: by name, the module that defines it, relative to the package; one more dot leads out of it.
    """

    def find(name: str) -> Any:
        """Import a name.

        Raises:
            AttributeError: the package does not define the name.
            MissingExtra: its module needs a package that is not installed.
        """
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(import_module(f".{places[name]}", package), name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in TRAINING_PACKAGES:
                raise
            raise missing_training() from error

    return find
