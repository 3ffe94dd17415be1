"""Gymnasium environments of one role; any agent plays the other one: `codea1/Coder-v0` and `codea1/Tester-v0`."""

from __future__ import annotations

from typing import Any

import gymnasium

from codea1_env.agent import AgentSpec, agent_name, load_agent
from codea1_env.code_a1_v0 import CODER, TESTER, raw_env
from codea1_env.errors import UserError
from codea1_env.rules.mistake_book import Provenance

__all__ = ["CoderEnv", "TesterEnv"]


class _RoleEnv(gymnasium.Env[dict[str, Any], str]):
    """The game of `code_a1_v0` for one role; `reset` and `step` play the turns of the opponent, which is any agent."""

    metadata: dict[str, Any] = {"render_modes": ["human", "ansi"], "render_fps": 1}  # noqa: RUF012  as Gymnasium has it
    _role: str

    def __init__(self, opponent: AgentSpec, *, infos: bool = True, **game: Any) -> None:
        """Make a view.

        Args:
            opponent: an agent, a function `observation -> reply`, a registered name or `module:attribute`.
            infos: False leaves infos empty, for libraries that turn them into tensors (torchrl); the opponent gets its.
            game: the other arguments of `code_a1_v0.raw_env`.
        """
        self.game, self._has_infos = raw_env(**game), infos
        self.render_mode = self.game.render_mode
        self.observation_space = self.game.observation_space(self._role)
        self.action_space = self.game.action_space(self._role)
        self.opponent = load_agent(opponent, self.game, role="tester" if self._role == CODER else "coder")
        if "provenance" not in game:
            name = agent_name(opponent, self.opponent)
            self.game.provenance = Provenance(tester=name) if self._role == CODER else Provenance(coder=name)

    def __repr__(self) -> str:
        return f"<{self._role} of {self.game!r}>"

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode; `options` are those of the game."""
        super().reset(seed=seed)
        self.game.reset(seed=seed, options=options)
        if hasattr(self.opponent, "reset"):
            self.opponent.reset(int(self.np_random.integers(2**31)))
        self._play_opponent()
        return self.game.observe(self._role), self._info()

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Take this role's action and the opponent's until it is this role's turn again, or the episode is over."""
        if self._role in self.game.agents and (self.game.terminations[self._role] or self.game.truncations[self._role]):
            raise UserError("the episode has ended; call reset() to begin another")
        self.game.step(action)
        reward = self.game.rewards[self._role] + self._play_opponent()
        return (
            self.game.observe(self._role),
            float(reward),
            self.game.terminations[self._role],
            self.game.truncations[self._role],
            self._info(),
        )

    def render(self) -> str | None:  # type: ignore[override, unused-ignore]  # Gymnasium's type variable is bound nowhere
        """Render the last judged round."""
        frame: str | None = self.game.render()
        return frame

    def _info(self) -> dict[str, Any]:
        return dict(self.game.infos[self._role]) if self._has_infos else {}

    def _play_opponent(self) -> float:
        """Play the opponent's turns and return the rewards that this role gets meanwhile."""
        game, reward = self.game, 0.0
        while game.agent_selection != self._role and not (
            game.terminations[self._role] or game.truncations[self._role]
        ):
            agent = game.agent_selection
            game.step(self.opponent.act(game.observe(agent), game.infos[agent]))
            reward += game.rewards[self._role]
        return reward

    def close(self) -> None:
        """Close the game and the opponent."""
        self.game.close()
        if hasattr(self.opponent, "close"):
            self.opponent.close()


class CoderEnv(_RoleEnv):
    """Write programs against a fixed tester."""

    _role = CODER

    def __init__(self, opponent: AgentSpec = "fuzz", **options: Any) -> None:
        super().__init__(opponent, **options)


class TesterEnv(_RoleEnv):
    """Write tests against a fixed coder.

    The tester also sees a program that does not load (`skip_invalid=False`), so that this role has a turn in every
    episode; its reward is then 0.
    """

    __test__ = False  # pytest would collect the class otherwise
    _role = TESTER

    def __init__(self, opponent: AgentSpec = "mutant", **options: Any) -> None:
        if options.setdefault("skip_invalid", False):
            raise UserError("TesterEnv: skip_invalid must be False, since a skipped tester would never have a turn")
        super().__init__(opponent, **options)
