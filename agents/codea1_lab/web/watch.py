"""Watch and read: the runs of a folder, while they are written and afterwards.

A run's page is its report, made from the files as they are. Making it takes time that the run itself may need, so a
page is kept until the files have changed, and for at least `_REST` times the processor time it took.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from http import HTTPStatus
from operator import index, itemgetter
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from pydantic import FiniteFloat, TypeAdapter
from starlette.responses import Response

from codea1_agents.play.summary import MEASURES
from codea1_agents.train.loop.folder import checked_line
from codea1_env.errors import BrokenInput, CodeA1Error
from codea1_env.records.faults import read_file, read_json, read_toml
from codea1_env.records.journal import last_line
from codea1_env.rendering import harmless
from codea1_env.runs.config import read_config
from codea1_env.runs.records import from_line
from codea1_env.service.admission import Refused
from codea1_lab.report.comparison import comparison_panels
from codea1_lab.report.page import data_of, page_of_error, script, served_page, style
from codea1_lab.report.writing import KINDS, MAX_BYTES, archive_within, read_run, run_file
from codea1_lab.web.app import Part

_FILES = (*KINDS, "metrics.json", "samples", "book.sqlite", "restarts.jsonl")
_OWN_PARTS = ("checkpoints", "samples", "tensorboard")
"""Folders of a training that hold no run of their own; any other may."""
_REST = 10
_MOST_KEPT = 12
_GOING = "going on"
_GOING_S = 300.0
"""Seconds without a line after which a run that is not complete counts as stopped."""
_FIGURES = ("coder_reward", "tester_reward", "right_kill_rate", "suite_validity")
_MEANS = TypeAdapter(dict[str, FiniteFloat | None])
_MOST_ALARMS, _LONGEST = 12, 500
"""Alarms that the list shows of a run, and their characters."""
_T = TypeVar("_T")
_Names = Annotated[list[str], Query(alias="run", max_length=12)]


def watch_part(folder: Path) -> Part:
    """Return the part for the runs of a folder. Its routes are plain functions, so each runs in a thread."""
    runs, router = _Runs(folder), APIRouter(prefix="/watch")

    def list_runs() -> Response:
        text = json.dumps({"runs": runs.list_runs()})  # ASCII, whatever is in it
        return Response(text, media_type="application/json")

    def report(names: _Names) -> Response:
        try:
            return Response(runs.of(names, lambda page: page.page), media_type="text/html")
        except CodeA1Error as error:
            status = error.status_code if isinstance(error, Refused) else HTTPStatus.UNPROCESSABLE_ENTITY
            return Response(page_of_error(", ".join(names), str(error)), status, media_type="text/html")

    def data(names: _Names, part: str) -> Response:
        data = runs.of(names, lambda page: page.data)
        return Response(data.get(part, ""), HTTPStatus.OK if part in data else HTTPStatus.NOT_FOUND)

    router.get("/runs")(list_runs)
    router.get("/report")(report)
    router.get("/data")(data)
    router.get("/report.css")(lambda: Response(style(), media_type="text/css"))
    router.get("/report.js")(lambda: Response(script(), media_type="text/javascript"))
    return Part("watch", ("watch.js",), router)


class _ReportPage:
    """A page on some runs as their files were, and the data that its script asks for."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        begun = time.thread_time()
        self.stamp = _stamp(folder, names)
        is_going = [_state(folder / name, name)["state"] == _GOING for name in names]
        self._runs = [
            replace(read_run(folder / name, name), is_going=going) for name, going in zip(names, is_going, strict=True)
        ]
        source = "data?" + urlencode([("run", name) for name in names])
        self.page = served_page(", ".join(names), self._runs, comparison_panels(self._runs), source)
        self.good_until = _good_until(begun)

    @cached_property
    def data(self) -> dict[str, str]:
        """Packed, by part."""
        begun = time.thread_time()
        data = data_of(self._runs, *archive_within(self._runs, MAX_BYTES))
        self.good_until = _good_until(begun)
        return data


