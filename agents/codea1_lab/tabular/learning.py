"""GRPO of two tables: groups, advantages, the choice of groups, rewards and the Mistake Book are those of training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import chain
from math import inf, nan
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from codea1_agents.train.grpo.advantages import (
    AdvantageForm,
    advantages_by_parts,
    group_advantages,
    grouped_parts,
    over_batch,
    top_variance,
)
from codea1_env.facts.verdicts import ProblemReport, ValidCase
from codea1_env.rules.mistake_book import BookEntry, apply_changes, changes, select_replayed
from codea1_env.rules.reward_parts import Reward, alpha_with_book
from codea1_env.rules.rewards import score_group
from codea1_env.rules.ruleset import BookRules, BookUpdate, Ruleset, Validation, preset
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
    has_book: bool = True
    has_alpha_of_book: bool = False
    """Whether validity weighs as much as it would with replays (`rules.reward_parts.alpha_with_book`)."""
    alpha: float | None = None
    """Weight of validity; None: that of the rules."""
    advantages: AdvantageForm = "sum"
    """Form of the advantages of suites."""

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


@dataclass(frozen=True, slots=True)
class _Round:
    """One problem's round: which suites beat which programs, and which suites train."""

    beaten: list[bool]
    """By program and suite, whether the suite beats the program."""
    suites: list[_Suite]
    trained: list[tuple[_Suite, float]]
    """The suites that train, and their advantages."""


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
            _Problem(number, tuple(each.tolist()), self._golden(each)) for number, each in enumerate(kinds)
        ]
        self.tables = Tables(
            np.full(world.n_kinds, schedule.skill),
            np.zeros((schedule.n_problems, world.n_places)),
            np.array([schedule.aim_blindly, schedule.aim_if_read]),
            np.full(2, inf if world.right_careless is None else schedule.care),
        )

    def _golden(self, kinds: NDArray[np.int64]) -> tuple[Aim | None, ...]:
        """Return the inputs of golden tests, which aim at any value of any place; each also finds common bugs."""
        world, n = self.world, self.system.n_golden
        draws = np.random.default_rng([self.seed, 2, *kinds.tolist()])
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
        replayed = self._replayed(problem)
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
        found = score_group(report, self.rules)
        self._learn_programs(problem, programs, p_right, np.array([each.coder.value for each in found]))
        is_tester_trained = self.system.tester_learns and self.system.has_tester
        return _Round(
            [suite.beats for candidate in report.candidates for suite in candidate.suites],
            [*chain.from_iterable(groups)],
            self._trained(groups, [candidate.testers for candidate in found]) if is_tester_trained else [],
        )

    def _groups(self, programs: Sequence[Program], policy: _Policy) -> list[list[_Suite]]:
        if not self.system.has_tester:
            return [[] for _ in programs]
        shown = programs if self.system.sees_program else [None] * len(programs)
        if self.system.shares_suites:
            return [[self._suite(None, policy) for _ in range(self._n_suites)]] * len(programs)
        return [[self._suite(each, policy) for _ in range(self._n_suites)] for each in shown]

    @property
    def _n_suites(self) -> int:
        return self.system.n_suites or self.schedule.n_suites

    def _suite(self, program: Program | None, policy: _Policy) -> _Suite:
        world, rng = self.world, self.rng
        rare = program.rare_bugs(world) if program is not None else []
        reading = world.reading if self.system.sees_program else 0.0
        read = [place for place in rare if rng.random() < reading]
        tests = tuple(self._test(program, read, policy) for _ in range(self.schedule.tests_per_suite))
        return _Suite(tests, (bool(read),) * len(tests))

    def _test(self, program: Program | None, read: Sequence[int], policy: _Policy) -> DrawnTest:
        world, rng = self.world, self.rng
        aims = rng.random() < policy.aim[bool(read)]
        can_be_careless = world.right_careless is not None
        is_careful = not can_be_careless or rng.random() < policy.care[aims]
        if not aims:
            return drawn_test(None, world, rng, is_careful=is_careful)
        place = int(rng.choice(read)) if read else int(rng.integers(world.n_places))
        misses = can_be_careless and is_careful and rng.random() < world.distraction
        hits = program is not None and read and not misses
        value = program.triggers[place] if program and hits else int(rng.integers(world.n_triggers))
        return drawn_test(Aim(place, value), world, rng, is_careful=is_careful)

    def _replayed(self, problem: _Problem) -> list[ValidCase]:
        book = self.rules.book
        if book.update is BookUpdate.OFF:
            return []
        return [entry.to_valid_case() for entry in select_replayed(problem.entries, book, self.rng)]

    def _learn_programs(self, problem: _Problem, programs: Sequence[Program], p_right: Vector, rewards: Vector) -> None:
        advantages = group_advantages(rewards).values
        share = 1.0 if self.system.coder_share is None else self.system.coder_share
        rate = share * self.schedule.lr_coder / (self.schedule.problems_per_step * len(programs))
        for program, advantage in zip(programs, advantages, strict=True):
            gradient = rate * advantage * (~np.array(program.has_bug) - p_right)
            self.tables.skill[list(problem.kinds)] += gradient
            self.tables.own[problem.number] += gradient

    def _trained(
        self, groups: Sequence[Sequence[_Suite]], rewards: Sequence[Sequence[Reward]]
    ) -> list[tuple[_Suite, float]]:
        if self.system.shares_suites:
            groups = groups[:1]

        def grouped(number: Callable[[Reward], float]) -> Vector:
            numbers = np.array([[number(each) for each in group] for group in rewards])
            return numbers.mean(axis=0, keepdims=True) if self.system.shares_suites else numbers

        whole, form = grouped(attrgetter("value")), self.system.advantages
        if form == "sum":
            advantages = group_advantages(whole).values
        else:
            advantages = advantages_by_parts(grouped_parts(chain.from_iterable(rewards), grouped), form).values
        kept = top_variance(whole, min(self.schedule.n_kept, len(groups)))
        return [
            each
            for group, values, is_kept in zip(groups, advantages, kept, strict=True)
            if is_kept
            for each in zip(group, values.tolist(), strict=True)
        ]

    def _learn_suites(self, trained: Sequence[tuple[_Suite, float]], policy: _Policy) -> None:
        advantages = np.array([advantage for _, advantage in trained])
        if self.system.advantages == "decoupled":
            advantages = over_batch(advantages)
        n_trained = self.schedule.problems_per_step * self.schedule.n_kept * self._n_suites
        share = 1.0 if self.system.coder_share is None else 1 - self.system.coder_share
        rate = share * self.schedule.lr_tester / (n_trained * self.schedule.tests_per_suite)
        for (suite, _), advantage in zip(trained, advantages, strict=True):
            for test, has_read in zip(suite.tests, suite.has_read, strict=True):
                aims, step = int(test.aim is not None), rate * advantage
                self.tables.aim[int(has_read)] += step * (aims - policy.aim[has_read])
                self.tables.care[aims] += step * (test.is_careful - policy.care[aims])


def _sigmoid(logits: Vector) -> Vector:
    return 1 / (1 + np.exp(-logits))
