"""Logs of figures, apart from `metrics.jsonl`: TensorBoard; Weights & Biases if the settings name a project."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from codea1_agents.train.settings.options import TrainingConfig
from codea1_env.errors import UserError, extra_needed

_LONGEST_FAULT = 300


class Log(Protocol):
    """Receives the figures of steps."""

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        """Write the figures of a step; their names have slashes."""

    def close(self) -> None:
        """Write everything and close."""


@contextmanager
def opened_logs(config: TrainingConfig, folder: Path, done: int, note: Callable[[str], None]) -> Iterator[list[Log]]:
    """Open the logs that the settings of a run name. A log that fails later gets no more figures; the run continues.

    Args:
        config: the run's settings.
        folder: the run's folder.
        done: steps done so far; TensorBoard drops events of later steps.
        note: receives a sentence when a log fails.

    Raises:
        MissingExtra: a package is not installed.
        UserError: a log cannot start, for example because its server does not answer.
    """
    options = config.logging
    openers: dict[str, Callable[[], Log]] = {}
    if options.tensorboard:
        openers["tensorboard"] = lambda: _TensorBoard(folder / "tensorboard", done)
    if options.wandb:
        openers["wandb"] = lambda: _Wandb(options.wandb, config, folder)
    with ExitStack() as stack:
        logs: list[Log] = []
        for name, opener in openers.items():
            logs.append(_Lasting(name, _opened(name, opener), note))
            stack.callback(logs[-1].close)
        yield logs


def _opened(name: str, opener: Callable[[], Log]) -> Log:
    try:
        return opener()
    except UserError:
        raise
    except Exception as error:  # the packages do not share an error class
        raise UserError(f"logging.{name}: {_fault(error)}") from error


def _fault(error: Exception) -> str:
    # A client may repeat the address of its server, which may hold a user and a password.
    return re.sub(r"://[^\s/]*@", "://", " ".join(str(error).split()))[:_LONGEST_FAULT] or type(error).__name__


class _Lasting:
    """A log whose failure does not end the run: `metrics.jsonl` has the figures."""

    def __init__(self, name: str, log: Log, note: Callable[[str], None]) -> None:
        self._name = name
        self._note = note
        self._log: Log | None = log

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        with self._released_on_failure(f"step {step}"):
            if self._log is not None:
                self._log.write(step, figures)

    def close(self) -> None:
        with self._released_on_failure("the end"):
            if self._log is not None:
                self._log.close()

    @contextmanager
    def _released_on_failure(self, when: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001  the packages do not share an error class
            self._log = None  # its client would try again at every step, for minutes
            self._note(
                f"logging.{self._name} failed at {when} and gets no more figures; metrics.jsonl has all:"
                f" {_fault(error)}"
            )


def flat(line: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a step's line as `part/name`, and the number of its alarms."""
    found = {f"{part}/{name}": value for part in ("figures", "times") for name, value in line.get(part, {}).items()}
    found |= {f"evaluation/{name}": value for name, value in line.get("evaluation", {}).items()}
    if "alarms" in line:
        found["alarms"] = float(len(line["alarms"]))
    return found


class _TensorBoard:
    def __init__(self, folder: Path, done: int) -> None:
        with extra_needed("logging.tensorboard", "rllib"):
            from tensorboardX import SummaryWriter  # noqa: PLC0415  heavy
        self._writer = SummaryWriter(str(folder), purge_step=done + 1, max_queue=1000, flush_secs=10)

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()


class _Wandb:
    def __init__(self, project: str, config: TrainingConfig, folder: Path) -> None:
        with extra_needed("logging.wandb", "wandb"):
            import wandb  # noqa: PLC0415  an extra
        self._run = wandb.init(
            project=project,
            name=config.run.name or folder.name,
            id=folder.resolve().name,
            resume="allow",
            dir=str(folder),
            config=config.model_dump(mode="json"),
        )

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        self._run.log(dict(figures), step=step)

    def close(self) -> None:
        self._run.finish()
