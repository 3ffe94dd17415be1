"""The matrices of `codea1 crossplay` as heat maps, from a document or from a run's folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

from codea1_env.errors import BrokenInput
from codea1_env.facts.judge_version import JUDGE_VERSION, judge_version_in
from codea1_lab.report.material import HeatMap

RESULT = "crossplay.json"
_PLACES = (RESULT, f"crossplay/{RESULT}")
_MAPS = (
    ("on_policy", "coder_reward", "Cross-play: what the coder earns"),
    ("on_policy", "tester_reward", "Cross-play: what the tester earns"),
    ("on_policy", "pass_rate", "Cross-play: cases passed"),
    ("on_policy", "validity", "Cross-play: valid tests"),
    ("on_policy", "beats", "Cross-play: suites that beat a program"),
    ("transfer", "beats", "Transfer: stored suites that beat a program"),
    ("transfer", "coder_reward", "Transfer: what the coder earns"),
    ("transfer", "tester_reward", "Transfer: what the tester earns"),
)
_NOTES = {
    "on_policy": "Rows: coders. Columns: testers, whose suites answer these programs.",
    "transfer": "Rows: coders' programs. Columns: testers' stored suites, written for other programs or for none.",
}


_MOST = 1e9  # the largest figure: beyond it, charts overflow


def crossplay_heat_maps(run: Path) -> tuple[HeatMap, ...]:
    """Return the heat maps of the cross-play in a run's folder or its sub-folder `crossplay`; empty: there is none.

    Raises:
        BrokenInput: the file exists but cannot be read.
    """
    for place in _PLACES:
        path = run / place
        if not path.is_file():
            continue
        try:
            return heat_maps_of(json.loads(path.read_text("utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise BrokenInput(f"{path}: not a result of codea1 crossplay ({error})") from error
    return ()


def heat_maps_of(document: Mapping[str, Any]) -> tuple[HeatMap, ...]:
    """Return the matrices of `Findings.document`; those of rewards have a frame around the equilibrium's support."""
    found, version = tuple(_maps(document)), judge_version_in(document)
    if version == JUDGE_VERSION:
        return found
    return tuple(replace(each, note=f"{each.note} Judged by version {version} of the judge.") for each in found)


def _maps(document: Mapping[str, Any]) -> Iterator[HeatMap]:
    rows = tuple(str(each["name"]) for each in document["coders"])
    columns = tuple(str(each["name"]) for each in document["testers"])
    shape = len(rows), len(columns)
    n = len(document["problem_ids"])
    for mode, figure, title in _MAPS:
        found = document[mode]
        if found is None:
            continue
        grid = found["figures"][figure]
        game = found["game"] if figure.endswith("reward") else None
        framed = " Framed: the support of the empirical game's equilibrium." if game else ""
        yield HeatMap(
            key=f"crossplay-{mode}-{figure}".replace("_", "-"),
            title=title,
            note=f"{_NOTES[mode]} Means over {n} problems, 95 % bootstrap intervals over problems.{framed}",
            rows=rows,
            columns=columns,
            values=_table(grid["mean"], shape),
            low=_table(grid["low"], shape),
            high=_table(grid["high"], shape),
            marked=tuple((int(i), int(j)) for i, j in game["support"]) if game else (),
        )


def _table(values: list[list[float | None]], shape: tuple[int, int]) -> tuple[tuple[float, ...], ...]:
    found = tuple(tuple(nan if value is None else float(value) for value in row) for row in values)
    n_rows, n_columns = shape
    if list(map(len, found)) != [n_columns] * n_rows or any(abs(value) > _MOST for row in found for value in row):
        raise ValueError(f"expected a table of {n_rows} x {n_columns} numbers")
    return found