class _Runs:
    """The runs below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[tuple[str, ...], _ReportPage] = {}
        self._lock = threading.Lock()

    def list_runs(self) -> list[dict[str, Any]]:
        """Return each run with its state, the last to be written first."""
        return sorted((_state(self._folder / name, name) for name in self._names()), key=itemgetter("age_s", "name"))

    def of(self, names: Sequence[str], show: Callable[[_ReportPage], _T]) -> _T:
        """Return what `show` finds on the page on some runs; readers of one page wait for the first of them.

        Raises:
            Refused: there is no run of a name.
            BrokenInput: a run cannot be read.
        """
        if unknown := set(names).difference(self._names()):
            raise Refused(HTTPStatus.NOT_FOUND, f"no run {harmless(min(unknown))!r} in this folder")
        with self._lock:
            page, key = self._made.pop(tuple(names), None), tuple(names)
            if page is None or (time.monotonic() >= page.good_until and page.stamp != _stamp(self._folder, names)):
                page = _ReportPage(self._folder, names)
            self._made[key] = page
            while len(self._made) > _MOST_KEPT:
                self._made.pop(next(iter(self._made)))
            return show(page)

    def _names(self) -> Iterator[str]:
        for place, inner, _ in os.walk(self._folder):
            if any(Path(place, name).is_file() for name in KINDS):
                yield Path(place).relative_to(self._folder).as_posix()
                inner[:] = set(inner).difference(_OWN_PARTS)
            inner[:] = sorted(name for name in inner if not name.startswith("."))


def _good_until(begun: float) -> float:
    """Return until when a page stays in any case, if making it began at this processor time."""
    return time.monotonic() + _REST * (time.thread_time() - begun)


def _stamp(folder: Path, names: Sequence[str]) -> list[tuple[int, int]]:
    """Return what changes when a file of some runs does."""
    stamps = []
    for place in (folder / name / file for name in names for file in _FILES):
        with suppress(OSError):  # it need not exist, and may be removed
            stamps.append((place.stat().st_size, place.stat().st_mtime_ns))
    return stamps


def _state(path: Path, name: str) -> dict[str, Any]:
    """Return what the list shows of a run: what its last line says, and whether it goes on. Files may hold anything."""
    state: dict[str, Any] = {"name": name, "kind": "", "age_s": 0.0, "alarms": []}
    try:
        file = path / run_file(path)
        kind = state["kind"] = KINDS.get(file.name, "")
        name.encode()  # no address has other names
        state["age_s"] = max(0.0, time.time() - file.stat().st_mtime)
        if not (path / "config.toml").is_file():  # a pipe would never be read
            raise BrokenInput("config.toml is missing")
        settings, line = read_file(path / "config.toml"), last_line(file)
        if kind == "training":
            last: dict[str, Any] = checked_line(line, "its last line") if line else {"step": 0}
            state |= {"step": last["step"], "of": index(read_toml("config.toml", settings)["run"]["steps"])}
            state["alarms"] = [text[:_LONGEST] for text in last.get("alarms", {}).values()][:_MOST_ALARMS]
            state["figures"] = {key: value for key, value in last.get("figures", {}).items() if key in _FIGURES}
        else:
            config, whole = read_config(settings, "config.toml"), path / "metrics.json"  # which a run writes at its end
            record = from_line(line, "its last line") if line else None
            state |= {"step": record.episode + 1 if record else 0, "of": config.episodes}
            if state["step"] >= config.episodes and whole.is_file():
                means = read_json("metrics.json", read_file(whole))["summary"]
                state["figures"] = _MEANS.validate_python({key: means[key]["mean"] for key in _FIGURES if key in means})
            elif record:
                n_tests = config.rules.tests_per_suite
                state["figures"] = {key: MEASURES[key](record.rounds[-1], n_tests) for key in _FIGURES}
    except (CodeA1Error, OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        return {**state, "state": "unreadable", "alarms": [f"cannot be read: {str(error)[:_LONGEST]}"]}
    is_done = state["step"] >= state["of"]
    state["state"] = "complete" if is_done else _GOING if state["age_s"] < _GOING_S else "stopped"
    return state
