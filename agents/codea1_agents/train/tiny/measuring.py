"""Measures a coder and a tester on a set of problems, with the judge of the game.

The coder writes programs for each problem, and the tester a suite for each program. The tester also writes suites for a
known wrong program of each problem: the one that passes most golden tests, or where the problem has none, a mutant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan

from codea1_agents.evaluation.answers import Question, answer_differences, questions_of
from codea1_agents.evaluation.mutant_trials import View
from codea1_agents.evaluation.solution_runs import drawn_mutants
from codea1_agents.play.named_agent import NamedAgent
from codea1_agents.statistics import Estimate, mean_interval
from codea1_env.errors import SandboxError
from codea1_env.facts.submissions import Candidate
from codea1_env.facts.verdicts import CandidateReport, Verdict
from codea1_env.problems import Problem, ProblemSet
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.rounds import RoundOptions, Rounds, Tree
from codea1_env.rules.rewards import validity
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Sandbox

FIGURES = (
    *("pass@1", "golden_rate", "validity", "kill"),
    *("kill_subtlest", "right_kill_subtlest", "hit", "aim", "right_hit", "right_miss"),
)
"""Share of programs that pass all golden tests; mean share of golden tests passed; share of requested tests that are
new and have the right answer; share of suites for a wrong program that the program fails; the same for one known subtle
mistake per problem, and by a test with the right answer. Of the tests for that mistake, with the solution's answers:
the share that it fails; how much that is above the share of golden tests, which are naive inputs, that it fails; and
the shares of right answers among these and among the others, which are the skills of `lab.tabular.criterion`."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Figures, in [0, 1], as means over problems with 95 % intervals; `aim` and `answers` are differences."""

    problems: str
    """Name of the problem set."""
    figures: dict[str, Estimate]
    """One value per name in `FIGURES`, and `answers` (`evaluation.answers`) of all suites if there is a base."""


def measure(
    problems: ProblemSet,
    coder: NamedAgent,
    tester: NamedAgent,
    sandbox: Sandbox,
    *,
    samples: int,
    tests: int,
    view: View = "white_box",
    seed: int = 0,
    base: NamedAgent | None = None,
) -> Measurement:
    """Return the figures of two agents.

    Args:
        problems: with golden tests; use a source that ends in `-eval`.
        coder: writes programs.
        tester: writes one suite per program.
        sandbox: runs everything.
        samples: programs per problem, and suites for its known wrong program.
        tests: requested per suite.
        view: whether the tester sees the program.
        seed: seeds the resampling behind the intervals.
        base: the model whose answers to the tester's inputs are compared with the tester's own.

    Raises:
        SandboxError: the sandbox cannot be used at all, or a program or suite is masked.
        UserError: an agent failed, or does not tell the probabilities that the comparison needs.
    """
    rules = replace(preset("fixed"), tests_per_suite=tests)
    referee = Referee(problems, rules, sandbox=sandbox, golden=True)

    def opened(chosen: Sequence[Problem], first: int) -> Rounds:
        options = RoundOptions(lambda candidate, _: first + candidate, view, skips_invalid=False)
        return referee.open([Tree(problem, samples) for problem in chosen], options)

    values = _Values()
    sampled = opened(problems, 0)
    sampled.submit_programs(coder.replies(sampled.coder_turns()))
    for problem_id, report in _tested(sampled, tester, values.questions):
        values.add(problem_id, report, tests)
    known = opened(problems, samples)
    known.submit_programs([Candidate(wrong) for wrong in _wrong_programs(known.trees) for _ in range(samples)])
    for problem_id, report in _tested(known, tester, values.questions):
        values.add_known(problem_id, report)
    if values.n_masked:
        raise SandboxError(f"{values.n_masked} programs could not be written or judged")
    if base is not None:
        answers = values.of["answers"] = defaultdict(list)
        differences = answer_differences(values.questions, tester, base)
        for question, difference in zip(values.questions, differences, strict=True):
            answers[question.turn.info["problem_id"]].append(difference)
    return Measurement(problems.name, {name: mean_interval(found, seed=seed) for name, found in values.of.items()})


def _tested(
    rounds: Rounds, tester: NamedAgent, questions: list[Question]
) -> Iterator[tuple[str, CandidateReport | None]]:
    """Yield the problem of each program, and its report with a suite for it; None if it is masked.

    The tests of the suites are added to `questions`.
    """
    turns = rounds.tester_turns()
    replies = tester.replies(turns)
    rounds.submit_suites(replies)
    asked = zip(turns, replies, strict=True)
    for judged in rounds.results():
        reports = judged.report.candidates if judged.report is not None else ()
        for suite in (suite for report in reports for suite in report.suites):
            turn, reply = next(asked)
            questions += questions_of(turn, reply if isinstance(reply, str) else "", suite.suite.cases)
        for report, reward in zip(reports, judged.coder_rewards, strict=True):
            yield judged.tree.problem.id, None if isnan(reward) else report


def _wrong_programs(trees: Sequence[Tree]) -> Iterator[str]:
    """Yield the subtlest wrong program of each problem, or a mutant of its solution."""
    for tree in trees:
        known = tree.problem.wrong_programs
        yield max(known, key=lambda wrong: wrong.subtlety).program if known else _mutant(tree.problem)


def _mutant(problem: Problem) -> str:
    drawn = drawn_mutants(problem, 1, 0)
    return drawn[0].program if drawn else problem.solution


class _Values:
    """Values of the figures by problem, one per program or suite."""

    def __init__(self) -> None:
        self.of: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in FIGURES}
        self.questions: list[Question] = []
        self.n_masked = 0

    def add(self, problem_id: str, report: CandidateReport | None, tests: int) -> None:
        if report is None or (report.loads and report.golden_pass_rate is None):
            self.n_masked += 1
            return
        rate = report.golden_pass_rate or 0.0
        self.of["pass@1"][problem_id].append(float(rate == 1))
        self.of["golden_rate"][problem_id].append(rate)
        for suite in report.suites:
            self.of["validity"][problem_id].append(validity(suite, tests))
            self.of["kill"][problem_id].append(float(suite.beats) if rate < 1 and report.loads else nan)

    def add_known(self, problem_id: str, report: CandidateReport | None) -> None:
        if report is None:
            self.n_masked += 1
            return
        if report.verdict is not Verdict.PASSED:
            return  # a mutant that does not load
        self.of["right_kill_subtlest"][problem_id] += [float(suite.beats_rightly) for suite in report.suites]
        self.of["kill_subtlest"][problem_id] += [float(suite.beats) for suite in report.suites]
        for case in (case for suite in report.suites for case in suite.cases):
            is_hit, is_right = case.verdict is not Verdict.PASSED, float(case.case.prediction_right is not False)
            self.of["hit"][problem_id].append(float(is_hit))
            self.of["aim"][problem_id].append(float(is_hit) - 1 + (report.golden_pass_rate or 0.0))
            self.of["right_hit"][problem_id].append(is_right if is_hit else nan)
            self.of["right_miss"][problem_id].append(nan if is_hit else is_right)
