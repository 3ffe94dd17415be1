"""RLlib's `policy_mapping_fn` for a group environment: which module plays which agent, by role."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from codea1_env.errors import UserError
from codea1_env.group_env import coder_name, tester_name

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
    found = {}
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
                found[role] = module
            elif module != role:
                raise UserError(f"policy_mapping_fn: {role}s are {module!r}; modules are {', '.join(sorted(modules))}")
    return found
