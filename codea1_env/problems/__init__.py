"""Programming problems, and the sources from which they are loaded."""

from codea1_env.problems.files import dump_jsonl, load_file
from codea1_env.problems.hugging_face import load_dataset_problems
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
