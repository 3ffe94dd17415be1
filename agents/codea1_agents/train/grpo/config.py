"""The settings of `GRPOConfig`; the defaults are the paper's."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, Self

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from codea1_agents.train.grpo.batches import ResponsesToBatch
from codea1_agents.train.grpo.env_runner import TreeEnvRunner
from codea1_agents.train.grpo.group_envs import require_group_env
from codea1_agents.train.grpo.learner import GRPOTorchLearner
from codea1_agents.train.grpo.loss import LossRules
from codea1_agents.train.grpo.mapping import ByRole, modules_by_role
from codea1_agents.train.grpo.model_settings import ModelSettings
from codea1_agents.train.grpo.rl_module import CausalLMModule
from codea1_agents.train.grpo.settings import Shape, TrainingSettings
from codea1_env.agent import AgentSpec
from codea1_env.errors import UserError
from codea1_env.group_env import GroupEnv
from codea1_env.problems import DEFAULT_SOURCE
from codea1_env.rounds.trees import SuitesPer
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.sandbox import Limits
from codea1_env.secret import read_secrets, require_secrets

_ROLES = ("coder", "tester")
_SHARED = "shared"


class GRPOSettings(AlgorithmConfig):  # type: ignore[misc]  # Ray has no types
    """All of `GRPOConfig` but the algorithm that it builds, which needs this module."""

    def __init__(self, algo_class: Any) -> None:
        super().__init__(algo_class=algo_class)
        self.env_runner_cls = TreeEnvRunner
        self.env = GroupEnv
        self.policy_mapping_fn = ByRole()
        self.batch_mode = "complete_episodes"
        self.add_default_connectors_to_learner_pipeline = False
        self._dont_auto_sync_env_runner_states = True
        self._learner_connector = _connector
        self.lr = 1e-6
        self.grad_clip = 1.0
        self.num_env_runners = 0
        self.seed = 0
        self.problem_source = DEFAULT_SOURCE
        self.rules: Ruleset = preset("fixed")
        self.tester_view = "white_box"
        self.sandbox = "local"
        self.limits: Limits | None = None
        self.book_path = ""
        self.models: dict[str, ModelSettings] = {}
        self.scripted: dict[str, AgentSpec] = {}
        self.frozen: frozenset[str] = frozenset()
        self.prompts = "default"
        self._set(deepcopy(_OWN))

    # Fluent settings

    def environment(
        self,
        env: Any = NotProvided,
        *,
        rules: Ruleset | str = NotProvided,
        tester_view: str = NotProvided,
        sandbox: str = NotProvided,
        limits: Limits | None = NotProvided,
        book: str = NotProvided,
        **kwargs: Any,
    ) -> Self:
        """Set the game.

        Args:
            env: what is stepped: a class derived from `code_a1_v0.group_env`, or the name under which
                `ray.tune.register_env` knows a function that makes one from its keyword arguments. The default is
                `group_env` itself.
            rules: a ruleset or a preset's name.
            tester_view: `white_box` or `black_box`.
            sandbox: a back end's name.
            limits: bounds per call of a program.
            book: file of the Mistake Book; empty: in memory (it is in checkpoints in any case).
            kwargs: as in RLlib; `env_config` holds arguments of `env` besides those that follow from these settings.
        """
        super().environment(env=env, **kwargs)
        told = {
            "rules": preset(rules) if isinstance(rules, str) else rules,
            "tester_view": tester_view,
            "sandbox": sandbox,
            "limits": limits,
            "book_path": book,
        }
        return self._set(told)

    def problems(self, source: str) -> Self:
        """Set the problems to train on: a source that `load_problems` takes."""
        return self._set({"problem_source": source})

    def llm_agents(
        self,
        *,
        coder: str | ModelSettings = "",
        tester: str | ModelSettings = "",
        shared: str | ModelSettings = "",
        frozen: Collection[str] = (),
        prompts: str = NotProvided,
        rollout_engine: str = "",
    ) -> Self:
        """Set who is a language model: one module per role, or one that both share (self-play).

        Modules are called `coder` and `tester`, or `shared`. Who plays whom says `policy_mapping_fn`: `ByRole`, unless
        `multi_agent` sets another.

        Args:
            coder: directory or hub id of a causal language model, or its settings.
            tester: likewise.
            shared: one for both roles, in place of the two.
            frozen: modules that play but do not learn.
            prompts: wording, by name or file.
            rollout_engine: of all of them, in place of their settings': `transformers` or `vllm`.

        Raises:
            UserError: a shared module beside another, a frozen module that is none, or an unknown engine.
        """
        if shared and (coder or tester):
            raise UserError("llm_agents: either one shared module, or one per role")
        if shared:
            self.models = {_SHARED: _settings(shared)}
            mapping = ByRole(dict.fromkeys(_ROLES, _SHARED))
        else:
            given = {"coder": coder, "tester": tester}
            self.models = {role: _settings(model) for role, model in given.items() if model}
            mapping = ByRole()
        if isinstance(self.policy_mapping_fn, ByRole):
            self.policy_mapping_fn = mapping
        if rollout_engine:
            self.models = {name: replace(each, rollout_engine=rollout_engine) for name, each in self.models.items()}
        unknown = sorted(set(frozen) - set(self.models))
        if unknown:
            raise UserError(f"llm_agents: {unknown[0]!r} cannot be frozen, modules are {', '.join(self.models)}")
        self.frozen = frozenset(frozen)
        return self._set({"prompts": prompts})

    def agents(self, **by_role: AgentSpec) -> Self:
        """Set who plays a role where no language model learns it, e.g. `tester="fuzz"`.

        Raises:
            UserError: no such role.
        """
        for role in by_role:
            if role not in _ROLES:
                raise UserError(f"agents: {role!r} is no role; roles are coder and tester")
        read = {role: read_secrets(spec) if isinstance(spec, str) else spec for role, spec in by_role.items()}
        self.scripted = {**self.scripted, **read}
        return self

    def training(self, **settings: Any) -> Self:
        """Set what RLlib's `training` takes, and everything of GRPO: the settings of `_OWN`."""
        own = {name: settings.pop(name) for name in list(settings) if name in _OWN}
        super().training(**settings)
        return self._set(own)

    def _set(self, settings: Mapping[str, Any]) -> Self:
        for name, value in settings.items():
            if value is not NotProvided:
                setattr(self, name, value)
        return self

    # What RLlib asks for

    def validate(self) -> None:
        """Raise UserError for settings that make no run; completes what follows from others."""
        require_group_env(self.env, self.env_config)
        for role in _ROLES:
            if not self._has_player(role) and (role == "coder" or self.rules.reward.pays_tester):
                raise UserError(f"nobody plays the {role}: name a model with llm_agents or an agent with agents")
        if not set(self.models) - self.frozen:
            raise UserError("nothing learns: every model is frozen, or there is none")
        if min(self.problems_per_step, self.epochs_per_step, self.minibatches_per_epoch) < 1:
            raise UserError("problems_per_step, epochs_per_step and minibatches_per_epoch must be at least 1")
        for spec in self.scripted.values():
            if isinstance(spec, str):
                require_secrets(spec)
        self._check_suites()
        if self.num_env_runners and any(each.rollout_engine != "transformers" for each in self.models.values()):
            self.create_local_env_runner = False  # it would start engines that nobody asks
        LossRules(self.clip_low, self.clip_high, self.dual_clip, self.kl_coeff, self.entropy_coeff)
        self.settings()
        self.multi_agent(
            policies=set(self.models),
            policies_to_train=sorted(set(self.models) - self.frozen),
        )
        self.rl_module(rl_module_spec=self._module_specs())
        self._set_own_rates()
        super().validate()

    @property
    def module_by_role(self) -> dict[str, str]:
        """Which module plays a role, by `policy_mapping_fn`; roles that no module plays are missing.

        Raises:
            UserError: see `mapping.modules_by_role`.
        """
        return modules_by_role(self.policy_mapping_fn, self.models, self.n_candidates, self.n_suites)

    def _has_player(self, role: str) -> bool:
        return role in self.module_by_role or role in self.scripted

    def _check_suites(self) -> None:
        if self.suites_per not in list(SuitesPer):
            raise UserError(f"suites_per: {self.suites_per!r} is neither {' nor '.join(SuitesPer)}")
        if self.suites_per == SuitesPer.PROBLEM and self.tester_view != "black_box":
            raise UserError(
                "suites_per='problem': such suites are for all programs at once; set tester_view='black_box'"
            )
        if not self.n_suites and self.rules.reward.pays_tester:
            raise UserError(f"n_suites: rules {self.rules.name} need suites; only golden tests do without")

    def _set_own_rates(self) -> None:
        """Give modules their own learning rates, where `lr_by_module` names one.

        Raises:
            UserError: it names no module that learns.
        """
        for module in self.lr_by_module:
            if module not in set(self.models) - self.frozen:
                raise UserError(f"lr_by_module: {module!r} is no module that learns")
        told = dict(self.algorithm_config_overrides_per_module or {})
        for module, lr in self.lr_by_module.items():
            told[module] = {**(told.get(module) or {}), "lr": lr}
        if told:
            self.multi_agent(algorithm_config_overrides_per_module=told)

    def get_default_rl_module_spec(self) -> RLModuleSpec:
        """Return what RLlib falls back on; the modules themselves are set by `validate`."""
        return RLModuleSpec(module_class=CausalLMModule)

    def _module_specs(self) -> MultiRLModuleSpec:
        """Return one module per model; those without a divergence term have no reference."""
        specs = {}
        for module, settings in self.models.items():
            learns = module not in self.frozen
            full = replace(
                settings,
                with_reference=settings.with_reference and learns and self.kl_coeff > 0,
                entropy_bonus=self.entropy_coeff != 0,
            )
            specs[module] = RLModuleSpec(module_class=CausalLMModule, model_config=full.to_dict())
        return MultiRLModuleSpec(rl_module_specs=specs)

    def get_default_learner_class(self) -> type[GRPOTorchLearner]:
        """Return the learner."""
        return GRPOTorchLearner

    def settings(self) -> TrainingSettings:
        """Return what runners need to know."""
        return TrainingSettings(
            problems=self.problem_source,
            rules=self.rules,
            tester_view=self.tester_view,
            sandbox=self.sandbox,
            limits=self.limits,
            seed=self.seed or 0,
            shape=Shape(
                n_candidates=self.n_candidates,
                n_suites=self.n_suites if self._has_player("tester") else 0,
                n_kept=self.n_kept,
                keep_flat_groups=self.keep_flat_groups,
                problems_at_once=self.problems_at_once,
                suites_per=SuitesPer(self.suites_per),
            ),
            models=self.models,
            module_by_role=self.module_by_role,
            agents=self.scripted,
            frozen=self.frozen,
            max_tokens=self.max_tokens,
            max_prompt_tokens=self.max_prompt_tokens,
            temperature=self.temperature,
            rows_sampled_at_once=self.rows_sampled_at_once,
            prompts=self.prompts,
        )

    @property
    def _model_config_auto_includes(self) -> dict[str, Any]:
        return {}


_OWN: dict[str, Any] = {
    "max_tokens": {"coder": 4096, "tester": 4096},
    "max_prompt_tokens": {"coder": 4096, "tester": 8192},
    "lr_by_module": {},
    "temperature": 1.0,
    "rows_sampled_at_once": 64,
    "problems_per_step": 256,
    "n_candidates": 8,
    "n_suites": 8,
    "n_kept": 1,
    "keep_flat_groups": False,
    "suites_per": SuitesPer.CANDIDATE.value,
    "problems_at_once": 8,
    "epochs_per_step": 1,
    "minibatches_per_epoch": 2,
    "rows_at_once": 8,
    "clip_low": 0.2,
    "clip_high": 0.28,
    "dual_clip": 10.0,
    "kl_coeff": 0.001,
    "entropy_coeff": 0.0,
    "weight_decay": 0.1,
    "warmup_steps": 10,
    "total_steps": None,
}
"""What `training` takes beside RLlib's, and what holds without it."""


def _settings(model: str | ModelSettings) -> ModelSettings:
    return model if isinstance(model, ModelSettings) else ModelSettings(str(model))


def _connector(observation_space: Any, action_space: Any) -> ResponsesToBatch:
    return ResponsesToBatch(observation_space, action_space)
