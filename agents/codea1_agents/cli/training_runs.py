"""Runs `codea1 train`."""

from __future__ import annotations

import json
from typing import Any

import typer

from codea1_agents.cli.boundary import INTERRUPTED
from codea1_agents.cli.console import Page, counted
from codea1_agents.cli.next_commands import show_next
from codea1_agents.cli.options import require_out_or_resume
from codea1_agents.cli.train import TrainOptions
from codea1_agents.cli.training_table import LiveTable, PlainLines
from codea1_agents.train.lazy_names import TRAINING_PACKAGES, missing_training
from codea1_agents.train.loop.folder import last_checkpoint, step_of
from codea1_agents.train.loop.game import lone_groups
from codea1_agents.train.settings.loading import load_training
from codea1_agents.train.settings.options import TrainingConfig
from codea1_env.errors import UserError


def run_training(options: TrainOptions) -> None:
    """Train, and print the progress.

    Raises:
        UserError: the options or settings are invalid.
        TrainingFailed: the training was stopped, for example because the loss became nan.
        typer.Exit: interrupted (130), or the run of a dry run does not fit (1).
    """
    resume, changes = options.resume, _changes(options)
    require_out_or_resume(options.out, resume)
    if options.config is None and resume is None:
        raise UserError("name a TOML file or a preset (see codea1 list presets), or a run to --resume")
    if options.on is not None and not options.dry_run:
        raise UserError("--on needs --dry-run: a run takes the GPUs of this machine")
    config = None if options.config is None else load_training(options.config, () if resume else changes)
    page = Page(as_json=options.as_json, quiet=options.quiet)
    for sentence in lone_groups(config) if config is not None else ():
        page.warn(sentence)
    if options.dry_run:
        _dry_run(options, config, page)
        return
    require_training()
    from codea1_agents.train.loop import loop  # noqa: PLC0415  heavy

    watcher = (LiveTable if page.is_live else PlainLines)(page, duels=options.duels)
    with page.apart(), watcher:
        before = None if resume is None else last_checkpoint(resume)
        if resume is not None:
            done = loop.resume(resume, changes, config=config, force=options.force, watcher=watcher)
        else:
            assert config is not None
            done = loop.train(config, out=options.out, force=options.force, watcher=watcher)
    _print_result(page, done)
    if before is not None and step_of(before) == done.steps:
        page.note(f"the run had its {counted(done.steps, 'step')} already; --steps sets a larger number")
    if done.interrupted:
        raise typer.Exit(INTERRUPTED)
    show_next(page, options, done.folder)


def _dry_run(options: TrainOptions, config: TrainingConfig | None, page: Page) -> None:
    if config is None or options.resume is not None:
        raise UserError("--dry-run needs a TOML file or a preset, and no --resume")
    from codea1_agents.cli.dry_run import show_dry_run  # noqa: PLC0415  only here

    show_dry_run(config, options.on or "", page)


def _changes(options: TrainOptions) -> list[str]:
    """Return the changes to the settings; those of `--set` come last and have precedence."""
    named = {
        "agents.coder.model": options.coder,
        "agents.tester.model": options.tester,
        "game.problems": options.problems,
        "evaluation.problems": options.held_out,
        "run.steps": options.steps,
    }
    # A JSON text is TOML, too.
    shortcuts = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in named.items() if value]
    return [*shortcuts, *(options.changes or ())]


def require_training() -> None:
    """Check that the packages for training are installed.

    Raises:
        MissingExtra: Ray, torch or transformers is not installed.
    """
    from importlib.util import find_spec  # noqa: PLC0415

    if any(find_spec(name) is None for name in TRAINING_PACKAGES):
        raise missing_training()


def _print_result(page: Page, done: Any) -> None:
    last: dict[str, Any] = next((line for line in reversed(done.lines) if "figures" in line), {})
    evaluations = [line for line in done.lines if "evaluation" in line]
    page.say(f"{counted(done.steps, 'step')} done; run folder: {done.folder}")
    if done.interrupted:
        page.note(f"interrupted; continue with: codea1 train --resume {done.folder}", even_if_quiet=True)
    for module, place in done.models.items():
        page.say(f"{module}: {place}")
    if (done.folder / "tensorboard").is_dir():
        page.say(f"curves: tensorboard --logdir {done.folder / 'tensorboard'}")
    page.finish(
        out=str(done.folder),
        steps=done.steps,
        interrupted=done.interrupted,
        figures=last.get("figures", {}),
        alarms=last.get("alarms", {}),
        evaluation=evaluations[-1]["evaluation"] if evaluations else {},
        models={module: str(place) for module, place in done.models.items()},
    )
