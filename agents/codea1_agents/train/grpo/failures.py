"""What ends a training, though nobody has asked for the wrong thing."""

from __future__ import annotations

from codea1_env.errors import CodeA1Error


class TrainingStopped(CodeA1Error):
    """An iteration cannot be completed; the last checkpoint is as it was."""


class NotFinite(TrainingStopped, ArithmeticError):
    """The loss or its gradient is no number; the weights are as before the step that would have spoilt them."""


class LearnerLost(TrainingStopped, RuntimeError):
    """A learner's process is gone."""


class RunnerFailed(TrainingStopped, RuntimeError):
    """A runner raised what would be raised again elsewhere, or none is left."""


class StaleWeights(TrainingStopped, RuntimeError):
    """An engine does not compute what the learner's weights would; nothing that it samples may be learnt from."""
