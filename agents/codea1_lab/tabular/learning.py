"""GRPO of two tables: groups, advantages, the choice of groups, rewards and the Mistake Book are those of training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import chain
from math import inf, isnan, nan
from operator import attrgetter
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from codea1_agents.train.grpo.advantages import (
    AdvantageForm,
    advantages_by_parts,
    group_advantages,
    grouped_parts,
    largest,
    over_batch,
    top_variance,
)
from codea1_agents.train.grpo.credit import CreditedTest, PaidTest, group_credit, paid_tests
from codea1_agents.train.grpo.hyperparameters import CreditForm
from codea1_env.facts.verdicts import ProblemReport, SuiteReport, ValidCase
from codea1_env.rules.mistake_book import BookEntry, apply_changes, changes, select_replayed
from codea1_env.rules.rewards import Reward, RewardPart, alpha_with_book, score_group
from codea1_env.rules.ruleset import BookRules, BookUpdate, Ruleset, Validation, preset
from codea1_lab.tabular.credit import JudgedTest, TestPay
from codea1_lab.tabular.world import Aim, DrawnTest, Program, World, candidate_report, drawn_program, drawn_test

Vector = NDArray[np.float64]
_HELD_OUT = 512
_NO_BOOK = BookRules(update=BookUpdate.OFF, n_replayed=0)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The sizes and rates of a training."""

    steps: int = 50
    n_problems: int = 48
    """Problems to train on."""
    problems_per_step: int = 8
    n_candidates: int = 4
    """Programs per problem (N)."""
    n_suites: int = 4
    """Suites per program (M)."""
    tests_per_suite: int = 4
    """Tests per suite (K)."""
    n_kept: int = 1
    """Programs per problem whose suites train the tester."""
    golden_differ: bool = False
    """Whether no two golden tests of a problem are equal; otherwise each is drawn by itself."""
    lr_coder: float = 0.98
    """Brings plain problems, without rare bugs, to an accuracy of .72 in 50 steps."""
    lr_tester: float = 2.0
    skill: float = 1.75
    """Logit of being right at a place, before training: programs for four places are right in 53 %."""
    aim_if_read: float = 0.0
    """Logit of aiming at a bug that is read, before training."""
    aim_blindly: float = -2.0
    """Logit of aiming at a guessed value where no bug is read, before training."""
    care: float = 0.0
    """Logit of answering with care, before training, in worlds where it can be left out."""


@dataclass(frozen=True, slots=True)
class System:
    """One configuration to compare: which roles learn, and whether the tester sees the program."""

    name: str
    sees_program: bool = True
    """Whether the tester sees the program."""
    shares_suites: bool = False
    """Whether suites are written for the problem, and all of its programs run them."""
    n_suites: int = 0
    """Suites per program, or for all of them; 0: the number of the schedule."""
    coder_share: float | None = None
    """Share of the coder's tokens if both roles are one model whose loss is one mean over tokens; None: two models."""
    tester_learns: bool = True
    n_golden: int = 0
    """Golden tests at triggers that the coder is trained on instead of suites; 0: none."""
    n_naive: int = 0
    """Naive golden tests, likewise."""
    is_fresh: bool = False
    """Whether the golden tests at triggers are drawn anew each time that a problem is played."""
    has_book: bool = True
    has_alpha_of_book: bool = False
    """Whether validity weighs as much as it would with replays (`rules.rewards.alpha_with_book`)."""
    alpha: float | None = None
    """Weight of validity; None: that of the rules."""
    advantages: AdvantageForm = "sum"
    """Form of the advantages of suites."""
    credit: CreditForm = "reply"
    """The unit that pays the aim and the care of a test: both for the suite (`reply`), both for the test (`test`), or
    the aim for the kill and the care for being right (`block`)."""
    pay: TestPay | None = None
    """Of single tests, with `credit` by `reply` (their mean is the suite's reward) or `test`; None: suites have the
    reward of the rules, and tests are paid as in training."""
    n_answers: int = 1
    """With `credit` by `block`: answers that are drawn per input. Several are compared with each other alone; the first
    one is in the suite."""

    @property
    def has_tester(self) -> bool:
        """Whether there are suites and not golden tests."""
        return not (self.n_golden or self.n_naive)


