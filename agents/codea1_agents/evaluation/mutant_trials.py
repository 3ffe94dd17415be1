"""Measures a tester on mutants of the solutions: one suite per mutant, judged as in the game."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from math import nan
from typing import Literal

from codea1_agents.play.named_agent import NamedAgent
from codea1_agents.statistics import Estimate, mean_interval
from codea1_env.agent import AgentContext, load_agent
from codea1_env.facts.verdicts import CandidateReport, SuiteReport
from codea1_env.problems import ProblemSet
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.rounds import JudgedTree, RoundOptions, Tree
from codea1_env.rules.rewards import validity
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Sandbox

_MUTANT = "mutant,strength=1"

View = Literal["white_box", "black_box"]


@dataclass(frozen=True, slots=True)
class MutantTrial:
    """One suite of a tester for one mutant."""

    problem_id: str
    reply: str | None
    """None if the tester was unavailable."""
    report: CandidateReport | None
    """Outcome of the suite on the mutant; None if masked, since the tester was unavailable or the sandbox failed."""

    @property
    def suites(self) -> tuple[SuiteReport, ...]:
        """The suite; () if it is masked."""
        return self.report.suites if self.report is not None else ()


def mutant_trials(
    problems: ProblemSet,
    tester: NamedAgent,
    sandbox: Sandbox,
    *,
    samples: int,
    tests: int,
    seed: int,
    view: View = "white_box",
) -> list[MutantTrial]:
    """Return the suites of a tester for mutants, judged under the rules `fixed`.

    Args:
        problems: whose solutions are mutated.
        tester: writes one suite per mutant.
        sandbox: runs everything.
        samples: mutants per problem.
        tests: requested per suite.
        seed: seeds the choice of mutants.
        view: whether the tester sees the mutant.

    Raises:
        UserError: the tester failed.
        SandboxError: the sandbox cannot be used at all.
    """
    referee = Referee(problems, replace(preset("fixed"), tests_per_suite=tests), sandbox=sandbox)
    options = RoundOptions(lambda candidate, _: candidate, view, skips_invalid=False)
    rounds = referee.open([Tree(problem, samples) for problem in problems], options)
    context = AgentContext(problems, sandbox, seed)
    with closing(NamedAgent(load_agent(_MUTANT, context, role="coder"), _MUTANT, seed=seed)) as coder:
        return [trial for judged in rounds.play(coder.replies, tester.replies) for trial in _trials(judged)]


def figures_of_trials(trials: Sequence[MutantTrial], *, tests: int, seed: int) -> dict[str, Estimate]:
    """Return `validity`, `right_kill_rate` and `kill_rate` of judged suites, in [0, 1]: means over problems with 95 %
    intervals.

    Validity counts the right tests over the number requested, at most 1; `right_kill_rate` the suites with a right case
    that its mutant fails; `kill_rate` those with any such case, so wrong answers raise it, too. Some mutants are
    equivalent to the solution.

    Args:
        trials: all of one tester.
        tests: requested per suite.
        seed: seeds the resampling behind the intervals.
    """
    measures: dict[str, Callable[[SuiteReport], float]] = {
        "validity": lambda suite: validity(suite, tests),
        "right_kill_rate": lambda suite: float(suite.beats_rightly),
        "kill_rate": lambda suite: float(suite.beats),
    }
    values: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in measures}
    for trial in trials:
        for name, measure in measures.items():
            values[name][trial.problem_id] += [measure(suite) for suite in trial.suites] or [nan]
    return {name: mean_interval(of_problems, seed=seed) for name, of_problems in values.items()}


def _trials(judged: JudgedTree) -> Iterator[MutantTrial]:
    reports = judged.report.candidates if judged.report is not None else [None] * judged.tree.n_candidates
    for report, (reply,) in zip(reports, judged.suites, strict=True):
        text = reply if isinstance(reply, str) else None
        is_masked = text is None or report is None or report.has_internal_error
        yield MutantTrial(judged.tree.problem.id, text, None if is_masked else report)
