"""Configurations, modules, batches and weights of GRPO's tests; RLlib and torch are imported when they are called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
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
    return weights_in(algorithm.learner_group)


def weights_in(group: Any) -> Weights:
    """The weights of a learner group."""
    found: Weights = group.get_state(components="learner/rl_module")["learner"]["rl_module"]
    return found


def distance(a: Weights, b: Weights) -> float:
    """The largest difference of a weight."""
    assert {m: a[m].keys() for m in a} == {m: b[m].keys() for m in b}
    return max(float(abs(a[m][name] - b[m][name]).max()) for m in a for name in a[m])


def scored(module: str, n_prompt: int, n_response: int, *, advantage: float = 1.0, seed: int = 0) -> Any:
    """A response of tokens drawn from the phrase model's vocabulary."""
    import numpy as np

    from codea1_agents.models.sampling import Response
    from codea1_agents.train.grpo.batch import ScoredResponse

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


def moved(model: Any, by: float = 0.05) -> Any:
    """Return the model after something like an update, which is the same in each process."""
    import torch

    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=by)
    return model


def learner_of(folder: str, *, model: Mapping[str, Any] | None = None, **settings: Any) -> Any:
    """A learner of one module, the coder's.

    Args:
        folder: of the model.
        model: further settings of the model.
        settings: hyperparameters.
    """
    from codea1_agents.train.grpo.learner import GRPOTorchLearner
    from codea1_agents.train.grpo.settings import ModelSettings

    config = learning({"coder": ModelSettings(folder, **(model or {}))}, **settings)
    found = GRPOTorchLearner(config=config, module_spec=specs_of(config))
    found.build()
    return found


def learning(models: Mapping[str, Any], **settings: Any) -> Any:
    """A configuration of learners alone: of models and hyperparameters."""
    from codea1_agents.train.grpo import GRPOConfig

    config = GRPOConfig().problems("starter").llm_agents(**models)
    if "tester" not in models:
        config.agents(tester="fuzz")
    return config.training(**{"lr": 1e-3, "minibatches_per_epoch": 1, "warmup_steps": 0, "kl_coeff": 0.01, **settings})


def specs_of(config: Any) -> Any:
    """The specifications of a valid configuration's modules."""
    import gymnasium as gym

    config.validate()
    space = gym.spaces.Discrete(2)  # nothing looks at it
    return config.get_multi_rl_module_spec(spaces=dict.fromkeys(config.models, (space, space)))


def group_of(config: Any) -> Any:
    return config.build_learner_group(rl_module_spec=specs_of(config))


def group_responses(*modules: str) -> list[Any]:
    """For each module six prompts of different length, with three responses each; of one, each token has an advantage
    of its own."""
    found = []
    rows = product(modules, (2, 7, 13, 9, 4, 11), (9, 1, 24))
    for row, (module, n_prompt, n_response) in enumerate(rows):
        each = scored(module, n_prompt, n_response, advantage=(-1.2, 0.7, 0.5)[row % 3], seed=row)
        of_tokens = [(-1.0) ** n * (1 + n / 8) for n in range(n_response)] if row % 3 == 2 else None
        found.append(replace(each, prompt=scored(module, n_prompt, 1).prompt, token_advantages=of_tokens))
    return found


def update_group(group: Any, responses: Sequence[Any], n_learners: int, n_updates: int) -> None:
    import ray

    from codea1_agents.train.grpo.batch import planned, shards

    plan = shards(planned(responses, 1, (0,)), max(1, n_learners))
    for _ in range(n_updates):
        group.update(episodes_refs=[ray.put(shard) for shard in plan])


def record_gradients(learner: Any) -> None:
    """Keep the first gradients of each module from now on, whole."""
    from codea1_agents.train.grpo.causal_models import whole_tensor

    learner.gradients = {}
    for name in learner.config.models:

        def record(*_: Any, name: str = name) -> None:
            if name not in learner.gradients:
                named = learner.module[name].unwrapped().policy.model.named_parameters()
                of_module = {each: whole_tensor(p.grad).numpy().copy() for each, p in named if p.grad is not None}
                learner.gradients[name] = of_module

        learner.get_optimizer(name).register_step_pre_hook(record)


def gradients_of(group: Any) -> Weights:
    """What the first learner of a group has recorded."""
    found: Weights = next(iter(group.foreach_learner(lambda learner: learner.gradients))).get()
    return found


def largest(weights: Mapping[str, Any]) -> float:
    """The largest absolute value of a module's."""
    return max(float(abs(each).max()) for each in weights.values())


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
