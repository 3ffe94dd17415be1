"""Whether a tester is worth its cost to a coder: what golden tests miss, and what finds it.

A program that passes the golden tests and is wrong earns a reward that it should not. So each way to test is measured
by the share of accepted programs that it finds wrong, and compared at equal cost: a way that makes a step of training r
times as costly must find more than r times as many. Everything here is pure but `measure_programs`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf, isnan, nan
from typing import ClassVar

from codea1_agents.play.named_agent import NamedAgent, Reply
from codea1_agents.statistics import Estimate, known_mean, mean_interval
from codea1_agents.train.loop.processor_time import processor_seconds
from codea1_env.facts.verdicts import CandidateReport, CaseReport
from codea1_env.problems import Problem, ProblemSet
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.rounds import RoundOptions, Rounds, SuitesPer, Tree
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Sandbox
from codea1_lab.tabular.criterion import Skill, least_kill_rate

TRAINED_COST = 1.3
"""Processor time of a training whose tester learns, in that of one whose tester is frozen: 1.25 to 1.30 in the results
of the experiments `paper-cpu`, `deep-rare` and `long`."""
_CHUNK = 8
"""Problems at a time."""


@dataclass(frozen=True, slots=True)
class ProgramRuns:
    """A program of the coder that loads, and how it does in all tests."""

    problem_id: str
    is_accepted: bool
    """Whether it passes all golden tests of its problem."""
    fresh: tuple[CaseReport, ...]
    """Random inputs with the solution's answers."""
    suites: tuple[tuple[CaseReport, ...], ...]
    """(M,) the tester's; () without one."""

    @property
    def fresh_finds(self) -> bool:
        """Whether a fresh input shows that it is wrong."""
        return any(case.verdict.is_failure for case in self.fresh)

    @property
    def suite_finds(self) -> tuple[bool, ...]:
        """(M,) whether a suite of the tester does."""
        return tuple(any(case.verdict.is_failure for case in suite) for suite in self.suites)

    def finds_of_known_faults(self) -> Iterator[bool]:
        """Yield whether a suite finds it, for each suite without which it is known to be wrong."""
        finds_of_suites = self.suite_finds
        for m, finds in enumerate(finds_of_suites):
            if not self.is_accepted or self.fresh_finds or any(finds_of_suites[:m] + finds_of_suites[m + 1 :]):
                yield finds


