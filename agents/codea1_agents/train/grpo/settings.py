"""What a training run is, as plain values: everything that runners, learners and the driver must agree on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from codea1_agents.train.grpo.model_settings import ModelSettings
from codea1_env.agent import AgentSpec
from codea1_env.problems import DEFAULT_SOURCE
from codea1_env.rounds.trees import SuitesPer
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.sandbox import Limits


@dataclass(frozen=True, slots=True)
class Shape:
    """How large trees are.

    Raises:
        ValueError: a group of none.
    """

    n_candidates: int = 8
    n_suites: int = 8
    """0: no tester is asked."""
    n_kept: int = 1
    """Candidates per problem whose suites are learnt from (l); says nothing about suites per problem."""
    problems_at_once: int = 8
    suites_per: SuitesPer = SuitesPer.CANDIDATE
    keep_flat_groups: bool = False
    """Whether groups of equal rewards are learnt from (by the divergence and the mean over tokens only)."""

    def __post_init__(self) -> None:
        if min(self.n_candidates, self.n_kept, self.problems_at_once) < 1 or self.n_suites < 0:
            raise ValueError(f"a tree needs at least one of each: {self}")

    @property
    def n_groups(self) -> int:
        """Groups of suites, G: one per candidate, or one."""
        return self.n_candidates if self.suites_per is SuitesPer.CANDIDATE else 1


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """One run's settings that have nothing to do with Ray."""

    problems: str = DEFAULT_SOURCE
    rules: Ruleset = field(default_factory=lambda: preset("fixed"))
    tester_view: str = "white_box"
    sandbox: str = "local"
    limits: Limits | None = None
    seed: int = 0
    shape: Shape = field(default_factory=Shape)
    models: Mapping[str, ModelSettings] = field(default_factory=dict)
    """By module: `coder` and `tester`, or one that both roles share."""
    module_by_role: Mapping[str, str] = field(default_factory=dict)
    agents: Mapping[str, AgentSpec] = field(default_factory=dict)
    """By role: who plays it where no module does."""
    frozen: frozenset[str] = frozenset()
    """Modules that play and do not learn."""
    max_tokens: Mapping[str, int] = field(default_factory=lambda: {"coder": 4096, "tester": 4096})
    """Longest reply by role (method.md 1.9)."""
    max_prompt_tokens: Mapping[str, int] = field(default_factory=lambda: {"coder": 4096, "tester": 8192})
    """Longest prompt by role (method.md 1.9); a longer one is not asked, and its rollout masked."""
    temperature: float = 1.0
    rows_sampled_at_once: int = 64
    prompts: str = "default"

    @property
    def modules(self) -> tuple[str, ...]:
        """Ids of all modules, sorted."""
        return tuple(sorted(self.models))

    def module_of(self, role: str) -> str:
        """Return the id of the module that plays a role; empty if an agent does."""
        return self.module_by_role.get(role, "")

    def has_player(self, role: str) -> bool:
        """Whether anybody plays a role; a tester need not be there where its tests earn nothing."""
        return bool(self.module_of(role)) or role in self.agents

    @property
    def trained_roles(self) -> frozenset[str]:
        """Roles whose responses are learnt from."""
        return frozenset(role for role, module in self.module_by_role.items() if module not in self.frozen)
