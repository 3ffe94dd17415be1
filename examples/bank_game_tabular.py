"""Two tabular Q-learners solve the bank game; their exploitability is computed and decreases.

Each agent estimates the reward of each of its choices, and draws its choice by a softmax with decreasing temperature.
It does not know the payoffs, the rules or the other agent's choices. If an equilibrium is mixed, the strategies may
cycle around it while their averages over time approach it, so the exploitability of both is computed.

Source: Leslie and Collins, Individual Q-Learning in Normal Form Games (2005).

python examples/bank_game_tabular.py 0 30000    # all problems; less than two minutes of processor time
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codea1_env.bank import BankRecipe, JudgedBank, load_bank
from codea1_env.bank_v0 import CODER, TESTER, raw_env
from codea1_lab.games.bank_game import BankGame, strategies_of

RATE = 0.05
"""Step size; it is divided by the probability of the choice (at most 1), so that rare choices learn as fast."""
FIRST_TEMPERATURE, LAST_TEMPERATURE = 0.3, 0.004
"""Temperature of the softmax, in units of reward: it decreases geometrically from the first to the last value."""
EXPLORED = 0.01
"""Probability of a uniform choice, in [0, 1]."""


@dataclass(frozen=True, slots=True, eq=False)
class LearningCurve:
    """The exploitability of the learners during training."""

    episodes: tuple[int, ...]
    exploitability: tuple[float, ...]
    """NashConv of the strategies, mean over problems."""
    average_exploitability: tuple[float, ...]
    """NashConv of the strategies, averaged over the second half of the points so far."""
    values: tuple[tuple[float, float], ...]
    """Expected rewards of coder and tester."""
    coder: NDArray[np.float64]
    """(P, M) strategies at the end."""
    tester: NDArray[np.float64]
    """(P, N) strategies at the end."""


class TabularLearner:
    """One agent's table of estimated rewards."""

    def __init__(self, n_problems: int, n_actions: int) -> None:
        self._estimates = np.zeros((n_problems, n_actions))
        self.temperature = FIRST_TEMPERATURE

    def policy(self) -> NDArray[np.float64]:
        """Return (P, A) the strategies for all problems."""
        return np.stack([self.strategy(p) for p in range(len(self._estimates))])

    def strategy(self, problem: int) -> NDArray[np.float64]:
        """Return (A,) the strategy for one problem."""
        scaled = self._estimates[problem] / self.temperature
        weights = np.exp(scaled - scaled.max())
        mixed: NDArray[np.float64] = (1 - EXPLORED) * weights / weights.sum() + EXPLORED / len(weights)
        return mixed

    def learn(self, problem: int, action: int, reward: float, probability: float) -> None:
        """Move the estimate of one choice towards its last reward."""
        step = min(1.0, RATE / probability)
        self._estimates[problem, action] += step * (reward - self._estimates[problem, action])


def learn_tabular(bank: JudgedBank, *, episodes: int, seed: int = 0, n_points: int = 20) -> LearningCurve:
    """Train two learners against each other on `bank_v0` (black box: both choose at once).

    Args:
        bank: the game.
        episodes: number of episodes, over all problems.
        seed: for the environment and both learners.
        n_points: number of points at which the exploitability is computed.
    """
    env = raw_env(bank, tester_view="black_box", infos=False)
    game = BankGame.of(bank.payoffs())
    n_problems = len(bank.problems)
    learners = {
        CODER: TabularLearner(n_problems, bank.bank.n_programs),
        TESTER: TabularLearner(n_problems, bank.bank.n_suites),
    }
    rng = np.random.default_rng([seed, 1])
    env.reset(seed=seed)
    cooling = (LAST_TEMPERATURE / FIRST_TEMPERATURE) ** (1 / max(1, episodes))
    marks = set(np.linspace(1, episodes, min(n_points, episodes)).round().astype(int).tolist())
    curve: list[_Point] = []
    for episode in range(1, episodes + 1):
        _play(env, learners, rng)
        for learner in learners.values():
            learner.temperature *= cooling
        if episode in marks:
            curve.append(_Point(episode, learners[CODER].policy(), learners[TESTER].policy()))
        env.reset()
    return _curve(game, curve)


def _play(env: raw_env, learners: dict[str, TabularLearner], rng: np.random.Generator) -> None:
    problem = int(env.observe(CODER)[: len(env.bank.problems)].argmax())
    taken: dict[str, tuple[int, float]] = {}
    for agent in (CODER, TESTER):
        strategy = learners[agent].strategy(problem)
        action = int(rng.choice(len(strategy), p=strategy))
        taken[agent] = action, float(strategy[action])
        env.step(action)
    for agent, (action, probability) in taken.items():
        learners[agent].learn(problem, action, env.rewards[agent], probability)


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    episode: int
    coder: NDArray[np.float64]
    tester: NDArray[np.float64]


def _curve(game: BankGame, points: list[_Point]) -> LearningCurve:
    averages = []
    for n in range(1, len(points) + 1):
        late = points[n // 2 : n]
        coder, tester = np.mean([p.coder for p in late], axis=0), np.mean([p.tester for p in late], axis=0)
        averages.append(game.nash_conv(coder, tester))
    values = [game.values(point.coder, point.tester) for point in points]
    return LearningCurve(
        episodes=tuple(point.episode for point in points),
        exploitability=tuple(game.nash_conv(point.coder, point.tester) for point in points),
        average_exploitability=tuple(averages),
        values=tuple((float(both[0]), float(both[1])) for both in values),
        coder=points[-1].coder,
        tester=points[-1].tester,
    )


def main() -> None:
    n_problems, episodes = (int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 2 else (2, 1_000)
    rules = sys.argv[3] if len(sys.argv) > 3 else "fixed"
    recipe = BankRecipe(solution="no-solution" not in sys.argv)

    bank = load_bank("starter", rules=rules, recipe=recipe, limit=n_problems or None)
    game = BankGame.of(bank.payoffs())
    equilibrium = game.values(*strategies_of(game.solve()))
    curve = learn_tabular(bank, episodes=episodes, seed=0, n_points=20)
    print("episode  NashConv  of averages  coder  tester")
    rows = zip(curve.episodes, curve.exploitability, curve.average_exploitability, curve.values, strict=True)
    for episode, gap, average, values in rows:
        print(f"{episode:7}  {gap:8.3f}  {average:11.3f}  {values[0]:5.3f}  {values[1]:6.3f}")
    print(f"equilibrium{equilibrium[0]:25.3f}  {equilibrium[1]:6.3f}")


if __name__ == "__main__":
    main()
