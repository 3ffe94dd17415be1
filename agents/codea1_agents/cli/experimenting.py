"""Runs `codea1 experiment`: loads the declaration, runs the missing cells, writes the report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from codea1_agents.cli.console import Page
from codea1_agents.cli.experiment import ExperimentOptions
from codea1_agents.cli.next_commands import show_next
from codea1_agents.cli.progress import Progress
from codea1_agents.cli.training_runs import require_training
from codea1_agents.play.interrupts import sigterm_interrupts
from codea1_agents.train.experiments.declaration import Experiment, load_experiment
from codea1_agents.train.experiments.folder import ExperimentFolder, require_experiment
from codea1_agents.train.experiments.grid import Cell, cells_of, chosen_cells, with_needed
from codea1_agents.train.experiments.pool import CellProgress, LocalProcesses, Processes, run_cells
from codea1_agents.train.experiments.report import write_report
from codea1_agents.train.experiments.results import RESULTS, read_results, results_of
from codea1_agents.train.experiments.tables import Results
from codea1_env.errors import UserError
from codea1_env.facts.judge_version import require_this_judge
from codea1_env.problems import load_problems


def run_experiment(options: ExperimentOptions) -> None:
    """Run the missing cells of an experiment, and write its report.

    Raises:
        UserError: there is no such experiment, its folder has another one, or a cell failed.
    """
    page = Page(as_json=options.as_json, quiet=options.quiet)
    experiment = load_experiment(options.name)
    n_declared = experiment.seeds
    path = options.out or Path("experiments") / experiment.name
    if options.seeds:
        experiment = experiment.model_copy(update={"seeds": options.seeds})
    cells = chosen_cells(experiment, _existing(experiment, options.only))
    if options.seeds:
        cells = tuple(cell for cell in cells if cell.seed < options.seeds)
    place = options.results or path / "report"
    known = _known(options, experiment)
    with page.apart():
        if not options.report_only:
            _run(experiment, cells, path, known, options, page)
        else:
            require_experiment(path, experiment, may_lack=bool(known))
        if options.results:  # which holds the whole experiment, whatever has run now
            experiment = experiment.model_copy(update={"seeds": max(n_declared, experiment.seeds)})
            cells = cells_of(experiment)
        known = _known(options, experiment)  # again: meanwhile another command may have written there
        results = results_of(path, experiment, cells, known)
        report = write_report(experiment, cells, results, place, others=known)
        n_done = sum(cell in results for cell in cells)
        page.say(f"{n_done} of {len(cells)} cells done; report: {report}")
        ended = {cell.system: path / "cells" / cell.name / "run" for cell in reversed(cells) if cell in results}
        runs = [run for run in reversed(ended.values()) if run.is_dir()]  # one per system
        show_next(page, replace(options, seeds=experiment.seeds), path, runs)
        page.finish(experiment=experiment.name, out=str(path), cells=len(cells), done=n_done, report=str(report))


def _run(
    experiment: Experiment, cells: Sequence[Cell], path: Path, known: Results, options: ExperimentOptions, page: Page
) -> None:
    require_training()
    for source in experiment.sources:
        load_problems(source)  # fail now rather than after hours of training
    for result in results_of(path, experiment, cells, known).values():
        require_this_judge(result.judge_version, path, "choose another folder")
    cells = with_needed(experiment, [cell for cell in cells if cell not in known])
    workers = options.workers or max(1, len(os.sched_getaffinity(0)))
    with (
        ExperimentFolder(path, experiment),
        Progress(experiment.name, len(cells), page, done=len(results_of(path, experiment, cells))) as progress,
        sigterm_interrupts(),
    ):

        def report_progress(cells_done: CellProgress) -> None:
            progress.reach(cells_done.n_done, cells_done.n_cells)

        processes: Processes[Any] = LocalProcesses(path)
        if options.cluster:
            from codea1_agents.train.experiments.cluster import ClusterProcesses  # noqa: PLC0415  needs Ray

            processes = ClusterProcesses(path, options.cluster)
        run_cells(experiment, cells, path, processes, workers=workers, report=report_progress)


def _known(options: ExperimentOptions, experiment: Experiment) -> Results:
    """Return the results in the folder of `--results`, as it is now."""
    path = options.results / RESULTS if options.results else None
    return read_results(path, experiment) if path and path.exists() else {}


def _existing(experiment: Experiment, only: str) -> frozenset[str]:
    systems = [system.name for system in experiment.systems]
    cells = [cell.name for cell in cells_of(experiment)]
    names = frozenset(filter(None, map(str.strip, only.split(","))))
    if only and not names:
        raise UserError(f"--only {only} names no system")
    for name in sorted(names.difference(systems, cells)):
        raise UserError(
            f"no system or cell {name!r} in {experiment.name} with {experiment.seeds} seeds; there are "
            f"{', '.join(systems)}, and cells such as {cells[0]}"
        )
    return names