@dataclass(slots=True)
class Seconds:
    """Processor seconds of this process and its children; other machines' and GPUs' are not among them."""

    programs: float = 0.0
    """Writing programs and running golden tests."""
    fresh: float = 0.0
    """Drawing and answering inputs, and running them."""
    suites: float = 0.0
    """Writing, checking and running suites."""

    @contextmanager
    def measure(self, what: str) -> Iterator[None]:
        """Add what the block takes."""
        begun = processor_seconds()
        yield
        setattr(self, what, getattr(self, what) + processor_seconds() - begun)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a measurement."""

    samples: int
    """Programs per problem."""
    inputs: int
    """Fresh inputs per problem."""
    suites: int
    """Suites of the tester per program (M)."""
    tests: int
    """Tests requested per suite."""


@dataclass(slots=True)
class Measurements:
    """All programs that could be judged."""

    sizes: Sizes
    programs: list[ProgramRuns] = field(default_factory=list)
    n_broken: int = 0
    """Programs that do not load."""
    n_masked: int = 0
    """Programs that the coder, the tester or the sandbox left without a verdict."""
    seconds: Seconds = field(default_factory=Seconds)

    @property
    def ratio(self) -> float:
        """Cost of a program with one suite, in that of one with fresh inputs; nan if no time was measured."""
        spent = self.seconds
        fresh = spent.programs + spent.fresh
        return (spent.programs + spent.suites / self.sizes.suites) / fresh if fresh else nan


def measure_programs(
    problems: ProblemSet,
    coder: NamedAgent,
    fresh: NamedAgent,
    tester: NamedAgent | None,
    sandbox: Sandbox,
    sizes: Sizes,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Measurements:
    """Let a coder write programs, and test them by golden tests, by fresh inputs and by a tester.

    Args:
        problems: for which fresh inputs can be drawn.
        coder: writes the programs.
        fresh: writes one suite per problem, which all of its programs run.
        tester: sees each program and writes a suite for it; None: there is none.
        sandbox: runs everything.
        sizes: how many of each.
        progress: gets the numbers of finished and of all problems.

    Raises:
        UserError: an agent failed.
        SandboxError: the sandbox cannot be used at all.
    """
    rules, measurements = preset("fixed"), Measurements(sizes)
    options = RoundOptions(lambda candidate, _: candidate)
    of_tester = RoundOptions(lambda candidate, suite: candidate * sizes.suites + suite, "white_box")
    golden = Referee(problems, rules, sandbox=sandbox, golden=True)
    for_inputs = Referee(problems, replace(rules, tests_per_suite=sizes.inputs), sandbox=sandbox)
    for_suites = Referee(problems, replace(rules, tests_per_suite=sizes.tests), sandbox=sandbox)
    for start in range(0, len(problems), _CHUNK):
        chunk = list(problems)[start : start + _CHUNK]
        with measurements.seconds.measure("programs"):
            rounds = golden.open([Tree(problem, sizes.samples, 0) for problem in chunk], options)
            programs = coder.replies(rounds.coder_turns())
            accepted = _judge_all(rounds, programs, None)
        with measurements.seconds.measure("fresh"):
            shared = [Tree(problem, sizes.samples, 1, SuitesPer.PROBLEM) for problem in chunk]
            by_fresh = _judge_all(for_inputs.open(shared, options), programs, fresh)
        by_suite = accepted
        if tester is not None:
            with measurements.seconds.measure("suites"):
                rounds = for_suites.open([Tree(each, sizes.samples, sizes.suites) for each in chunk], of_tester)
                by_suite = _judge_all(rounds, programs, tester)
        of = [problem for problem in chunk for _ in range(sizes.samples)]
        for problem, *reports in zip(of, accepted, by_fresh, by_suite, strict=True):
            _add(measurements, problem, reports)
        progress(start + len(chunk), len(problems))
    return measurements


def _judge_all(rounds: Rounds, programs: Sequence[Reply], tester: NamedAgent | None) -> list[CandidateReport | None]:
    """Return one report per program, in order; None where it is masked."""
    verdicts: list[CandidateReport | None] = []
    for tree in rounds.play(lambda _: programs, None if tester is None else tester.replies):
        reports = tree.report.candidates if tree.report is not None else (None,) * tree.tree.n_candidates
        verdicts += [None if isnan(pay) else report for report, pay in zip(reports, tree.coder_rewards, strict=True)]
    return verdicts


def _add(measurements: Measurements, problem: Problem, reports: Sequence[CandidateReport | None]) -> None:
    known = [report for report in reports if report is not None]
    rate = known[0].golden_pass_rate if known and problem.golden else 1.0
    if len(known) < len(reports) or rate is None:
        measurements.n_masked += 1
    elif not known[0].loads:
        measurements.n_broken += 1
    else:
        (fresh,), suites = (tuple(suite.cases for suite in report.suites) for report in known[1:])
        measurements.programs.append(ProgramRuns(problem.id, rate == 1, fresh, suites))


@dataclass(frozen=True, slots=True)
class Aim:
    """Whether a training under the rules `fixed` makes the tester aim (`tabular.criterion`), by its tests so far."""

    right_naive: float
    """Share of right answers among its tests that the program passes; nan if there are none."""
    right_aimed: float
    """The same of those that it fails."""
    kills_naive: float
    """Share of fresh inputs that a program fails."""
    kills: float
    """Share of the tester's tests that a program fails."""
    least: float
    """Share that makes aiming pay; inf: none is known to, as no test that a program fails has a right answer."""

    @property
    def pays(self) -> bool:
        """Whether the tester gains by aiming."""
        return self.kills >= self.least


