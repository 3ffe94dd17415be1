"""How an episode of several rounds goes on: which candidates play the next round, and what their players are shown.

A candidate's way through the rounds is a *trajectory*: in each round its coder writes or repairs a program, and M
testers write a suite each for it. One of these suites, which the seed draws, becomes the feedback. The others are what
the tester might have written as well: they are paid, and nobody sees them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from codea1_env.facts.verdicts import CandidateReport, Verdict
from codea1_env.observations import coder_feedback, tester_feedback
from codea1_env.rounds.rounds import JudgedTree, Trajectory, Tree


def next_tree(judged: JudgedTree) -> Tree | None:
    """Return the tree of the next round: of the trajectories that go on; None if none does.

    A trajectory ends when its program passes all tests of a round, when its coder leaves the program as it was, and
    when its reward is masked, since what it would be shown is not known then.
    """
    if judged.report is None:
        return None
    tree, trajectories = judged.tree, list[Trajectory]()
    for n, (number, report) in enumerate(zip(tree.numbers, judged.report.candidates, strict=True)):
        program = report.candidate.program
        is_unchanged = bool(tree.round) and tree.trajectories[n].program == program
        if is_unchanged or solves(report) or np.isnan(judged.coder_rewards[n]):
            continue
        suite = 0
        if report.suites:
            suite = int(np.random.default_rng([*tree.seed, number, tree.round]).integers(len(report.suites)))
        seen = replace(report, suites=report.suites[suite : suite + 1])
        shown_to_tester = tester_feedback(seen.suites[0] if seen.suites else None)
        trajectories.append(Trajectory(number, program, suite, coder_feedback(seen), shown_to_tester))
    if not trajectories:
        return None
    return replace(tree, n_candidates=len(trajectories), round=tree.round + 1, trajectories=tuple(trajectories))


def solves(report: CandidateReport) -> bool:
    """Whether a program passes all tests of its round; one that no test tried does not."""
    cases = (*report.replayed, *(case for suite in report.suites for case in suite.cases))
    return report.passes and any(case.verdict is Verdict.PASSED for case in cases)
