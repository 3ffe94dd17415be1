"""Learning dynamics in a matrix game: replicator dynamics, fictitious play, regret matching. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codea1_env.errors import UnknownName, UserError
from codea1_lab.games.matrix_game import MatrixGame, Profile, Vector, nash_conv

_N_KEPT = 200


@dataclass(frozen=True, slots=True, eq=False)
class Trajectory:
    """The strategies at some of the steps, which are closer together at the beginning."""

    steps: NDArray[np.int64]
    """(T,) increasing from 0, the start."""
    row: NDArray[np.float64]
    """(T, N) strategies of the row player at these steps."""
    column: NDArray[np.float64]
    """(T, M) strategies of the column player."""
    average_row: NDArray[np.float64]
    """(T, N) mean strategies over all steps so far. They may converge where the strategies themselves cycle."""
    average_column: NDArray[np.float64]
    """(T, M) mean strategies of the column player."""
    exploitability: NDArray[np.float64]
    """(T,) NashConv of the strategies."""
    average_exploitability: NDArray[np.float64]
    """(T,) NashConv of the mean strategies."""

    @property
    def last(self) -> Profile:
        """The strategies after the last step."""
        return Profile(self.row[-1], self.column[-1])

    @property
    def last_average(self) -> Profile:
        """The mean strategies over all steps."""
        return Profile(self.average_row[-1], self.average_column[-1])


def replicator(
    game: MatrixGame, *, n_steps: int = 10_000, step: float = 0.05, start: Profile | None = None
) -> Trajectory:
    """Integrate the two-population replicator equation: choices that earn more than the average grow.

    x'_i = x_i ((A y)_i - x A y), y'_j = y_j ((x B)_j - x B y), by the Runge-Kutta method of order 4.

    Args:
        game: payoffs.
        n_steps: number of steps of the method.
        step: length of a step in the equation's time.
        start: by default nearly uniform, since the dynamics may not leave a symmetric start.

    Source: Weibull, Evolutionary Game Theory (1995), section 5.2.
    """
    m = game.shape[0]

    def derivative(state: Vector) -> Vector:
        x, y = state[:m], state[m:]
        of_rows, of_columns = game.row @ y, x @ game.column
        return np.concatenate([x * (of_rows - x @ of_rows), y * (of_columns - y @ of_columns)])

    def next_state(state: Vector, _: int) -> Vector:
        k1 = derivative(state)
        k2 = derivative(state + step / 2 * k1)
        k3 = derivative(state + step / 2 * k2)
        k4 = derivative(state + step * k3)
        new = np.maximum(state + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4), 0.0)
        return np.concatenate([new[:m] / new[:m].sum(), new[m:] / new[m:].sum()])

    return _trajectory(game, next_state, start or _nearly_uniform(game.shape), n_steps)


def fictitious_play(game: MatrixGame, *, n_steps: int = 10_000, start: Profile | None = None) -> Trajectory:
    """At each step both players play a best response to the other's average so far; ties go to the first choice.

    Source: Brown, Iterative Solution of Games by Fictitious Play (1951).
    """
    m, n = game.shape
    counts = _as_state(start or Profile.uniform(game.shape))

    def next_state(_: Vector, __: int) -> Vector:
        played = np.zeros(m + n)
        played[int((game.row @ counts[m:]).argmax())] = 1.0
        played[m + int((counts[:m] @ game.column).argmax())] = 1.0
        counts[:] += played
        return played

    return _trajectory(game, next_state, start or Profile.uniform(game.shape), n_steps)


def regret_matching(game: MatrixGame, *, n_steps: int = 10_000, start: Profile | None = None) -> Trajectory:
    """Both players play each choice in proportion to their regret for not having played it; negative regrets become 0.

    The averages weigh each step by its number.

    Source: Tammelin et al., Solving Heads-Up Limit Texas Hold'em (2015): regret matching+.
    """
    m, n = game.shape
    regret_of_rows, regret_of_columns = np.zeros(m), np.zeros(n)

    def next_state(state: Vector, _: int) -> Vector:
        x, y = state[:m], state[m:]
        of_rows, of_columns = game.row @ y, x @ game.column
        np.maximum(regret_of_rows + of_rows - x @ of_rows, 0.0, out=regret_of_rows)
        np.maximum(regret_of_columns + of_columns - y @ of_columns, 0.0, out=regret_of_columns)
        return np.concatenate([_proportional(regret_of_rows), _proportional(regret_of_columns)])

    return _trajectory(game, next_state, start or _nearly_uniform(game.shape), n_steps, weight=float)


DYNAMICS: dict[str, Callable[..., Trajectory]] = {
    "fictitious": fictitious_play,
    "regret": regret_matching,
    "replicator": replicator,
}


def run_dynamics(name: str, game: MatrixGame, *, n_steps: int) -> Trajectory:
    """Return the trajectory of the dynamics with this name.

    Raises:
        UnknownName: no dynamics has this name.
        UserError: less than one step.
    """
    if name not in DYNAMICS:
        raise UnknownName.of("dynamics", name, DYNAMICS)
    if n_steps < 1:
        raise UserError(f"n_steps must be at least 1, got {n_steps}")
    return DYNAMICS[name](game, n_steps=n_steps)


def _trajectory(
    game: MatrixGame,
    next_state: Callable[[Vector, int], Vector],
    start: Profile,
    n_steps: int,
    *,
    weight: Callable[[int], float] = lambda step: 1.0,
) -> Trajectory:
    m = game.shape[0]
    kept = set(np.unique(np.geomspace(1, n_steps, _N_KEPT).round().astype(int)).tolist())
    state = _as_state(start)
    total, weights = np.zeros_like(state), 0.0
    steps, states, averages = [0], [state], [state]
    for step in range(1, n_steps + 1):
        state = next_state(state, step)
        total += weight(step) * state
        weights += weight(step)
        if step in kept:
            steps.append(step)
            states.append(state.copy())
            averages.append(total / weights)
    last, mean = np.array(states), np.array(averages)
    return Trajectory(
        steps=np.array(steps, dtype=np.int64),
        row=last[:, :m],
        column=last[:, m:],
        average_row=mean[:, :m],
        average_column=mean[:, m:],
        exploitability=np.array([nash_conv(game, Profile(s[:m], s[m:])) for s in last]),
        average_exploitability=np.array([nash_conv(game, Profile(s[:m], s[m:])) for s in mean]),
    )


def _as_state(profile: Profile) -> Vector:
    return np.concatenate([profile.row, profile.column])


def _nearly_uniform(shape: tuple[int, int]) -> Profile:
    x, y = (1.0 + 0.1 * np.arange(size) / size for size in shape)
    return Profile(x / x.sum(), y / y.sum())


def _proportional(regret: Vector) -> Vector:
    total = regret.sum()
    chances: Vector = regret / total if total > 0 else np.full(len(regret), 1 / len(regret))
    return chances
