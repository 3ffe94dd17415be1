"""Under which rules a system of an experiment trained, in a few words, from its settings. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from codea1_agents.train.grpo.hyperparameters import UpdateSettings
from codea1_agents.train.settings.loading import load_training
from codea1_agents.train.settings.run_parts import rules_of
from codea1_env.rules.ruleset import RewardScheme, Ruleset, preset
from codea1_env.runs.config import flat
from codea1_lab.experiments.declaration import Experiment

_WITH_ALPHA = (RewardScheme.PAPER, RewardScheme.RELEASE, RewardScheme.FIXED)
_SAID_APART = ("name", "tests_per_suite", "reading", "reward.scheme", "reward.alpha")


def rules_text(experiment: Experiment, system: str) -> str:
    """Return the reward, alpha and reading of a system's training, and what else differs from the rules of this name.

    The reward is named by those rules and, if it differs, the scheme.

    Without a training of its own: `untrained`, `supervised`, or what holds for the systems whose models it takes.
    """
    declared = experiment.system(system)
    if not declared.preset:
        taken = dict.fromkeys(rules_text(experiment, name) for name in declared.needs)
        return "supervised" if declared.sft else " and ".join(taken) or "untrained"
    config = load_training(declared.preset, {**experiment.set, **declared.set})
    rules, standard = rules_of(config.game), UpdateSettings()
    names = ("advantages", "valid_from", "credit", "other_text")
    settings = {name: getattr(config.training, name) for name in names}
    changed = [f"{name}={value}" for name, value in settings.items() if value != getattr(standard, name)]
    reads_alpha = rules.reward.scheme in _WITH_ALPHA and config.training.credit != "block"
    alpha = [f"alpha {rules.reward.alpha:g}"] if reads_alpha else []
    plain = preset(config.game.rules)
    scheme = rules.reward.scheme
    reward = plain.name if scheme == plain.reward.scheme else f"{plain.name} with the formulas of {scheme}"
    differing = _changes(rules, plain)
    grader = [f"paid by the {declared.grader}"] if declared.grader else []
    return ", ".join([reward, *alpha, f"{rules.reading} reading", *differing, *changed, *grader])


def _changes(rules: Ruleset, plain: Ruleset) -> Iterator[str]:
    before = flat(asdict(plain))
    for name, value in flat(asdict(rules)).items():
        if value != before[name] and name not in _SAID_APART:
            yield f"{name.removeprefix('reward.')}={value}"
