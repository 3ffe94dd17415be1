"""The result of a cell, and its file. A cell writes the file last, and writes it whole."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from codea1_agents.train.experiments.declaration import Strict
from codea1_agents.train.experiments.grid import Cell
from codea1_env.errors import BrokenInput, UserError
from codea1_env.facts.judge_version import UNSTATED_JUDGE
from codea1_env.records.faults import first_fault
from codea1_env.records.whole_files import write_whole

RESULT = "result.json"


class CurvePoint(Strict):
    """One training step."""

    step: int
    cpu_s: float
    """Processor seconds of training up to and including this step, without evaluations."""
    figures: dict[str, float]
    """Figures of the training, e.g. `coder_reward`; of steps with an evaluation also `evaluation/...`."""


class CellResult(Strict):
    """Figures of one cell."""

    judge_version: int = UNSTATED_JUDGE
    """Version of the judge in training and measurement; 1 if the file does not state it."""
    system: str
    base: int
    seed: int
    figures: dict[str, float]
    """E.g. `coder/held-out` (avg@n, in [0, 1]), `tester/validity`, `tester/mut_fixed@4`, `cpu_s`."""
    curve: tuple[CurvePoint, ...] = ()

    @property
    def cell(self) -> Cell:
        """The cell of this result."""
        return Cell(self.system, self.base, self.seed)


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
        BrokenInput: the file holds no result.
    """
    path = folder / RESULT
    try:
        return CellResult.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise BrokenInput(f"{path}: {first_fault(error)}") from error


def results_of(folder: Path, cells: Iterable[Cell]) -> dict[Cell, CellResult]:
    """Return the results of the cells that have one.

    Raises:
        BrokenInput: a file holds no result.
        UserError: the results are of different versions of the judge.
    """
    found = {cell: read_result(folder / "cells" / cell.name) for cell in cells}
    known = {cell: result for cell, result in found.items() if result is not None}
    versions = sorted({result.judge_version for result in known.values()})
    if len(versions) > 1:
        named = " and ".join(map(str, versions))
        raise UserError(
            f"{folder} holds results of versions {named} of the judge, which do not mix: remove the older ones"
        )
    return known
