"""Which settings of RLlib's `GRPO` honours. All others are refused, as nothing here would read them.

A setting of a newer Ray is refused, too, until it is listed in `HONOURED`. Only another value than the default is
refused, so that RLlib's dictionaries of all settings can be loaded. docs/training.md lists both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, wraps
from inspect import signature
from typing import Any, TypeVar

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModule, MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.policy.policy import PolicySpec
from ray.rllib.policy.sample_batch import DEFAULT_POLICY_ID
from ray.rllib.utils import force_list
from ray.tune.search.sample import Domain

from codea1_agents.train.declared import values_of
from codea1_agents.train.grpo.env_runner import TreeEnvRunner
from codea1_agents.train.grpo.hyperparameters import (
    AdvantageSettings,
    LengthSettings,
    RolloutSettings,
    UpdateSettings,
    refuse_truncation,
)
from codea1_agents.train.grpo.learner import GRPOTorchLearner
from codea1_agents.train.grpo.rl_module import CausalLMModule
from codea1_env.errors import UnknownName, UserError, of_type

_C = TypeVar("_C")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Settings of one method that are refused, and why."""

    method: str
    settings: str
    """Names, separated by spaces. Empty: all that are neither honoured nor in another refusal."""
    why: str

    def __str__(self) -> str:
        """Return the settings as docs/training.md names them."""
        return f"{self.method}({', '.join(self.settings.split()) or '...'})"


_HONOURED = """
algo_class env env_config seed log_level log_sys_usage stats_cls_lookup env_runner_cls num_env_runners
create_local_env_runner explore validate_env_runners_after_construction num_cpus_per_env_runner
num_gpus_per_env_runner custom_resources_per_env_runner num_learners num_cpus_per_learner num_gpus_per_learner
custom_resources_per_learner local_gpu_idx torch_ddp_kwargs num_cpus_for_main_process
custom_resources_for_main_process placement_strategy lr grad_clip _learner_class _learner_connector
learner_config_dict _rl_module_spec algorithm_config_overrides_per_module policies policies_to_train
policy_mapping_fn evaluation_interval evaluation_duration evaluation_num_env_runners evaluation_config
custom_evaluation_function callbacks_class callbacks_on_algorithm_init callbacks_on_train_result
callbacks_on_episode_end callbacks_on_sample_end callbacks_on_evaluate_start callbacks_on_evaluate_end
callbacks_on_checkpoint_loaded callbacks_on_env_runners_recreated restart_failed_env_runners
ignore_env_runner_failures max_num_env_runner_restarts delay_between_env_runner_restarts_s
env_runner_health_probe_timeout_s env_runner_restore_timeout_s
_is_frozen in_evaluation simple_optimizer _per_module_overrides _prior_exploration_config
"""
HONOURED = frozenset(_HONOURED.split())
"""Attributes that change a run; those of the last line are RLlib's own, which it sets itself."""

PER_MODULE = (
    {*values_of(UpdateSettings()), "total_steps", "learner_config_dict"}
    - {"minibatches_per_epoch"}
    - set(values_of(AdvantageSettings()))
)
"""What `algorithm_config_overrides_per_module` may set: what a learner reads for one module."""

OF_EVALUATIONS = (
    {name for name in HONOURED if "env_runner" in name}
    | {*values_of(RolloutSettings()), *values_of(LengthSettings())}
    | {"problem_source", "rules", "tester_view", "sandbox", "limits", "scripted", "prompts"}
    | {"env", "env_config", "seed", "explore", "evaluation_duration", "log_level"}
    | {"callbacks_class", "callbacks_on_episode_end", "callbacks_on_sample_end"}
) - {
    *("num_env_runners", "evaluation_num_env_runners", "create_local_env_runner"),
    *("callbacks_on_env_runners_recreated", "problems_per_step", "overlap", "n_kept", "keep_zero_std_groups"),
}
"""What `evaluation_config` may set: what a runner of evaluations reads."""

_TEXTS = "models get prompts (llm_agents(prompts=...)) and the environment gets the text of their replies"
_WHOLE = "an episode is one problem and always complete; training(problems_at_once=...) says how many run at a time"
_NO_ARRAYS = "an episode is a tree of replies, without arrays of observations"
_BEFORE = "an episode is played in a batch with others; on_episode_end is called when all its rewards are known"
_SIZE = "training(problems_per_step=..., n_candidates=..., n_suites=...) is the size of an iteration"
_RATE = "training(warmup_steps=..., total_steps=...) change the learning rate"
_MODEL = "llm_agents(coder=ModelSettings(...)) sets how a model is computed"
_NO_CRITIC = "a reply is one step with one reward, which training(n_candidates=..., n_suites=...) compares with others"
_PLAYED = "an evaluation plays evaluation_duration problems, or calls custom_evaluation_function"
_UNREAD = "no part of RLlib that a training here uses reads it"

