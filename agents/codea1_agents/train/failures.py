"""Errors that end a training whose settings are right."""

from __future__ import annotations

from codea1_env.errors import ClusterError, CodeA1Error


class TrainingStopped(CodeA1Error):
    """An iteration cannot be completed. The last checkpoint stays valid."""


class NotFinite(TrainingStopped, ArithmeticError):
    """The loss or its gradient is not finite. The weights are those before this step."""


class SamplerDiffers(TrainingStopped, ValueError):
    """Before the first update, sampler and learner compute other log-probabilities with the same weights."""


class LearnerLost(TrainingStopped, ClusterError):
    """A learner has ended, does not answer, or raised an exception. All learners have ended, since RLlib replaces none.

    `codea1 train` starts again from the last checkpoint; in Tune, `FailureConfig(max_failures=...)` does.
    """


class RunnerFailed(TrainingStopped, RuntimeError):
    """A runner raised an exception, which another runner would raise again; or no runner is left."""


class StaleWeights(TrainingStopped, RuntimeError):
    """An engine does not compute with the learner's weights. Its samples must not train anything."""


class TrainingFailed(CodeA1Error, RuntimeError):
    """The training failed, e.g. by a loss that is not finite. The message says which checkpoint is intact."""


class LearnersFailed(TrainingFailed, ClusterError):
    """Learners were lost more often than the run may start again."""
