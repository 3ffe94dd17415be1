"""A two-agent environment in which a coder and a tester co-evolve (Code-A1, arXiv 2603.15611).

Importing it registers `codea1/Coder-v0` and `codea1/Tester-v0` with Gymnasium and `codea1/code_a1-v0` with PettingZoo
(from 1.27 on). The game itself is `codea1_env.code_a1_v0`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import gymnasium
import pettingzoo

if TYPE_CHECKING:  # what `__getattr__` gives at run time, for editors and type checkers
    from codea1_env import code_a1_v0, gymnasium_views
    from codea1_env.agent import Agent, AgentContext, load_agent
    from codea1_env.book import MistakeBook
    from codea1_env.gymnasium_views import make_vec
    from codea1_env.judge import Duel, Judge
    from codea1_env.problems import Problem, ProblemSet, load_problems
    from codea1_env.rules.rewards import score
    from codea1_env.rules.ruleset import Ruleset, preset
    from codea1_env.sandbox import Limits

__version__ = "0.1.0"

_HOMES = {
    "Agent": "agent",
    "AgentContext": "agent",
    "Duel": "judge",
    "Judge": "judge",
    "Limits": "sandbox",
    "MistakeBook": "book",
    "Problem": "problems",
    "ProblemSet": "problems",
    "Ruleset": "rules.ruleset",
    "load_agent": "agent",
    "load_problems": "problems",
    "make_vec": "gymnasium_views",
    "preset": "rules.ruleset",
    "score": "rules.rewards",
}
_MODULES = ("code_a1_v0", "gymnasium_views")

__all__ = [
    "Agent",
    "AgentContext",
    "Duel",
    "Judge",
    "Limits",
    "MistakeBook",
    "Problem",
    "ProblemSet",
    "Ruleset",
    "__version__",
    "code_a1_v0",
    "gymnasium_views",
    "load_agent",
    "load_problems",
    "make_vec",
    "preset",
    "score",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import public names on first use, so that the import itself stays light."""
        if name in _HOMES:
            return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)


def _register() -> None:
    for view, home in (("codea1/Coder-v0", "CoderEnv"), ("codea1/Tester-v0", "TesterEnv")):
        if view not in gymnasium.registry:
            gymnasium.register(view, entry_point=f"codea1_env.gymnasium_views:{home}")
    # PettingZoo has registries only from 1.27 on.
    for kind, factory in (("aec", "env"), ("parallel", "parallel_env")):
        if "codea1/code_a1-v0" not in getattr(pettingzoo, f"{kind}_registry", {"codea1/code_a1-v0"}):
            pettingzoo.register(kind, "codea1/code_a1-v0", entry_point=f"codea1_env.code_a1_v0:{factory}")


_register()