REFUSED = (
    Refusal("training", "train_batch_size train_batch_size_per_learner", _SIZE),
    Refusal(
        "training", "minibatch_size sgd_minibatch_size", "training(minibatches_per_epoch=...) divides an iteration"
    ),
    Refusal("training", "num_epochs num_sgd_iter", "training(epochs_per_step=...) is the number of passes over a step"),
    Refusal("training", "shuffle_batch_per_epoch", "minibatches are drawn once per iteration, by the seed of the run"),
    Refusal("training", "clip_param", "training(clip_low=..., clip_high=...) bound the ratio on both sides"),
    Refusal("training", "learning_rate", "training(lr=...) is the learning rate"),
    Refusal("training", "lr_schedule", _RATE),
    Refusal("training", "gamma lambda_ use_gae use_critic vf_loss_coeff vf_clip_param", _NO_CRITIC),
    Refusal("training", "use_kl_loss kl_target", "training(kl_coeff=...) weighs the divergence, and stays the same"),
    Refusal("training", "grad_clip_by", "training(grad_clip=...) bounds the norm of a module's whole gradient"),
    Refusal("training", "optimizer", "training(lr=..., weight_decay=...) set AdamW"),
    Refusal("training", "model", _MODEL),
    Refusal("learners", "", "learners fetch all responses of an iteration; learner_connector adds connectors"),
    Refusal("env_runners", "env_to_module_connector module_to_env_connector", _TEXTS),
    Refusal("env_runners", "num_envs_per_env_runner rollout_fragment_length batch_mode", _WHOLE),
    Refusal("env_runners", "compress_observations episodes_to_numpy observation_filter", _NO_ARRAYS),
    Refusal("env_runners", "gym_env_vectorize_mode episode_lookback_horizon", _NO_ARRAYS),
    Refusal("env_runners", "sample_timeout_s", "a rollout takes as long as it takes; limits of programs end it"),
    Refusal("env_runners", "explore", "equal replies have no advantage; evaluation_config may set it to False"),
    Refusal("env_runners", "", "TreeEnvRunner plays whole groups, without connectors or filters"),
    Refusal("callbacks", "on_episode_created on_episode_start on_episode_step", _BEFORE),
    Refusal("callbacks", "on_environment_created", "environments are many and are used again; env_config sets them"),
    Refusal("callbacks", "on_evaluate_offline_start on_evaluate_offline_end", _PLAYED),
    Refusal("callbacks", "on_offline_eval_runners_recreated", _PLAYED),
    Refusal("multi_agent", "observation_fn", "a class derived from group_env may change observations"),
    Refusal("multi_agent", "count_steps_by", _SIZE),
    Refusal("multi_agent", "", "llm_agents(...) sets the modules, which are always in memory"),
    Refusal("rl_module", "model_config", _MODEL),
    Refusal("evaluation", "evaluation_duration_unit", "evaluation_duration counts episodes, which are problems"),
    Refusal("evaluation", "evaluation_parallel_to_training", "an evaluation takes the weights between two steps"),
    Refusal("evaluation", "evaluation_sample_timeout_s", "an evaluation takes as long as it takes"),
    Refusal("evaluation", "", _PLAYED),
    Refusal("fault_tolerance", "", "what environments and runners raise ends the run; only lost runners start again"),
    Refusal("framework", "torch_skip_nan_gradients", "a loss that is not finite ends the run (NotFinite)"),
    Refusal("framework", "", "models are PyTorch's and run as transformers loads them"),
    Refusal("api_stack", "", "GRPO is written for RLlib's new API stack"),
    Refusal(
        "resources", "num_gpus _fake_gpus", "env_runners(num_gpus_per_env_runner=...) and learners(...) assign GPUs"
    ),
    Refusal("python_environment", "", "ray.init(runtime_env=...) sets variables"),
    Refusal("environment", "", "observations are texts and actions are replies; environment(env=...) may change both"),
    Refusal("offline_data", "", "GRPO learns from what its models have just sampled"),
    Refusal("reporting", "log_gradients", "grad_norm of each module is in all results"),
    Refusal("reporting", "", f"figures are means over one iteration; {_SIZE}"),
    Refusal("checkpointing", "", "a checkpoint holds whole modules; `codea1 export model` writes one for others"),
    Refusal("debugging", "fake_sampler", "GRPO learns from what its models have just sampled"),
    Refusal("experimental", "_torch_lr_scheduler_classes", _RATE),
    Refusal("experimental", "", _UNREAD),
)
"""Each setting is an attribute of the same name, possibly after an underscore or `callbacks_`, or one of another
algorithm."""

