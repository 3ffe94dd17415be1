"""`codea1 experiment`: runs the missing cells of a grid of trainings, and writes the report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli.console import Page, show_next
from codea1_agents.cli.options import NoProgress, Options, output
from codea1_agents.cli.progress import Progress
from codea1_agents.cli.train import require_training
from codea1_agents.evaluation.canvas import require_drawing
from codea1_agents.models.model_files import model_digest
from codea1_env.errors import UserError
from codea1_env.facts.judge_version import require_this_judge
from codea1_env.plugins import also_typed
from codea1_env.problems import load_problems
from codea1_lab.experiments.declaration import Experiment, declaration_path, load_experiment
from codea1_lab.experiments.folder import ExperimentFolder, require_experiment
from codea1_lab.experiments.grid import Cell, cells_of, chosen_cells, with_needed
from codea1_lab.experiments.pool import CellProgress, LocalProcesses, run_cells
from codea1_lab.experiments.predictions import require_predictions
from codea1_lab.experiments.report import write_report
from codea1_lab.experiments.results import RESULTS, read_results, results_of
from codea1_lab.experiments.tables import Results


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentOptions(Options):
    """Run a grid of trainings (systems x bases x seeds) and write one report with tables and pictures.

    Finished cells are stored: after an interruption, the same command completes the grid with the same numbers.

    \b
    Example:
      codea1 experiment paper-cpu --workers 2
    """

    name: Annotated[str, Argument(help="A declared experiment, e.g. paper-cpu, or a .toml file.")]
    out: Annotated[Path | None, output("Folder; the command continues in it.", show_default="experiments/NAME")] = None
    workers: Annotated[int | None, Option(min=1, help="Cells to run at once.", show_default="one per processor")] = None
    seeds: Annotated[int | None, Option(min=1, help="Number of seeds per system.", show_default="as declared")] = None
    only: Annotated[
        str,
        Option(help="Run only these systems or cells (SYSTEM/base-B/seed-S, with commas), and those that they need."),
    ] = ""
    model: Annotated[
        Path | None,
        Option(help="Folder of the model that the experiment starts from, if it names one.", show_default="none"),
    ] = None
    report_only: Annotated[bool, Option("--report-only", help="Run nothing; write the report again.")] = False
    results: Annotated[
        Path | None,
        output(
            "Folder for report and results.jsonl. The cells of a results.jsonl that is there do not run again.",
            "--results",
            show_default="OUT/report, for which all cells run",
        ),
    ] = None
    quiet: NoProgress = False


_MAX_NAMED = 2  # of the cells that run, in the progress


def run_experiment(options: ExperimentOptions) -> None:
    """Run the missing cells of an experiment, and write its report.

    Raises:
        UserError: the experiment does not exist, its predictions are not committed, its folder contains another one,
            or a cell failed.
    """
    page = Page(as_json=options.as_json, quiet=options.quiet)
    experiment = _starting_with(load_experiment(options.name), options.model, runs=not options.report_only)
    also_typed(repr(experiment))
    n_declared = experiment.seeds
    path = options.out or Path("experiments") / experiment.name
    if options.seeds:
        experiment = experiment.model_copy(update={"seeds": options.seeds})
    cells = chosen_cells(experiment, _existing(experiment, options.only))
    if options.seeds:
        cells = tuple(cell for cell in cells if cell.seed < options.seeds)
    place = options.results or path / "report"
    known = _stored_results(options, experiment)
    with page.apart():
        if not options.report_only:
            _run(experiment, cells, path, known, options, page)
        else:
            require_experiment(path, experiment, may_lack=bool(known))
        if options.results:  # which holds the whole experiment, whatever has run now
            experiment = experiment.model_copy(update={"seeds": max(n_declared, experiment.seeds)})
            cells = cells_of(experiment)
        known = _stored_results(options, experiment)  # again: meanwhile another command may have written there
        results = results_of(path, experiment, cells, known)
        with Progress("writing the report", None, page):
            report = write_report(experiment, cells, results, place, others=known)
        n_done = sum(cell in results for cell in cells)
        page.say(f"{n_done} of {len(cells)} cells done; report: {report}")
        kind = "experiment" if options.model is None else "experiment of a model"
        show_next(page, kind, name=options.name, model=options.model, out=path, seeds=experiment.seeds + 1)
        page.finish(experiment=experiment.name, out=str(path), cells=len(cells), done=n_done, report=str(report))


def _starting_with(experiment: Experiment, folder: Path | None, *, runs: bool) -> Experiment:
    """Return an experiment that knows where its model is.

    Raises:
        UserError: the folder is missing, needless, or holds other weights.
    """
    model = experiment.model
    if model is None:
        if folder is not None:
            raise UserError(f"--model {folder}: {experiment.name} pretrains its models")
        return experiment
    if folder is None:
        if runs:
            raise UserError(f"{experiment.name} starts from {model.name}: add --model and the folder of its weights")
        return experiment
    if not folder.exists():
        raise UserError(f"--model {folder}: expected the folder of {model.name}, got none")
    digest = model_digest(str(folder))
    if digest != model.digest:
        raise UserError(
            f"--model {folder}: expected the weights of {model.name} with digest {model.digest}, got {digest}; a copy"
            " of the declaration with that digest, and without predictions, runs with them"
        )
    return experiment.model_copy(update={"model": model.model_copy(update={"folder": str(folder.resolve())})})


def _run(
    experiment: Experiment, cells: Sequence[Cell], path: Path, known: Results, options: ExperimentOptions, page: Page
) -> None:
    with Progress("loading problems", None, page):
        require_training()
        if experiment.pictures:
            require_drawing()
        require_predictions(experiment, declaration_path(options.name))
        for source in experiment.sources:
            load_problems(source)  # fail now rather than after hours of training
    for result in results_of(path, experiment, cells, known).values():
        require_this_judge(result.judge_version, path, "choose another folder")
    cells = with_needed(experiment, [cell for cell in cells if cell not in known])
    workers = options.workers or max(1, len(os.sched_getaffinity(0)))
    with (
        ExperimentFolder(path, experiment),
        Progress(experiment.name, len(cells), page, done=len(results_of(path, experiment, cells))) as progress,
    ):

        def report_progress(cells_done: CellProgress) -> None:
            running = ", ".join(cell.name for cell in cells_done.running[:_MAX_NAMED])
            progress.reach(cells_done.n_done, cells_done.n_cells, running)

        run_cells(experiment, cells, path, LocalProcesses(path), workers=workers, report=report_progress)


def _stored_results(options: ExperimentOptions, experiment: Experiment) -> Results:
    """Return the results in the folder of `--results`, as it is now."""
    path = options.results / RESULTS if options.results else None
    return read_results(path, experiment) if path and path.exists() else {}


def _existing(experiment: Experiment, only: str) -> frozenset[str]:
    systems = [system.name for system in experiment.systems]
    cells = [cell.name for cell in cells_of(experiment)]
    names = frozenset(filter(None, map(str.strip, only.split(","))))
    if only and not names:
        raise UserError(f"--only {only}: expected the name of a system")
    for name in sorted(names.difference(systems, cells)):
        raise UserError(
            f"no system or cell {name!r} in {experiment.name} with {experiment.seeds} seeds; there are "
            f"{', '.join(systems)}, and cells such as {cells[0]}"
        )
    return names
