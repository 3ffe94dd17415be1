"""Every coder against every tester on the same problems: the measurements and their means with intervals. Pure.

Axes: C coders, T testers, P problems, S games per problem. There are two modes:

- *on policy*: the suite answers this program (or, if the tester does not see programs, the problem);
- *transfer*: stored programs run stored suites that were written for another coder's program.

All values except rewards are shares in [0, 1]. nan means no value: the program does not load, so the tester did not
write a suite; or nothing could be counted; or the sandbox or an agent failed, which `n_masked` counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from math import nan
from statistics import fmean
from typing import Self, TypeAlias

import numpy as np

from codea1_agents.statistics import Estimate, known_mean, mean_interval
from codea1_env.facts.verdicts import CandidateReport, SuiteReport
from codea1_env.rules.rewards import score, validity
from codea1_env.rules.ruleset import Ruleset
from codea1_lab.crossplay.draws import Table


@dataclass(frozen=True, slots=True)
class GameFigures:
    """One program against one suite, or the means over several suites of one tester."""

    pass_rate: float = nan
    """Share of the suite's valid cases that the program passes; 0 where it does not load."""
    validity: float = nan
    """Share of the requested tests that are new and right as written."""
    beats: float = nan
    """Whether the program fails a valid case, even one whose prediction was corrected; nan if it does not load."""
    caught: float = nan
    """`beats` for programs that load and fail a golden test; nan for all others."""
    survives: float = nan
    """Whether the program loads and fails no case: the coder's score if the game is scored as won or lost."""
    coder_reward: float = nan
    tester_reward: float = nan


FIGURES = tuple(field.name for field in fields(GameFigures))


def figures_of(report: CandidateReport, rules: Ruleset, *, is_right: bool | None = None) -> GameFigures | None:
    """Return the means of one program's games, one game per suite; None if the report has an internal error.

    Args:
        report: a program with the suites of one tester; without suites if the program does not load.
        rules: they score each game, without a Mistake Book.
        is_right: whether the program passes all golden tests; None: not known.
    """
    if report.has_internal_error:
        return None
    if not report.loads:
        reward = score(replace(report, suites=(), replayed=()), rules).coder.value
        return GameFigures(pass_rate=0.0, survives=0.0, coder_reward=reward)
    games = [_game(report, suite, rules, is_right) for suite in report.suites]
    return GameFigures(*(known_mean([getattr(game, name) for game in games]) for name in FIGURES))


def _game(report: CandidateReport, suite: SuiteReport, rules: Ruleset, is_right: bool | None) -> GameFigures:
    rewards = score(replace(report, suites=(suite,), replayed=()), rules)
    failed = [case.verdict.is_failure for case in suite.cases]
    beats = float(any(failed))
    return GameFigures(
        pass_rate=1 - fmean(failed) if failed else nan,
        validity=validity(suite, rules.tests_per_suite),
        beats=beats,
        caught=beats if is_right is False else nan,
        survives=1 - beats,
        coder_reward=rewards.coder.value,
        tester_reward=rewards.testers[0].value,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """All figures of one mode, as (C, T, P) means over the games of a problem; `GameFigures` defines each figure."""

    pass_rate: Table
    validity: Table
    beats: Table
    caught: Table
    survives: Table
    coder_reward: Table
    tester_reward: Table
    n_masked: int = 0
    """Games without a value, because the sandbox or an agent failed."""

    @classmethod
    def of(cls, games: Sequence[Sequence[Sequence[Sequence[GameFigures | None]]]]) -> Self:
        """Return the means over games.

        Args:
            games: (C, T, P, S); None is a masked game. S may differ between problems and be 0.
        """
        tables = {
            name: np.array(
                [[[known_mean([getattr(g, name) for g in s if g is not None]) for s in t] for t in c] for c in games]
            )
            for name in FIGURES
        }
        n_masked = sum(game is None for coder in games for tester in coder for some in tester for game in some)
        return cls(**tables, n_masked=n_masked)


@dataclass(frozen=True, slots=True, eq=False)
class CrossPlay:
    """All measurements."""

    coders: tuple[str, ...]
    """(C,) distinct names."""
    testers: tuple[str, ...]
    """(T,) distinct names."""
    problems: tuple[str, ...]
    """(P,) ids."""
    right: Table
    """(C, P) share of each coder's programs that pass all golden tests; nan if the problem has none."""
    on_policy: Cells
    transfer: Cells | None
    """None: not measured."""
    fixed_coders: tuple[int, ...] = ()
    """Positions of the scripted yardsticks in `coders`."""
    fixed_testers: tuple[int, ...] = ()
    """Positions of the scripted yardsticks in `testers`."""

    def right_intervals(self, *, seed: int = 0) -> tuple[Estimate, ...]:
        """Return (C,) shares of right programs with 95 % bootstrap intervals over problems."""
        return tuple(_estimate(self.problems, row, seed) for row in self.right)


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """One program, kept for later evaluations."""

    coder: str
    problem_id: str
    sample: int
    program: str
    """Empty if the reply held none."""
    is_right: bool | None
    """Whether it passes all golden tests; None: not known."""


@dataclass(frozen=True, slots=True)
class StoredSuite:
    """One suite as its tester wrote it."""

    tester: str
    coder: str
    """Author of the program that the suite answers."""
    problem_id: str
    sample: int
    reply: str


@dataclass(frozen=True, slots=True)
class Submissions:
    """All programs and suites that the agents wrote."""

    programs: tuple[StoredProgram, ...]
    suites: tuple[StoredSuite, ...]


Grid: TypeAlias = tuple[tuple[Estimate, ...], ...]
"""(C, T) means over problems of one figure with 95 % bootstrap intervals over problems."""


def grid_of(play: CrossPlay, cells: Cells, figure: str, *, seed: int = 0) -> Grid:
    """Return the matrix of a figure.

    Args:
        play: the measurements.
        cells: `play.on_policy` or `play.transfer`.
        figure: one of `FIGURES`.
        seed: for the resampling.
    """
    return tuple(tuple(_estimate(play.problems, pair, seed) for pair in row) for row in getattr(cells, figure))


def _estimate(problems: Sequence[str], values: Table, seed: int) -> Estimate:
    return mean_interval({name: [float(value)] for name, value in zip(problems, values, strict=True)}, seed=seed)