_NEVER_CALLED = {name: each.why for each in REFUSED if each.method == "callbacks" for name in each.settings.split()}
_SET_BY_EVALUATIONS = ("batch_mode", "rollout_fragment_length")
_NOT_USED_BY_LEARNER = (
    "compute_gradients",
    "postprocess_gradients",
    "postprocess_gradients_for_module",
    "apply_gradients",
)
_MODULES = {DEFAULT_POLICY_ID, "coder", "tester", "shared"}
_Faults = Iterator[tuple[str, str]]


def attribute_of(name: str) -> str:
    """Return the attribute of a setting that a method or a dictionary of RLlib's may call otherwise."""
    key = AlgorithmConfig._translate_special_keys(name, warn_deprecated=False)
    return next((full for full in (key, f"_{key}", f"callbacks_{key}") if full in _defaults()), key)


def is_space(value: Any) -> bool:
    """Return whether Ray Tune will draw a value."""
    return isinstance(value, Domain) or (isinstance(value, Mapping) and "grid_search" in value)


def require_known(names: Collection[str], known: Collection[str]) -> None:
    """Check names of settings, before anything is set.

    Raises:
        UnknownName: one is not among those known.
        UserError: it is one of RLlib's, or of another algorithm of its.
    """
    refuse_truncation(names)
    for name in names:
        if not {name, attribute_of(name)} & set(known):
            _refuse(iter([_refusals()[attribute_of(name)]] if attribute_of(name) in _refusals() else []))
            raise UnknownName.of("setting", name, known)


def require_honoured(config: Any, name: str, value: Any) -> None:
    """Raise UserError if a training would not read a value of an attribute."""
    _refuse(_faults(config, name, value))


def require_all_honoured(config: _C, method: str = "") -> _C:
    """Return the configuration.

    Args:
        config: a `GRPOConfig`.
        method: that which sets the settings to check; empty: all.

    Raises:
        UserError: it has a setting that nothing would read; the error is about the first.
    """
    faults = (fault for name, value in vars(config).items() for fault in _faults(config, name, value))
    _refuse(fault for fault in (*faults, *_together(config)) if fault[0].startswith(method))
    return config


