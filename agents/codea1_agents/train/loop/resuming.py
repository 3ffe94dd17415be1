"""Checks that a run is continued with the settings, problems and models of its start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from codea1_agents.models.gguf_files import read_source
from codea1_agents.models.model_files import HUB, model_digest, model_folder
from codea1_agents.play.versions import git_commit, installed_versions, processor_kind
from codea1_agents.train.lazy_names import TRAINING_PACKAGES
from codea1_agents.train.loop.folder import last_checkpoint, record_in, require_lines, step_of, stored_run
from codea1_agents.train.settings.loading import load_training
from codea1_agents.train.settings.options import TrainingConfig
from codea1_env.errors import BrokenInput, UserError
from codea1_env.facts.judge_version import JUDGE_VERSION, judge_version_in, require_this_judge
from codea1_env.problems import load_problems
from codea1_env.runs.config import changes_between, problems_digest

_MAY_CHANGE = ("about", "run.name", "run.folder", "run.give_up_after", "cluster", "checkpoints", "logging")
_CHECKED_BY_CONTENT = (
    "game.problems",
    "evaluation.problems",
    "agents.coder.model",
    "agents.tester.model",
    "agents.shared.model",
    "agents.base",
)


def differences(stored: TrainingConfig, wanted: TrainingConfig) -> tuple[str, ...]:
    """Return one clause per setting that may not change but differs, e.g. `run.seed was 0, now 1`.

    The settings of cluster, logging and checkpoints may change. So may the number of steps, unless the learning rate
    depends on it. The paths of problems and models may change: `require_same` compares their content.
    """
    may_change = [*_MAY_CHANGE, *_CHECKED_BY_CONTENT]
    if stored.training.lr_schedule == "constant":
        may_change.append("run.steps")
    prefixes = tuple(f"{each}." for each in may_change)
    return changes_between(
        stored.model_dump(mode="json"),
        wanted.model_dump(mode="json"),
        may_change=lambda name: f"{name}.".startswith(prefixes),
    )


def facts_of(config: TrainingConfig) -> dict[str, Any]:
    """Return what decides a run's results apart from its settings: versions, and digests of problems and models."""
    models = {name: model for name in ("coder", "tester", "shared") if (model := config.agents.model_of(name))}
    return {
        "versions": installed_versions(*TRAINING_PACKAGES),
        "processor": processor_kind(),
        "git": git_commit(),
        "judge_version": JUDGE_VERSION,
        "problems_digest": problems_digest(load_problems(config.game.problems)),
        "held_out_digest": problems_digest(load_problems(config.evaluation.problems))
        if config.evaluation.every
        else "",
        "models": {name: model_digest(model) for name, model in models.items()},
        "gguf": {
            name: asdict(source)
            for name, model in models.items()
            if (source := read_source(model_folder(model))) is not None
        },
    }


def require_begun(run: Path, wanted: TrainingConfig) -> None:
    """Check that a run can be continued: its settings, `run.json` and lines are those of its last checkpoint.

    Raises:
        UserError: a setting differs that may not change, or the folder was edited; it names the setting or the step.
    """
    stored, facts = stored_run(run)
    checkpoint = last_checkpoint(run)
    record = None if checkpoint is None else record_in(checkpoint)
    if changes := differences(stored if record is None else load_training(record.settings), wanted):
        raise UserError(f"{run}: cannot be continued with other settings: {'; '.join(changes)}")
    if record is not None and (changes := changes_between(record.facts, facts)):
        raise BrokenInput(f"{run}: cannot be continued, because its run.json was edited: {'; '.join(changes)}")
    if checkpoint is not None:
        require_lines(run, step_of(checkpoint), None if record is None else record.lines)


def require_same(run: Path, facts: Mapping[str, Any]) -> None:
    """Raise UserError if the problems, the models or the judge of a run are not those of its start."""
    config, stored = stored_run(run)
    require_this_judge(judge_version_in(stored), run, "begin a new run")
    for key, name in (("problems_digest", "game.problems"), ("held_out_digest", "evaluation.problems")):
        if stored.get(key) != facts[key]:
            raise BrokenInput(f"{run}: cannot be continued: the problems of {name} changed since its start")
    for name, digest in facts["models"].items():
        before = stored.get("models", {}).get(name)
        # A model of the hub may have become a folder, and the other way round.
        if before and before != digest and before.startswith(HUB) == digest.startswith(HUB):
            raise BrokenInput(f"{run}: cannot be continued: {config.agents.key_of(name)} changed since its start")
