"""The settings of one training run, as plain values that runners, learners and the driver share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from codea1_agents.train.grpo.hyperparameters import AdvantageSettings, LengthSettings, RolloutSettings
from codea1_agents.train.grpo.model_settings import ModelSettings
from codea1_env.agent import AgentSpec
from codea1_env.problems import DEFAULT_SOURCE
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.sandbox import Limits


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """Settings of one run that do not concern Ray."""

    problems: str = DEFAULT_SOURCE
    rules: Ruleset = field(default_factory=lambda: preset("fixed"))
    tester_view: str = "white_box"
    sandbox: str = "local"
    limits: Limits | None = None
    seed: int = 0
    rollout: RolloutSettings = field(default_factory=RolloutSettings)
    advantages: AdvantageSettings = field(default_factory=AdvantageSettings)
    models: Mapping[str, ModelSettings] = field(default_factory=dict)
    """By module: `coder` and `tester`, or one module that both roles share."""
    module_by_role: Mapping[str, str] = field(default_factory=dict)
    agents: Mapping[str, AgentSpec] = field(default_factory=dict)
    """By role: the agent that plays it where no module does."""
    frozen: frozenset[str] = frozenset()
    """Modules that play and do not learn."""
    lengths: LengthSettings = field(default_factory=LengthSettings)
    prompts: str = "default"

    @property
    def modules(self) -> tuple[str, ...]:
        """Ids of all modules, sorted."""
        return tuple(sorted(self.models))

    def module_of(self, role: str) -> str:
        """Return the id of the module that plays a role; empty if an agent plays it."""
        return self.module_by_role.get(role, "")

    def has_player(self, role: str) -> bool:
        """Whether a module or an agent plays a role. Rules that do not pay the tester need none."""
        return bool(self.module_of(role)) or role in self.agents

    @property
    def trained_roles(self) -> frozenset[str]:
        """Roles whose responses train a module."""
        return frozenset(role for role, module in self.module_by_role.items() if module not in self.frozen)