def refusing(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of RLlib's that raises UserError for what it would drop, or only several settings together
    decide."""

    @wraps(method)
    def call(self: _C, *values: Any, **named: Any) -> _C:
        for name, value in named.items():
            require_honoured(self, attribute_of(name), value)
        method(self, *values, **named)
        return require_all_honoured(self, method.__name__)

    return call


def _refuse(faults: _Faults) -> None:
    for setting, why in faults:
        raise UserError(f"{setting} would change nothing here: {why}")


@cache
def _defaults() -> dict[str, Any]:
    own = {"batch_mode": "complete_episodes", "add_default_connectors_to_learner_pipeline": False}
    return {**vars(AlgorithmConfig()), **own, "_dont_auto_sync_env_runner_states": True}


@cache
def _refusals() -> dict[str, tuple[str, str]]:
    """Return what is refused by attribute: the name of the setting, and why."""
    refusals: dict[str, tuple[str, str]] = {}
    for each in sorted(REFUSED, key=lambda each: not each.settings):
        for name in each.settings.split() or signature(getattr(AlgorithmConfig, each.method)).parameters:
            if each.settings or attribute_of(name) in _defaults():
                refusals.setdefault(attribute_of(name), (f"{each.method}: {name}", each.why))
    refusals = {**{name: (name, _UNREAD) for name in _defaults()}, **refusals}
    return {name: fault for name, fault in refusals.items() if name not in HONOURED - {"explore"}}


def _is_default(name: str, value: Any) -> bool:
    defaults = _defaults()
    if name == "tf_session_args" and value == {**defaults[name], **defaults["local_tf_session_args"]}:
        return True  # RLlib sets it for a local runner
    with suppress(ValueError, RuntimeError):  # of arrays, which are no default
        return name in defaults and bool(value == defaults[name])
    return False


def _faults(config: Any, name: str, value: Any) -> _Faults:
    """Yield what is refused of one attribute, whatever the others are."""
    of_evaluation = config.in_evaluation and name in _SET_BY_EVALUATIONS
    if name in _refusals() and name != "explore" and not (of_evaluation or _is_default(name, value)):
        yield _refusals()[name]
    if name in _CHECKS and not is_space(value):
        yield from _CHECKS[name](value)


def _together(config: Any) -> _Faults:
    """Yield what is refused of several attributes together."""
    if not (config.explore or config.in_evaluation):
        yield _refusals()["explore"]
    if config.evaluation_config and not (config.evaluation_interval or config.evaluation_num_env_runners):
        yield "evaluation: evaluation_config", "it needs runners: set evaluation_interval or evaluation_num_env_runners"
    if set(config.policies) not in ({DEFAULT_POLICY_ID}, set(config.models)) and config.models:
        yield "multi_agent: policies", f"llm_agents sets the modules, which are {', '.join(config.models)}"
    if config.learner_config_dict and config.learner_class is GRPOTorchLearner:
        yield "learners: learner_config_dict", "it is for a learner_class of your own, and GRPO's reads nothing of it"
    if config.torch_ddp_kwargs and (config.num_learners < 2 or config.is_sharded):
        yield "framework: torch_ddp_kwargs", "it is for two learners or more, with sharding='none'"


def _of_callbacks(value: Any) -> _Faults:
    for kind in force_list(value):
        for name, why in _NEVER_CALLED.items():
            if getattr(kind, name, None) not in (None, getattr(RLlibCallback, name)):
                yield f"callbacks: {kind.__name__}.{name}", why


def _of_runners(value: Any) -> _Faults:
    if not (isinstance(value, type) and issubclass(value, TreeEnvRunner)):
        yield "env_runners: env_runner_cls", "derive it from TreeEnvRunner, which plays whole groups"


def _of_evaluation_function(value: Any) -> _Faults:
    if not callable(value):
        yield "evaluation: custom_evaluation_function", "name a function; evaluate_episodes is the default"


def _of_evaluations(value: Any) -> _Faults:
    for name in value if isinstance(value, Mapping) else ():
        if attribute_of(name) not in OF_EVALUATIONS:
            yield f"evaluation: {name} in evaluation_config", "runners of evaluations do not read it"


def _of_overrides(value: Any) -> _Faults:
    for module, settings in value.items():
        for name in of_type(f"rl_module: the settings of {module!r}", settings or {}, dict):
            if attribute_of(name) not in PER_MODULE:
                known = ", ".join(sorted(PER_MODULE))
                place = f"rl_module: algorithm_config_overrides_per_module[{module!r}]: {name}"
                yield place, f"all modules share it; those of one are {known}"


def _of_modules(spec: Any) -> _Faults:
    specs = spec.rl_module_specs.values() if isinstance(spec, MultiRLModuleSpec) else force_list(spec)
    if getattr(spec, "multi_rl_module_class", MultiRLModule) is not MultiRLModule:
        yield "rl_module: rl_module_spec", "modules learn one after the other, so MultiRLModule holds them"
    for each in specs:
        if not (isinstance(each, RLModuleSpec) and issubclass(each.module_class or CausalLMModule, CausalLMModule)):
            kind = getattr(each, "module_class", each)
            place = getattr(kind, "__name__", "rl_module_spec")
            yield f"rl_module: {place}", "derive it from CausalLMModule, which loads the model"
        elif each.model_config:
            yield "rl_module: model_config", "llm_agents(coder=ModelSettings(...)) sets how a model is computed"


def _of_policies(value: Any) -> _Faults:
    given = value.values() if isinstance(value, Mapping) else ()
    policies = [PolicySpec(*each) if isinstance(each, tuple) else each for each in given]
    own = any(isinstance(each, PolicySpec) and (each.policy_class or each.config) for each in policies)
    if own or not set(value) <= _MODULES:
        yield "multi_agent: policies", "llm_agents sets the modules, which are coder and tester, or shared"


def _of_policies_to_train(value: Any) -> _Faults:
    if callable(value):
        yield "multi_agent: policies_to_train", "list the modules, as a function of the batch is called too late"


def _of_learners(value: Any) -> _Faults:
    kind = value or GRPOTorchLearner
    if not (isinstance(kind, type) and issubclass(kind, GRPOTorchLearner)):
        place = getattr(kind, "__name__", "learner_class")
        yield f"learners: {place}", "derive it from GRPOTorchLearner, which makes the optimiser steps"
        return
    for name in _NOT_USED_BY_LEARNER:
        if getattr(kind, name) is not getattr(GRPOTorchLearner, name):
            yield f"learners: {kind.__name__}.{name}", "its loss is compute_loss_for_module"


_CHECKS: dict[str, Callable[[Any], _Faults]] = {
    "callbacks_class": _of_callbacks,
    "env_runner_cls": _of_runners,
    "custom_evaluation_function": _of_evaluation_function,
    "evaluation_config": _of_evaluations,
    "algorithm_config_overrides_per_module": _of_overrides,
    "_rl_module_spec": _of_modules,
    "policies": _of_policies,
    "policies_to_train": _of_policies_to_train,
    "_learner_class": _of_learners,
}
