"""`codea1 train`: reads the settings, trains or says what a training would need, prints the progress."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from codea1_agents.cli.boundary import INTERRUPTED
from codea1_agents.cli.console import Page, pluralize, show_next
from codea1_agents.cli.options import Options, SummaryOnly, output, problem_source, require_out_or_resume
from codea1_agents.cli.training_table import LiveTable, PlainLines
from codea1_agents.train.lazy_names import TRAINING_PACKAGES, missing_training
from codea1_agents.train.loop.folder import last_checkpoint, step_of
from codea1_agents.train.settings.loading import load_training, read_overrides
from codea1_env.errors import UserError
from codea1_env.plugins import also_typed
from codea1_env.secret import require_variables


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions(Options):
    """Train a coder and a tester against each other with GRPO, configured by a TOML file or a preset.

    Every run writes a folder: config.toml, metrics.jsonl (one line per step), checkpoints, samples, models, and
    TensorBoard events.
    Ctrl-C finishes the step, saves, and prints how to continue; a second one discards the step.
    docs/training.md describes the settings, docs/figures.md the figures.

    \b
    Example:
      codea1 train my_run.toml --steps 20 --set training.lr=3e-6 -o runs/first
      codea1 train paper-7b --dry-run --on "8 x H100 80GB"
      codea1 train code-a1 --coder models/mine --tester models/mine -p my.jsonl
    """

    config: Annotated[
        str | None, Argument(help="A TOML file, or a preset (see codea1 list presets).", show_default=False)
    ] = None
    changes: Annotated[
        list[str] | None,
        Option("--set", help="Change a setting: section.key=value; may be repeated.", metavar="KEY=VALUE"),
    ] = None
    coder: Annotated[str, Option(help="The coder's first model: agents.coder.model.", show_default=False)] = ""
    tester: Annotated[str, Option(help="The tester's first model: agents.tester.model.", show_default=False)] = ""
    base: Annotated[str, Option(help="Model on which both roles train adapters: agents.base.", show_default=False)] = ""
    problems: Annotated[str, problem_source("Problems to train on: game.problems.", show_default=False)] = ""
    held_out: Annotated[str, Option(help="Problems to evaluate on: evaluation.problems.", show_default=False)] = ""
    steps: Annotated[int | None, Option(min=1, help="Iterations: run.steps.", show_default=False)] = None
    out: Annotated[Path | None, output("Run folder, new or empty.", show_default="a new one under runs/")] = None
    resume: Annotated[Path | None, Option(help="Continue the run in this folder from its last checkpoint.")] = None
    dry_run: Annotated[
        bool, Option("--dry-run", help="Print memory, placement and minutes of a step by arithmetic; run nothing.")
    ] = False
    on: Annotated[
        str | None,
        Option(help="GPUs of the dry run, e.g. '24GB' or '8 x H100 80GB'.", show_default="those of this machine"),
    ] = None
    force: Annotated[bool, Option("--force", help="Start a run that does not fit this machine.")] = False
    quiet: SummaryOnly = False


def run_training(options: TrainOptions) -> None:
    """Train, and print the progress.

    Raises:
        UserError: the options or settings are invalid.
        TrainingFailed: the training was stopped, for example because the loss became nan.
        typer.Exit: interrupted (130), or the run of a dry run does not fit (1).
    """
    resume, changes = options.resume, _changes(options)
    require_out_or_resume(options.out, resume)
    if not options.config and resume is None:
        raise UserError("name a TOML file or a preset (see codea1 list presets), or a run to --resume")
    if options.on is not None and not options.dry_run:
        raise UserError("--on requires --dry-run: a real run uses the GPUs of this machine")
    config = None if options.config is None else load_training(options.config, () if resume else changes)
    if config is not None:
        also_typed(repr(config))
        require_variables(repr(config))
    page = Page(as_json=options.as_json, quiet=options.quiet)
    if options.dry_run:
        if config is None or resume is not None:
            raise UserError("--dry-run needs a TOML file or a preset, and cannot be combined with --resume")
        from codea1_agents.cli.dry_run import show_dry_run  # noqa: PLC0415  only here

        show_dry_run(config, options.on or "", page)
        return
    require_training()
    from codea1_agents.train.loop import loop  # noqa: PLC0415  heavy

    with page.apart(), (LiveTable if page.is_live else PlainLines)(page) as watcher:
        before = None if resume is None else last_checkpoint(resume)
        if resume is not None:
            done = loop.resume(resume, changes, config=config, force=options.force, watcher=watcher)
        else:
            assert config is not None
            done = loop.train(config, out=options.out, force=options.force, watcher=watcher)
    _print_result(page, done)
    if before is not None and step_of(before) == done.steps:
        page.note(f"the run had its {pluralize(done.steps, 'step')} already; --steps sets a larger number")
    if done.interrupted:
        raise typer.Exit(INTERRUPTED)
    show_next(page, "train", out=done.folder, steps=2 * done.steps)


def _changes(options: TrainOptions) -> dict[str, Any]:
    """Return the changes to the settings by dotted key; those of `--set` come last and have precedence."""
    named = {
        "agents.coder.model": options.coder,
        "agents.tester.model": options.tester,
        "agents.base": options.base,
        "game.problems": options.problems,
        "evaluation.problems": options.held_out,
        "run.steps": options.steps,
    }
    return {key: value for key, value in named.items() if value} | dict(read_overrides(options.changes or ()))


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
    page.say(f"{pluralize(done.steps, 'step')} done; run folder: {done.folder}")
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
