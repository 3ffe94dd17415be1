"""Names of the columns that take a sampled response to the loss, per module."""

from __future__ import annotations

from enum import StrEnum


class Column(StrEnum):
    """Columns of a learner's batch: B responses; P and R are the longest prompt and the longest response."""

    PROMPT_IDS = "prompt_ids"
    """(B, P) int64, left-padded."""
    PROMPT_MASK = "prompt_mask"
    """(B, P) bool."""
    RESPONSE_IDS = "response_ids"
    """(B, R) int64, right-padded."""
    RESPONSE_MASK = "response_mask"
    """(B, R) bool."""
    SAMPLED_LOG_PROBS = "sampled_log_probs"
    """(B, R) float32, of the policy that sampled them."""
    OLD_LOG_PROBS = "old_log_probs"
    """(B, R) float32, of the policy in training before its first update of the iteration."""
    PROMPT_NUMBER = "prompt_number"
    """(B,) int64: the same for rows with the same prompt."""
    ADVANTAGES = "advantages"
    """(B,) float32."""
    TOKEN_WEIGHT = "token_weight"
    """(B,) float32: weight of each token of the response in the loss."""
    MINIBATCH = "minibatch"
    """(B,) int64: number of the optimiser step in an epoch."""
    LOG_PROBS = "log_probs"
    """(B, R) float32, of the policy in training."""
    REFERENCE_LOG_PROBS = "reference_log_probs"
    """(B, R) float32, of the frozen reference."""
    ENTROPY = "entropy"
    """(B, R) float32."""
