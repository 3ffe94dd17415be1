"""The result of a cell, and its file. A cell writes the file last, and writes it whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import ValidationError

from codea1_env.errors import BrokenInput, UserError
from codea1_env.facts.judge_version import UNSTATED_JUDGE
from codea1_env.records.faults import first_fault, read_file
from codea1_env.records.file_errors import file_errors
from codea1_env.records.whole_files import write_whole
from codea1_lab.experiments.declaration import Experiment, Strict
from codea1_lab.experiments.grid import Cell, fingerprint

RESULT = "result.json"
RESULTS = "results.jsonl"


class CurvePoint(Strict):
    """One training step."""

    step: int
    cpu_s: float
    """Processor seconds of training up to and including this step, without evaluations."""
    figures: dict[str, float]
    """Figures of the training, e.g. `coder_reward`; of steps with an evaluation also `evaluation/...`."""


class CellResult(Strict):
    """The measurements of one cell."""

    judge_version: int = UNSTATED_JUDGE
    """Version of the judge in training and measurement; 1 if the file does not state it."""
    system: str
    base: int
    seed: int
    figures: dict[str, float]
    """E.g. `coder/held-out` (avg@n, in [0, 1]), `tester/validity`, `tester/mut_fixed@4`, `cpu_s`."""
    curve: tuple[CurvePoint, ...] = ()
    declared: str = ""
    """`fingerprint` of the cell's declaration; empty: not stated."""
    processor: str = ""
    """Kind of processor that trained and measured it, since another kind gives other bits. Empty: not stated."""

    @property
    def is_thinned(self) -> bool:
        """Whether the figures of its training's steps are missing (`write_results`)."""
        return "cpu_s" in self.figures and not any(_of_training(name) for point in self.curve for name in point.figures)

    @property
    def cell(self) -> Cell:
        """The cell of this result."""
        return Cell(self.system, self.base, self.seed)


def _of_training(figure: str) -> bool:
    return "/" not in figure


def write_result(folder: Path, result: CellResult) -> None:
    """Write a cell's result into its folder.

    Raises:
        OSError: it cannot be written.
    """
    text = json.dumps(result.model_dump(mode="json"), sort_keys=True, indent=1)
    write_whole(folder / RESULT, (text + "\n").encode())


def read_result(folder: Path) -> CellResult | None:
    """Return the result of a cell; None if it has none yet.

    Raises:
        BrokenInput: the file does not contain a result.
    """
    path = folder / RESULT
    try:
        return CellResult.model_validate_json(read_file(path))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise BrokenInput(f"{path}: {first_fault(error)}") from error


def results_of(
    folder: Path, experiment: Experiment, cells: Iterable[Cell], known: Mapping[Cell, CellResult] = {}
) -> dict[Cell, CellResult]:
    """Return the results of the cells that have one in the folder, or among those that are known.

    Args:
        folder: the experiment's folder.
        experiment: declares the cells.
        cells: whose results are returned.
        known: results from elsewhere; those in the folder replace them, as they have whole curves.

    Raises:
        BrokenInput: a file does not contain a result.
        UserError: a cell was declared otherwise when it ran, or the results are of different versions of the judge.
    """
    declared, results = _Declared(experiment), {}
    for cell in cells:
        if result := read_result(place := folder / "cells" / cell.name):
            declared.require(result, str(place), "choose another folder")
        if result := result or known.get(cell):
            results[cell] = result
    versions = sorted({result.judge_version for result in results.values()})
    if len(versions) > 1:
        named = " and ".join(map(str, versions))
        raise UserError(f"{folder} has results of judge versions {named}, which cannot be mixed: remove the older ones")
    return dict(sorted(results.items()))


def write_results(path: Path, results: Iterable[CellResult]) -> None:
    """Write results as JSON lines, one cell per line. Of the curves only evaluations are kept.

    Raises:
        OSError: it cannot be written.
    """
    lines = [_line(each) for each in sorted(results, key=lambda result: result.cell)]
    write_whole(path, "".join(f"{line}\n" for line in lines).encode())


def read_results(path: Path, experiment: Experiment) -> dict[Cell, CellResult]:
    """Return the results in a file that `write_results` wrote, including cells that are not in the experiment.

    Raises:
        BrokenInput: a line is not a result.
        UserError: it cannot be read, or a cell of one of the experiment's systems was declared otherwise when it ran.
    """
    with file_errors(path):
        lines = read_file(path).splitlines()
    declared, results = _Declared(experiment), {}
    for number, line in enumerate(lines, 1):
        try:
            result = CellResult.model_validate_json(line)
        except ValidationError as error:
            raise BrokenInput(f"{path}, line {number}: {first_fault(error)}") from error
        declared.require(result, f"{path}, line {number}", "remove its lines")
        results[result.cell] = result
    return results


class _Declared:
    """Compares results with the declaration of an experiment."""

    def __init__(self, experiment: Experiment) -> None:
        self._fingerprints = {system.name: fingerprint(experiment, system.name) for system in experiment.systems}

    def require(self, result: CellResult, where: str, advice: str) -> None:
        """Raise UserError if a system of the experiment was declared otherwise when the result was made."""
        fingerprint = self._fingerprints.get(result.system)
        if fingerprint and result.declared not in ("", fingerprint):
            raise UserError(f"{where}: {result.system} was declared otherwise when it ran: {advice}")


def _line(result: CellResult) -> str:
    points = [
        point.model_copy(update={"figures": {n: value for n, value in point.figures.items() if not _of_training(n)}})
        for point in result.curve
    ]
    kept = result.model_copy(update={"curve": tuple(point for point in points if point.figures)})
    fields = kept.model_dump(mode="json", exclude_defaults=True) | {"judge_version": result.judge_version}
    return json.dumps(fields, sort_keys=True)
