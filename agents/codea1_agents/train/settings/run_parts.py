"""The parts of a run that its settings name: language models with their lengths, rules, limits, problems.

It checks that there are such parts, and needs neither Ray nor torch.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Literal, TypeVar

from codea1_agents.models.model_files import require_model
from codea1_agents.prompts import load_prompts
from codea1_agents.scripted.signatures import interface_of_problem
from codea1_agents.scripted.testers import InputTester
from codea1_agents.train.declared import values_of
from codea1_agents.train.grpo.hyperparameters import LengthSettings, require_groups
from codea1_agents.train.grpo.settings import (
    LoraSettings,
    ModelOptions,
    ModelSettings,
    require_adaptable,
    require_one_base,
)
from codea1_agents.train.settings.options import RULE_PARTS, AgentOptions, GameOptions, TrainingConfig
from codea1_env.agent import Role
from codea1_env.errors import BrokenInput, UnknownName, UserError
from codea1_env.plugins import resolve
from codea1_env.problems import load_problems
from codea1_env.rounds.rounds import require_golden_tests
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.sandbox import Limits, require_sandbox

ROLES: tuple[Role, ...] = ("coder", "tester")
_D = TypeVar("_D")


def models_of(config: TrainingConfig) -> dict[str, ModelSettings]:
    """Return the language models by module: `coder` and `tester`, or `shared`.

    Raises:
        UserError: a role has both a model and an agent, a shared model or a base comes with another player, a path
            holds no model, or a model has no such layers to adapt.
    """
    agents, usual = config.agents, AgentOptions()
    for each in fields(AgentOptions) if not agents.shared.model else ():  # lengths are also those of the roles
        is_of_model = each.name != "agent" and not each.name.startswith("max_")
        if is_of_model and getattr(agents.shared, each.name) != getattr(usual, each.name):
            raise UserError(f"agents.shared.{each.name}: there is no agents.shared.model, so it would change nothing")
    for role in (*ROLES, "shared") if agents.base else ():
        if getattr(agents, role).model:
            instead = "set agents.coder.lora and agents.tester.lora"
            raise UserError(f"agents.{role}.model: agents.base is the model of both roles; {instead}")
    models = {module: model for module in (*ROLES, "shared") if (model := _model_settings(config, module))}
    if agents.base and not models:
        raise UserError("agents.base is the model of the coder and the tester, and agents play both")
    require_one_base(models)
    require_adaptable(models)
    if agents.shared.agent:
        raise UserError("agents.shared.agent: agents that do not learn are set per role")
    for role in ROLES if "shared" in models else ():
        if role in models or getattr(agents, role).agent:
            raise UserError(f"agents.{role}: agents.shared.model plays both roles")
    return models


def _model_settings(config: TrainingConfig, module: str) -> ModelSettings | None:
    options: AgentOptions = getattr(config.agents, module)
    if options.model and options.agent:
        raise UserError(f"agents.{module}: either model or agent, not both")
    path, key = config.agents.model_of(module), config.agents.key_of(module)
    if not path:
        return None
    try:
        require_model(key.removesuffix(".model"), path, is_trained=True)
    except UserError as error:
        command = "sft" if path.endswith("-sft-tester") else "pretrain"
        hint = f"; docs/coevolution.md: how to make one with codea1 {command}" if path.startswith("models/tiny") else ""
        if path == "models/tiny":  # as a preset names it
            hint = "; make it with: codea1 pretrain -o models/tiny"
        raise BrokenInput(f"{key}: {error}{hint}") from error
    values = values_of(options, ModelOptions)
    if config.agents.base:
        values |= {"lora": options.lora or LoraSettings(), "shares_base": True}
    return ModelSettings(path=path, **values)


def longest(config: TrainingConfig, role: str, setting: Literal["max_tokens", "max_prompt_tokens"]) -> int:
    """Return a length of a role: its own, that of the shared model, or the default."""
    for options in (getattr(config.agents, role), config.agents.shared):
        if (length := getattr(options, setting)) is not None:
            return int(length)
    return int(getattr(LengthSettings(), setting)[role])


def require_game(config: TrainingConfig) -> None:
    """Check rules, limits, sandbox, wording and problems; problems that the settings do not name are not checked.

    Raises:
        UserError: one of them does not exist or cannot be read, the rules pay for golden tests that problems lack,
            or the tester draws inputs and cannot tell how problems are called.
    """
    rules = rules_of(config.game)
    models = models_of(config)
    modules = {role: role if role in models else "shared" for role in ROLES}
    learning = [role for role, name in modules.items() if name in models and not getattr(config.agents, name).frozen]
    require_groups(learning, config.rollout.n_candidates, config.rollout.n_suites, config.training.credit)
    limits_of(config.game)
    require_sandbox(config.game.sandbox)
    load_prompts(config.rollout.prompts)
    if config.game.problems:
        problems, tester = load_problems(config.game.problems), config.agents.tester.agent
        require_golden_tests(problems, rules)
        agent = resolve("agents", tester.partition(",")[0]) if tester else None
        draws_inputs = inspect.isclass(agent) and issubclass(agent, InputTester)
        unknown = [each.id for each in problems if interface_of_problem(each) is None] if draws_inputs else []
        if unknown:
            raise UserError(
                f"agents.tester.agent: {tester} draws inputs like those of a signature or of examples, which"
                f" {len(unknown)} of {len(problems)} problems lack, e.g. {unknown[0]}"
            )
    if config.evaluation.problems:
        load_problems(config.evaluation.problems)


def rules_of(game: GameOptions) -> Ruleset:
    """Return the rules of the setting's name, with the parts that the settings replace.

    Raises:
        UserError: the rules or a part are unknown, or a value is wrong.
    """
    changes = {name: value for name in RULE_PARTS if (value := getattr(game, name)) is not None}
    return _vary(preset(game.rules), changes, "game")


def limits_of(game: GameOptions) -> Limits | None:
    """Return the limits per call of a program; None: the settings have none.

    Raises:
        UserError: a limit is unknown, or its value is wrong.
    """
    return _vary(Limits(), game.limits, "game.limits") if game.limits else None


def _vary(value: _D, changes: Mapping[str, Any], path: str) -> _D:
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
        known[name] = _vary(known[name], new, f"{path}.{name}") if is_part else new
    return replace(value, **known)  # type: ignore[type-var]
