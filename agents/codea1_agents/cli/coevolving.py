"""Runs `codea1 demo coevolve`: pretrains a base model, trains two copies of it, draws and summarises the change."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from codea1_agents.cli.boundary import INTERRUPTED
from codea1_agents.cli.console import Page
from codea1_agents.cli.demo import CoevolveOptions
from codea1_agents.cli.progress import Progress
from codea1_agents.cli.training_runs import require_training
from codea1_agents.cli.training_table import LiveTable, PlainLines, table_of
from codea1_agents.models.model_files import require_new
from codea1_agents.train.loop import load_training
from codea1_agents.train.loop.options import TrainingConfig
from codea1_agents.train.tiny.demonstration import Change, change_of, draw_change
from codea1_env.errors import MissingExtra, UserError
from codea1_env.facts.verdicts import Verdict
from codea1_env.records.whole_files import write_whole_folder
from codea1_env.rendering import harmless
from codea1_env.runs.folder import iter_episodes
from codea1_env.runs.records import CaseRecord, EpisodeRecord

_PRESET = "coevolve"
_MARKS = {Verdict.PASSED: ("passes", "green"), Verdict.WRONG_ANSWER: ("beats it", "red")}


def run_coevolve(options: CoevolveOptions) -> None:
    """Run the demonstration, or the part that is missing.

    Raises:
        UserError: the folder cannot be used.
        MissingExtra: Ray, torch, transformers or matplotlib is not installed.
        typer.Exit: interrupted (130).
    """
    _require()
    # One thread is fastest for models this small; torch reads the variable at its first import.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    page, out = Page(as_json=options.as_json, quiet=options.quiet), options.out
    with page.apart():
        base = _base(out / "base", options.seed, page)
        done = _trained(_settings(base, options.seed, options.steps), out / "run", page)
        if done.interrupted:
            page.note(f"interrupted; the same command continues (folder {out})", even_if_quiet=True)
            page.finish(interrupted=True, out=str(done.folder), steps=done.steps)
            raise typer.Exit(INTERRUPTED)
        change = change_of(done.lines)
        draw_change(done.lines, out)
    _print_result(page, change, done.folder, out)


def _require() -> None:
    from importlib.util import find_spec  # noqa: PLC0415

    require_training()
    if find_spec("matplotlib") is None:
        raise MissingExtra.of("drawing pictures", "study")


def _base(folder: Path, seed: int, page: Page) -> Path:
    from codea1_agents.train.tiny.pretraining import PretrainingSettings, load_settings, pretrain  # noqa: PLC0415

    settings = PretrainingSettings(seed=seed)
    if folder.exists():
        if load_settings(folder).get("seed") != seed:
            raise UserError(f"{folder} was made with another seed: choose another folder with --out")
        return folder
    require_new(folder)
    with Progress("pretraining the base model of both roles", settings.n_steps, page) as progress:
        made = pretrain(settings, progress=lambda step, _: progress.reach(step, settings.n_steps))
    write_whole_folder(folder, made.save)
    page.note(f"base model: {made.n_parameters:,} parameters, {made.n_tokens:,} tokens")
    return folder


def _settings(base: Path, seed: int, steps: int | None) -> TrainingConfig:
    changes: dict[str, Any] = {"run.seed": seed, "agents.coder.model": str(base), "agents.tester.model": str(base)}
    if steps:
        changes["run.steps"] = steps
    return load_training(_PRESET, changes)


def _trained(config: TrainingConfig, run: Path, page: Page) -> Any:
    from codea1_agents.train.loop import resume, train  # noqa: PLC0415  heavy

    watcher = _TableWithDuels(page) if page.is_live else PlainLines(page)
    with watcher:
        if (run / "config.toml").exists():
            return resume(run, config=config, watcher=watcher)
        return train(config, out=run, watcher=watcher)


class _TableWithDuels(LiveTable):
    """The table of `codea1 train`, with the first and the latest sampled duel below it."""

    def __init__(self, page: Page) -> None:
        super().__init__(page)
        self._folder = Path()

    def begin(self, folder: Path, config: TrainingConfig, lines: Sequence[dict[str, Any]]) -> None:
        """Take the steps that are already done."""
        super().begin(folder, config, lines)
        self._folder = folder

    def drawn(self) -> RenderableType:
        """Return the table with the duels below it."""
        found = sorted((self._folder / "samples").glob("step-*"))
        shown = [found[0], found[-1]] if len(found) > 1 else found
        duels = [Panel(_duel(place), title=place.name, width=58) for place in shown]
        return Group(table_of(self.lines, self.steps), Columns(duels))


def _duel(place: Path) -> RenderableType:
    """Return the first duel of a step's samples, as lines."""
    episodes = iter_episodes(place)
    first = next(iter(episodes), None)
    if first is None:
        return Text("no sample was stored")
    return Text("\n").join([Text(first.problem_id, style="bold"), *_program_lines(first), *_test_lines(first)])


def _program_lines(record: EpisodeRecord) -> list[Text]:
    return [Text(harmless(line)) for line in record.rounds[0].candidate.program.rstrip().splitlines()]


def _test_lines(record: EpisodeRecord) -> list[Text]:
    suites = record.rounds[0].suites
    return [_case_line(case) for suite in suites for case in suite.cases] or [Text("no valid test", style="dim")]


def _case_line(case: CaseRecord) -> Text:
    mark, style = _MARKS.get(case.verdict, (case.verdict.value, "yellow"))
    wrong = "" if case.prediction_right is not False else f" (predicted {case.prediction})"
    return Text(harmless(f"{case.expression} == {case.expected}{wrong}: {mark}"), style=style)


def _print_result(page: Page, change: Change, run: Path, out: Path) -> None:
    page.say(f"picture: {out / 'coevolution.svg'} (and .png); run folder: {run}")
    page.say(change.sentence())
    page.finish(out=str(run), picture=str(out / "coevolution.svg"), **change.to_dict())
