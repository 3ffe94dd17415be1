"""The settings of `GRPOConfig`. The defaults are the paper's."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.learner.learner_group import LearnerGroup
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.policy.policy import PolicySpec
from ray.rllib.policy.sample_batch import DEFAULT_POLICY_ID
from ray.tune.result import STDERR_FILE, STDOUT_FILE, TRIAL_INFO

from codea1_agents.prompts import load_prompts
from codea1_agents.train.declared import CountOrZero, NotNegative, check_values, settings_in, takes, values_of
from codea1_agents.train.grpo.advantages import require_parts
from codea1_agents.train.grpo.credit import require_credit
from codea1_agents.train.grpo.env_runner import TreeEnvRunner
from codea1_agents.train.grpo.hyperparameters import (
    AdvantageSettings,
    LearnerSettings,
    LengthSettings,
    RateSettings,
    RolloutSettings,
    UpdateSettings,
    require_groups,
)
from codea1_agents.train.grpo.learner import GRPOTorchLearner, ResponsesToBatch
from codea1_agents.train.grpo.learner_group import ShardedLearnerGroup, WatchedLearnerGroup
from codea1_agents.train.grpo.rl_module import CausalLMModule
from codea1_agents.train.grpo.rllib_settings import (
    attribute_of,
    is_space,
    refusing,
    require_all_honoured,
    require_honoured,
    require_known,
)
from codea1_agents.train.grpo.rollout import require_group_env
from codea1_agents.train.grpo.runners import evaluate_episodes
from codea1_agents.train.grpo.settings import (
    LoraSettings,
    ModelSettings,
    TrainingSettings,
    is_sharded,
    require_adaptable,
    require_one_base,
)
from codea1_agents.train.grpo.vllm_engine import require_engine_options
from codea1_agents.train.ray_start import Wanted
from codea1_env.agent import AgentSpec, require_agent
from codea1_env.errors import UserError, of_type, one_of
from codea1_env.group_env import GroupEnv, coder_name, tester_name
from codea1_env.problems.sources import require_source
from codea1_env.rounds.episodes import VIEWS
from codea1_env.rounds.rounds import SuitesPer
from codea1_env.rules.rewards import names_of_suite_parts
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.sandbox import Limits, require_sandbox

_ROLES = ("coder", "tester")
_SHARED = "shared"
_DECLARED: tuple[Any, ...] = (RolloutSettings, UpdateSettings, LengthSettings, RateSettings, LearnerSettings)
_UNUSED = ("model", "optimizer")
_OF_TUNE = (TRIAL_INFO, STDOUT_FILE, STDERR_FILE)  # which it puts beside the settings of a trial
"""Settings of RLlib's older algorithms that its dictionaries always have, and that it would give to `training`."""


@dataclass(frozen=True, kw_only=True)
class HonouredByGRPO:
    """Settings of RLlib's own `training` and `learners` that GRPO reads; all others would change nothing."""

    learner_class: Any = NotProvided
    learner_connector: Any = NotProvided
    learner_config_dict: Any = NotProvided


@dataclass(frozen=True, kw_only=True)
class Training(RolloutSettings, UpdateSettings, LengthSettings, RateSettings, HonouredByGRPO):
    """The parameters of `GRPOConfig.training`."""


@dataclass(frozen=True, kw_only=True)
class Learners(LearnerSettings, HonouredByGRPO):
    """The parameters of `GRPOConfig.learners`."""

    num_learners: CountOrZero = 0
    """Remote processes that learn. 0: the driver learns."""
    num_cpus_per_learner: NotNegative | Literal["auto"] = "auto"
    num_gpus_per_learner: NotNegative = 0.0
    custom_resources_per_learner: dict[str, float] | None = None
    """Further resources of Ray's that a learner needs."""
    local_gpu_idx: CountOrZero = 0
    """Which GPU the driver learns on, if it has several."""


