"""What makes two runs the same one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from codea1_agents.play.versions import git_commit, installed_versions
from codea1_agents.train.loop.folder import stored_run
from codea1_agents.train.loop.options import TrainingConfig
from codea1_env.errors import BrokenInput
from codea1_env.facts.judge_version import JUDGE_VERSION, judge_version_in, require_this_judge
from codea1_env.problems import load_problems
from codea1_env.runs.config import changes_between, problems_digest

_MAY_CHANGE = ("about", "run.name", "run.folder", "cluster", "checkpoints", "logging")
_CHECKED_BY_CONTENT = (
    "game.problems",
    "evaluation.problems",
    "agents.coder.model",
    "agents.tester.model",
    "agents.shared.model",
)
_LEARNERS = ("ray", "torch", "transformers")
_ENDS = 1 << 20  # bytes of each end of a file of weights that enter its digest: all of it would take minutes


def differences(stored: TrainingConfig, asked: TrainingConfig) -> tuple[str, ...]:
    """Return one clause per setting in which `asked` would not continue a run, e.g. `run.seed was 0, now 1`.

    Where it runs, what is logged and what is kept may change; so may the number of steps, unless the learning rate
    follows it. Problems and models may lie elsewhere: their content is compared (`require_same`).
    """
    may_change = [*_MAY_CHANGE, *_CHECKED_BY_CONTENT]
    if stored.training.lr_schedule == "constant":
        may_change.append("run.steps")
    prefixes = tuple(f"{each}." for each in may_change)
    return changes_between(stored, asked, may_change=lambda name: f"{name}.".startswith(prefixes))


def facts_of(config: TrainingConfig) -> dict[str, Any]:
    """Return what a run's results depend on beside its settings: versions, judge, digests of problems and models."""
    versions = installed_versions()
    for package in _LEARNERS:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    models = {seat: model for seat in ("coder", "tester", "shared") if (model := getattr(config.agents, seat).model)}
    return {
        "versions": versions,
        "git": git_commit(),
        "judge_version": JUDGE_VERSION,
        "problems_digest": problems_digest(load_problems(config.game.problems)),
        "held_out_digest": problems_digest(load_problems(config.evaluation.problems))
        if config.evaluation.every
        else "",
        "models": {seat: _model_digest(model) for seat, model in models.items()},
    }


def require_same(run: Path, facts: Mapping[str, Any]) -> None:
    """Raise UserError where the problems, the models or the judge of a run are not those that it began with."""
    _, stored = stored_run(run)
    require_this_judge(judge_version_in(stored), run, "begin a new run")
    for key, name in (("problems_digest", "game.problems"), ("held_out_digest", "evaluation.problems")):
        if stored.get(key) != facts[key]:
            raise BrokenInput(f"{run}: cannot be continued: {name} holds other problems than it began with")
    for seat, digest in facts["models"].items():
        before = stored.get("models", {}).get(seat)
        if before and digest and before != digest:
            raise BrokenInput(f"{run}: cannot be continued: agents.{seat}.model is another model than it began with")


def _model_digest(model: str) -> str:
    """Return a digest of a model's directory; empty for an id of the hub."""
    folder = Path(model).expanduser()
    if not folder.is_dir():
        return ""
    found = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in (".safetensors", ".bin") or path.name in ("config.json", "tokenizer.json"):
            size = path.stat().st_size
            found.update(f"{path.name} {size}\n".encode())
            with path.open("rb") as file:
                found.update(file.read(_ENDS))
                file.seek(max(0, size - _ENDS))
                found.update(file.read())
    return found.hexdigest()[:16]
