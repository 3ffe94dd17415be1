"""Configurations, modules, batches and weights of GRPO's tests; RLlib and torch are imported when they are called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

ON_RAY = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("default"),  # Ray's own
    pytest.mark.usefixtures("cluster"),
]
"""Marks of a module whose tests use Ray in this process."""


def tiny_config(models: Mapping[str, Any], problems: str) -> Any:
    """The roles of `models` learn, everything in this process."""
    from codea1_agents.train.grpo import GRPOConfig

    config = GRPOConfig().environment(rules="fixed").problems(problems).llm_agents(**models)
    config.training(lr=3e-3, n_candidates=6, n_suites=4, problems_per_step=4, problems_at_once=2, warmup_steps=0)
    return config.training(max_tokens={"coder": 2, "tester": 2}, minibatches_per_epoch=1, micro_batch_size=5)


@contextmanager
def built(config: Any) -> Iterator[Any]:
    algorithm = config.build_algo()
    try:
        yield algorithm
    finally:
        algorithm.stop()


Place = tuple[str, str]
"""Problem and agent."""


def one_step(config: Any, learnt: dict[Place, float], runners: int = 0) -> tuple[list[Any], dict[Place, float]]:
    """The trees of one iteration, and the advantages that it trained with (the fixture `learnt`)."""
    config = config.copy(copy_frozen=False).training(problems_per_step=3, n_kept=6)
    config.env_runners(num_env_runners=runners, num_cpus_per_env_runner=0.5)
    learnt.clear()
    with built(config) as algorithm:
        algorithm.train()
        return list(algorithm.last_trees), dict(learnt)


Weights = dict[str, dict[str, Any]]


def weights_of(algorithm: Any) -> Weights:
    found: Weights = algorithm.learner_group.get_state(components="learner/rl_module")["learner"]["rl_module"]
    return found


def distance(a: Weights, b: Weights) -> float:
    assert a.keys() == b.keys()
    return max(float(abs(a[m][name] - b[m][name]).max()) for m in a for name in a[m])


def scored(module: str, n_prompt: int, n_response: int, *, advantage: float = 1.0, seed: int = 0) -> Any:
    """A response of tokens drawn from the phrase model's vocabulary."""
    import numpy as np

    from codea1_agents.train.grpo.batch import ScoredResponse
    from codea1_agents.train.grpo.sampling import Response

    draw = np.random.default_rng([seed, n_prompt, n_response])
    prompt, tokens = (tuple(draw.integers(3, 10, n).tolist()) for n in (n_prompt, n_response))
    response = Response(tokens, tuple((-draw.random(n_response) - 2.0).tolist()), is_cut=True)
    about = {"role": module, "agent": f"{module}_0", "module": module, "problem_id": "toy/0"}
    return ScoredResponse(**about, prompt=prompt, response=response, advantage=advantage)


def module_of(folder: str, *, inference_only: bool = False, **settings: Any) -> Any:
    """A module as RLlib would build it."""
    import gymnasium as gym

    from codea1_agents.train.grpo.rl_module import CausalLMModule
    from codea1_agents.train.grpo.settings import ModelSettings

    space = gym.spaces.Discrete(2)
    config = replace(ModelSettings(folder), **settings).to_dict()
    spaces = {"observation_space": space, "action_space": space}
    return CausalLMModule(**spaces, model_config=config, inference_only=inference_only)


def learner_of(folder: str, *, model: Mapping[str, Any] | None = None, **settings: Any) -> Any:
    """A learner of one module, the coder's; `model` are further settings of its model, `settings` hyperparameters."""
    import gymnasium as gym

    from codea1_agents.train.grpo import GRPOConfig
    from codea1_agents.train.grpo.learner import GRPOTorchLearner
    from codea1_agents.train.grpo.settings import ModelSettings

    config = GRPOConfig().problems("starter").llm_agents(coder=ModelSettings(folder, **(model or {})))
    config.agents(tester="fuzz")
    config.training(**{"lr": 1e-3, "minibatches_per_epoch": 1, "warmup_steps": 0, "kl_coeff": 0.01, **settings})
    config.validate()
    spaces = {"coder": (gym.spaces.Discrete(2), gym.spaces.Discrete(2))}  # nothing looks at them
    found = GRPOTorchLearner(config=config, module_spec=config.get_multi_rl_module_spec(spaces=spaces))
    found.build()
    return found


def some_batch(rows: int = 4, prompt: int = 6, response: int = 5) -> dict[str, Any]:
    """A learner's batch of tokens that small vocabularies have, padded as the real ones are."""
    import torch

    generator = torch.Generator().manual_seed(0)
    lengths = torch.arange(rows)
    return {
        "prompt_ids": torch.randint(3, 14, (rows, prompt), generator=generator),
        "prompt_number": lengths,
        "prompt_mask": torch.arange(prompt) >= lengths.clamp(max=prompt - 1).unsqueeze(-1),
        "response_ids": torch.randint(3, 14, (rows, response), generator=generator),
        "response_mask": torch.arange(response) < (response - lengths.clamp(max=response - 1)).unsqueeze(-1),
    }
