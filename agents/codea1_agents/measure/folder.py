"""The folder of one evaluation: `evaluation.json` (what was asked), `records.jsonl`, `figures.json`.

A batch of lines is appended, flushed and synced when it is judged; nothing is rewritten. A last line without line feed
was being written when the process died: it is cut, and what it held is asked for again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from codea1_env.closing import Closing
from codea1_env.errors import BrokenInput, UserError
from codea1_env.facts.judge_version import judge_version_in, require_this_judge
from codea1_env.records.file_errors import file_errors
from codea1_env.records.journal import Journal, cut_half_written, whole_lines
from codea1_env.records.whole_files import write_whole
from codea1_env.runs.records import first_fault

_SETTINGS, _RECORDS, _FIGURES = "evaluation.json", "records.jsonl", "figures.json"

_R = TypeVar("_R", bound=BaseModel)


class EvaluationFolder(Closing, Generic[_R]):
    """An evaluation that is being written, new or continued; use it as a context manager. One process at a time."""

    def __init__(self, path: Path, settings: Mapping[str, Any], model: type[_R]) -> None:
        """Begin an evaluation in a new or empty folder, or go on with the one that is there.

        Args:
            path: the folder.
            settings: all that decides what is asked and how it is judged, as JSON values.
            model: of a line.

        Raises:
            BrokenInput: a line that is not of the model.
            UserError: the folder holds something else, or an evaluation with other settings, or cannot be written, or
                another process is writing to it.
        """
        self.path = path
        if (path / _SETTINGS).exists():
            _require_same(path, settings)
            self._journal = Journal(path, _RECORDS)
        else:
            self._journal = Journal.begin(path, _RECORDS, "it holds no evaluation; choose another folder")
        try:
            with file_errors(path):
                if not (path / _SETTINGS).exists():
                    write_whole(path / _SETTINGS, _json(settings))
                cut_half_written(path / _RECORDS)
            self.known = list(read_records(path, model))
        except BaseException:
            self._journal.close()
            raise

    def append(self, records: Sequence[_R]) -> None:
        """Write records so that they survive a crash of the machine.

        Raises:
            UserError: the disk is full or gone; what was written before is safe.
        """
        self._journal.append(b"".join(each.model_dump_json().encode() + b"\n" for each in records))
        self._journal.sync()

    def write_figures(self, figures: Mapping[str, Any]) -> None:
        """Replace `figures.json`."""
        with file_errors(self.path):
            write_whole(self.path / _FIGURES, _json(figures))

    def close(self) -> None:
        """Let others write to it."""
        self._journal.close()


def stored_settings(path: Path) -> dict[str, Any]:
    """Return what the evaluation in this folder was asked to do.

    Raises:
        BrokenInput: there is none, or it cannot be read.
    """
    try:
        found = json.loads((path / _SETTINGS).read_bytes())
    except OSError as error:
        raise BrokenInput(f"{path}: no evaluation there ({error.strerror or error})") from error
    except ValueError as error:
        raise BrokenInput(f"{path / _SETTINGS}: not JSON ({error})") from error
    if not isinstance(found, dict):
        raise BrokenInput(f"{path / _SETTINGS}: not a JSON object")
    return found


def read_records(path: Path, model: type[_R]) -> Iterator[_R]:
    """Yield the records of an evaluation's folder; a half-written last line is left out.

    Raises:
        BrokenInput: a corrupted line (the message names it), or no such file.
    """
    with file_errors(path):
        for number, line in enumerate(whole_lines(path / _RECORDS), start=1):
            try:
                yield model.model_validate_json(line)
            except ValidationError as error:
                raise BrokenInput(f"{path / _RECORDS} line {number}: {first_fault(error)}") from error


def _require_same(path: Path, settings: Mapping[str, Any]) -> None:
    stored = stored_settings(path)
    asked = json.loads(_json(settings))
    if judge_version_in(stored) != judge_version_in(asked):
        require_this_judge(judge_version_in(stored), path, "begin a new evaluation")
    differing = sorted(name for name in stored.keys() | asked.keys() if stored.get(name) != asked.get(name))
    if differing:
        told = "; ".join(f"{name} {stored.get(name)!r}, now {asked.get(name)!r}" for name in differing)
        raise UserError(f"{path}: holds an evaluation with other settings: {told}"[:500])


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=2, allow_nan=False) + "\n").encode()
