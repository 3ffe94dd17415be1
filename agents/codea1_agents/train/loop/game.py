"""Reads the settings of a run's game and checks that there is such a game. Needs neither Ray nor torch."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from codea1_agents.prompts import load_prompts
from codea1_agents.scripted.signatures import interface_of_problem
from codea1_agents.scripted.testers import InputTester
from codea1_agents.train.settings.modules import models_of
from codea1_agents.train.settings.options import RULE_PARTS, GameOptions, TrainingConfig
from codea1_env.errors import UnknownName, UserError
from codea1_env.plugins import resolve
from codea1_env.problems import ProblemSet, load_problems
from codea1_env.rounds.rounds import require_golden_tests
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.sandbox import Limits, require_sandbox

_D = TypeVar("_D")


def require_game(config: TrainingConfig) -> None:
    """Check rules, limits, sandbox, wording and problems; problems that the settings do not name are not checked.

    Raises:
        UserError: one of them does not exist or cannot be read, the rules pay for golden tests that problems lack,
            or the tester draws inputs and cannot tell how problems are called.
    """
    rules = rules_of(config.game)
    limits_of(config.game)
    require_sandbox(config.game.sandbox)
    load_prompts(config.rollout.prompts)
    if config.game.problems:
        problems = load_problems(config.game.problems)
        require_golden_tests(problems, rules)
        _require_inputs(config.agents.tester.agent, problems)
    if config.evaluation.problems:
        load_problems(config.evaluation.problems)


def _require_inputs(tester: str, problems: ProblemSet) -> None:
    """Raise UserError if a tester that generates inputs cannot tell how some of the problems are called."""
    agent = resolve("agents", tester.partition(",")[0]) if tester else None
    if not (inspect.isclass(agent) and issubclass(agent, InputTester)):
        return
    unknown = [each.id for each in problems if interface_of_problem(each) is None]
    if unknown:
        raise UserError(
            f"agents.tester.agent: {tester} draws inputs like those of a signature or of examples, which"
            f" {len(unknown)} of {len(problems)} problems lack, e.g. {unknown[0]}"
        )


def lone_groups(config: TrainingConfig) -> Iterator[str]:
    """Yield a sentence for each role that learns nothing because its groups have one member."""
    models = models_of(config)
    sizes = (("coder", "n_candidates", "candidate"), ("tester", "n_suites", "suite"))
    for role, setting, member in sizes:
        module = role if role in models else "shared"
        learns = module in models and not getattr(config.agents, module).frozen
        is_alone = getattr(config.rollout, setting) == 1
        if learns and is_alone and (role == "coder" or config.training.credit == "reply"):
            yield f"rollout.{setting} is 1: a group of one {member} has no advantage, so the {role} learns nothing"


def rules_of(game: GameOptions) -> Ruleset:
    """Return the rules of the setting's name, with the parts that the settings replace.

    Raises:
        UserError: the rules or a part are unknown, or a value is wrong.
    """
    changes = {name: value for name in RULE_PARTS if (value := getattr(game, name)) is not None}
    return _varied(preset(game.rules), changes, "game")


def limits_of(game: GameOptions) -> Limits | None:
    """Return the limits per call of a program; None: the settings have none.

    Raises:
        UserError: a limit is unknown, or its value is wrong.
    """
    return _varied(Limits(), game.limits, "game.limits") if game.limits else None


def _varied(value: _D, changes: Mapping[str, Any], path: str) -> _D:
    """Return a dataclass with some fields replaced, including fields of its parts.

    Raises:
        UserError: a field is unknown, or its value is wrong.
    """
    known = {each.name: getattr(value, each.name) for each in fields(value)}  # type: ignore[arg-type]  # a dataclass
    for name in changes:
        if name not in known:
            raise UnknownName.of("setting", f"{path}.{name}", [f"{path}.{each}" for each in known])
    for name, new in changes.items():
        is_part = is_dataclass(known[name]) and isinstance(new, Mapping)
        known[name] = _varied(known[name], new, f"{path}.{name}") if is_part else new
    return replace(value, **known)  # type: ignore[type-var]
