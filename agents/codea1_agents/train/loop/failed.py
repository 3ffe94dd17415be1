"""How a training fails whose settings are right."""

from __future__ import annotations

from codea1_env.errors import ClusterError, CodeA1Error


class TrainingFailed(CodeA1Error, RuntimeError):
    """The training failed, e.g. by a loss that is not finite. The message says which checkpoint is intact."""


class LearnersFailed(TrainingFailed, ClusterError):
    """Learners were lost more often than the run may start again."""
