"""How players who learn would move through a matrix game: replicators, fictitious play, regret matching. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codea1_agents.lab.games.matrix_game import MatrixGame, Profile, Vector, nash_conv
from codea1_env.errors import UnknownName, UserError

_N_KEPT = 200


@dataclass(frozen=True, slots=True, eq=False)
class Trajectory:
    """Where the players were at some of the steps; those kept lie closer together at the beginning."""

    steps: NDArray[np.int64]
    """(T,) from 0 (the start), rising."""
    row: NDArray[np.float64]
    """(T, M) strategies at these steps."""
    column: NDArray[np.float64]
    """(T, N)"""
    average_row: NDArray[np.float64]
    """(T, M) mean strategies over all steps so far: what converges where the strategies themselves circle."""
    average_column: NDArray[np.float64]
    """(T, N)"""
    exploitability: NDArray[np.float64]
    """(T,) NashConv of the strategies."""
    average_exploitability: NDArray[np.float64]
    """(T,) NashConv of the mean strategies."""

    @property
    def last(self) -> Profile:
        """Where it ended."""
        return Profile(self.row[-1], self.column[-1])

    @property
    def last_average(self) -> Profile:
        """The mean over all steps."""
        return Profile(self.average_row[-1], self.average_column[-1])


def replicator(
    game: MatrixGame, *, n_steps: int = 10_000, step: float = 0.05, start: Profile | None = None
) -> Trajectory:
    """Follow the two-population replicator equation: choices grow by what they earn above the average.

    x'_i = x_i ((A y)_i - x A y), y'_j = y_j ((x B)_j - x B y), by Runge and Kutta's method of order 4.

    Args:
        game: payoffs.
        n_steps: of the method.
        step: in the equation's time.
        start: by default not quite uniform, since a symmetric start may stay where it is.

    Source: Weibull, Evolutionary Game Theory (1995), section 5.2.
    """
    m = game.shape[0]

    def moved(state: Vector) -> Vector:
        x, y = state[:m], state[m:]
        of_rows, of_columns = game.row @ y, x @ game.column
        return np.concatenate([x * (of_rows - x @ of_rows), y * (of_columns - y @ of_columns)])

    def after(state: Vector, _: int) -> Vector:
        k1 = moved(state)
        k2 = moved(state + step / 2 * k1)
        k3 = moved(state + step / 2 * k2)
        k4 = moved(state + step * k3)
        new = np.maximum(state + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4), 0.0)
        return np.concatenate([new[:m] / new[:m].sum(), new[m:] / new[m:].sum()])

    return _followed(game, after, start or _uneven(game.shape), n_steps)


def fictitious_play(game: MatrixGame, *, n_steps: int = 10_000, start: Profile | None = None) -> Trajectory:
    """Let both answer best to the other's average so far, at the same time; ties go to the first choice.

    Source: Brown, Iterative Solution of Games by Fictitious Play (1951).
    """
    m, n = game.shape
    counts = _joined(start or Profile.uniform(game.shape))

    def after(_: Vector, __: int) -> Vector:
        played = np.zeros(m + n)
        played[int((game.row @ counts[m:]).argmax())] = 1.0
        played[m + int((counts[:m] @ game.column).argmax())] = 1.0
        counts[:] += played
        return played

    return _followed(game, after, start or Profile.uniform(game.shape), n_steps)


def regret_matching(game: MatrixGame, *, n_steps: int = 10_000, start: Profile | None = None) -> Trajectory:
    """Let both play each choice in proportion to how much they regret not having played it; regrets below 0 are reset.

    The averages give later steps more weight (in proportion to their number).

    Source: Tammelin et al., Solving Heads-Up Limit Texas Hold'em (2015): regret matching+.
    """
    m, n = game.shape
    regret_of_rows, regret_of_columns = np.zeros(m), np.zeros(n)

    def after(state: Vector, _: int) -> Vector:
        x, y = state[:m], state[m:]
        of_rows, of_columns = game.row @ y, x @ game.column
        np.maximum(regret_of_rows + of_rows - x @ of_rows, 0.0, out=regret_of_rows)
        np.maximum(regret_of_columns + of_columns - y @ of_columns, 0.0, out=regret_of_columns)
        return np.concatenate([_in_proportion(regret_of_rows), _in_proportion(regret_of_columns)])

    return _followed(game, after, start or _uneven(game.shape), n_steps, weight=float)


DYNAMICS: dict[str, Callable[..., Trajectory]] = {
    "fictitious": fictitious_play,
    "regret": regret_matching,
    "replicator": replicator,
}


def run_dynamics(name: str, game: MatrixGame, *, n_steps: int) -> Trajectory:
    """Return the trajectory of the dynamics of this name.

    Raises:
        UnknownName: there is none.
        UserError: less than one step.
    """
    if name not in DYNAMICS:
        raise UnknownName.of("dynamics", name, DYNAMICS)
    if n_steps < 1:
        raise UserError(f"dynamics need at least 1 step, not {n_steps}")
    return DYNAMICS[name](game, n_steps=n_steps)


def _followed(
    game: MatrixGame,
    after: Callable[[Vector, int], Vector],
    start: Profile,
    n_steps: int,
    *,
    weight: Callable[[int], float] = lambda step: 1.0,
) -> Trajectory:
    m = game.shape[0]
    kept = set(np.unique(np.geomspace(1, n_steps, _N_KEPT).round().astype(int)).tolist())
    state = _joined(start)
    total, weights = np.zeros_like(state), 0.0
    steps, states, averages = [0], [state], [state]
    for step in range(1, n_steps + 1):
        state = after(state, step)
        total += weight(step) * state
        weights += weight(step)
        if step in kept:
            steps.append(step)
            states.append(state.copy())
            averages.append(total / weights)
    where, mean = np.array(states), np.array(averages)
    return Trajectory(
        steps=np.array(steps, dtype=np.int64),
        row=where[:, :m],
        column=where[:, m:],
        average_row=mean[:, :m],
        average_column=mean[:, m:],
        exploitability=np.array([nash_conv(game, Profile(s[:m], s[m:])) for s in where]),
        average_exploitability=np.array([nash_conv(game, Profile(s[:m], s[m:])) for s in mean]),
    )


def _joined(profile: Profile) -> Vector:
    return np.concatenate([profile.row, profile.column])


def _uneven(shape: tuple[int, int]) -> Profile:
    x, y = (1.0 + 0.1 * np.arange(size) / size for size in shape)
    return Profile(x / x.sum(), y / y.sum())


def _in_proportion(regret: Vector) -> Vector:
    total = regret.sum()
    chances: Vector = regret / total if total > 0 else np.full(len(regret), 1 / len(regret))
    return chances
