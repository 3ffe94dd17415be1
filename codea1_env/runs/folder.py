"""The folder of one run: `config.toml`, `episodes.jsonl`, `book.sqlite`, `metrics.json`.

Theory of operation. `episodes.jsonl` is the record of the run: when an episode ends, its line is appended, flushed and
synced, and no line is ever rewritten. After a crash, a last line without line feed is incomplete: it is cut, and its
episode is played again with the same seeds. The Mistake Book may be some rounds ahead of the last line, so a resumed
run rebuilds it from the recorded rounds. No file names a host or a folder, so the folder can be copied to another
machine and resumed there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from codea1_env.book.store import MistakeBook
from codea1_env.errors import BrokenInput
from codea1_env.facts.judge_version import require_this_judge
from codea1_env.records.closing import Closing
from codea1_env.records.faults import read_file
from codea1_env.records.file_errors import file_errors, require_run
from codea1_env.records.journal import Journal, cut_half_written, half_written, unused_folder, whole_lines
from codea1_env.records.locks import LOCK
from codea1_env.records.whole_files import remove_contents, write_whole
from codea1_env.rules.mistake_book import Provenance
from codea1_env.rules.rewards import score
from codea1_env.runs.config import RunConfig, read_config, to_toml
from codea1_env.runs.records import EpisodeRecord, RewardsRecord, from_line, to_line

_CONFIG, _EPISODES, _BOOK, _METRICS = "config.toml", "episodes.jsonl", "book.sqlite", "metrics.json"


class RunFolder(Closing):
    """A run that is being written; use it as a context manager. Only one process at a time may write a run."""

    def __init__(self, path: Path, config: RunConfig, journal: Journal) -> None:
        """Not for callers: use `create` or `open`."""
        self.path = path
        self.config = config
        self.n_episodes = 0
        """Episodes recorded so far."""
        self.notes: tuple[str, ...] = ()
        """Repairs that were made when the run was opened, one sentence each."""
        self._journal = journal

    @classmethod
    def create(
        cls, out: Path | None, config: RunConfig, *, root: Path = Path("runs"), now: datetime | None = None
    ) -> RunFolder:
        """Start a run in an empty or new folder.

        Args:
            out: the folder; None: a new one under `root`, named after the time.
            config: the resolved configuration.
            root: parent folder of unnamed runs.
            now: time for the name of an unnamed run; None: the current time.

        Raises:
            UserError: the folder is a file, is not empty, or cannot be written.
        """
        path = out if out is not None else unused_folder(root, now)
        advice = f"choose another folder, or continue its run with --resume {path}"
        folder = cls(path, config, Journal.begin(path, _EPISODES, advice))
        with folder.close_on_error():
            folder._store_config()
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Continue a run: check every line, and cut an incomplete last one.

        Raises:
            BrokenInput: the folder is not a run, its configuration cannot be read, or a line is corrupted.
            UserError: the folder cannot be read or written, another process is writing to it, or another version of the
                judge has judged its episodes.
        """
        folder = cls(path, stored_config(path), Journal(path, _EPISODES))
        with folder.close_on_error():  # under the lock: no other process can be writing a line
            for record in iter_episodes(path):
                require_this_judge(record.judge_version, path, "begin a new run")
                folder.n_episodes += 1
            folder._cut_half_written()
        return folder

    @property
    def book_path(self) -> Path:
        """Path of this run's Mistake Book."""
        return self.path / _BOOK

    def open_book(self) -> MistakeBook:
        """Return this run's Mistake Book. It need not survive a power loss: `rebuild_book` restores it."""
        return MistakeBook(self.book_path, survives_power_loss=False)

    def append(self, record: EpisodeRecord) -> None:
        """Write one episode so that it survives a crash of the machine.

        Raises:
            ValueError: it is not the next episode.
            UserError: the line cannot be written, e.g. because the disk is full; the earlier episodes are safe.
        """
        if record.episode != self.n_episodes:
            raise ValueError(f"episode {record.episode} cannot follow {self.n_episodes} recorded ones")
        reassurance = "; the episodes recorded before are safe"
        self._journal.append(to_line(record), reassurance)
        self._journal.sync(reassurance)
        self.n_episodes += 1

    def extend(self, n_episodes: int) -> None:
        """Increase the number of episodes of this run."""
        self.config = self.config.model_copy(update={"episodes": n_episodes})
        self._store_config()

    def rebuild_book(self, early: Iterable[EpisodeRecord] = ()) -> None:
        """Rebuild `book.sqlite` from the recorded rounds.

        Args:
            early: episodes that are finished but not recorded yet; those of the same problem in order.

        Raises:
            BrokenInput: recorded rewards or a recorded change do not follow from their round.
        """
        with MistakeBook() as rebuilt:
            for record in chain(iter_episodes(self.path), early):
                self._replay(rebuilt, record)
            with file_errors(self.path):
                for suffix in ("", "-wal", "-shm"):
                    self.book_path.with_name(_BOOK + suffix).unlink(missing_ok=True)
            with self.open_book() as book:
                book.restore(rebuilt.snapshot())

    def discard_if_unused(self) -> None:
        """Remove the folder if it has neither an episode nor another file, so that the same command works again."""
        written = {LOCK, _CONFIG, _EPISODES, _BOOK, f"{_BOOK}-wal", f"{_BOOK}-shm"}
        if not self.n_episodes and written.issuperset(path.name for path in self.path.iterdir()):
            remove_contents(self.path)

    def write_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Replace `metrics.json`."""
        with file_errors(self.path):
            write_whole(self.path / _METRICS, (json.dumps(metrics, indent=2, allow_nan=False) + "\n").encode())

    def close(self) -> None:
        """Close the files and release the lock; idempotent."""
        self._journal.close()

    def _store_config(self) -> None:
        with file_errors(self.path):
            write_whole(self.path / _CONFIG, to_toml(self.config).encode())

    def _replay(self, book: MistakeBook, record: EpisodeRecord) -> None:
        for played in record.rounds:
            place = f"{self.path / _EPISODES} line {record.episode + 1} round {played.round}"
            if RewardsRecord.model_validate(score(played.to_report(), self.config.rules)) != played.rewards:
                raise BrokenInput(f"{place}: the recorded rewards do not follow from the round and the run's rules")
            if played.book is None:
                continue
            provenance = Provenance(
                self.config.run_id, record.episode_id, played.round, self.config.coder, self.config.tester
            )
            report, rules = record.to_problem_report(played), self.config.rules.book
            delta = book.record(report, rules, provenance, judge_version=record.judge_version)
            if delta != played.book.to_delta():
                raise BrokenInput(f"{place}: the recorded change of the book does not follow from the round")

    def _cut_half_written(self) -> None:
        path = self._journal.path
        with file_errors(self.path):
            length = cut_half_written(path)
        if length:
            self.notes = (f"{path}: cut a half-written last line of {length} bytes; its episode is played again",)


def stored_config(path: Path) -> RunConfig:
    """Return the configuration of the run in this folder.

    Raises:
        BrokenInput: the folder is not a run, or its configuration cannot be read.
    """
    require_run(path, "run folder", _CONFIG, _EPISODES)
    with file_errors(path):
        return read_config(read_file(path / _CONFIG), str(path / _CONFIG))


def iter_episodes(path: Path) -> Iterator[EpisodeRecord]:
    """Yield the recorded episodes of a run folder; changes nothing. An incomplete last line is left out.

    Raises:
        BrokenInput: the folder is not a run, or a line is corrupted (the message names it).
    """
    stored_config(path)
    lines = path / _EPISODES
    with file_errors(path):
        for number, line in enumerate(whole_lines(lines)):
            place = f"{lines} line {number + 1}"
            record = from_line(line, place)
            if record.episode != number:
                raise BrokenInput(f"{place}: expected episode {number}, got {record.episode}")
            yield record


def ends_half_written(path: Path) -> bool:
    """Return whether the last line of a run folder's episodes is incomplete; `iter_episodes` leaves it out.

    Raises:
        BrokenInput: the file cannot be read.
    """
    with file_errors(path):
        return half_written(path / _EPISODES) > 0
