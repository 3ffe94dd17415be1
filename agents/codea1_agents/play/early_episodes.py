"""A file of the episodes that finished before an earlier episode did.

`episodes.jsonl` holds episodes in the order of their numbers, so an episode that finishes early would be lost if the
process died. This file receives each such episode as it finishes, in any order, and is synced every time. A resumed run
reads the file, yields its episodes at their place, and removes the file at its end.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from codea1_env.facts.judge_version import require_this_judge
from codea1_env.records.closing import Closing
from codea1_env.records.file_errors import file_errors
from codea1_env.records.journal import cut_half_written, whole_lines
from codea1_env.runs.records import EpisodeRecord, from_line, to_line

_NAME = "early.jsonl"


class EarlyEpisodes(Closing):
    """The file of one run folder; the first episode creates it. The lock of the run folder excludes other processes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _NAME
        self._file: BinaryIO | None = None
        self.kept: set[int] = set()
        """Numbers of the episodes that this object wrote."""

    def read(self, *, start_at: int, n_problems: int) -> dict[int, EpisodeRecord]:
        """Return the episodes from `start_at` on by number, in order. Removes a half-written last line from the file.

        An episode is left out if its predecessor on the same problem is missing: it saw a Mistake Book that this run
        does not have.

        Raises:
            BrokenInput: a corrupted line.
            UserError: the file cannot be read or written, or another version of the judge judged its episodes.
        """
        if not self._path.exists():
            return {}
        with file_errors(self._path):
            cut_half_written(self._path)
            lines = list(whole_lines(self._path))
        records = [from_line(line, f"{self._path} line {number}") for number, line in enumerate(lines, start=1)]
        for record in records:
            require_this_judge(record.judge_version, self._path, "begin a new run")
        kept: dict[int, EpisodeRecord] = {}
        for record in sorted(records, key=lambda each: each.episode):
            before = record.episode - n_problems
            if record.episode >= start_at and (before < start_at or before in kept):
                kept[record.episode] = record
        return kept

    def keep(self, record: EpisodeRecord) -> None:
        """Write one episode so that it survives a crash of the machine.

        Raises:
            UserError: the disk is full or gone.
        """
        with file_errors(self._path):
            if self._file is None:
                self._file = self._path.open("ab")
            self._file.write(to_line(record))
            self._file.flush()
            os.fsync(self._file.fileno())
            self.kept.add(record.episode)

    def remove(self) -> None:
        """Remove the file after all of its episodes were recorded."""
        self.close()
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; idempotent."""
        if self._file is not None:
            self._file.close()
            self._file = None
