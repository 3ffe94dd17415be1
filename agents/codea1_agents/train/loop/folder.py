"""The folder of one training run.

::

    config.toml          all settings, resolved; `codea1 train RUN/config.toml` repeats the run
    run.json             versions, commit, digests of the problems and models
    metrics.jsonl        one line per step: figures, times, alarms, evaluation
    restarts.jsonl       one line per lost learner: the step, the fault, and the checkpoint from which the run went on
    checkpoints/step-N   RLlib's checkpoint: weights, optimisers, Mistake Book, cursor
    samples/step-N       some rollouts of that step, as a run folder
    tensorboard/         events
    models/ROLE          the models after the last step

A step is done when its line is written. A run continues from its last checkpoint, after the lines behind it are cut. A
checkpoint is written under another name and then renamed, so there is a whole one or none. Its `manifest.json` has the
digest of each of its files, which are compared before any is read. One of them, `run_record.json`, says with which
settings and after which lines it was written, so that a continued run is the one that was begun. A thread computes the
digests and waits for the disk, while the next step runs (docs/decisions/015).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from codea1_agents.train.settings.loading import load_training
from codea1_agents.train.settings.options import TrainingConfig
from codea1_env.errors import BrokenInput, UserError
from codea1_env.records.closing import Closing
from codea1_env.records.faults import first_fault, read_file, read_json
from codea1_env.records.file_errors import file_errors, require_run
from codea1_env.records.journal import Journal, unused_folder, whole_lines
from codea1_env.records.whole_files import new_folder, remove_contents, remove_folder, restore_folder, write_whole
from codea1_env.runs.config import to_toml

_CONFIG, _FACTS, _METRICS = "config.toml", "run.json", "metrics.jsonl"
_RESTARTS = "restarts.jsonl"
_CHECKPOINTS, _BOOK, _MANIFEST, _RECORD = "checkpoints", "book.sqlite", "manifest.json", "run_record.json"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What a checkpoint knows of its run."""

    settings: Mapping[str, Any]
    """A source for `load_training`."""
    facts: Mapping[str, Any]
    """The content of `run.json`."""
    lines: Mapping[int, str]
    """SHA-256 of each line of `metrics.jsonl` by step, in order."""


