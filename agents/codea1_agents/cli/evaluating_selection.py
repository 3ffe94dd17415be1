"""What `codea1 select` does, and how its figures look."""

from __future__ import annotations

from typing import Any

from codea1_agents.cli.evaluate import SelectOptions
from codea1_agents.cli.evaluating import Bench, Keeping, bench, estimate_json
from codea1_agents.measure.records import SelectionRecord
from codea1_agents.measure.selection import SelectionFigures, select_candidates, selection_figures
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


def run_select(asked: SelectOptions) -> None:
    """Choose candidates for every problem and tell what the choice is worth.

    Raises:
        UserError: something asked for does not exist or cannot be written, or an agent failed.
        SandboxError: the sandbox cannot be used at all.
    """
    coder, tester = read_secrets(asked.coder), read_secrets(asked.tester)
    with bench(asked, without=asked.without) as room:
        askers = room.asker(coder, "coder"), room.asker(tester, "tester")
        tested = room.tested("a choice")
        options = {"candidates": asked.candidates, "suites": asked.suites, "tests": asked.tests}
        settings = room.settings("select", coder=coder, tester=tester, **options)
        keeping = Keeping(room, asked.out, settings, SelectionRecord, lambda each: each.problem_id)
        known = frozenset(each.problem_id for each in keeping.records if not each.masked)
        batches = select_candidates(tested, askers[0], askers[1], room.sandbox, known=known, **options)

        def figures(records: list[SelectionRecord]) -> dict[str, Any]:
            found = selection_figures(records, seed=asked.seed)
            show_selection(room, found)
            return selection_json(found)

        keeping.take(batches, len(tested), figures)


def show_selection(room: Bench, found: SelectionFigures) -> None:
    """Print the figures of a choice."""
    room.show_figures("choice by tests", {label: getattr(found, name) for label, name in _ROWS})
    if found.n_masked:
        room.page.say(f"masked, in no figure above: {found.n_masked} problems")


def selection_json(found: SelectionFigures) -> dict[str, Any]:
    """Return the figures as plain data."""
    counts = {"n_problems": found.n_problems, "n_masked": found.n_masked}
    return {name: estimate_json(getattr(found, name)) for _, name in _ROWS} | counts
