"""The group environments that a runner steps, many at a time, made as the configuration's `environment` says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ray.tune.registry import ENV_CREATOR, _global_registry  # what `register_env` writes to

from codea1_agents.train.grpo.hyperparameters import Shape
from codea1_agents.train.grpo.settings import TrainingSettings
from codea1_env.book.store import MistakeBook
from codea1_env.errors import UserError
from codea1_env.group_env import GroupEnv
from codea1_env.group_vector import GroupVector
from codea1_env.problems import ProblemSet
from codea1_env.rules.ruleset import Ruleset

_SET_ELSEWHERE = {
    "problems": "problems(...)",
    "n_candidates": "training(n_candidates=...)",
    "n_suites": "training(n_suites=...)",
    "suites_per": "training(suites_per=...)",
    "rules": "environment(rules=...)",
    "tester_view": "environment(tester_view=...)",
    "book": "environment(book=...)",
    "sandbox": "environment(sandbox=...)",
    "limits": "environment(limits=...)",
    "masks_sandbox_errors": "True in every training",
}
"""Arguments of a group environment that other settings of the training decide."""

Creator = Callable[[Mapping[str, Any]], Any]


def require_group_env(env: object, env_config: Mapping[str, Any]) -> None:
    """Raise UserError for an `environment(env=..., env_config=...)` that makes no group environment."""
    creator_of(env)
    for name in sorted(env_config.keys() & _SET_ELSEWHERE):
        raise UserError(f"environment: env_config sets {name!r}, which is {_SET_ELSEWHERE[name]}")


def creator_of(env: object) -> Creator:
    """Return the function that makes an environment from its arguments.

    Args:
        env: a class derived from `code_a1_v0.group_env`; or the name under which `ray.tune.register_env` registered a
            function that returns such an environment or a PettingZoo wrapper around one.

    Raises:
        UserError: it is neither.
    """
    if isinstance(env, type) and issubclass(env, GroupEnv):
        return lambda arguments: env(**arguments)
    if isinstance(env, str) and _global_registry.contains(ENV_CREATOR, env):
        creator: Creator = _global_registry.get(ENV_CREATOR, env)
        return creator
    raise UserError(
        f"environment: {env!r} is neither a class derived from code_a1_v0.group_env nor registered by "
        "ray.tune.register_env"
    )


class GroupEnvs:
    """All group environments of a runner: vectors of equal size that share one referee.

    Args:
        env: as in `creator_of`.
        env_config: its arguments, apart from those that the training sets.
        problems: of the episodes.
        rules: of the game.
        shape: of the groups; `problems_at_once` is the number of environments in a vector.
        settings: of the training; they set the other arguments.

    Raises:
        UserError: `env` makes no group environment, or refuses its arguments.
    """

    def __init__(
        self,
        env: object,
        env_config: Mapping[str, Any],
        *,
        problems: ProblemSet,
        rules: Ruleset,
        shape: Shape,
        settings: TrainingSettings,
    ) -> None:
        self._name, self._creator, self.shape = env, creator_of(env), shape
        self._arguments = {
            **env_config,
            "problems": problems,
            "n_candidates": shape.n_candidates,
            "n_suites": shape.n_suites,
            "suites_per": shape.suites_per.value,
            "rules": rules,
            "tester_view": settings.tester_view,
            "book": MistakeBook(None),  # unused: replays come from the driver's book
            "sandbox": settings.sandbox,
            "limits": settings.limits,
            "masks_sandbox_errors": True,
        }
        members = [self._new_env() for _ in range(self.shape.problems_at_once)]
        self.referee = members[0].unwrapped.referee
        """Reads and judges the replies of all environments."""
        self._vectors = [GroupVector(members, self.referee)]

    def vectors(self, n: int) -> list[GroupVector]:
        """Return n vectors, always the same ones. Reset them before use."""
        while len(self._vectors) < n:
            members = [self._new_env() for _ in range(self.shape.problems_at_once)]
            self._vectors.append(GroupVector(members, self.referee))
        return self._vectors[:n]

    def close(self) -> None:
        """Close the environments and end the referee's thread. The sandbox is shared and stays."""
        for vector in self._vectors:
            vector.close()
        self.referee.close()

    def _new_env(self) -> Any:
        made = self._creator(dict(self._arguments))
        if not isinstance(getattr(made, "unwrapped", None), GroupEnv):
            raise UserError(f"environment: {self._name!r} makes a {type(made).__name__}, which is no group environment")
        return made
