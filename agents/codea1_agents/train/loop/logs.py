"""The log of figures apart from `metrics.jsonl`: TensorBoard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from codea1_agents.train.settings.options import TrainingConfig
from codea1_env.errors import extra_needed
from codea1_env.records.closing import Closing

_LONGEST_FAULT = 300


def flat(line: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a step's line as `part/name`, and the number of its alarms."""
    figures = {f"{part}/{name}": value for part in ("figures", "times") for name, value in line.get(part, {}).items()}
    figures |= {f"evaluation/{name}": value for name, value in line.get("evaluation", {}).items()}
    if "alarms" in line:
        figures["alarms"] = float(len(line["alarms"]))
    return figures


class TensorBoard(Closing):
    """Writes event files. After a failure it gets no more figures and the run continues: `metrics.jsonl` has all."""

    def __init__(self, config: TrainingConfig, folder: Path, done: int, note: Callable[[str], None]) -> None:
        """Open the log, if the settings of a run ask for it; otherwise nothing is written.

        Args:
            config: the run's settings.
            folder: the run's folder.
            done: steps done so far; events of later steps are dropped.
            note: receives a sentence when the log fails.

        Raises:
            MissingExtra: a package is not installed.
        """
        self._note = note
        self._writer: Any = None
        if config.logging.tensorboard:
            with extra_needed("logging.tensorboard", "rllib"):
                from tensorboardX import SummaryWriter  # noqa: PLC0415  heavy
            place = str(folder / "tensorboard")
            self._writer = SummaryWriter(place, purge_step=done + 1, max_queue=1000, flush_secs=10)

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        """Write the figures of a step; their names have slashes."""
        with self._release_on_failure(f"step {step}"):
            for name, value in figures.items() if self._writer else ():
                self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Write everything and close."""
        with self._release_on_failure("the end"):
            if self._writer:
                self._writer.close()

    @contextmanager
    def _release_on_failure(self, when: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001  such as a full disk
            self._writer = None
            fault = " ".join(str(error).split())[:_LONGEST_FAULT] or type(error).__name__
            self._note(f"logging.tensorboard failed at {when} and gets no more figures; metrics.jsonl has all: {fault}")