SYSTEMS = {
    each.name: each
    for each in (
        System("code-a1"),
        System("black-box", sees_program=False),
        System("self-play", sees_program=False, shares_suites=True, coder_share=0.38),
        System("self-play-control", sees_program=False, shares_suites=True),
        System("golden-16", n_golden=16),
        System("golden-4", n_golden=4),
        System("frozen-tester", tester_learns=False),
        System("no-book", has_book=False),
        System("book-alpha", has_book=False, has_alpha_of_book=True),
    )
}


@dataclass(frozen=True, slots=True)
class Step:
    """Figures after a step."""

    accuracy: float
    """Probability that a program for a held-out problem is right."""
    aims_if_read: float
    """Probability that a test aims at a bug that is read."""
    aims_blindly: float
    kills: float
    """Share of the step's suites that their program fails; nan without suites."""
    validity: float
    """Share of the step's tests with a right answer; nan without suites."""
    care: tuple[float, float]
    """Probability that a naive and an aimed test is answered with care."""


@dataclass(slots=True)
class Tables:
    """The parameters of both policies."""

    skill: Vector
    """(H,) logit of being right, by kind."""
    own: Vector
    """(P, L) further logit, by place of each problem to train on."""
    aim: Vector
    """(2,) logits of aiming: where no bug is read, and where one is."""
    care: Vector
    """(2,) logits of answering with care: naive tests, and aimed ones."""


def train(system: System, world: World, schedule: Schedule, rules: Ruleset | str, seed: int) -> list[Step]:
    """Train a system and return its figures, from before the first step on.

    The problems depend on the seed only, so systems of one seed can be compared in pairs.

    Args:
        system: who trains.
        world: the game's parameters.
        schedule: sizes and rates.
        rules: with the reward and the book; `tests_per_suite` is that of the schedule.
        seed: seeds everything that is drawn.
    """
    return list(_Training(system, world, schedule, _rules(system, schedule, rules), seed).steps())


def _rules(system: System, schedule: Schedule, rules: Ruleset | str) -> Ruleset:
    full = preset(rules) if isinstance(rules, str) else rules
    reward = full.reward if system.has_tester else preset("golden").reward
    if system.has_tester:
        alpha = reward.alpha if system.alpha is None else system.alpha
        reward = replace(reward, alpha=alpha_with_book(alpha) if system.has_alpha_of_book else alpha)
    book = full.book if system.has_book and system.has_tester else _NO_BOOK
    return replace(full, reward=reward, book=book, tests_per_suite=schedule.tests_per_suite)


@dataclass(frozen=True, slots=True)
class _Policy:
    """The tester's probabilities during a step, as plain numbers: (2,) each, in the order of `Tables`."""

    aim: list[float]
    care: list[float]

    @classmethod
    def of(cls, tables: Tables) -> _Policy:
        return cls(_sigmoid(tables.aim).tolist(), _sigmoid(tables.care).tolist())


@dataclass(slots=True)
class _Problem:
    number: int
    kinds: tuple[int, ...]
    golden: tuple[Aim | None, ...]
    entries: tuple[BookEntry, ...] = ()
    rounds: int = 0


@dataclass(frozen=True, slots=True)
class _Suite:
    """A suite, and what its author decided on."""

    tests: tuple[DrawnTest, ...]
    has_read: tuple[bool, ...]
    """One per test: whether the tester read a bug before writing it."""
    others: tuple[tuple[DrawnTest, ...], ...]
    """One per test: the same input with other answers, which are not in the suite."""


@dataclass(frozen=True, slots=True)
class _Round:
    """One problem's round: which suites beat which programs, and which suites train."""

    beaten: list[bool]
    """By program and suite, whether the suite beats the program."""
    suites: list[_Suite]
    trained: list[tuple[_Suite, float | Vector]]
    """The suites that train, with their advantages. Where tests have their own: (K, 1 + A), of the input and the A
    answers of each."""


