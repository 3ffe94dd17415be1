"""RLlib's stock PPO, with one policy per role, solves the bank game; exploitability measures its progress.

python examples/bank_game_ppo.py 0 6    # all problems, 6 iterations; less than two minutes of processor time
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codea1_env.bank import JudgedBank, load_bank
from codea1_env.bank_v0 import CODER, TESTER, raw_env
from codea1_lab.games.bank_game import BankGame, strategies_of

warnings.simplefilter("ignore")  # Ray warns about its own code
os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # Ray runs for this process only
try:
    import ray
    from ray.rllib.env.multi_agent_env import MultiAgentEnv
    from ray.tune.registry import register_env
except ImportError as error:
    print(f"skipped: {error}")
    raise SystemExit(0) from None

ENV_NAME = "codea1/bank-v0"


class BankMultiAgentEnv(MultiAgentEnv):
    """`bank_v0` for RLlib: in the white box the agents act one after the other, in the black box both at once.

    `config` holds the arguments of `bank_v0.raw_env`. Its `bank` is a judged bank, or a name or path; then each worker
    loads the bank from the cache.
    """

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__()
        self._env = raw_env(**{"tester_view": "black_box", "infos": False, **(config or {})})
        self._at_once = self._env.tester_view == "black_box"
        self.possible_agents = list(self._env.possible_agents)
        self.agents = list(self.possible_agents)
        self.observation_spaces = {agent: self._env.observation_space(agent) for agent in self.possible_agents}
        self.action_spaces = {agent: self._env.action_space(agent) for agent in self.possible_agents}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[np.float32]], dict[str, Any]]:
        """Start an episode; the agents that act first get an observation, the problem."""
        self._env.reset(seed=seed, options=options)
        self.agents = list(self.possible_agents)
        return self._observations(), {}

    def step(self, action_dict: dict[str, int]) -> tuple[dict[str, Any], ...]:
        """Take the actions of the agents that got an observation; both rewards come at the end of the round."""
        for agent in (CODER, TESTER):
            if agent in action_dict:
                self._env.step(int(action_dict[agent]))
        is_judged = TESTER in action_dict
        rewards = {agent: float(self._env.rewards[agent]) for agent in self.possible_agents} if is_judged else {}
        over = bool(self._env.terminations[CODER])
        last = {agent: self._env.observe(agent) for agent in self.possible_agents} if over else self._observations()
        return last, rewards, {"__all__": over}, {"__all__": False}, {}

    def _observations(self) -> dict[str, NDArray[np.float32]]:
        agents = self.possible_agents if self._at_once else [self._env.agent_selection]
        return {agent: self._env.observe(agent) for agent in agents}


def register_bank(bank: JudgedBank | None = None, *, name: str = ENV_NAME) -> str:
    """Register the game with RLlib for `.environment(name, env_config=...)`; return the name.

    Args:
        bank: the default if `env_config` has no `bank`. Pass a judged bank here and not in `env_config`, since RLlib
            often makes deep copies of `env_config`.
        name: of the environment.
    """

    def new_env(config: dict[str, Any]) -> BankMultiAgentEnv:
        return BankMultiAgentEnv({**({} if bank is None else {"bank": bank}), **config})

    register_env(name, new_env)
    return name


def ppo_config(bank: JudgedBank, *, seed: int = 0, batch: int = 2048) -> Any:
    """Return the configuration of stock PPO with one policy per role, for the matrix game (black box)."""
    from ray.rllib.algorithms.ppo import PPOConfig  # noqa: PLC0415  slow to import
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig  # noqa: PLC0415

    return (
        PPOConfig()
        .environment(register_bank(bank))
        .env_runners(num_env_runners=0, num_envs_per_env_runner=16)
        .multi_agent(policies={"coder", "tester"}, policy_mapping_fn=_role_of)
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[128], fcnet_activation="relu", vf_share_layers=False))
        .training(
            gamma=1.0,
            lambda_=1.0,
            lr=0.005,
            entropy_coeff=0.001,
            train_batch_size_per_learner=batch,
            minibatch_size=min(512, batch),
            num_epochs=6,
            clip_param=0.3,
            use_kl_loss=False,
        )
        .debugging(seed=seed)
    )


def _role_of(agent: str, episode: Any, **_: Any) -> str:
    return agent.partition("_")[0]


def strategies(algorithm: Any, bank: JudgedBank) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the current strategies of both policies in the matrix game, (P, M) and (P, N)."""
    import torch  # noqa: PLC0415  slow to import

    env = raw_env(bank, tester_view="black_box", infos=False)
    length = env.observation_space(CODER).shape
    assert length is not None  # a Box has one
    problems = torch.eye(len(bank.problems), length[0])
    found = []
    for role in ("coder", "tester"):
        with torch.no_grad():
            logits = algorithm.get_module(role).forward_inference({"obs": problems})["action_dist_inputs"]
        found.append(torch.softmax(logits.double(), dim=-1).numpy())
    return found[0], found[1]


@dataclass(frozen=True, slots=True)
class PpoPoint:
    """The state after one iteration."""

    iteration: int
    exploitability: float
    """NashConv of the two policies, mean over problems."""
    average_exploitability: float
    """NashConv of the policies averaged over the second half of the iterations so far."""
    coder_value: float
    tester_value: float


def train_ppo(bank: JudgedBank, *, iterations: int, seed: int = 0, batch: int = 2048) -> Iterator[PpoPoint]:
    """Train both roles together; after each iteration yield their exploitability and values.

    Everything runs in this process. If Ray is not running, it is started with one CPU and stopped at the end.
    """
    starts_ray = not ray.is_initialized()
    if starts_ray:
        ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    game = BankGame.of(bank.payoffs())
    algorithm = ppo_config(bank, seed=seed, batch=batch).build_algo()
    past: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
    try:
        for iteration in range(1, iterations + 1):
            algorithm.train()
            past.append(strategies(algorithm, bank))
            late = past[len(past) // 2 :]
            average = [np.mean([both[role] for both in late], axis=0) for role in (0, 1)]
            values = game.values(*past[-1])
            yield PpoPoint(
                iteration,
                game.nash_conv(*past[-1]),
                game.nash_conv(average[0], average[1]),
                float(values[0]),
                float(values[1]),
            )
    finally:
        algorithm.stop()
        if starts_ray:
            ray.shutdown()


def main() -> None:
    n_problems, iterations = (int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 2 else (2, 2)

    bank = load_bank("starter", limit=n_problems or None)
    game = BankGame.of(bank.payoffs())
    equilibrium = game.values(*strategies_of(game.solve()))
    print("iteration  NashConv  of averages  coder  tester")
    for point in train_ppo(bank, iterations=iterations, seed=0, batch=2048 if n_problems != 2 else 256):
        gaps = f"{point.exploitability:8.3f}  {point.average_exploitability:11.3f}"
        print(f"{point.iteration:9}  {gaps}  {point.coder_value:5.3f}  {point.tester_value:6.3f}", flush=True)
    print(f"equilibrium{equilibrium[0]:27.3f}  {equilibrium[1]:6.3f}")


if __name__ == "__main__":
    main()
