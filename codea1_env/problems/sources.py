"""Loads a set of problems from everything that a user may name as a source."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from codea1_env import plugins
from codea1_env.errors import UnknownName, UserError
from codea1_env.problems.problem import Problem, ProblemSet
from codea1_env.records.file_errors import mode_of

ProblemSource = str | Path | ProblemSet | Iterable[Problem]

DEFAULT_SOURCE = "humaneval"
"""The problem source of environments, commands and trainings that name none."""

_HUGGING_FACE = "hf:"
_ENDINGS = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".parquet")
"""Endings of the files that are read in a folder."""


def load_problems(source: ProblemSource, *, strict: bool = False, limit: int | None = None) -> ProblemSet:
    """Return the problems of a source.

    >>> from codea1_env import load_problems
    >>> load_problems("starter", limit=2)
    <ProblemSet starter: 2 problems>

    Args:
        source: a set or any iterable of problems; a registered name (`humaneval`), followed by `:OPTIONS` if the source
            takes some (`tiny:held-out`); the path of a file, of a folder with files, or of a saved HuggingFace dataset;
            `hf:ID` or `hf:FOLDER`, followed by `:SPLIT` if there are several; or `module:attribute`, a set or a
            function without arguments that returns one.
        strict: fail at the first broken row instead of skipping it.
        limit: number of problems to keep, from the first; None: all.

    Raises:
        UnknownName: the source does not exist.
        UserError: it cannot be read (see `load_file`, `load_dataset_problems`), or `limit` is less than 1.
    """
    if limit is not None and limit < 1:
        raise UserError(f"limit must be at least 1, got {limit}")
    problems = _load(source, strict)
    return problems if limit is None else ProblemSet(problems.name, problems[:limit], problems.skipped, problems.notes)


def require_source(source: str) -> None:
    """Check a text that names a source, without reading it; see `load_problems` for the forms and the errors."""
    _reader(source, strict=False)


def _load(source: ProblemSource, strict: bool) -> ProblemSet:
    if isinstance(source, Path):
        return _load_path(source, strict)
    if isinstance(source, str):
        return _reader(source, strict)()
    return _as_set(source, "given problems")


def _reader(source: str, strict: bool) -> Callable[[], ProblemSet]:
    """Return what reads the source that a text names."""
    if not source.strip():
        raise UserError("the problem source is empty: name one (codea1 list problems), or a path; . is this folder")
    if source.startswith(_HUGGING_FACE):
        return partial(_load_hugging_face, source.removeprefix(_HUGGING_FACE), strict)
    known = plugins.names("problems")
    if source in known:
        return partial(_from_plugin, source)
    path = Path(source)
    if _exists(path) or source.endswith(_ENDINGS):
        return partial(_load_path, path, strict)
    if ":" in source:
        name, _, options = source.partition(":")
        if name in known:
            return partial(_from_plugin, name, options)
        plugins.resolve("problems", source)
        return partial(_from_plugin, source)
    raise UnknownName(
        f"{UnknownName.of('problem source', source, known)}; it may also be the path of a file or folder,"
        " hf:ID[:SPLIT] or module:attribute"
    )


def _exists(path: Path) -> bool:
    try:
        return bool(mode_of(path))
    except PermissionError:  # then reading it raises the proper error
        return True
    except (OSError, ValueError):  # too long for a path, or contains NUL
        return False


def _from_plugin(name: str, options: str = "") -> ProblemSet:
    target: Any = plugins.resolve("problems", name)
    is_function = callable(target) and not isinstance(target, ProblemSet)
    if options and not (is_function and inspect.signature(target).parameters):
        raise UserError(f"{name}: these problems take no options, got {options!r}")
    if is_function:
        target = plugins.result_of(name, target, *([options] if options else []))
    return _as_set(target, name)


def _as_set(problems: object, name: str) -> ProblemSet:
    if not isinstance(problems, Iterable):
        raise UserError(f"{name}: {type(problems).__name__} is not a set of problems")
    if not isinstance(problems, ProblemSet):
        problems = ProblemSet(name, plugins.result_of(name, tuple, _only_problems(name, problems)))
    if not problems:
        raise UserError(f"{problems.name}: it contains no problems")
    return problems


def _only_problems(name: str, problems: Iterable[object]) -> Iterator[Problem]:
    for problem in problems:
        if not isinstance(problem, Problem):
            raise UserError(f"{name}: {type(problem).__name__} is not a problem")
        yield problem


def _load_path(path: Path, strict: bool) -> ProblemSet:
    from codea1_env.problems.files import load_path  # noqa: PLC0415  with the readers of all data sets

    return load_path(path, _ENDINGS, strict=strict)


def _load_hugging_face(name: str, strict: bool) -> ProblemSet:
    from codea1_env.problems.hugging_face import load_dataset_problems  # noqa: PLC0415  as above

    if _exists(Path(name)) or ":" not in name:
        return load_dataset_problems(name, strict=strict)
    path_or_id, _, split = name.rpartition(":")
    return load_dataset_problems(path_or_id, split=split, strict=strict)
