"""Programming problems, and the sources from which they are loaded."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from codea1_env.problems.problem import (
    GoldenCase,
    GoldenHarness,
    GoldenTest,
    Problem,
    ProblemSet,
    SkippedRow,
    WrongProgram,
)
from codea1_env.problems.sources import DEFAULT_SOURCE, ProblemSource, load_problems

if TYPE_CHECKING:  # at run time `__getattr__` imports them
    from codea1_env.problems.files import dump_jsonl, load_file
    from codea1_env.problems.hugging_face import load_dataset_problems

__all__ = [
    "DEFAULT_SOURCE",
    "GoldenCase",
    "GoldenHarness",
    "GoldenTest",
    "Problem",
    "ProblemSet",
    "ProblemSource",
    "SkippedRow",
    "WrongProgram",
    "dump_jsonl",
    "load_dataset_problems",
    "load_file",
    "load_problems",
]

_MODULE_OF = {"dump_jsonl": "files", "load_dataset_problems": "hugging_face", "load_file": "files"}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import the readers of all data sets on first use: a game of given problems needs none."""
        if name in _MODULE_OF:
            return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
