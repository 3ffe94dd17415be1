"""Which settings of RLlib's `GRPO` refuses, as nothing here would read them. docs/training.md lists those it honours.

Only another value than the default is refused, so that RLlib's dictionaries of all settings can be loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any, TypeVar

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModule, MultiRLModuleSpec
from ray.rllib.policy.policy import PolicySpec
from ray.rllib.policy.sample_batch import DEFAULT_POLICY_ID
from ray.rllib.utils import force_list

from codea1_agents.train.grpo.env_runner import TreeEnvRunner
from codea1_agents.train.grpo.learner import GRPOTorchLearner
from codea1_agents.train.grpo.rl_module import CausalLMModule
from codea1_env.errors import UserError

_C = TypeVar("_C")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Settings of one method that are refused, and why."""

    method: str
    settings: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        """Return the settings as docs/training.md names them."""
        return f"{self.method}({', '.join(self.settings)})"


_TEXTS = "models get prompts (llm_agents(prompts=...)) and the environment gets the text of their replies"
_WHOLE = "an episode is one problem and always complete; training(problems_at_once=...) says how many run at a time"
_NO_ARRAYS = "an episode is a tree of replies, without arrays of observations"
_BEFORE = "an episode is played in a batch with others; on_episode_end is called when all its rewards are known"

REFUSED = (
    Refusal("env_runners", ("env_to_module_connector", "module_to_env_connector"), _TEXTS),
    Refusal("env_runners", ("num_envs_per_env_runner", "rollout_fragment_length", "batch_mode"), _WHOLE),
    Refusal("env_runners", ("compress_observations", "episodes_to_numpy", "observation_filter"), _NO_ARRAYS),
    Refusal("env_runners", ("gym_env_vectorize_mode", "episode_lookback_horizon"), _NO_ARRAYS),
    Refusal("env_runners", ("sample_timeout_s",), "a rollout takes as long as it takes; limits of programs end it"),
    Refusal("env_runners", ("explore",), "equal replies have no advantage; evaluation_config may set it to False"),
    Refusal("callbacks", ("on_episode_created", "on_episode_start", "on_episode_step"), _BEFORE),
    Refusal("callbacks", ("on_environment_created",), "environments are many and are used again; env_config sets them"),
    Refusal("multi_agent", ("observation_fn",), "a class derived from group_env may change observations"),
    Refusal("multi_agent", ("count_steps_by",), "training(problems_per_step=...) is the size of an iteration"),
    Refusal("rl_module", ("model_config",), "llm_agents(coder=ModelSettings(...)) sets how a model is computed"),
    Refusal("evaluation", ("evaluation_duration_unit",), "evaluation_duration counts episodes, which are problems"),
    Refusal("evaluation", ("evaluation_parallel_to_training",), "an evaluation takes the weights between two steps"),
    Refusal("evaluation", ("evaluation_sample_timeout_s",), "an evaluation takes as long as it takes"),
    Refusal("fault_tolerance", ("restart_failed_sub_environments",), "what an environment raises ends the run"),
    Refusal("framework", ("torch_compile_learner", "torch_compile_worker"), "models run as transformers loads them"),
    Refusal("offline_data", ("input_", "output"), "GRPO learns from what its models have just sampled"),
    Refusal("reporting", ("metrics_num_episodes_for_smoothing",), "figures are means over one iteration"),
)
"""Each setting is an attribute of the same name, possibly after an underscore or `callbacks_`."""

_NEVER_CALLED = {name: each.why for each in REFUSED if each.method == "callbacks" for name in each.settings}
_OF_EVALUATIONS = ("explore", "batch_mode", "rollout_fragment_length")
"""Settings that evaluations may have: the first is honoured there, and RLlib itself sets the others."""
_NOT_USED_BY_LEARNER = (
    "compute_gradients",
    "postprocess_gradients",
    "postprocess_gradients_for_module",
    "apply_gradients",
)
_MODULES = {DEFAULT_POLICY_ID, "coder", "tester", "shared"}


def require_honoured(config: _C, method: str = "") -> _C:
    """Return the configuration.

    Args:
        config: a `GRPOConfig`.
        method: that which sets the settings to check; empty: all.

    Raises:
        UserError: it has a setting that nothing would read; the error is about the first.
    """
    for setting, why in _refused(config):
        if setting.startswith(method):
            raise UserError(f"{setting} would change nothing here: {why}")
    return config


def refusing(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of RLlib's that sets values, and raises UserError for those that nothing would read."""

    @wraps(method)
    def call(self: _C, *values: Any, **named: Any) -> _C:
        method(self, *values, **named)
        return require_honoured(self, method.__name__)

    return call


@cache
def _defaults() -> dict[str, Any]:
    return {**vars(AlgorithmConfig()), "batch_mode": "complete_episodes"}


def _refused(config: Any) -> Iterator[tuple[str, str]]:
    for each in REFUSED:
        for name in each.settings:
            if config.in_evaluation and name in _OF_EVALUATIONS:
                continue
            attribute = next(full for full in (name, f"_{name}", f"callbacks_{name}") if full in _defaults())
            if getattr(config, attribute) != _defaults()[attribute]:
                yield f"{each.method}: {name}", each.why
    for kind in force_list(config.callbacks_class):
        for name, why in _NEVER_CALLED.items():
            if getattr(kind, name, None) not in (None, getattr(RLlibCallback, name)):
                yield f"callbacks: {kind.__name__}.{name}", why
    if not (isinstance(config.env_runner_cls, type) and issubclass(config.env_runner_cls, TreeEnvRunner)):
        yield "env_runners: env_runner_cls", "derive it from TreeEnvRunner, which plays whole groups"
    if config.evaluation_config and not (config.evaluation_interval or config.evaluation_num_env_runners):
        yield "evaluation: evaluation_config", "it needs runners: set evaluation_interval or evaluation_num_env_runners"
    yield from _refused_parts(config)


def _refused_parts(config: Any) -> Iterator[tuple[str, str]]:
    """Yield what is refused of modules and learners."""
    spec = config._rl_module_spec
    specs = spec.rl_module_specs.values() if isinstance(spec, MultiRLModuleSpec) else force_list(spec)
    if getattr(spec, "multi_rl_module_class", MultiRLModule) is not MultiRLModule:
        yield "rl_module: rl_module_spec", "modules learn one after the other, so MultiRLModule holds them"
    for each in specs:
        if not issubclass(each.module_class or CausalLMModule, CausalLMModule):
            yield f"rl_module: {each.module_class.__name__}", "derive it from CausalLMModule, which loads the model"
        if each.model_config:
            yield "rl_module: model_config", "llm_agents(coder=ModelSettings(...)) sets how a model is computed"
    policies = [PolicySpec(*each) if isinstance(each, tuple) else each for each in config.policies.values()]
    own = any(isinstance(each, PolicySpec) and (each.policy_class or each.config) for each in policies)
    if own or not set(config.policies) <= _MODULES:
        yield "multi_agent: policies", "llm_agents sets the modules, which are coder and tester, or shared"
    if callable(config.policies_to_train):
        yield "multi_agent: policies_to_train", "list the modules, as a function of the batch is called too late"
    learner = config.learner_class
    if not issubclass(learner, GRPOTorchLearner):
        yield f"learners: {learner.__name__}", "derive it from GRPOTorchLearner, which makes the optimiser steps"
        return
    for name in _NOT_USED_BY_LEARNER:
        if getattr(learner, name) is not getattr(GRPOTorchLearner, name):
            yield f"learners: {learner.__name__}.{name}", "its loss is compute_loss_for_module"
