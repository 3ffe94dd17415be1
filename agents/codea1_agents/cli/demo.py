"""`codea1 demo coevolve`: two tiny models learn from nothing, and one picture shows it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from codea1_agents.cli.boundary import INTERRUPTED
from codea1_agents.cli.console import Page, show_next
from codea1_agents.cli.options import Options, SummaryOnly, output, seed_of
from codea1_agents.cli.progress import Progress
from codea1_agents.cli.train import require_training
from codea1_agents.cli.training_table import LiveTable, PlainLines
from codea1_agents.evaluation.canvas import require_drawing
from codea1_agents.models.model_files import require_new
from codea1_agents.train.loop import load_training
from codea1_agents.train.settings.options import TrainingConfig
from codea1_agents.train.tiny.demonstration import change_of, draw_change
from codea1_env.errors import UserError
from codea1_env.records.whole_files import write_whole_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class CoevolveOptions(Options):
    """Train a coder and a tester against each other from scratch, on a laptop.

    Pretrains a model of half a million parameters, trains two copies of it against each other, and ends with a picture
    and a sentence about what they learned. After an interruption, the same command continues.

    \b
    Example:
      codea1 demo coevolve
    """

    out: Annotated[Path, output("Folder; the same command continues in it.")] = Path("runs/coevolve")
    seed: Annotated[int, seed_of("all randomness")] = 0
    steps: Annotated[int | None, Option(min=1, help="Training steps.", show_default="as in the preset coevolve")] = None
    quiet: SummaryOnly = False


_PRESET = "coevolve"
_STEP, _EVALUATION, _START = 12, 45, 100
"""A step of training, an evaluation and the start of Ray take about as long as this many steps of pretraining."""


def run_coevolve(options: CoevolveOptions) -> None:
    """Run the demonstration, or the part that is missing.

    Raises:
        UserError: the folder cannot be used.
        MissingExtra: Ray, torch, transformers or matplotlib is not installed.
        typer.Exit: interrupted (130).
    """
    require_training()
    require_drawing()
    # One thread is fastest for models this small; torch reads the variable at its first import.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    page, out = Page(as_json=options.as_json, quiet=options.quiet), options.out
    base = out / "base"
    with page.apart():
        config = _settings(base, options.seed, options.steps)
        _pretrain(base, config, page)
        done = _train_or_resume(config, out / "run", page)
        if done.interrupted:
            page.note(f"interrupted; the same command continues (folder {out})", even_if_quiet=True)
            page.finish(interrupted=True, out=str(done.folder), steps=done.steps)
            raise typer.Exit(INTERRUPTED)
        change = change_of(done.lines)
        draw_change(done.lines, out)
    picture = out / "coevolution.svg"
    page.say(f"picture: {picture} (and .png); run folder: {done.folder}")
    page.say(change.sentence())
    page.finish(out=str(done.folder), picture=str(picture), **change.to_dict())
    show_next(page, "train", out=done.folder, steps=2 * done.steps)


def _pretrain(folder: Path, config: TrainingConfig, page: Page) -> None:
    """Write the base model of both roles, unless it is there; first say how long all takes."""
    from codea1_agents.train.tiny.pretraining import (  # noqa: PLC0415  heavy
        PretrainingSettings,
        load_settings,
        pretrain,
        seconds_per_step,
    )

    settings = PretrainingSettings(seed=config.run.seed)
    if folder.exists():
        if load_settings(folder).get("seed") != settings.seed:
            raise UserError(f"{folder} was made with another seed: choose another folder with --out")
        return
    require_new(folder)
    if not page.quiet:
        with Progress("measuring how fast this machine is", None, page):
            step_s = seconds_per_step(settings)
        page.note(time_sentence(step_s, settings.n_steps, config))
    with Progress("pretraining the base model of both roles", settings.n_steps, page) as progress:
        made = pretrain(settings, progress=lambda step, _: progress.reach(step, settings.n_steps))
    write_whole_folder(folder, made.save)
    page.note(f"base model: {made.n_parameters:,} parameters, {made.n_tokens:,} tokens")


def time_sentence(step_s: float, n_steps: int, config: TrainingConfig) -> str:
    """Return how long pretraining and training take.

    Args:
        step_s: seconds of a step of pretraining on this machine.
        n_steps: steps of pretraining.
        config: the training's settings.
    """
    n_evaluations = 1 + -(-config.run.steps // config.evaluation.every)
    pretraining = n_steps * step_s / 60
    training = (config.run.steps * _STEP + n_evaluations * _EVALUATION + _START) * step_s / 60
    return (
        f"this takes about {pretraining + training:.1f} minutes here, as measured just now: {pretraining:.1f} for the"
        f" base model and {training:.1f} for {config.run.steps} steps of training"
    )


def _settings(base: Path, seed: int, steps: int | None) -> TrainingConfig:
    changes: dict[str, Any] = {"run.seed": seed, "agents.coder.model": str(base), "agents.tester.model": str(base)}
    if steps:
        changes["run.steps"] = steps
    return load_training(_PRESET, changes)


def _train_or_resume(config: TrainingConfig, run: Path, page: Page) -> Any:
    from codea1_agents.train.loop import resume, train  # noqa: PLC0415  heavy

    with (LiveTable if page.is_live else PlainLines)(page) as watcher:
        if (run / "config.toml").exists():
            return resume(run, config=config, watcher=watcher)
        return train(config, out=run, watcher=watcher)
