"""The game as an environment package of verifiers and prime-rl, which find it by its name: `vf-eval codea1-game`."""

from codea1_agents.adapters.verifiers_game import GameEnv, GameTaskset, OneReply, load_environment

__all__ = ["GameEnv", "GameTaskset", "OneReply", "load_environment"]
