"""Four programs for each of three problems and two suites for each program, judged together, with a custom reward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codea1_env import GroupVector, code_a1_v0, load_agent


class Strict(code_a1_v0.group_env):
    """The reward of a coder is 0 if any of its tests fails."""

    def step(self, actions: Mapping[str, Any]) -> Any:
        """Take a step, and change the rewards."""
        observations, rewards, *rest = super().step(actions)
        for agent in rewards:
            if agent.startswith("coder") and rewards[agent] < 1:
                rewards[agent] = 0.0
        return observations, rewards, *rest


def main() -> None:
    """Play one episode of each problem with scripted agents; a language model could reply to all turns in one batch."""
    vector = GroupVector([Strict(problems="starter", n_candidates=4, n_suites=2) for _ in range(3)])
    env = vector.envs[0]
    agents = {"coder": load_agent("mutant,strength=0.7", env), "tester": load_agent("fuzz", env)}
    vector.reset(seed=0)
    while turns := vector.turns():  # the coders', then the testers'
        replies = [agents[turn.info["role"]].act(turn.observation, turn.info) for turn in turns]
        vector.send(vector.actions(replies))  # returns at once, while the sandbox runs the programs
        vector.recv()  # waits for the results
    for place, judged in enumerate(vector.trees()):
        print(judged.tree.problem.id, vector.coder_rewards(place), vector.tester_rewards(place).round(2).tolist())


if __name__ == "__main__":
    main()
