"""What `codea1 select` does, and how its figures look."""

from __future__ import annotations

from typing import Any

from codea1_agents.cli.console import estimate_cells, new_table
from codea1_agents.cli.evaluating import Asked, Bench, Keeping, bench, estimate_json
from codea1_agents.evaluation.records import SelectionRecord
from codea1_agents.evaluation.selection import SelectionFigures, select_candidates, selection_figures
from codea1_env.errors import UserError
from codea1_env.secret import read_secrets

_ROWS = (
    ("drawn by lot (avg@N)", "average"),
    ("chosen, lot among equals", "chosen"),
    ("chosen, first of equals", "first"),
    ("if always found (pass@N)", "best"),
    ("gain: chosen - drawn", "gain"),
    ("fidelity (Spearman)", "fidelity"),
    ("problems with a tie in front", "ties"),
    ("  where the tie-break decides", "open_ties"),
    ("distinct tests per problem", "tests"),
)


def run_select(asked: Asked, coder: str, tester: str, *, candidates: int, suites: int, tests: int) -> None:
    """Choose candidates for every problem and tell what the choice is worth.

    Raises:
        UserError: something asked for does not exist or cannot be written, or an agent failed.
        SandboxError: the sandbox cannot be used at all.
    """
    coder, tester = read_secrets(coder), read_secrets(tester)
    with bench(asked) as room:
        askers = room.asker(coder, "coder"), room.asker(tester, "tester")
        tested = [problem for problem in room.problems if problem.golden]
        if not tested:
            raise UserError(f"{asked.problems}: no problem has golden tests, by which a choice could be judged")
        options = {"candidates": candidates, "suites": suites, "tests": tests}
        settings = room.settings("select", coder=coder, tester=tester, **options)
        keeping = Keeping(room, settings, SelectionRecord, lambda each: each.problem_id)
        known = frozenset(each.problem_id for each in keeping.records if not each.masked)
        batches = select_candidates(
            tested,
            *askers,
            room.sandbox,
            candidates=candidates,
            suites=suites,
            tests=tests,
            known=known,
        )

        def finish(records: list[SelectionRecord]) -> None:
            found = selection_figures(records, seed=asked.seed)
            show_selection(room, found)
            keeping.write(selection_json(found))
            room.page.finish({"settings": settings, **selection_json(found)})

        keeping.take(batches, len(tested), finish)


def show_selection(room: Bench, found: SelectionFigures) -> None:
    """Print the figures of a choice."""
    rows = []
    for label, name in _ROWS:
        estimate = getattr(found, name)
        rows.append((label, *estimate_cells(estimate)[:2], str(estimate.n_problems)))
    room.page.show(new_table(("choice by tests", "mean", "95 % interval", "problems"), rows, right=(1, 3)))
    if found.n_masked:
        room.page.say(f"masked, in no figure above: {found.n_masked} problems")


def selection_json(found: SelectionFigures) -> dict[str, Any]:
    """Return the figures as plain data."""
    counts = {"n_problems": found.n_problems, "n_masked": found.n_masked}
    return {name: estimate_json(getattr(found, name)) for _, name in _ROWS} | counts
