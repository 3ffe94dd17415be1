"""Measures one model in both roles on a few problems, and keeps the replies."""

from __future__ import annotations

from dataclasses import dataclass

from codea1_agents.evaluation.coder import evaluate_coder, figures_of_coder
from codea1_agents.evaluation.mutant_trials import MutantTrial, figures_of_trials, mutant_trials
from codea1_agents.evaluation.records import CoderSample
from codea1_agents.play.named_agent import NamedAgent
from codea1_agents.statistics import Estimate
from codea1_env.agent import Role
from codea1_env.problems import ProblemSet
from codea1_env.sandbox import Sandbox


@dataclass(frozen=True, slots=True)
class ZeroShotTask:
    """The work of the model: programs and suites per problem, each suite for a mutant, and tests per suite."""

    samples: int = 1
    tests: int = 8
    seed: int = 0
    """Seeds the mutants and the intervals."""


@dataclass(frozen=True, slots=True)
class ZeroShot:
    """The judged replies of a model."""

    task: ZeroShotTask
    samples: tuple[CoderSample, ...] = ()
    """The coder's figures; problems without golden tests are left out."""
    trials: tuple[MutantTrial, ...] = ()
    """The tester's figures."""

    def figures(self) -> dict[str, Estimate]:
        """Return `pass@1` of the coder, `figures_of_trials` of the tester, in [0, 1], as far as measured."""
        figures = {}
        if self.samples:
            figures["pass@1"] = figures_of_coder(self.samples, seed=self.task.seed).average
        if self.trials:
            figures |= figures_of_trials(self.trials, tests=self.task.tests, seed=self.task.seed)
        return figures


def zero_shot(
    problems: ProblemSet, players: dict[Role, NamedAgent], sandbox: Sandbox, task: ZeroShotTask | None = None
) -> ZeroShot:
    """Return the replies of a model in the roles that it plays.

    Args:
        problems: which the replies answer.
        players: by role.
        sandbox: runs everything.
        task: what the model writes.

    Raises:
        UserError: the model failed.
        SandboxError: the sandbox cannot be used at all.
    """
    task, samples, trials = task or ZeroShotTask(), [], []
    if "coder" in players:
        batches = evaluate_coder(problems, players["coder"], sandbox, samples=task.samples)
        samples = [sample for batch in batches for sample in batch]
    if "tester" in players:
        trials = mutant_trials(
            problems, players["tester"], sandbox, samples=task.samples, tests=task.tests, seed=task.seed
        )
    return ZeroShot(task, tuple(samples), tuple(trials))
