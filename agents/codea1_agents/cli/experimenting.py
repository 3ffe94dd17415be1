"""What `codea1 experiment` does: declare, run what is missing, report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codea1_agents.cli.console import Page
from codea1_agents.cli.experiment import ExperimentOptions
from codea1_agents.cli.progress import Progress
from codea1_agents.play.interrupts import sigterm_interrupts
from codea1_agents.train.experiments.declaration import Experiment, load_experiment
from codea1_agents.train.experiments.folder import ExperimentFolder, require_experiment
from codea1_agents.train.experiments.grid import Cell, cells_of
from codea1_agents.train.experiments.pool import CellProgress, LocalProcesses, Processes, run_cells
from codea1_agents.train.experiments.report import write_report
from codea1_agents.train.experiments.results import results_of
from codea1_env.errors import UserError
from codea1_env.facts.judge_version import require_this_judge
from codea1_env.problems import load_problems


def run_experiment(asked: ExperimentOptions) -> None:
    """Run an experiment, or what is missing of it, and write its report.

    Raises:
        UserError: there is no such experiment, its folder holds another one, or a cell failed.
    """
    page = Page(as_json=asked.as_json)
    experiment = load_experiment(asked.name)
    path = asked.out or Path("experiments") / experiment.name
    if asked.seeds:
        experiment = experiment.model_copy(update={"seeds": asked.seeds})
    cells = cells_of(experiment, only=_known(experiment, tuple(filter(None, asked.only.split(",")))))
    if asked.seeds:
        cells = tuple(cell for cell in cells if cell.seed < asked.seeds)
    with page.apart():
        if asked.report_only:
            require_experiment(path, experiment)
        else:
            _run(experiment, cells, path, asked, page)
        results = results_of(path, cells)
        report = write_report(experiment, cells, results, path / "report")
        page.say(f"{len(results)} of {len(cells)} cells done; report: {report}")
        page.finish({"experiment": experiment.name, "cells": len(cells), "done": len(results), "report": str(report)})


def _run(experiment: Experiment, cells: Sequence[Cell], path: Path, asked: ExperimentOptions, page: Page) -> None:
    for source in experiment.sources:
        load_problems(source)  # a wrong one is found here, and not after hours of training
    for result in results_of(path, cells).values():
        require_this_judge(result.judge_version, path, "choose another folder")
    workers = asked.workers or max(1, len(os.sched_getaffinity(0)))
    with (
        ExperimentFolder(path, experiment),
        Progress(experiment.name, len(cells), page, done=len(results_of(path, cells))) as progress,
        sigterm_interrupts(),
    ):

        def report_progress(cells_done: CellProgress) -> None:
            progress.reach(cells_done.n_done, cells_done.n_cells)

        processes: Processes[Any] = LocalProcesses(path)
        if asked.cluster:
            from codea1_agents.train.experiments.cluster import ClusterProcesses  # noqa: PLC0415  needs Ray

            processes = ClusterProcesses(path, asked.cluster)
        run_cells(experiment, cells, path, processes, workers=workers, report=report_progress)


def _known(experiment: Experiment, only: tuple[str, ...]) -> tuple[str, ...]:
    names = [system.name for system in experiment.systems]
    for name in only:
        if name not in names:
            raise UserError(f"no system {name!r} in {experiment.name}; there are {', '.join(names)}")
    return only
