"""One role of the bank game as a Gymnasium environment: `codea1/CoderBank-v0` and `codea1/TesterBank-v0`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from codea1_env.bank_v0 import CODER, TESTER, Seen, raw_env
from codea1_env.errors import UserError

__all__ = ["CoderBankEnv", "TesterBankEnv"]

Strategy = str | int | Sequence[float] | NDArray[np.float64]
"""How the other plays: `uniform`, always the same action, or probabilities: of actions (A,), or by problem (P, A);
a tester that sees the program may have them by problem and program (P, M, N)."""


class _RoleEnv(gymnasium.Env[Seen, int]):
    """The bank game seen from one role."""

    metadata: dict[str, Any] = {"render_modes": ["human", "ansi"], "render_fps": 1}  # noqa: RUF012  as Gymnasium has it
    _role: str
    _other: str

    def __init__(self, opponent: Strategy = "uniform", *, render_mode: str | None = None, **game: Any) -> None:
        """Make a view.

        Args:
            opponent: how the other plays, see `Strategy`.
            render_mode: `human` or `ansi`.
            game: the arguments of `bank_v0.raw_env`.

        Raises:
            UserError: no such strategy or argument.
        """
        self.game = raw_env(render_mode=render_mode, **game)
        self.render_mode = render_mode
        self.opponent = self._probabilities(opponent)
        self.observation_space = self.game.observation_space(self._role)
        self.action_space = self.game.action_space(self._role)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        """Start an episode; `options` are those of the game."""
        super().reset(seed=seed)
        self.game.reset(seed=seed, options=options)
        self._let_opponent_act()
        return self.game.observe(self._role), dict(self.game.infos[self._role])

    def step(self, action: int) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Take this role's choice and the opponent's until it is this role's turn again, or the episode is over."""
        self.game.step(action)
        reward = self.game.rewards[self._role] + self._let_opponent_act()
        over = self.game.terminations[self._role]
        return self.game.observe(self._role), float(reward), over, False, dict(self.game.infos[self._role])

    def render(self) -> str | None:  # type: ignore[override, unused-ignore]  # Gymnasium's type variable is bound nowhere
        """Picture the last judged round."""
        return self.game.render()

    def _let_opponent_act(self) -> float:
        reward = 0.0
        while not self.game.terminations[self._role] and self.game.agent_selection == self._other:
            self.game.step(int(self.np_random.choice(self._n_actions, p=self._now())))
            reward += self.game.rewards[self._role]
        return reward

    @property
    def _n_actions(self) -> int:
        return int(self.game.action_space(self._other).n)  # type: ignore[attr-defined]  # always Discrete

    def _now(self) -> NDArray[np.float64]:
        """Return the opponent's probabilities in the present situation."""
        seen = self.game.observe(self._other)
        n_problems = len(self.game.bank.problems)
        chances: NDArray[np.float64] = self.opponent[int(seen[:n_problems].argmax())]
        if chances.ndim == 1:
            return chances
        of_program: NDArray[np.float64] = chances[int(seen[n_problems : n_problems + len(chances)].argmax())]
        return of_program

    def _probabilities(self, opponent: Strategy) -> NDArray[np.float64]:
        n_problems, n = len(self.game.bank.problems), self._n_actions
        if isinstance(opponent, str):
            if opponent != "uniform":
                raise UserError(f"opponent must be 'uniform', an action or probabilities, not {opponent!r}")
            return np.full((n_problems, n), 1 / n)
        if isinstance(opponent, int | np.integer):
            if not 0 <= opponent < n:
                raise UserError(f"opponent: an action lies between 0 and {n - 1}, not at {opponent}")
            return np.tile(np.eye(n)[opponent], (n_problems, 1))
        chances = np.asarray(opponent, np.float64)
        if chances.ndim == 1:
            chances = np.tile(chances, (n_problems, 1))
        shapes: set[tuple[int, ...]] = {(n_problems, n)}
        if self._other == TESTER and self.game.tester_view == "white_box":
            shapes.add((n_problems, self.game.bank.bank.n_programs, n))
        if chances.shape not in shapes or (chances < 0).any() or not np.allclose(chances.sum(-1), 1, atol=1e-6):
            wanted = " or ".join(map(str, sorted(shapes, key=len)))
            raise UserError(f"opponent: probabilities that add up to 1 and have the shape {wanted} are needed")
        return np.asarray(chances / chances.sum(-1, keepdims=True))


class CoderBankEnv(_RoleEnv):
    """Choose programs against a fixed tester."""

    _role, _other = CODER, TESTER


class TesterBankEnv(_RoleEnv):
    """Choose suites against a fixed coder."""

    __test__ = False  # pytest would collect the class otherwise
    _role, _other = TESTER, CODER
