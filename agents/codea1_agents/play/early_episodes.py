"""Episodes of a run that were finished before an earlier one was: kept in a file of their own until their turn comes.

`episodes.jsonl` holds episodes in the order of their numbers, so what is finished out of turn would be lost with the
process. Here each is written and synced as it is finished, in whatever order. A resumed run reads the file, hands its
episodes on at their place, and takes the file away at its end.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from codea1_env.closing import Closing
from codea1_env.facts.judge_version import require_this_judge
from codea1_env.records.file_errors import file_errors
from codea1_env.records.journal import cut_half_written, whole_lines
from codea1_env.runs.records import EpisodeRecord, from_line, to_line

_NAME = "early.jsonl"


class EarlyEpisodes(Closing):
    """The file of one run folder; made with the first episode. Its folder's lock keeps other processes out."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _NAME
        self._file: BinaryIO | None = None
        self.kept: set[int] = set()
        """Numbers of the episodes kept by this object."""

    def read(self, *, start_at: int, n_problems: int) -> dict[int, EpisodeRecord]:
        """Return the episodes from `start_at` on, by number, in order; a half-written last line is cut.

        Those whose predecessor on the same problem is missing are left out: they would be played with another book.

        Raises:
            BrokenInput: a corrupted line.
            UserError: the file cannot be read or written, or another version of the judge has judged its episodes.
        """
        if not self._path.exists():
            return {}
        with file_errors(self._path):
            cut_half_written(self._path)
            lines = list(whole_lines(self._path))
        records = [from_line(line, f"{self._path} line {number}") for number, line in enumerate(lines, start=1)]
        for record in records:
            require_this_judge(record.judge_version, self._path, "begin a new run")
        found: dict[int, EpisodeRecord] = {}
        for record in sorted(records, key=lambda each: each.episode):
            before = record.episode - n_problems
            if record.episode >= start_at and (before < start_at or before in found):
                found[record.episode] = record
        return found

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
        """Take the file away, for all of its episodes have had their turn."""
        self.close()
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the file; idempotent."""
        if self._file is not None:
            self._file.close()
            self._file = None
