"""The folder of one evaluation: `evaluation.json` (its settings), `records.jsonl`, `figures.json`.

A batch of lines is appended, flushed and synced when it is judged; nothing is rewritten. If the process dies while it
writes, the last line lacks its line feed: the line is removed, and its record is requested again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from codea1_env.errors import BrokenInput, UserError
from codea1_env.facts.judge_version import judge_version_in, require_this_judge
from codea1_env.records.closing import Closing
from codea1_env.records.faults import first_fault, read_file, read_json
from codea1_env.records.file_errors import file_errors
from codea1_env.records.journal import Journal, cut_half_written, whole_lines
from codea1_env.records.whole_files import write_whole

_SETTINGS, _RECORDS, _FIGURES = "evaluation.json", "records.jsonl", "figures.json"

_R = TypeVar("_R", bound=BaseModel)


class EvaluationFolder(Closing, Generic[_R]):
    """A new or continued evaluation, open for writing by one process; use it as a context manager."""

    def __init__(self, path: Path, settings: Mapping[str, Any], model: type[_R]) -> None:
        """Begin an evaluation in a new or empty folder, or continue the one in it.

        Args:
            path: the folder.
            settings: everything that decides the requests and their judging, as JSON values.
            model: class of a record.

        Raises:
            BrokenInput: a line is not a record of this class.
            UserError: the folder has other contents, or an evaluation with other settings, or cannot be written, or
                another process is writing to it.
        """
        self.path = path
        if (path / _SETTINGS).exists():
            _require_same(path, settings)
            self._journal = Journal(path, _RECORDS)
        else:
            self._journal = Journal.begin(path, _RECORDS, "it does not contain an evaluation; choose another folder")
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
            UserError: the disk is full or missing; records written before are safe.
        """
        self._journal.append(b"".join(record.model_dump_json().encode() + b"\n" for record in records))
        self._journal.sync()

    def write_figures(self, figures: Mapping[str, Any]) -> None:
        """Replace `figures.json`."""
        with file_errors(self.path):
            write_whole(self.path / _FIGURES, _json(figures))

    def close(self) -> None:
        """Close the folder, so that other processes may write to it."""
        self._journal.close()


def stored_settings(path: Path) -> dict[str, Any]:
    """Return the settings of the evaluation in this folder.

    Raises:
        BrokenInput: the folder is not an evaluation, or its settings cannot be read.
    """
    try:
        settings = read_json(str(path / _SETTINGS), read_file(path / _SETTINGS))
    except OSError as error:
        raise BrokenInput(
            f"{path}: not an evaluation that codea1 eval ... --out wrote ({error.strerror or error})"
        ) from error
    if not isinstance(settings, dict):
        raise BrokenInput(f"{path / _SETTINGS}: not a JSON object")
    return settings


def read_records(path: Path, model: type[_R]) -> Iterator[_R]:
    """Yield the records of an evaluation's folder without a half-written last line.

    Raises:
        BrokenInput: a line is corrupt (the message names it), or the file does not exist.
    """
    with file_errors(path):
        for number, line in enumerate(whole_lines(path / _RECORDS), start=1):
            try:
                yield model.model_validate_json(line)
            except ValidationError as error:
                raise BrokenInput(f"{path / _RECORDS} line {number}: {first_fault(error)}") from error


def _require_same(path: Path, settings: Mapping[str, Any]) -> None:
    stored = stored_settings(path)
    new = json.loads(_json(settings))
    if judge_version_in(stored) != judge_version_in(new):
        require_this_judge(judge_version_in(stored), path, "begin a new evaluation")
    differing = sorted(name for name in stored.keys() | new.keys() if stored.get(name) != new.get(name))
    if differing:
        changes = "; ".join(f"{name} {stored.get(name)!r}, now {new.get(name)!r}" for name in differing)
        raise UserError(f"{path} has an evaluation with other settings: {changes}"[:500] + "; choose another folder")


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=2, allow_nan=False) + "\n").encode()