@dataclass(slots=True)
class _Training:
    system: System
    world: World
    schedule: Schedule
    rules: Ruleset
    seed: int
    tables: Tables = field(init=False)
    problems: list[_Problem] = field(init=False)
    held_out: NDArray[np.int64] = field(init=False)
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        world, schedule = self.world, self.schedule
        draws = np.random.default_rng([self.seed, 0])
        kinds = [draws.permutation(world.n_kinds)[: world.n_places] for _ in range(schedule.n_problems)]
        self.held_out = np.array([draws.permutation(world.n_kinds)[: world.n_places] for _ in range(_HELD_OUT)])
        self.rng = np.random.default_rng([self.seed, 1])
        self.problems = [
            _Problem(number, tuple(each.tolist()), self._golden([2, *each.tolist()]))
            for number, each in enumerate(kinds)
        ]
        self.tables = Tables(
            np.full(world.n_kinds, schedule.skill),
            np.zeros((schedule.n_problems, world.n_places)),
            np.array([schedule.aim_blindly, schedule.aim_if_read]),
            np.full(2, inf if world.right_careless is None else schedule.care),
        )

    def _golden(self, key: Sequence[int]) -> tuple[Aim | None, ...]:
        """Return the inputs of golden tests, which aim at any value of any place; each also finds common bugs."""
        world, n = self.world, self.system.n_golden
        draws = np.random.default_rng([self.seed, *key])
        n_inputs = world.n_places * world.n_triggers
        chosen = draws.permutation(n_inputs)[:n] if self.schedule.golden_differ else draws.integers(0, n_inputs, n)
        aims = tuple(Aim(*divmod(int(number), world.n_triggers)) for number in chosen)
        return (*aims, *(None,) * self.system.n_naive)

    def steps(self) -> Iterator[Step]:
        """Yield the figures before the first step, then after each."""
        yield self._figures(nan, nan)
        for number in range(self.schedule.steps):
            yield self._step(number)

    def _figures(self, kills: float, validity: float) -> Step:
        accuracy = float(_sigmoid(self.tables.skill[self.held_out]).prod(axis=-1).mean())
        policy = _Policy.of(self.tables)
        (blindly, if_read), (naive, aimed) = policy.aim, policy.care
        return Step(accuracy, if_read, blindly, kills, validity, (naive, aimed))

    def _step(self, number: int) -> Step:
        schedule = self.schedule
        first = number * schedule.problems_per_step
        chosen = [self.problems[(first + n) % len(self.problems)] for n in range(schedule.problems_per_step)]
        before = deepcopy(self.tables)
        policy = _Policy.of(before)
        rounds = [self._round(problem, before, policy) for problem in chosen]
        self._learn_suites([each for one in rounds for each in one.trained], policy)
        beaten = [beats for one in rounds for beats in one.beaten]
        if not beaten:
            return self._figures(nan, nan)
        tests = [test.is_right for one in rounds for suite in one.suites for test in suite.tests]
        return self._figures(sum(beaten) / len(beaten), sum(tests) / len(tests))

    def _round(self, problem: _Problem, before: Tables, policy: _Policy) -> _Round:
        """Play one problem. The coder learns from it."""
        p_right = _sigmoid(before.skill[list(problem.kinds)] + before.own[problem.number])
        n = self.schedule.n_candidates
        programs = [drawn_program(problem.kinds, p_right, self.world, self.rng) for _ in range(n)]
        groups = self._groups(programs, policy)
        replayed = self._replayed_cases(problem)
        if self.system.is_fresh:
            problem.golden = self._golden([3, problem.number, problem.rounds])
        report = ProblemReport(
            str(problem.number),
            tuple(
                candidate_report(
                    program,
                    [suite.tests for suite in group],
                    replayed,
                    problem.golden,
                    self.world,
                    drops_wrong=self.rules.validation is Validation.DROP_WRONG,
                )
                for program, group in zip(programs, groups, strict=True)
            ),
            shares_suites=self.system.shares_suites,
        )
        problem.rounds += 1
        problem.entries = apply_changes(
            problem.entries, changes(report, self.rules.book), self.rules.book, round=problem.rounds
        )
        scores = score_group(report, self.rules)
        self._learn_programs(problem, programs, p_right, np.array([score.coder.value for score in scores]))
        trained: list[tuple[_Suite, float | Vector]] = []
        if self.system.tester_learns and self.system.has_tester:
            rewards = [candidate.testers for candidate in scores]
            if self.system.credit == "reply" and self.system.pay is None:
                trained = self._credit_suites(groups, rewards)
            else:
                trained = self._credit_tests(groups, report, programs, policy)
        return _Round(
            [suite.beats for candidate in report.candidates for suite in candidate.suites],
            [*chain.from_iterable(groups)],
            trained,
        )

    def _groups(self, programs: Sequence[Program], policy: _Policy) -> list[list[_Suite]]:
        if not self.system.has_tester:
            return [[] for _ in programs]
        programs_seen = programs if self.system.sees_program else [None] * len(programs)
        if self.system.shares_suites:
            return [[self._suite(None, policy) for _ in range(self._n_suites)]] * len(programs)
        return [[self._suite(program, policy) for _ in range(self._n_suites)] for program in programs_seen]

    @property
    def _n_suites(self) -> int:
        return self.system.n_suites or self.schedule.n_suites

    def _suite(self, program: Program | None, policy: _Policy) -> _Suite:
        world, rng = self.world, self.rng
        rare = program.rare_bugs(world) if program is not None else []
        reading = world.reading if self.system.sees_program else 0.0
        read = [place for place in rare if rng.random() < reading]
        tests = tuple(self._test(program, read, policy) for _ in range(self.schedule.tests_per_suite))
        n_others = self.system.n_answers - 1
        others = tuple(tuple(self._redraw_answer(test, policy) for _ in range(n_others)) for test in tests)
        return _Suite(tests, (bool(read),) * len(tests), others)

    def _test(self, program: Program | None, read: Sequence[int], policy: _Policy) -> DrawnTest:
        world, rng = self.world, self.rng
        aims = rng.random() < policy.aim[bool(read)]
        can_be_careless = world.right_careless is not None
        is_careful = self._is_careful(policy, aims=aims)
        if not aims:
            return drawn_test(None, world, rng, is_careful=is_careful)
        place = int(rng.choice(read)) if read else int(rng.integers(world.n_places))
        misses = can_be_careless and is_careful and rng.random() < world.distraction
        hits = program is not None and read and not misses
        value = program.triggers[place] if program and hits else int(rng.integers(world.n_triggers))
        return drawn_test(Aim(place, value), world, rng, is_careful=is_careful)

    def _is_careful(self, policy: _Policy, *, aims: bool) -> bool:
        return self.world.right_careless is None or self.rng.random() < policy.care[aims]

    def _redraw_answer(self, test: DrawnTest, policy: _Policy) -> DrawnTest:
        """Return the test with another answer to its input."""
        aims = test.aim is not None
        is_careful = self._is_careful(policy, aims=aims)
        is_right = bool(self.rng.random() < self.world.right(aims=aims, is_careful=is_careful))
        return replace(test, is_right=is_right, is_careful=is_careful)

    def _replayed_cases(self, problem: _Problem) -> list[ValidCase]:
        book = self.rules.book
        if book.update is BookUpdate.OFF:
            return []
        return [entry.to_valid_case() for entry in select_replayed(problem.entries, book)]

    def _learn_programs(self, problem: _Problem, programs: Sequence[Program], p_right: Vector, rewards: Vector) -> None:
        advantages = group_advantages(rewards).values
        share = 1.0 if self.system.coder_share is None else self.system.coder_share
        rate = share * self.schedule.lr_coder / (self.schedule.problems_per_step * len(programs))
        for program, advantage in zip(programs, advantages, strict=True):
            gradient = rate * advantage * (~np.array(program.has_bug) - p_right)
            self.tables.skill[list(problem.kinds)] += gradient
            self.tables.own[problem.number] += gradient

    def _credit_suites(
        self, groups: Sequence[Sequence[_Suite]], rewards: Sequence[Sequence[Reward]]
    ) -> list[tuple[_Suite, float | Vector]]:
        if self.system.shares_suites:
            groups = groups[:1]

        def by_group(number: Callable[[Reward], float]) -> Vector:
            numbers = np.array([[number(each) for each in group] for group in rewards])
            return numbers.mean(axis=0, keepdims=True) if self.system.shares_suites else numbers

        whole, form = by_group(attrgetter("value")), self.system.advantages
        if form == "sum":
            advantages = group_advantages(whole).values
        else:
            advantages = advantages_by_parts(grouped_parts(chain.from_iterable(rewards), by_group), form).values
        kept = top_variance(whole, min(self.schedule.n_kept, len(groups)))
        return [
            each
            for group, values, is_kept in zip(groups, advantages, kept, strict=True)
            if is_kept
            for each in zip(group, values.tolist(), strict=True)
        ]

    def _credit_tests(
        self, groups: Sequence[Sequence[_Suite]], report: ProblemReport, programs: Sequence[Program], policy: _Policy
    ) -> list[tuple[_Suite, float | Vector]]:
        """Return the suites that train where single tests are paid."""
        ran_by = [report.candidates] if self.system.shares_suites else [(candidate,) for candidate in report.candidates]
        groups = groups[: len(ran_by)]
        paid = [
            [
                self._paid_tests(suite, [each.suites[number] for each in ran], programs, policy)
                for number, suite in enumerate(group)
            ]
            for group, ran in zip(groups, ran_by, strict=True)
        ]
        if self.system.credit == "reply":
            pays = [[fmean(test.pay for test in suite) for suite in group] for group in paid]
            return self._credit_suites(
                groups, [[Reward.of(RewardPart("pay", each, 1.0)) for each in group] for group in pays]
            )
        credits_of_groups = [group_credit(of_group, self.system.credit) for of_group in paid]
        kept = largest(np.array([credit.spread for credit in credits_of_groups]), self.schedule.n_kept)
        return [
            (suite, np.array([*map(_credit_of_sides, suite.tests, suite.others, tests)]))
            for group, credit, is_kept in zip(groups, credits_of_groups, kept, strict=True)
            if is_kept
            for suite, tests in zip(group, credit.suites, strict=True)
        ]

    def _paid_tests(
        self, suite: _Suite, reports: Sequence[SuiteReport], programs: Sequence[Program], policy: _Policy
    ) -> list[PaidTest]:
        """Return what the tests of a suite are paid for, in their order. A duplicate earns nothing."""
        tests = sorted(paid_tests(reports, self.rules), key=lambda each: each.written.statement)
        pay = self.system.pay
        if pay is None:
            return tests
        return [
            paid
            if isnan(paid.right)
            else replace(paid, pay=pay(self._judge_test(test, paid, programs, policy), self.rules.reward.alpha))
            for test, paid in zip(suite.tests, tests, strict=True)
        ]

    def _judge_test(self, test: DrawnTest, paid: PaidTest, programs: Sequence[Program], policy: _Policy) -> JudgedTest:
        aims = test.aim is not None
        careful, careless = (self.world.right(aims=aims, is_careful=each) for each in (True, False))
        return JudgedTest(
            kill=paid.kill,
            right=paid.right,
            sure=careful if test.is_careful else careless,
            expected=policy.care[aims] * careful + (1 - policy.care[aims]) * careless,
            passed=fmean(program.passes(test.aim, self.world) for program in programs),
        )

    def _learn_suites(self, trained: Sequence[tuple[_Suite, float | Vector]], policy: _Policy) -> None:
        advantages = np.array([advantage for _, advantage in trained])
        if self.system.advantages == "decoupled":
            advantages = over_batch(advantages)
        n_trained = self.schedule.problems_per_step * self.schedule.n_kept * self._n_suites
        share = 1.0 if self.system.coder_share is None else 1 - self.system.coder_share
        rate = share * self.schedule.lr_tester / (n_trained * self.schedule.tests_per_suite)
        for (suite, _), advantage in zip(trained, advantages, strict=True):
            steps = rate * np.broadcast_to(advantage, (len(suite.tests), 1 + self.system.n_answers))
            for test, others, has_read, (of_input, *of_answers) in zip(
                suite.tests, suite.others, suite.has_read, steps.tolist(), strict=True
            ):
                aims = int(test.aim is not None)
                self.tables.aim[int(has_read)] += of_input * (aims - policy.aim[has_read])
                for answer, step in zip((test, *others), of_answers, strict=True):
                    self.tables.care[aims] += step * (answer.is_careful - policy.care[aims]) / len(of_answers)


def _credit_of_sides(test: DrawnTest, others: Sequence[DrawnTest], credit: CreditedTest) -> list[float]:
    """Return the credit of a test's input, and of each of its answers."""
    if not others:
        return [credit.input, credit.answer]
    return [credit.input, *group_advantages(np.array([float(each.is_right) for each in (test, *others)])).values]


def _sigmoid(logits: Vector) -> Vector:
    return 1 / (1 + np.exp(-logits))
