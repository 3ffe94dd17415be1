"""`policy_mapping_fn`: which module plays which agent of a group environment. It goes by role."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from codea1_env.errors import UserError
from codea1_env.group_env import coder_name, tester_name

Mapper = Callable[..., str]
"""From an agent's name and RLlib's episode (here None, since nothing may depend on it) to a module's id."""


@dataclass(frozen=True)
class ByRole:
    """The default: `coder_*` is played by one module, `tester_*` by one; the same or another."""

    modules: Mapping[str, str] = field(default_factory=dict)
    """By role; a role that is missing is played by the module of its own name."""

    def __call__(self, agent_id: str, *_: Any, **__: Any) -> str:
        """Return the module of an agent."""
        role = agent_id.partition("_")[0]
        return self.modules.get(role, role)


def modules_by_role(mapper: Mapper, modules: Collection[str], n_candidates: int, n_suites: int) -> dict[str, str]:
    """Return which module plays each role; roles that none plays are missing.

    Args:
        mapper: asked about every agent.
        modules: all there are.
        n_candidates: N of the groups.
        n_suites: M of each group of suites.

    Raises:
        UserError: agents of one role are given to several modules, or one to a module that is none.
    """
    agents = {
        "coder": [coder_name(n) for n in range(max(1, n_candidates))],
        "tester": [tester_name(g, m) for g in range(n_candidates) for m in range(max(1, n_suites))],
    }
    found = {}
    for role, names in agents.items():
        chosen = {mapper(name, None): name for name in reversed(names)}
        if len(chosen) > 1:
            (one, first), (other, second) = sorted(chosen.items(), key=lambda each: names.index(each[1]))[:2]
            raise UserError(
                f"policy_mapping_fn: {first} is {one!r} and {second} is {other!r}; an advantage compares replies of a "
                f"group, so all its agents must be one module: map by role"
            )
        for module in chosen:
            if module in modules:
                found[role] = module
            elif module != role:
                raise UserError(f"policy_mapping_fn: {role}s are {module!r}; modules are {', '.join(sorted(modules))}")
    return found
