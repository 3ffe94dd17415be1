"""SkyRL: one `BaseTextEnv` per role, and their rows.

A row names its environment (`env_class`), which `register_envs` makes known. The environment's configuration has
`problems`, a source, and `rules`, a preset (default `fixed`).

SkyRL's environments have no mask: a masked reply has the reward 0 and `masked` in the metadata of its step.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Unpack

from codea1_agents.adapters.messages import GIVEN, ROLES, RowSettings, rows
from codea1_agents.adapters.scoring import named_referee, require_paid, required, role_scores
from codea1_env.agent import Role
from codea1_env.errors import extra_needed, of_type
from codea1_env.problems import ProblemSource

ENV_CLASSES: Mapping[Role, str] = {"coder": "codea1_coder", "tester": "codea1_tester"}
"""By role, the id of its environment."""


def dataset(role: Role, problems: ProblemSource, **settings: Unpack[RowSettings]) -> list[dict[str, Any]]:
    """Return the rows of one role as SkyRL reads them; arguments and errors are those of `adapters.messages.rows`."""
    return [
        {
            "prompt": row["prompt"],
            "env_class": ENV_CLASSES[role],
            "reward_spec": {"method": "rule", "ground_truth": row["problem_id"]},
            "extra_info": {"given": row[GIVEN[role]]},
        }
        for row in rows(role, problems, **settings)
    ]


def register_envs() -> None:
    """Register both environments with skyrl-gym; again changes nothing.

    Raises:
        MissingExtra: skyrl-gym is not installed.
    """
    with extra_needed("environments of SkyRL", "skyrl"):
        from skyrl_gym.envs.registration import register, registry  # noqa: PLC0415
    for role, name in ENV_CLASSES.items():
        if name not in registry:
            register(id=name, entry_point=f"{__name__}:{role.capitalize()}Env")


@cache
def _env(role: Role) -> type:
    with extra_needed("environments of SkyRL", "skyrl"):
        from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput  # noqa: PLC0415

    class RoleEnv(BaseTextEnv):  # type: ignore[misc]
        """One reply of one role; the episode ends with it."""

        def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None) -> None:
            super().__init__()
            config, row = of_type("env_config", env_config, Mapping), extras or {}  # type: ignore[type-abstract]
            problems = required("problems", config, "the configuration of the environment")
            self._referee = named_referee(problems, config.get("rules", "fixed"))
            require_paid(role, self._referee.rules)
            self._problem_id = required("ground_truth", required("reward_spec", row, "the row"), "its reward_spec")
            self._given = required("given", required("extra_info", row, "the row"), "its extra_info") or None

        def step(self, action: str) -> Any:
            """Judge the reply; waits."""
            (scored,) = role_scores(role, self._referee, [self._problem_id], [action], [self._given])
            reward = scored.reward(role)
            metadata = {"masked": reward is None, "masked_because": scored.masked_because, **scored.parts[role]}
            return BaseTextEnvStepOutput(observations=[], reward=reward or 0.0, done=True, metadata=metadata)

    RoleEnv.__name__ = RoleEnv.__qualname__ = f"{role.capitalize()}Env"
    return RoleEnv


def __getattr__(name: str) -> Any:
    """Make `CoderEnv` or `TesterEnv` on first use, since it needs skyrl-gym."""
    for role in ROLES:
        if name == f"{role.capitalize()}Env":
            return _env(role)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
