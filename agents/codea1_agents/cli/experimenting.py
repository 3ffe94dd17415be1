"""What `codea1 experiment` does: declare, run what is missing, report."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from codea1_agents.cli.console import Page
from codea1_agents.cli.progress import Progress
from codea1_agents.experiments.declaration import Experiment, load_experiment
from codea1_agents.experiments.folder import ExperimentFolder
from codea1_agents.experiments.grid import cells_of
from codea1_agents.experiments.pool import Told, run_cells
from codea1_agents.experiments.report import write_report
from codea1_agents.experiments.results import results_of
from codea1_agents.interrupts import sigterm_interrupts
from codea1_env.errors import UserError

__all__ = ["Wish", "run_experiment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked for."""

    name: str
    folder: Path | None
    workers: int | None
    seeds: int | None
    only: tuple[str, ...]
    cluster: str
    report_only: bool


def run_experiment(wish: Wish, *, as_json: bool) -> None:
    """Run an experiment, or what is missing of it, and write its report.

    Raises:
        UserError: there is no such experiment, its folder holds another one, or a cell failed.
    """
    page = Page(as_json=as_json)
    experiment = load_experiment(wish.name)
    if wish.seeds:
        experiment = experiment.model_copy(update={"seeds": wish.seeds})
    cells = cells_of(experiment, only=_known(experiment, wish.only))
    with page.apart(), ExperimentFolder(wish.folder or Path("experiments") / experiment.name, experiment) as folder:
        if not wish.report_only:
            workers = wish.workers or max(1, len(os.sched_getaffinity(0)))
            done = len(results_of(folder.path, cells))
            with Progress(experiment.name, len(cells), page, done=done) as progress:

                def tell(told: Told) -> None:
                    progress.reach(told.n_done, told.n_cells)

                with sigterm_interrupts():
                    run_cells(experiment, cells, folder.path, workers=workers, cluster=wish.cluster, tell=tell)
        results = results_of(folder.path, cells)
        report = write_report(experiment, cells, results, folder.path / "report")
        page.say(f"{len(results)} of {len(cells)} cells done; report: {report}")
        page.finish({"experiment": experiment.name, "cells": len(cells), "done": len(results), "report": str(report)})


def _known(experiment: Experiment, only: tuple[str, ...]) -> tuple[str, ...]:
    names = [system.name for system in experiment.systems]
    for name in only:
        if name not in names:
            raise UserError(f"no system {name!r} in {experiment.name}; there are {', '.join(names)}")
    return only
