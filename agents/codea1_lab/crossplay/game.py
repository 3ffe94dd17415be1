"""The empirical game of choosing a coder and a tester: its equilibrium, and cycles of best responses. Pure.

Rows are coders, columns testers, payoffs the mean rewards. Both choices are simultaneous. The equilibrium is the one
that `equilibria.solve` finds first. A game may have several equilibria, and draws of the bootstrap may find different
ones; this widens the intervals.

Source: Wellman, Methods for Empirical Game-Theoretic Analysis (2006); the cycles are those of best responses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codea1_agents.statistics import Estimate
from codea1_lab.crossplay.cells import Cells, CrossPlay
from codea1_lab.crossplay.draws import Table, central, drawn_counts, estimates, means_of, problem_weights
from codea1_lab.games.equilibria import Equilibrium, solve
from codea1_lab.games.matrix_game import MatrixGame, best_responses

_PLAYED = 1e-6
_N_DRAWS = 1000  # of the bootstrap of `reversals`


@dataclass(frozen=True, slots=True, order=True)
class Pair:
    """Positions of a coder and a tester."""

    coder: int
    tester: int


@dataclass(frozen=True, slots=True)
class Choice:
    """The share of play that the equilibrium gives an agent."""

    chance: Estimate
    """Its probability, with a 95 % bootstrap interval over problems."""
    played: float
    """Share of the bootstrap's draws whose equilibrium has the agent in its support."""


@dataclass(frozen=True, slots=True)
class EmpiricalGame:
    """The equilibrium and its uncertainty."""

    equilibrium: Equilibrium
    """The equilibrium when every pair earns its mean reward."""
    coders: tuple[Choice, ...]
    """(C,)"""
    testers: tuple[Choice, ...]
    """(T,)"""
    coder_value: Estimate
    tester_value: Estimate
    cycles: tuple[tuple[Pair, ...], ...]
    """Cycles of best responses, see `best_response_cycles`; empty if best responses always converge."""
    cycling: float
    """Share of the draws with a cycle."""


def empirical_game(
    play: CrossPlay, *, cells: Cells | None = None, n_draws: int = 300, seed: int = 0
) -> EmpiricalGame | None:
    """Return the game of all coders against all testers; None if a pair has no payoffs.

    Args:
        play: the measurements.
        cells: their rewards are the payoffs; None: `play.on_policy`.
        n_draws: number of draws of the bootstrap; draws in which a pair has no payoffs are left out.
        seed: for the draws.
    """
    cells = cells or play.on_policy
    weights = problem_weights(len(play.problems), n_draws, seed)
    rows, columns = means_of(cells.coder_reward, weights), means_of(cells.tester_reward, weights)
    known = np.all(np.isfinite(rows + columns), axis=(1, 2))
    if not known[0]:
        return None
    games = [MatrixGame(row, column) for row, column in zip(rows[known], columns[known], strict=True)]
    solved = [solve(game) for game in games]
    n_problems = len(play.problems)
    n = int(drawn_counts(cells.coder_reward, weights[:1]).sum())
    cycles = [best_response_cycles(game) for game in games]
    expected = estimates(np.stack([equilibrium.values for equilibrium in solved]), [n, n], n_problems)
    return EmpiricalGame(
        equilibrium=solved[0],
        coders=_choices(np.stack([equilibrium.profile.row for equilibrium in solved]), n, n_problems),
        testers=_choices(np.stack([equilibrium.profile.column for equilibrium in solved]), n, n_problems),
        coder_value=expected[0],
        tester_value=expected[1],
        cycles=cycles[0],
        cycling=float(np.mean([bool(cycle) for cycle in cycles[1:]])) if len(cycles) > 1 else float("nan"),
    )


def best_response_cycles(game: MatrixGame) -> tuple[tuple[Pair, ...], ...]:
    """Return the cycles of alternating best responses; empty if they always converge.

    A player that already plays a best response keeps it; otherwise it takes its first best response. Each cycle starts
    at its smallest pair.
    """
    cycles = set()
    for start in range(game.shape[0]):
        seen: dict[Pair, int] = {}
        path: list[Pair] = []
        pair = Pair(start, _best_response(game.column[start], None))
        while pair not in seen:
            seen[pair] = len(path)
            path.append(pair)
            coder = _best_response(game.row[:, pair.tester], pair.coder)
            pair = Pair(coder, _best_response(game.column[coder], pair.tester))
        cycle = path[seen[pair] :]
        if len(cycle) > 1:
            first = cycle.index(min(cycle))
            cycles.add((*cycle[first:], *cycle[:first]))
    return tuple(sorted(cycles))


def _best_response(payoffs: Table, current: int | None) -> int:
    best = best_responses(payoffs)
    return current if current is not None and current in best else int(best[0])


@dataclass(frozen=True, slots=True)
class Reversal:
    """Two testers that rank two coders in opposite order, both beyond chance.

    No rating by a single number can agree with both.
    """

    first: Pair
    """A coder, and the tester against which it survives more often than the other coder."""
    second: Pair
    """The other coder, and the tester against which this one survives more often."""


def reversals(play: CrossPlay, *, seed: int = 0) -> tuple[Reversal, ...]:
    """Return all reversals in which the 95 % intervals of both differences, paired by problem, exclude 0.

    The intervals are not corrected for their number, so with many agents a few reversals arise by chance.
    """
    table = play.on_policy.survives
    weights = problem_weights(len(play.problems), _N_DRAWS, seed)[1:]
    n_coders = len(play.coders)
    better = np.zeros((n_coders, n_coders, len(play.testers)), dtype=bool)
    for c in range(n_coders):
        low, _ = central(means_of(table[c] - table, weights))
        better[c] = np.nan_to_num(low, nan=0.0) > 0
    return tuple(_yield_reversals(better))


def _yield_reversals(better: NDArray[np.bool_]) -> Iterator[Reversal]:
    for a in range(len(better)):
        for b in range(a + 1, len(better)):
            for s in np.flatnonzero(better[a, b]):
                for t in np.flatnonzero(better[b, a]):
                    yield Reversal(Pair(a, int(s)), Pair(b, int(t)))


def _choices(chances: Table, n: int, n_problems: int) -> tuple[Choice, ...]:
    played = (chances[1:] > _PLAYED).mean(axis=0) if len(chances) > 1 else np.full(chances.shape[1], np.nan)
    estimates_of_chances = estimates(chances, [n] * chances.shape[1], n_problems)
    return tuple(Choice(each, float(share)) for each, share in zip(estimates_of_chances, played, strict=True))