@dataclass(frozen=True, slots=True)
class TesterFigures:
    """Figures of a tester's finds, as means over problems with 95 % intervals."""

    __test__: ClassVar[bool] = False  # pytest would collect the class otherwise

    ratio: float
    """Cost of a step with the frozen tester, in that of one with fresh inputs."""
    finds: Estimate
    """Share of accepted programs that one suite finds wrong."""
    lead: Estimate
    """That share minus `ratio` times the share of fresh inputs: above 0, it finds more for its cost."""
    seen: Estimate
    """Share that one suite finds wrong of all programs that other tests show to be wrong: golden ones, fresh inputs, or
    another suite of this tester."""
    aim: Aim


@dataclass(frozen=True, slots=True)
class Advice:
    """The way to test that finds most for its cost."""

    choice: Choice
    fresh: Estimate
    """Share of accepted programs that fresh inputs find wrong: a mean over problems with its 95 % interval."""
    tester: TesterFigures | None
    """None: there is no tester."""


class Choice(StrEnum):
    """The ways to test in a training of a coder, beside golden tests."""

    NONE = "none"
    FRESH = "fresh inputs"
    FROZEN = "frozen tester"
    TRAINED = "trained tester"


def advise(measurements: Measurements, *, ratio: float | None, alpha: float, seed: int = 0) -> Advice:
    """Return what is worth its cost: the cheapest way whose lead over the cheaper ones is shown (95 %).

    A frozen tester must lead fresh inputs at its cost. A trained one must do so frozen, have rewards that make it aim,
    and miss so many programs that are known to be wrong that finding them all would repay the learning.

    Args:
        found: at least two problems with accepted programs, or nothing is shown.
        ratio: as in `TesterFigures`; None: there is no tester.
        alpha: weight of validity in the tester's reward, with a Mistake Book that of `alpha_with_book`.
        seed: seeds the resampling behind the intervals.

    Raises:
        UserError: alpha is not in [0, 1).
    """

    def share(programs: Sequence[ProgramRuns], values: Callable[[ProgramRuns], Iterable[float]]) -> Estimate:
        by_problem: dict[str, list[float]] = defaultdict(list)
        for runs in programs:
            by_problem[runs.problem_id] += map(float, values(runs))
        mean = mean_interval(by_problem, seed=seed)
        if mean.low < mean.high or mean.mean not in (0, 1):
            return mean
        bound = 0.05 ** (1 / mean.n_problems)  # resampling equal values gives an interval without width
        return replace(mean, high=1 - bound) if mean.mean == 0 else replace(mean, low=bound)

    accepted = [runs for runs in measurements.programs if runs.is_accepted]
    fresh = share(accepted, lambda runs: [runs.fresh_finds])
    choice = Choice.FRESH if fresh.low > 0 else Choice.NONE
    if ratio is None:
        return Advice(choice, fresh, None)
    of = TesterFigures(
        ratio=ratio,
        finds=share(accepted, lambda runs: runs.suite_finds),
        lead=share(accepted, lambda runs: [finds - ratio * runs.fresh_finds for finds in runs.suite_finds]),
        seen=share(measurements.programs, ProgramRuns.finds_of_known_faults),
        aim=_aim(measurements.programs, alpha),
    )
    if of.lead.low > 0:
        choice = Choice.TRAINED if of.aim.pays and of.seen.high < 1 / TRAINED_COST else Choice.FROZEN
    return Advice(choice, fresh, of)


def _aim(programs: Sequence[ProgramRuns], alpha: float) -> Aim:
    suites = [case for runs in programs for suite in runs.suites for case in suite]
    naive, aimed = (
        known_mean(case.case.prediction_right is not False for case in suites if case.verdict.is_failure == fails)
        for fails in (False, True)
    )
    kills_naive = known_mean(case.verdict.is_failure for runs in programs for case in runs.fresh)
    is_known = min(naive, aimed, kills_naive) >= 0 and aimed > 0
    least = least_kill_rate(Skill(naive, aimed), kills_naive, alpha) if is_known else inf
    return Aim(naive, aimed, kills_naive, known_mean(case.verdict.is_failure for case in suites), least)
