"""What a coder and a tester are worth on a set of problems, through the game's own judge.

Programs are sampled for each problem, then suites for each program; a second lot of suites is written for a known wrong
program of each problem, the one that passes most golden tests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Literal

from codea1_agents.evaluation.asking import Asker, Turn
from codea1_agents.statistics import Estimate, mean_interval
from codea1_env.errors import SandboxError
from codea1_env.judge import Duel, Judge
from codea1_env.problems import Problem, ProblemSet
from codea1_env.rules.replies import read_candidate, read_suite
from codea1_env.rules.reward_parts import n_right
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.sandbox import Sandbox
from codea1_env.submissions import Candidate, Suite
from codea1_env.verdicts import CandidateReport, Verdict

FIGURES = ("pass@1", "golden_rate", "validity", "kill", "kill_subtlest")
"""Share of programs that pass all golden tests; mean share of golden tests passed; share of asked tests whose answer is
right and that are new; share of suites written for a wrong program that it fails; the same for one known subtle
mistake per problem."""

View = Literal["white_box", "black_box"]


@dataclass(frozen=True, slots=True)
class Measurement:
    """Figures, all in [0, 1], as means over problems with 95 % intervals."""

    problems: str
    """Name of the set."""
    figures: dict[str, Estimate]
    """By names of `FIGURES`."""


def measure(
    problems: ProblemSet,
    coder: Asker,
    tester: Asker,
    sandbox: Sandbox,
    *,
    samples: int = 8,
    tests: int = 4,
    view: View = "white_box",
    seed: int = 0,
) -> Measurement:
    """Return what the agents are worth.

    Args:
        problems: with golden tests; best those whose source ends in `-eval`.
        coder: writes programs.
        tester: writes one suite per program.
        sandbox: where everything runs.
        samples: programs per problem, and suites for its known wrong program.
        tests: asked for per suite.
        view: whether the tester sees the program.
        seed: of the intervals.

    Raises:
        SandboxError: the sandbox cannot be used at all.
        UserError: an agent failed.
    """
    rules = replace(preset("fixed"), tests_per_suite=tests)
    writing = _Writing(rules, tester, view)
    judge = Judge(sandbox, rules, golden=True)
    turns = [Turn(problem=p, role="coder", sample=n) for p in problems for n in range(samples)]
    replies = iter(coder.ask(turns))
    duels = []
    for problem in problems:
        read = [read_candidate(next(replies).text or "", rules.reading, entry_point="f") for _ in range(samples)]
        duels.append((problem, tuple(read)))
    values = _Values()
    for report in judge.judge(writing.duels(duels)):
        for candidate in report.candidates:
            values.take(report.problem_id, candidate, tests)
    known = [(problem, (Candidate(_subtlest(problem)),) * samples) for problem in problems if problem.wrong_programs]
    for report in judge.judge(writing.duels(known, first_sample=samples)):
        for candidate in report.candidates:
            values.take_known(report.problem_id, candidate)
    if values.n_masked:
        raise SandboxError(f"{values.n_masked} programs could not be judged")
    return Measurement(problems.name, {name: mean_interval(values.of[name], seed=seed) for name in FIGURES})


def _subtlest(problem: Problem) -> str:
    return max(problem.wrong_programs, key=lambda wrong: wrong.subtlety).program


class _Writing:
    """A tester that writes one suite for each program."""

    def __init__(self, rules: Ruleset, tester: Asker, view: View) -> None:
        self._rules, self._tester, self._view = rules, tester, view

    def duels(self, programs: Sequence[tuple[Problem, tuple[Candidate, ...]]], *, first_sample: int = 0) -> list[Duel]:
        """Return duels of programs and the suites written for them."""
        turns = [
            Turn(
                problem=problem,
                role="tester",
                sample=first_sample + number,
                program=candidate.program if self._view == "white_box" else "",
                tests=self._rules.tests_per_suite,
                view=self._view,
            )
            for problem, candidates in programs
            for number, candidate in enumerate(candidates)
        ]
        suites = self._suites(turns)
        return [
            Duel(problem, candidates, tuple((next(suites),) for _ in candidates)) for problem, candidates in programs
        ]

    def _suites(self, turns: Sequence[Turn]) -> Iterator[Suite]:
        for turn, reply in zip(turns, self._tester.ask(turns), strict=True):
            yield read_suite(
                reply.text or "",
                self._rules.reading,
                entry_point=turn.problem.entry_point,
                tests_per_suite=self._rules.tests_per_suite,
            )


class _Values:
    """Figures by problem, one value per program or suite."""

    def __init__(self) -> None:
        self.of: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in FIGURES}
        self.n_masked = 0

    def take(self, problem_id: str, report: CandidateReport, tests: int) -> None:
        rate = 0.0 if report.golden_pass_rate is None and not report.is_valid else report.golden_pass_rate
        if rate is None or report.has_internal_error:
            self.n_masked += 1
            return
        self.of["pass@1"][problem_id].append(float(rate == 1))
        self.of["golden_rate"][problem_id].append(rate)
        for suite in report.suites:
            self.of["validity"][problem_id].append(min(1.0, n_right(suite.cases) / tests))
            self.of["kill"][problem_id].append(float(suite.beats) if rate < 1 and report.is_valid else nan)

    def take_known(self, problem_id: str, report: CandidateReport) -> None:
        if report.has_internal_error or report.verdict is not Verdict.PASSED:
            self.n_masked += 1
            return
        self.of["kill_subtlest"][problem_id] += [float(suite.beats) for suite in report.suites]