class TrainingFolder(Closing):
    """The folder of a run in progress. Use it as a context manager. One process at a time may write to it."""

    def __init__(self, path: Path, journal: Journal, config: TrainingConfig, facts: Mapping[str, Any]) -> None:
        """For internal use: call `create` or `open`."""
        self.path = path
        self._journal, self._config, self._facts = journal, config, facts
        self._digests: dict[int, str] = {}
        """Of the lines of `metrics.jsonl`, as in `RunRecord`."""
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._pending: Future[None] | None = None
        """The checkpoint that waits for the disk, or the last one that did."""

    @classmethod
    def create(cls, out: Path | None, config: TrainingConfig, facts: Mapping[str, Any]) -> TrainingFolder:
        """Start a run in a new or empty folder.

        Args:
            out: the folder; None: a new one under `runs/`, named after the time.
            config: all settings, resolved.
            facts: what `run.json` records.

        Raises:
            UserError: the folder is not empty, another process is writing to it, or it cannot be written.
        """
        path = out if out is not None else unused_folder(Path("runs"))
        advice = f"choose another folder, or continue with --resume {path}"
        folder = cls(path, Journal.begin(path, _METRICS, advice), config, facts)
        with folder.close_on_error(), file_errors(path):
            folder.store(config)
            write_whole(path / _FACTS, (json.dumps(facts, indent=2) + "\n").encode())
        return folder

    @classmethod
    def open(cls, path: Path) -> TrainingFolder:
        """Continue a run: cut its metrics behind the last checkpoint, and remove half-written files of a crash.

        Raises:
            BrokenInput: the folder is not a run.
            UserError: another process is writing to it, or it cannot be written.
        """
        config, facts = stored_run(path)
        folder = cls(path, Journal(path, _METRICS), config, facts)
        with folder.close_on_error():
            folder.cut()
        return folder

    def store(self, config: TrainingConfig) -> None:
        """Replace the stored settings."""
        self._config = config
        with file_errors(self.path):
            write_whole(self.path / _CONFIG, to_toml(config).encode())

    def append(self, line: Mapping[str, Any]) -> None:
        """Write the line of a step.

        Raises:
            UserError: the disk is full or missing. Checkpoints are intact.
        """
        text = json.dumps(line, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        self._journal.append(text, f"; {self._hint()}")
        self._digests[line["step"]] = sha256(text).hexdigest()

    def append_restart(self, line: Mapping[str, Any]) -> None:
        """Write the line of a restart."""
        with file_errors(self.path), (self.path / _RESTARTS).open("a") as file:
            file.write(json.dumps(line) + "\n")

    def save(self, step: int, write: Callable[[Path], object], book: Callable[[], bytes], keep: int) -> None:
        """Write a checkpoint, whole or not at all; then `book.sqlite`; then remove all but the newest `keep`.

        It waits for the checkpoint before this one. A thread waits for the disk; `check` and `finish` raise its errors.

        Args:
            step: number of the last step done.
            write: fills a folder.
            book: returns a snapshot of the Mistake Book for `codea1 book`; a continued run uses its checkpoint's book.
            keep: number of checkpoints to keep; 0: all.

        Raises:
            UserError: it cannot be written, e.g. the disk is full. Earlier checkpoints are intact.
        """
        self.finish()
        place = self.path / _CHECKPOINTS / f"step-{step:04d}"
        with self._checkpoint_errors(place), ExitStack() as stack:
            draft = stack.enter_context(new_folder(place))
            write(draft)
            record = RunRecord(self._config.model_dump(mode="json", exclude_none=True), self._facts, self._digests)
            (draft / _RECORD).write_text(json.dumps(asdict(record)))
            snapshot = book()
            unfinished = stack.pop_all()
        self._pending = self._thread.submit(self._finish, place, draft, unfinished, snapshot, keep)

    def _finish(self, place: Path, draft: Path, unfinished: ExitStack, book: bytes, keep: int) -> None:
        with self._checkpoint_errors(place), unfinished:
            self._journal.sync()
            (draft / _MANIFEST).write_bytes(_manifest_of(draft))
            _sync_files(draft)
        with file_errors(self.path):
            write_whole(self.path / _BOOK, book)
        for old in _checkpoints(self.path)[:-keep] if keep else ():
            remove_folder(old)

    def check(self) -> None:
        """Raise the error of a checkpoint that could not be written, if one is known; errors as in `save`."""
        if self._pending is not None and self._pending.done():
            self._pending.result()

    def finish(self) -> None:
        """Wait until the last checkpoint is on the disk; errors as in `save`."""
        if self._pending is not None:
            self._pending.result()

    def replace(self, part: str, write: Callable[[Path], object]) -> Path:
        """Write a sub-folder, whole or not at all; it replaces an older one.

        Args:
            part: its path within the run.
            write: fills a folder.

        Raises:
            UserError: it cannot be written. Checkpoints are intact.
        """
        place = self.path / part
        with self._errors(place), new_folder(place) as draft:
            write(draft)
        return place

    def _checkpoint_errors(self, place: Path) -> AbstractContextManager[None]:
        return self._errors(place, f", so the checkpoint of step {step_of(place)} is missing")

    @contextmanager
    def _errors(self, place: Path, but: str = "") -> Iterator[None]:
        """Convert errors of writing to a folder.

        Args:
            place: the folder.
            but: what a failure means.
        """
        try:
            yield
        except (OSError, UserError) as error:
            fault = (
                str(error) if isinstance(error, UserError) else f"{error.filename or place}: {error.strerror or error}"
            )
            raise UserError(f"{fault}{but}; {self._hint()}") from error

    @property
    def is_used(self) -> bool:
        """Whether the folder holds a line or a checkpoint, or held some before a restart."""
        has_lines = bool((self.path / _METRICS).stat().st_size)
        return has_lines or last_checkpoint(self.path) is not None or (self.path / _RESTARTS).exists()

    def discard_if_unused(self) -> None:
        """Remove what this run wrote if the folder is not used, so that the same command works again."""
        if not self.is_used:
            remove_contents(self.path)

    def recovery_hint(self) -> str:
        """Return which checkpoint is intact and how to continue. It waits for a checkpoint in progress."""
        if self._pending is not None:
            wait([self._pending])
        return self._hint()

    def _hint(self) -> str:
        last = last_checkpoint(self.path)
        safe = f"the checkpoint of step {step_of(last)} is intact" if last else "there is no checkpoint yet"
        return f"{safe}; continue with: codea1 train --resume {self.path}"

    def close(self) -> None:
        """Close the files after a checkpoint in progress is on the disk; idempotent."""
        self._thread.shutdown()
        self._journal.close()

    def cut(self) -> None:
        """Remove what was written after the last checkpoint. It waits for one in progress; errors as in `save`."""
        self.finish()
        with file_errors(self.path):
            for aside in self.path.glob("*/.*.before"):
                restore_folder(aside.with_name(aside.stem.removeprefix(".")))
        checkpoint = last_checkpoint(self.path)
        last = -1 if checkpoint is None else step_of(checkpoint)
        with file_errors(self.path):
            lines = [line for line in whole_lines(self._journal.path) if _step_in(line) <= last]
            self._digests = {_step_in(line): sha256(line).hexdigest() for line in lines}
            self._journal.replace(b"".join(lines))
            for ending in ("new", "old"):  # not yet complete, and not yet removed
                for left in self.path.glob(f"*/.*.{ending}"):
                    remove_folder(left)


def stored_run(path: Path) -> tuple[TrainingConfig, dict[str, Any]]:
    """Return the settings of the run in a folder, and the facts in its `run.json`.

    Raises:
        BrokenInput: the folder is not a training run, or cannot be read.
    """
    require_run(path, "training run", _CONFIG, _FACTS)
    facts = _json(read_file(path / _FACTS))
    return load_training(path / _CONFIG), facts


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a run's `metrics.jsonl`, without a half-written last one.

    Raises:
        BrokenInput: the file does not exist, or a line is not the JSON object of a step.
    """
    return _checked_lines(path / _METRICS)


def read_restarts(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a run's `restarts.jsonl`; none if it was never started again."""
    return _checked_lines(path / _RESTARTS) if (path / _RESTARTS).is_file() else []


def _checked_lines(path: Path) -> list[dict[str, Any]]:
    with file_errors(path.parent):
        lines = list(whole_lines(path))
    return [checked_line(line, f"{path} line {number}") for number, line in enumerate(lines, start=1)]


def last_checkpoint(path: Path) -> Path | None:
    """Return the newest checkpoint of a run; None if it has none."""
    return next(reversed(_checkpoints(path)), None)


def checkpoint_of(path: Path, step: int) -> Path:
    """Return the checkpoint that a run wrote after a step.

    Raises:
        UserError: the run has no checkpoint of that step.
    """
    checkpoints = {step_of(checkpoint): checkpoint for checkpoint in _checkpoints(path)}
    if step not in checkpoints:
        steps = ", ".join(map(str, checkpoints)) or "none"
        raise UserError(f"{path}: no checkpoint of step {step}; there are: {steps}")
    return checkpoints[step]


def _checkpoints(path: Path) -> list[Path]:
    places = (path / _CHECKPOINTS).glob("step-*")
    return sorted((place for place in places if place.name.removeprefix("step-").isdecimal()), key=step_of)


def step_of(checkpoint: Path) -> int:
    """Return the step after which a checkpoint was written."""
    return int(checkpoint.name.removeprefix("step-"))


def require_intact(checkpoint: Path) -> None:
    """Compare the files of a checkpoint with its manifest; checkpoints of earlier versions have none.

    Raises:
        BrokenInput: a file is missing, is new, or has another content; it names the first.
        UserError: a file cannot be read.
    """
    if not any((checkpoint / name).is_file() for name in (_MANIFEST, _RECORD)):
        return
    with file_errors(checkpoint):
        stored, present = read_file(checkpoint / _MANIFEST), _manifest_of(checkpoint)
    if stored != present:
        differing = dict(_json(stored).items() ^ _json(present).items()) or {_MANIFEST: ""}
        raise BrokenInput(
            f"{checkpoint / min(differing)}: it is not as it was written, so the checkpoint cannot be restored; "
            "without its folder the run continues from the one before"
        )


def record_in(checkpoint: Path) -> RunRecord | None:
    """Return what a checkpoint knows of its run; None for one of an earlier version.

    Raises:
        BrokenInput: a file of the checkpoint is not as it was written.
        UserError: a file cannot be read.
    """
    with file_errors(checkpoint):
        manifest, record = (
            read_file(path) if path.is_file() else b"" for path in (checkpoint / _MANIFEST, checkpoint / _RECORD)
        )
    digest = _json(manifest).get(_RECORD)
    if digest != sha256(record).hexdigest():
        require_intact(checkpoint)
    if digest is None:
        return None
    fields = _json(record)
    return RunRecord(fields["settings"], fields["facts"], {int(step): text for step, text in fields["lines"].items()})


def require_lines(run: Path, last: int, digests: Mapping[int, str] | None) -> None:
    """Compare the lines of `metrics.jsonl` up to a step with those that a checkpoint knows.

    Args:
        run: the folder.
        last: the step.
        digests: as in `RunRecord`; None for a checkpoint of an earlier version, which knows only the steps.

    Raises:
        BrokenInput: a line is missing, new, doubled, changed or moved; it names the first such step.
    """
    path, lines = run / _METRICS, dict[int, list[bytes]]()
    with file_errors(run):
        for number, line in enumerate(whole_lines(path) if path.is_file() else (), start=1):
            if _step_in(line) <= last:
                lines.setdefault(checked_line(line, f"{path} line {number}")["step"], []).append(line)
    expected = digests if digests is not None else dict.fromkeys(range(0 if 0 in lines else 1, last + 1), "")
    moved = next((step for step, place in zip(expected, lines, strict=False) if step != place), None)
    for step in dict.fromkeys((*expected, *lines)):
        match lines.get(step, []):
            case []:
                fault = "is missing"
            case [line] if step in expected and expected[step] in ("", sha256(line).hexdigest()):
                continue
            case [_]:
                fault = "was changed" if step in expected else "is not of this run"
            case several:
                fault = f"is there {len(several)} times"
        break
    else:
        if moved is None:
            return
        step, fault = moved, "is not in its place"
    raise BrokenInput(f"{path}: the run cannot be continued, because the line of step {step} {fault}")


def _manifest_of(checkpoint: Path) -> bytes:
    """Return the digests of all files by path, in one form, so that equal files have equal manifests."""
    digests = {}
    for path in filter(Path.is_file, checkpoint.rglob("*")):
        if path != checkpoint / _MANIFEST:
            with path.open("rb") as file:
                digests[str(path.relative_to(checkpoint))] = file_digest(file, "sha256").hexdigest()
    return json.dumps(digests, sort_keys=True).encode()


def _json(line: bytes) -> dict[str, Any]:
    try:
        value = read_json("", line, is_strict=False)
    except BrokenInput:
        return {}
    return value if isinstance(value, dict) else {}


_Number = Annotated[float, Field(ge=-1e100, le=1e100, allow_inf_nan=False)]


class _LineRecord(BaseModel):
    """What the readers of `metrics.jsonl` and `restarts.jsonl` rely on."""

    model_config = ConfigDict(strict=True)

    step: int = Field(ge=0, le=1 << 48)
    figures: dict[str, _Number] = {}
    times: dict[str, _Number] = {}
    evaluation: dict[str, _Number] = {}
    alarms: dict[str, str] = {}
    fault: str = ""


def checked_line(line: bytes, place: str) -> dict[str, Any]:
    """Return a line of `metrics.jsonl` or `restarts.jsonl`.

    Args:
        line: with or without its line feed.
        place: the line's name in errors.

    Raises:
        BrokenInput: it is not the JSON object of a step.
    """
    fields = _json(line)
    if not fields:
        raise BrokenInput(f"{place}: not a JSON object")
    try:
        _LineRecord.model_validate(fields)
    except ValidationError as error:
        raise BrokenInput(f"{place}: {first_fault(error)}") from error
    return fields


def _step_in(line: bytes) -> int:
    step = _json(line).get("step")
    return step if isinstance(step, int) else -1  # it is kept, and `read_metrics` names its number


def _sync_files(folder: Path) -> None:
    for path in filter(Path.is_file, folder.rglob("*")):
        with path.open("rb") as file:
            os.fsync(file.fileno())
