"""What `codea1 train`, `codea1 presets` and `codea1 export-model` do."""

from __future__ import annotations

from typing import Any

import typer

from codea1_agents.cli.boundary import INTERRUPTED
from codea1_agents.cli.console import Page, new_table
from codea1_agents.cli.train import ExportModelOptions, PresetsOptions, TrainOptions
from codea1_agents.cli.training_table import LiveTable, PlainLines
from codea1_agents.train.loop.loading import load_training, preset_names
from codea1_env.errors import MissingExtra, UserError


def run_training(asked: TrainOptions) -> None:
    """Train, and tell how it goes.

    Raises:
        UserError: what was asked for makes no run.
        TrainingFailed: it was stopped, e.g. because the loss became no number.
        typer.Exit: interrupted (130).
    """
    resume, changes = asked.resume, asked.changes or ()
    if resume is not None and asked.out is not None:
        raise UserError("--out and --resume exclude each other: a resumed run stays in its folder")
    if asked.config is None and resume is None:
        raise UserError("name a TOML file or a preset (see codea1 presets), or a run to --resume")
    config = None if asked.config is None else load_training(asked.config, () if resume else changes)
    require_training()
    from codea1_agents.train.loop import loop  # noqa: PLC0415  heavy

    page = Page(as_json=asked.as_json, quiet=asked.quiet)
    watcher = LiveTable(page) if page.is_live else PlainLines(page)
    with page.apart(), watcher:
        if resume is not None:
            done = loop.resume(resume, changes, config=config, watcher=watcher)
        else:
            assert config is not None
            done = loop.train(config, out=asked.out, watcher=watcher)
    _tell(page, done)
    if done.interrupted:
        raise typer.Exit(INTERRUPTED)


def run_export(asked: ExportModelOptions) -> None:
    """Write a trained model.

    Raises:
        UserError: no such run or role, or the directory cannot be written.
    """
    require_training()
    from codea1_agents.train.loop.export import export_model  # noqa: PLC0415  heavy

    page = Page(as_json=asked.as_json)
    with page.apart():
        export_model(asked.source, asked.role, asked.out)
    page.say(f"{asked.role} written to {asked.out}")
    page.finish({"role": asked.role, "out": str(asked.out)})


def run_presets(asked: PresetsOptions) -> None:
    """List the presets."""
    page = Page(as_json=asked.as_json)
    found = {name: load_training(name) for name in preset_names()}
    page.show(new_table(("preset", "what it is"), [(name, each.about) for name, each in found.items()], whole=(0,)))
    page.finish({"presets": [{"name": name, "about": each.about} for name, each in found.items()]})


def require_training() -> None:
    """Check that what trains can be imported.

    Raises:
        MissingExtra: Ray, torch or transformers is not installed.
    """
    from importlib.util import find_spec  # noqa: PLC0415

    if any(find_spec(name) is None for name in ("ray", "torch", "transformers")):
        raise MissingExtra.of("training with GRPO", "rllib")


def _tell(page: Page, done: Any) -> None:
    last: dict[str, Any] = next((line for line in reversed(done.lines) if "figures" in line), {})
    evaluations = [line for line in done.lines if "evaluation" in line]
    page.say(f"{done.steps} steps done; run folder: {done.folder}")
    if done.interrupted:
        page.note(f"interrupted; continue with: codea1 train --resume {done.folder}", even_if_quiet=True)
    for module, place in done.models.items():
        page.say(f"{module}: {place}")
    page.finish(
        {
            "run": str(done.folder),
            "steps": done.steps,
            "interrupted": done.interrupted,
            "figures": last.get("figures", {}),
            "alarms": last.get("alarms", {}),
            "evaluation": evaluations[-1]["evaluation"] if evaluations else {},
            "models": {module: str(place) for module, place in done.models.items()},
        }
    )
