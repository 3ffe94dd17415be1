"""The figures of a step, as numbers in its line of `metrics.jsonl`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from codea1_agents.train.grpo.metrics import StepFacts, mean_figures
from codea1_agents.train.grpo.rollout import Tree

_OF_LEARNERS = (
    "loss",
    "policy_loss",
    "kl",
    "entropy",
    "clip_share",
    "dual_clip_share",
    "ratio_gap",
    "sampler_gap",
    "sampler_gap_max",
    "sampler_ess",
    "sampler_truncated_share",
    "grad_norm",
    "learning_rate",
)


def figures_of(
    trees: Sequence[Tree], facts: StepFacts, learners: Mapping[str, Any], tests_per_suite: int
) -> dict[str, float]:
    """Return the figures of a step, without those that have no value.

    They depend neither on a clock nor on the number of runners, and on the number of learners by rounding only.
    docs/figures.md describes them.

    Args:
        trees: of the step.
        facts: about the step.
        learners: RLlib's results of the learners, by module.
        tests_per_suite: test cases requested per suite (K).
    """
    found = mean_figures(trees, tests_per_suite)
    for module in sorted(facts.n_trained):
        results = learners.get(module, {})
        found |= {f"{module}_{name}": float(results[name]) for name in _OF_LEARNERS if name in results}
        found[f"{module}_trained"] = float(facts.n_trained[module])
    found |= {
        "book_size": float(facts.book_size),
        "book_added": float(facts.book_added),
        "book_removed": float(facts.book_removed),
        "tasks_lost": float(facts.n_tasks_lost),
        "staleness": float(facts.staleness),
        "tokens": float(_n_tokens(trees)),
    }
    return {name: value for name, value in found.items() if math.isfinite(value)}


def times_of(facts: StepFacts, figures: Mapping[str, float], step_s: float) -> dict[str, float]:
    """Return the seconds of a step by part, and the sampled tokens per second of the whole step."""
    return {
        "step_s": step_s,
        "sync_s": facts.sync_s,
        "rollout_s": facts.rollout_s,
        "generate_s": facts.generate_s,
        "judge_s": facts.judge_s,
        "learn_s": facts.learn_s,
        "tokens_per_s": figures["tokens"] / max(step_s, 1e-9),
    }


def _n_tokens(trees: Sequence[Tree]) -> int:
    answers = [
        answer for tree in trees for answer in (*tree.candidates, *(each for group in tree.suites for each in group))
    ]
    return sum(answer.response.n_tokens for answer in answers if answer.response is not None)