class GRPOSettings(AlgorithmConfig):  # type: ignore[misc]  # Ray has no types
    """All of `GRPOConfig` except the algorithm class, whose module imports this one."""

    policies: Mapping[str, Any]
    algorithm_config_overrides_per_module: Mapping[str, Any]

    def __init__(self, algo_class: Any = None) -> None:
        super().__init__(algo_class=algo_class)
        self.env_runner_cls = TreeEnvRunner
        self.env = GroupEnv
        self.policy_mapping_fn = ByRole()
        self.batch_mode = "complete_episodes"
        self.add_default_connectors_to_learner_pipeline = False
        self._dont_auto_sync_env_runner_states = True
        self.custom_evaluation_function = evaluate_episodes
        self.policies_to_train: list[str] | None = None
        self.num_env_runners = 0
        self.log_level = "ERROR"  # RLlib logs much about its own internals
        self.seed = 0
        self.problem_source = ""
        self.rules: Ruleset = preset("fixed")
        self.tester_view = "white_box"
        self.sandbox = "local"
        self.limits: Limits | None = None
        self.models: dict[str, ModelSettings] = {}
        self.scripted: dict[str, AgentSpec] = {}
        self.prompts = "default"
        for kind in _DECLARED:
            self._set(values_of(kind()))

    # Fluent settings

    def environment(
        self,
        env: Any = NotProvided,
        *,
        rules: Ruleset | str = NotProvided,
        tester_view: str = NotProvided,
        sandbox: str = NotProvided,
        limits: Limits | None = NotProvided,
        env_config: dict[str, Any] = NotProvided,
        **others: Any,
    ) -> Self:
        """Set the game.

        Args:
            env: the environment to step: a class derived from `code_a1_v0.group_env`, or the name under which
                `ray.tune.register_env` registered a function that makes one from a dictionary of arguments. The
                default is `group_env` itself.
            rules: a ruleset or the name of one.
            tester_view: `white_box` or `black_box`.
            sandbox: name of a back end.
            limits: bounds per call of a program.
            env_config: arguments of `env`, apart from those that these settings decide.
            others: of RLlib's; they are refused.

        Raises:
            UserError: a value is of another type, or there is nothing of that name.
        """
        if env_config is not NotProvided:
            of_type("environment: env_config", env_config, dict)
        if not (sandbox is NotProvided or is_space(sandbox)):
            require_sandbox(of_type("environment: sandbox", sandbox, str))
        super().environment(env=env, env_config=env_config, **others)
        if isinstance(rules, str) or not (rules is NotProvided or is_space(rules)):
            rules = of_type("environment: rules", preset(rules) if isinstance(rules, str) else rules, Ruleset)
        if not (tester_view is NotProvided or is_space(tester_view)):
            one_of("environment: tester_view", tester_view, VIEWS)
        if not (limits in (None, NotProvided) or is_space(limits)):
            of_type("environment: limits", limits, Limits)
        return self._set({"rules": rules, "tester_view": tester_view, "sandbox": sandbox, "limits": limits})

    def problems(self, source: str) -> Self:
        """Set the problems to train on: a source for `load_problems`.

        Raises:
            UnknownName: there is none of that name.
            UserError: it cannot be imported.
        """
        if not is_space(source):
            require_source(of_type("problems: the source", source, str))
        return self._set({"problem_source": source})

    def llm_agents(
        self,
        *,
        coder: str | ModelSettings | LoraSettings = "",
        tester: str | ModelSettings | LoraSettings = "",
        shared: str | ModelSettings = "",
        base: str | ModelSettings = "",
        frozen: Collection[str] = NotProvided,
        prompts: str = NotProvided,
    ) -> Self:
        """Set the language models: one module per role, or one module for both roles (self-play).

        Two roles may have adapters on one base: `llm_agents(base="path", coder=LoraSettings(), tester=LoraSettings())`.
        Its weights are in memory once per process, and never change.

        Modules are called `coder` and `tester`, or `shared`. `policy_mapping_fn` maps agents to modules: it is `ByRole`
        unless `multi_agent` sets another.

        Args:
            coder: directory or hub id of a causal language model, or its settings; with a base, its adapter.
            tester: the same for the tester.
            shared: one model for both roles, instead of the two.
            base: directory or hub id of the model under the adapters, or its settings.
            frozen: modules that play and do not learn; left out: as before. The others are RLlib's `policies_to_train`.
            prompts: wording, by name or file.

        Raises:
            UserError: a shared module and another one, an unknown frozen module, or an unknown wording.
        """
        if isinstance(frozen, str):
            raise UserError(f"llm_agents: frozen must be a list of modules, as in [{frozen!r}], not text")
        if not (prompts is NotProvided or is_space(prompts)):
            load_prompts(of_type("llm_agents: prompts", prompts, str))
        if shared and (coder or tester):
            raise UserError("llm_agents: either one shared module, or one per role")
        players = {_SHARED: shared} if shared else {"coder": coder, "tester": tester}
        if set(self.policies) == set(self.models):
            self.policies = {DEFAULT_POLICY_ID: PolicySpec()}  # they were those of earlier models
        self.models = {name: _model_settings(name, model, base) for name, model in players.items() if model}
        if base and not self.models:
            raise UserError("llm_agents: a base needs adapters, as in coder=LoraSettings(), tester=LoraSettings()")
        if isinstance(self.policy_mapping_fn, ByRole):
            self.policy_mapping_fn = ByRole(dict.fromkeys(_ROLES, _SHARED) if shared else {})
        if frozen is not NotProvided:
            unknown = sorted(set(frozen) - set(self.models))
            if unknown:
                raise UserError(f"llm_agents: {unknown[0]!r} cannot be frozen, modules are {', '.join(self.models)}")
            self.policies_to_train = sorted(set(self.models) - set(frozen))
        return self._set({"prompts": prompts})

    def agents(self, *, coder: AgentSpec = NotProvided, tester: AgentSpec = NotProvided) -> Self:
        """Set the agents that play roles without a language model in training, e.g. `tester="fuzz"`.

        Raises:
            UserError: a specification holds a key, names no agent, or cannot act.
        """
        for role, agent in (("coder", coder), ("tester", tester)):
            if agent is not NotProvided:
                require_agent(agent)
                self.scripted = {**self.scripted, role: agent}
        return self

    @takes(Training)
    def training(self, **settings: Any) -> Self:
        """Set hyperparameters of GRPO; `hyperparameters` says what they mean.

        A role that a mapping such as `max_tokens` leaves out keeps its value. A search space of Ray Tune stands for a
        value, which is checked when it is known.

        Raises:
            UnknownName: there is no such setting.
            UserError: a value is of another type or out of its range, or it is one of truncated sampling (`top_p`).
        """
        own = _check_settings("training", Training, settings)
        own = self._with_lengths(own)
        super().training(**{name: own.pop(name) for name in values_of(HonouredByGRPO()).keys() & own.keys()})
        return self._set(own)

    @takes(Learners)
    def learners(self, **settings: Any) -> Self:
        """Set how many learners there are, and how the models are spread over them (`hyperparameters.LearnerSettings`).

        Raises:
            UnknownName: there is no such setting.
            UserError: a value is of another type or out of its range.
        """
        own = _check_settings("learners", Learners, settings)
        spread = {name: own.pop(name) for name in values_of(LearnerSettings()).keys() & own.keys()}
        super().learners(**own)
        return self._set(spread)

    env_runners = refusing(AlgorithmConfig.env_runners)
    evaluation = refusing(AlgorithmConfig.evaluation)
    rl_module = refusing(AlgorithmConfig.rl_module)

    def update_from_dict(self, config_dict: Mapping[str, Any]) -> Self:
        """Set values by name, as RLlib does: what `to_dict` returned, and Ray Tune's samples.

        Raises:
            UnknownName: there is no such setting.
            UserError: nothing would read a value.
        """
        changes = {attribute_of(name): value for name, value in config_dict.items() if name not in _OF_TUNE}
        self.multi_agent(**changes.pop("multiagent", {}))
        require_known(changes, vars(self))
        for name, value in changes.items():
            require_honoured(self, name, value)
        changes = {name: value for name, value in changes.items() if name not in _UNUSED}
        super().update_from_dict(self._with_lengths(changes))
        return self

    @classmethod
    def overrides(cls, **settings: Any) -> dict[str, Any]:
        """Return settings of an evaluation or a module that differ from others.

        Raises:
            UserError: see `update_from_dict`.
        """
        cls().update_from_dict(settings)
        return {attribute_of(name): value for name, value in settings.items()}

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute: the way of all methods and dictionaries.

        Raises:
            UserError: nothing would read the value.
        """
        name = attribute_of(name)
        if "_is_frozen" in vars(self):  # the constructor of RLlib's class has ended
            require_honoured(self, name, value)
        super().__setattr__(name, value)

    def __setitem__(self, name: str, value: Any) -> None:
        """Set an attribute as RLlib's dictionaries do."""
        self.update_from_dict({name: value})

    def _with_lengths(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings in which the roles that a length leaves out keep theirs."""
        whole = dict(settings)
        for name in values_of(LengthSettings()).keys() & whole.keys():
            if isinstance(whole[name], Mapping) and not is_space(whole[name]):
                whole[name] = {**getattr(self, name), **whole[name]}
        return whole

    @property
    def processes(self) -> list[Wanted]:
        """What is started besides the driver."""
        per_learner = self.num_cpus_per_learner
        if per_learner == "auto":
            per_learner = 0 if self.num_gpus_per_learner else 1
        n_runners = self.num_env_runners + self.evaluation_num_env_runners
        return [
            Wanted("runners", n_runners, self.num_cpus_per_env_runner, self.num_gpus_per_env_runner),
            Wanted("learners", self.num_learners, per_learner, self.num_gpus_per_learner),
        ]

    @property
    def n_cpus(self) -> int:
        """Cores that all processes of the training take, with some for the driver."""
        return int(sum(each.n * each.cpus for each in self.processes)) + 2

    @property
    def is_sharded(self) -> bool:
        """Whether each learner holds a part of every model."""
        return is_sharded(self.sharding, self.num_learners, self.models.values())

    def build_learner_group(self, **settings: Any) -> LearnerGroup:
        """Return the learners."""
        spec = settings.get("rl_module_spec") or self.get_multi_rl_module_spec(
            env=settings.get("env"), spaces=settings.get("spaces")
        )
        group = ShardedLearnerGroup if self.is_sharded else WatchedLearnerGroup
        return group(config=self.copy(), module_spec=spec, placement_group=settings.get("placement_group"))

    def _set(self, settings: Mapping[str, Any]) -> Self:
        for name, value in settings.items():
            if value is not NotProvided:
                setattr(self, name, value)
        return self

    # What RLlib calls

    def _set_log_levels(self) -> None:
        for name in ("ray.rllib", "ray.tune", "ray._common"):  # the last says what RLlib itself should not use
            logging.getLogger(name).setLevel(self.log_level)

    def validate(self) -> None:
        """Raise UserError for settings that make no run; set what follows from other settings."""
        self._set_log_levels()
        require_group_env(self.env, self.env_config)
        self._require_values()
        if self.sharding == "full" and self.num_learners < 2:
            raise UserError("learners: sharding='full' needs two learners or more")
        for role in _ROLES:
            if not self._has_player(role) and (role == "coder" or self.rules.reward.pays_tester):
                raise UserError(f"nobody plays the {role}: name a model with llm_agents or an agent with agents")
        if not self.trained_modules:
            raise UserError("nothing learns: every model is frozen, or there is none")
        require_known(vars(self), vars(type(self)()))
        require_all_honoured(self)
        self._check_modules()
        if not self.in_evaluation:
            self._check_placement()
        self._check_suites()
        engines = {each.rollout_engine for each in self.models.values()}
        if self.in_evaluation or (self.num_env_runners and engines != {"transformers"}):
            self.create_local_env_runner = not self.num_env_runners  # it would start engines that nothing uses
        if self.advantages != "sum":
            require_parts(names_of_suite_parts(self.rules), self.advantages)
        require_credit(self.rules, settings_in(self, AdvantageSettings))
        for each in self.models.values():
            require_engine_options(each)
        self.multi_agent(policies=set(self.models))
        self._set_own_rates()
        super().validate()
        if self.evaluation_config:  # its runners are built last
            self.get_evaluation_config_object().validate()

    @property
    def trained_modules(self) -> frozenset[str]:
        """The modules that learn: RLlib's `policies_to_train`, by default all."""
        return frozenset(self.models if self.policies_to_train is None else self.policies_to_train)

    @property
    def module_by_role(self) -> dict[str, str]:
        """The module of each role, by `policy_mapping_fn`, without the roles that no module plays.

        Raises:
            UserError: see `modules_by_role`.
        """
        return modules_by_role(self.policy_mapping_fn, self.models, self.n_candidates, self.n_suites)

    def _require_values(self) -> None:
        if not self.problem_source:
            raise UserError("problems: name the problems to train on, e.g. problems('humaneval')")
        require_source(self.problem_source)
        for kind in _DECLARED:
            settings_in(self, kind)  # Ray Tune and `update_from_dict` set values without asking

    def _check_modules(self) -> None:
        learning = {
            "lr_by_module": self.lr_by_module,
            "algorithm_config_overrides_per_module": self.algorithm_config_overrides_per_module,
        }
        named = {"multi_agent: policies_to_train": self.trained_modules, **learning}
        if isinstance(self._rl_module_spec, MultiRLModuleSpec):
            named["rl_module: rl_module_spec"] = self._rl_module_spec.rl_module_specs
        require_one_base(self.models)
        require_adaptable(self.models)
        for setting, modules in named.items():
            allowed = self.trained_modules if setting in learning else self.models
            for module in sorted(set(modules) - set(allowed)):
                raise UserError(f"{setting} must be among the modules {', '.join(sorted(allowed))}, got {module!r}")

    def _has_player(self, role: str) -> bool:
        return role in self.module_by_role or role in self.scripted

    def _check_suites(self) -> None:
        if self.suites_per == SuitesPer.PROBLEM and self.tester_view != "black_box":
            raise UserError("suites_per='problem': such suites test all programs at once; set tester_view='black_box'")
        if not self.n_suites and self.rules.reward.pays_tester:
            raise UserError(f"n_suites: rules {self.rules.name} need suites; only golden tests need none")
        learning = [role for role, module in self.module_by_role.items() if module in self.trained_modules]
        require_groups(learning, self.n_candidates, self.n_suites, self.credit)
        has_feedback = self.n_suites and self._has_player("tester") and self.suites_per == SuitesPer.CANDIDATE
        if self.turns > 1 and not has_feedback:
            raise UserError(
                f"turns={self.turns}: later turns repair what failed in a candidate's suites, so they need a tester, "
                "n_suites of at least 1 and suites_per='candidate'"
            )
        if self.turn_return == "last" and self.turn_discount != 1:
            raise UserError(f"turn_discount={self.turn_discount} is for turn_return='sum', got 'last'")

    def _check_placement(self) -> None:
        if self.overlap and not self.num_env_runners:
            raise UserError("overlap: it needs remote runners; set env_runners to at least 1")
        if self.offload_parameters and not self.is_sharded:
            raise UserError("offload_parameters is for learners that hold parts of the models (sharding)")
        for name, each in self.models.items():
            parts = each.engine_options.get("tensor_parallel_size", 1)
            if each.gathering_dtype and not self.is_sharded:
                raise UserError(f"{name}: gathering_dtype is for learners that hold parts of the models (sharding)")
            if parts > max(1, self.num_gpus_per_env_runner):
                raise UserError(f"{name}: tensor_parallel_size={parts} needs as many GPUs per runner")
        if self.placement == "colocated":
            require_colocation(self)

    def _set_own_rates(self) -> None:
        """Set the learning rates of single modules, from `lr_by_module`, and check what else is set for one."""
        overrides = dict(self.algorithm_config_overrides_per_module)
        for module, lr in self.lr_by_module.items():
            overrides[module] = {**(overrides.get(module) or {}), "lr": lr}
        self.algorithm_config_overrides_per_module = overrides
        self._per_module_overrides: dict[str, Any] = {}  # what RLlib has made of earlier ones
        for module in overrides:
            self.get_config_for_module(module)._require_values()

    def get_default_rl_module_spec(self) -> RLModuleSpec:
        """Return the spec of a module whose class `rl_module` does not name."""
        return RLModuleSpec(module_class=CausalLMModule)

    def get_multi_rl_module_spec(self, *, inference_only: bool = False, **settings: Any) -> MultiRLModuleSpec:
        """Return the specs of all modules, of the classes that `rl_module` names, with the settings of their models."""
        specs = super().get_multi_rl_module_spec(inference_only=inference_only, **settings)
        specs.inference_only = inference_only
        for module, spec in specs.rl_module_specs.items():
            spec.inference_only = inference_only  # RLlib sets it only on specs that it made
            model = self.models[module]
            own = {**values_of(self, UpdateSettings), **(self.algorithm_config_overrides_per_module.get(module) or {})}
            spec.model_config = replace(
                model,
                with_reference=model.with_reference and module in self.trained_modules and own["kl_coeff"] > 0,
                entropy_bonus=own["entropy_coeff"] != 0,
                logits_chunk_tokens=own["logits_chunk_tokens"],
                prompt_once=own["prompt_once"],
                packing=own["packing"],
                temperature=self.temperature,
                sharded=self.is_sharded,
                offloaded=self.offload_parameters,
                on_gpu=(self.num_gpus_per_env_runner if inference_only else self.num_gpus_per_learner) > 0,
            ).to_dict()
        return specs

    def build_learner_connector(self, *spaces: Any, **settings: Any) -> ConnectorV2:
        """Return the connectors of `learner_connector`, if any, followed by that which makes batches."""
        pipeline = super().build_learner_connector(*spaces, **settings)
        pipeline.append(ResponsesToBatch())
        return pipeline

    def get_default_learner_class(self) -> type[GRPOTorchLearner]:
        """Return the learner's class."""
        return GRPOTorchLearner

    def settings(self) -> TrainingSettings:
        """Return the settings that runners need."""
        return TrainingSettings(
            problems=self.problem_source,
            rules=self.rules,
            tester_view=self.tester_view,
            sandbox=self.sandbox,
            limits=self.limits,
            seed=self.seed or 0,
            rollout=replace(
                settings_in(self, RolloutSettings), n_suites=self.n_suites if self._has_player("tester") else 0
            ),
            advantages=settings_in(self, AdvantageSettings),
            models=self.models,
            module_by_role=self.module_by_role,
            agents=self.scripted,
            frozen=frozenset(self.models) - self.trained_modules,
            lengths=settings_in(self, LengthSettings),
            prompts=self.prompts,
        )

    @property
    def _model_config_auto_includes(self) -> dict[str, Any]:
        return {}


def _model_settings(name: str, model: str | ModelSettings | LoraSettings, base: str | ModelSettings) -> ModelSettings:
    """Return the settings of a module: of a model of its own, or of an adapter on a base.

    Raises:
        UserError: an adapter without a base, or a model beside one.
    """
    if isinstance(model, LoraSettings) != bool(base):
        given = "an adapter needs base='MODEL'" if not base else "with a base, a role is LoraSettings"
        raise UserError(f"llm_agents: {name}: {given}, got {model!r}")
    if isinstance(model, LoraSettings):
        under = base if isinstance(base, ModelSettings) else ModelSettings(str(base))
        return replace(under, lora=model, shares_base=True)
    return model if isinstance(model, ModelSettings) else ModelSettings(str(model))


def _check_settings(method: str, kind: type[Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of a method; search spaces of Ray Tune, and what RLlib says for "not given", as they are.

    Raises:
        UserError: see `declared.check_values`.
    """
    given = {name: value for name, value in settings.items() if value is not NotProvided}
    require_known(given, values_of(kind()))
    spaces = {name: value for name, value in given.items() if is_space(value)}
    try:
        return check_values(kind, {name: value for name, value in given.items() if name not in spaces}) | spaces
    except UserError as error:
        raise type(error)(f"{method}: {error}") from error


Mapper = Callable[..., str]
"""Takes an agent's name and RLlib's episode, which is None here, as nothing may depend on it. Returns a module id."""


@dataclass(frozen=True)
class ByRole:
    """The default: one module plays every `coder_*`, one plays every `tester_*`. Both may be the same module."""

    modules: Mapping[str, str] = field(default_factory=dict)
    """By role. The module of the same name plays a role that is missing here."""

    def __call__(self, agent_id: str, *_: Any, **__: Any) -> str:
        """Return the module of an agent."""
        role = agent_id.partition("_")[0]
        return self.modules.get(role, role)


def modules_by_role(mapper: Mapper, modules: Collection[str], n_candidates: int, n_suites: int) -> dict[str, str]:
    """Return the module of each role, without the roles that no module plays.

    Args:
        mapper: called with every agent.
        modules: ids of all modules.
        n_candidates: N of the groups.
        n_suites: M of each group of suites.

    Raises:
        UserError: the mapper gives agents of one role to several modules, or an agent to an unknown module.
    """
    agents = {
        "coder": [coder_name(n) for n in range(max(1, n_candidates))],
        "tester": [tester_name(g, m) for g in range(n_candidates) for m in range(max(1, n_suites))],
    }
    by_role = {}
    for role, names in agents.items():
        chosen = {mapper(name, None): name for name in reversed(names)}
        if len(chosen) > 1:
            (one, first), (other, second) = sorted(chosen.items(), key=lambda each: names.index(each[1]))[:2]
            raise UserError(
                f"policy_mapping_fn: {first} is {one!r} and {second} is {other!r}; an advantage compares the "
                f"replies of a group, so one module must play all its agents: map by role"
            )
        for module in chosen:
            if module in modules:
                by_role[role] = module
            elif module != role:
                raise UserError(f"policy_mapping_fn: {role}s are {module!r}; modules are {', '.join(sorted(modules))}")
    return by_role


def require_colocation(config: Any) -> None:
    """Check that runners and learners can share GPUs in pairs.

    Args:
        config: a `GRPOConfig`.

    Raises:
        UserError: they cannot.
    """
    runner, learner = config.num_gpus_per_env_runner, config.num_gpus_per_learner
    if config.overlap:
        raise UserError("placement='colocated': samplers release the GPUs while learners work; overlap must be 0")
    if not config.num_env_runners or config.num_env_runners != config.num_learners:
        raise UserError("placement='colocated': it needs as many remote runners as remote learners, at least one each")
    if (runner or learner) and not (0.5 < runner < 1 and 0 < learner <= 1 - runner + 1e-9):
        raise UserError(
            "placement='colocated': a runner needs more than half of a GPU and a learner the rest, e.g."
            " gpus_per_env_runner=0.6 and gpus_per_learner=0.4, so that Ray puts one of each on a GPU"
        )
