"""One role of the bank game as a Gymnasium environment: `codea1/CoderBank-v0` and `codea1/TesterBank-v0`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codea1_env.bank_v0 import CODER, TESTER, Features, raw_env
from codea1_env.errors import UserError
from codea1_env.gymnasium_views import RoleView

__all__ = ["CoderBankEnv", "TesterBankEnv"]

Strategy = str | int | Sequence[float] | NDArray[np.float64]
"""How the opponent plays: `uniform`, always the same action, or with probabilities of actions, (A,), or by problem,
(P, A); those of a tester that sees the program may also be by problem and program, (P, N, M)."""


class _RoleEnv(RoleView[Features, int]):
    """The bank game seen from one role."""

    _other: str

    def __init__(self, opponent: Strategy = "uniform", *, infos: bool = True, **game: Any) -> None:
        """Make a view.

        Args:
            opponent: how the opponent plays, see `Strategy`.
            infos: False leaves infos empty, for libraries that turn them into tensors (torchrl).
            game: the other arguments of `bank_v0.raw_env`.

        Raises:
            UserError: the strategy or an argument has an invalid value.
        """
        super().__init__(raw_env(**game), infos=infos)
        self.opponent = self._probabilities(opponent)

    def _opponent_action(self, agent: str) -> int:
        return int(self.np_random.choice(self._n_actions, p=self._current_probabilities()))

    @property
    def _n_actions(self) -> int:
        return int(self.game.action_space(self._other).n)

    def _current_probabilities(self) -> NDArray[np.float64]:
        """Return the probabilities of the opponent's actions in the present state."""
        seen = self.game.observe(self._other)
        n_problems = len(self.game.bank.problems)
        probabilities: NDArray[np.float64] = self.opponent[int(seen[:n_problems].argmax())]
        if probabilities.ndim == 1:
            return probabilities
        of_program: NDArray[np.float64] = probabilities[
            int(seen[n_problems : n_problems + len(probabilities)].argmax())
        ]
        return of_program

    def _probabilities(self, opponent: Strategy) -> NDArray[np.float64]:
        n_problems, n = len(self.game.bank.problems), self._n_actions
        if isinstance(opponent, str):
            if opponent != "uniform":
                raise UserError(f"opponent must be 'uniform', an action or probabilities, got {opponent!r}")
            return np.full((n_problems, n), 1 / n)
        if isinstance(opponent, int | np.integer):
            if not 0 <= opponent < n:
                raise UserError(f"opponent must be an action from 0 to {n - 1}, got {opponent}")
            return np.tile(np.eye(n)[opponent], (n_problems, 1))
        probabilities = np.asarray(opponent, np.float64)
        if probabilities.ndim == 1:
            probabilities = np.tile(probabilities, (n_problems, 1))
        shapes: set[tuple[int, ...]] = {(n_problems, n)}
        if self._other == TESTER and self.game.tester_view == "white_box":
            shapes.add((n_problems, self.game.bank.bank.n_programs, n))
        if (
            probabilities.shape not in shapes
            or (probabilities < 0).any()
            or not np.allclose(probabilities.sum(-1), 1, atol=1e-6)
        ):
            wanted = " or ".join(map(str, sorted(shapes, key=len)))
            raise UserError(f"opponent: probabilities must add up to 1 and have the shape {wanted}")
        return np.asarray(probabilities / probabilities.sum(-1, keepdims=True))


class CoderBankEnv(_RoleEnv):
    """Choose programs against a fixed tester."""

    _role, _other = CODER, TESTER


class TesterBankEnv(_RoleEnv):
    """Choose suites against a fixed coder."""

    __test__ = False  # pytest would collect the class otherwise
    _role, _other = TESTER, CODER
