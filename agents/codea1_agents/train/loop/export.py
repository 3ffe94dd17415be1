"""Export of a trained module as a plain directory of `transformers`."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codea1_agents.models.model_files import writing_errors
from codea1_agents.train.grpo.settings import SHARDS, ModelSettings
from codea1_agents.train.loop.folder import last_checkpoint, require_intact, stored_run
from codea1_agents.train.settings.loading import apply_changes
from codea1_env.errors import BrokenInput, UnknownName, UserError
from codea1_env.records.file_errors import file_errors
from codea1_env.records.journal import require_empty

_LEARNERS = "learner_group"


def export_model(
    source: Path, role: str, out: Path, changes: Mapping[str, Any] | None = None, *, adapter: bool = False
) -> Path:
    """Write the model that plays a role in a run.

    Args:
        source: folder of a run (its last checkpoint is used), or one of its checkpoints.
        role: `coder` or `tester`; `shared` for a model that plays both.
        out: directory, new or empty.
        changes: to the run's settings, by dotted key: where its models are now, if they were moved.
        adapter: whether the adapter is written alone, in the format of peft, instead of the merged model.

    Raises:
        UserError: no run or checkpoint, no model of this role, or `out` cannot be written.
    """
    run, checkpoint = _locate(source)
    config, _ = stored_run(run)
    from codea1_agents.train.settings.run_parts import models_of  # noqa: PLC0415  slow to import

    models = models_of(apply_changes(config, changes or {}))
    module = role if role in models else "shared" if role in ("coder", "tester") else role
    if module not in models:
        raise UnknownName.of("role with a model", role, models)
    return export_module(state_in(checkpoint, module, out.absolute().parent), models[module], out, adapter=adapter)


def state_in(checkpoint: Path, module: str, scratch: Path) -> Mapping[str, Any]:
    """Return a module's weights from a checkpoint, as `CausalLMModule.get_state` does.

    Args:
        checkpoint: its folder.
        module: name of the module.
        scratch: folder on the disk where weights of sharded learners are put together.

    Raises:
        BrokenInput: the checkpoint is damaged.
    """
    require_intact(checkpoint)
    place = checkpoint / _LEARNERS
    try:
        if is_sharded_checkpoint(checkpoint):
            from codea1_agents.train.grpo.learner_group import whole_state  # noqa: PLC0415  heavy

            return whole_state(place / SHARDS, module, scratch if scratch.is_dir() else None)
        place = place / "learner" / "rl_module" / module / "module_state.pkl"
        state: Mapping[str, Any] = pickle.loads(place.read_bytes())
    except Exception as error:  # pickle raises any exception on damaged bytes
        raise BrokenInput(f"{place}: contains no weights ({error})") from error
    return state


def is_sharded_checkpoint(checkpoint: Path) -> bool:
    """Return whether a checkpoint was written by learners that each held a part of the models."""
    return (checkpoint / _LEARNERS / SHARDS).is_dir()


def export_module(state: Mapping[str, Any], settings: ModelSettings, out: Path, *, adapter: bool = False) -> Path:
    """Write a module's weights, with its tokenizer, to a new or empty directory.

    Args:
        state: result of `CausalLMModule.get_state`.
        settings: the module's settings.
        out: the directory.
        adapter: whether the adapter is written alone.

    Raises:
        UserError: the directory is not empty or cannot be written, or the weights are those of another model.
    """
    from codea1_agents.train.grpo.rl_module import export_adapter, export_state  # noqa: PLC0415  heavy

    with file_errors(out):
        out.mkdir(parents=True, exist_ok=True)
        require_empty(out, "choose another folder")
        try:
            with writing_errors(out):
                (export_adapter if adapter else export_state)(settings, state, out)
        except UserError:
            raise
        except (ValueError, RuntimeError) as error:
            raise UserError(f"{settings.path}: the checkpoint does not fit it: {error}") from error
    return out


def _locate(source: Path) -> tuple[Path, Path]:
    """Return the run and the checkpoint of a path, which may be either."""
    if (source / _LEARNERS).is_dir():
        return source.resolve().parent.parent, source
    stored_run(source)
    checkpoint = last_checkpoint(source)
    if checkpoint is None:
        raise BrokenInput(f"{source}: this run has no checkpoint yet")
    return source, checkpoint
