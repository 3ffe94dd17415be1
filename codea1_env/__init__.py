"""A two-agent environment in which a coder and a tester co-evolve (Code-A1, arXiv 2603.15611).

The import registers `codea1/Coder-v0` and `codea1/Tester-v0` with Gymnasium, and `codea1/code_a1-v0` and
`codea1/bank-v0` with PettingZoo (from 1.27 on). The game is `codea1_env.code_a1_v0`; in `codea1_env.bank_v0` the
actions are numbers instead of texts.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import gymnasium
import pettingzoo

if TYPE_CHECKING:  # for editors and type checkers; at run time `__getattr__` imports them
    from codea1_env import bank_v0 as bank_v0
    from codea1_env import code_a1_v0 as code_a1_v0
    from codea1_env import gymnasium_views as gymnasium_views
    from codea1_env.agent import Agent as Agent
    from codea1_env.agent import AgentContext as AgentContext
    from codea1_env.agent import load_agent as load_agent
    from codea1_env.book import MistakeBook as MistakeBook
    from codea1_env.group_env import GroupVector as GroupVector
    from codea1_env.judging.judge import Duel as Duel
    from codea1_env.judging.judge import Judge as Judge
    from codea1_env.problems import Problem as Problem
    from codea1_env.problems import ProblemSet as ProblemSet
    from codea1_env.problems import load_problems as load_problems
    from codea1_env.rounds.referee import Referee as Referee
    from codea1_env.rounds.referee import judge as judge
    from codea1_env.rounds.rounds import Tree as Tree
    from codea1_env.rules.rewards import score as score
    from codea1_env.rules.rewards import score_group as score_group
    from codea1_env.rules.ruleset import Ruleset as Ruleset
    from codea1_env.rules.ruleset import preset as preset
    from codea1_env.sandbox import Limits as Limits

__version__ = "0.1.0"

_NAMES = {
    "agent": ("Agent", "AgentContext", "load_agent"),
    "book": ("MistakeBook",),
    "group_env": ("GroupVector",),
    "judging.judge": ("Duel", "Judge"),
    "problems": ("Problem", "ProblemSet", "load_problems"),
    "rounds.referee": ("Referee", "judge"),
    "rounds.rounds": ("Tree",),
    "rules.rewards": ("score", "score_group"),
    "rules.ruleset": ("Ruleset", "preset"),
    "sandbox": ("Limits",),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}
_MODULES = ("bank_v0", "code_a1_v0", "gymnasium_views")

__all__ = sorted(("__version__", *_MODULE_OF, *_MODULES))

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import public names on first use, so that importing the package is fast."""
        if name in _MODULE_OF:
            return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


_VIEWS = {
    "codea1/Coder-v0": "gymnasium_views:CoderEnv",
    "codea1/Tester-v0": "gymnasium_views:TesterEnv",
}
_GAMES = {"codea1/code_a1-v0": "code_a1_v0", "codea1/bank-v0": "bank_v0"}


def _register() -> None:
    for view, path in _VIEWS.items():
        if view not in gymnasium.registry:
            gymnasium.register(view, entry_point=f"codea1_env.{path}")
    # PettingZoo has registries only from 1.27 on.
    for kind, factory in (("aec", "env"), ("parallel", "parallel_env")):
        registry = getattr(pettingzoo, f"{kind}_registry", _GAMES)
        for game, module in _GAMES.items():
            if game not in registry:
                pettingzoo.register(kind, game, entry_point=f"codea1_env.{module}:{factory}")


_register()
