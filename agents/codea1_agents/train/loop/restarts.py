"""A run that has lost a learner starts again from its last checkpoint, as `codea1 train --resume` would continue it.

All learners have ended then, which frees their GPUs and the collectives in which they waited. Ray and all runners start
anew, too, but this process stays, and it holds the folder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from codea1_agents.train.failures import LearnersFailed
from codea1_agents.train.loop.folder import TrainingFolder, last_checkpoint, read_metrics, step_of


@dataclass(slots=True)
class Restarts:
    """Counts the restarts of a run since its last new checkpoint."""

    limit: int
    """0: none."""
    folder: TrainingFolder
    note: Callable[[str], object]
    """Receives a sentence for people."""
    _n: int = field(init=False, default=0)
    _from: int = field(init=False, default=-1)
    """Steps in the checkpoint of the restart before."""

    def prepare(self, error: Exception) -> None:
        """Prepare the folder for the next start, and say why there is one.

        Args:
            error: the loss.

        Raises:
            LearnersFailed: the run did not get further often enough.
            UserError: the disk.
        """
        lines = read_metrics(self.folder.path)
        step = lines[-1]["step"] + 1 if lines else 1
        fault = str(error).strip().splitlines()[-1]
        hint = self.folder.recovery_hint()  # waits for a checkpoint in progress
        checkpoint = last_checkpoint(self.folder.path)
        done = step_of(checkpoint) if checkpoint is not None else 0
        self._n = self._n + 1 if done == self._from else 1
        self._from = done
        if self._n > self.limit:
            tried = f"; restart {self.limit} of {self.limit} brought no new checkpoint" if self.limit else ""
            raise LearnersFailed(f"step {step}: {fault}{tried}; {hint}") from error
        place = f"the checkpoint of step {done}" if done else "the first step"
        self.note(f"step {step}: {fault}; starting again from {place} (restart {self._n} of {self.limit})")
        self.folder.append_restart({"step": step, "fault": fault, "from": done})
        self.folder.cut()
