"""`codea1 eval select`: chooses candidates by blind tests, and says how well the choice does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from codea1_agents.cli.eval_session import EvaluationOptions, RecordKeeper, eval_session
from codea1_agents.cli.options import (
    agent_spec,
    how_many,
    n_suites,
    n_tests,
)
from codea1_agents.evaluation.records import SelectionRecord
from codea1_agents.evaluation.selection import select_candidates, selection_figures
from codea1_agents.statistics import estimate_document


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectOptions(EvaluationOptions):
    """Choose among candidates by blind tests: the candidate that passes most distinct tests wins (paper, table 5).

    Prints the share of right programs before and after the choice, and how often the tie-break decides.

    \b
    Example:
      codea1 eval select --coder mutant --tester boundary -p starter -n 8 -m 4
    """

    coder: Annotated[str, agent_spec("--coder", "Agent that writes the candidates (see codea1 list agents).")]
    tester: Annotated[str, agent_spec("--tester", "Agent that writes the suites without seeing the candidates.")]
    candidates: Annotated[int, how_many("--candidates", "N, per problem.")] = 16
    suites: Annotated[int, n_suites("M, per problem.")] = 16
    tests: Annotated[int, n_tests()] = 8


_ROWS = (
    ("random choice (avg@N)", "average"),
    ("chosen, random among ties", "chosen"),
    ("chosen, first of ties", "first"),
    ("best possible (pass@N)", "best"),
    ("gain: chosen - random", "gain"),
    ("fidelity (Spearman)", "fidelity"),
    ("problems with a tie", "ties"),
    ("  where the tie-break decides", "open_ties"),
    ("distinct tests per problem", "tests"),
)


def run_select(options: SelectOptions) -> None:
    """Choose a candidate for every problem and print the figures of the choice.

    Raises:
        UserError: an option names something that does not exist, the folder cannot be written, or an agent failed.
        SandboxError: the sandbox cannot be used at all.
    """
    coder, tester = options.coder, options.tester
    with eval_session(options, without=options.without) as session:
        agents = session.agent(coder, "coder"), session.agent(tester, "tester")
        problems_with_tests = session.problems_with_tests("a choice")
        sizes = {"candidates": options.candidates, "suites": options.suites, "tests": options.tests}
        settings = session.settings("select", coder=coder, tester=tester, **sizes)
        keeper = RecordKeeper(session, options.out, settings, SelectionRecord, lambda each: each.problem_id)
        known = frozenset(record.problem_id for record in keeper.records if not record.masked)
        batches = select_candidates(problems_with_tests, agents[0], agents[1], session.sandbox, known=known, **sizes)

        def figures(records: list[SelectionRecord]) -> dict[str, Any]:
            selection = selection_figures(records, seed=options.seed)
            session.show_figures("choice by tests", {label: getattr(selection, name) for label, name in _ROWS})
            if selection.n_masked:
                session.page.say(f"masked, in no figure above: {selection.n_masked} problems")
            documents = {name: estimate_document(getattr(selection, name)) for _, name in _ROWS}
            return {"figures": documents, "n_problems": selection.n_problems, "n_masked": selection.n_masked}

        keeper.take(batches, len(problems_with_tests), figures)
