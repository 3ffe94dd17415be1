"""The modules of a run, from its settings: which language model plays which role, and with what lengths."""

from __future__ import annotations

from dataclasses import fields
from typing import Literal

from codea1_agents.models.model_files import require_model
from codea1_agents.train.declared import values_of
from codea1_agents.train.grpo.hyperparameters import LengthSettings
from codea1_agents.train.grpo.settings import (
    LoraSettings,
    ModelOptions,
    ModelSettings,
    require_adaptable,
    require_one_base,
)
from codea1_agents.train.settings.options import AgentOptions, TrainingConfig
from codea1_env.agent import Role
from codea1_env.errors import BrokenInput, UserError

ROLES: tuple[Role, ...] = ("coder", "tester")


def models_of(config: TrainingConfig) -> dict[str, ModelSettings]:
    """Return the language models by module: `coder` and `tester`, or `shared`.

    Raises:
        UserError: a role has both a model and an agent, a shared model or a base comes with another player, a path
            holds no model, or a model has no such layers to adapt.
    """
    agents, roles = config.agents, "set agents.coder.lora and agents.tester.lora"
    if not agents.shared.model and (changed := _changed_options(agents.shared)):
        raise UserError(f"agents.shared.{changed[0]}: there is no agents.shared.model, so it would change nothing")
    if agents.base and (named := [role for role in (*ROLES, "shared") if getattr(agents, role).model]):
        raise UserError(f"agents.{named[0]}.model: agents.base is the model of both roles; {roles}")
    found = {module: model for module in (*ROLES, "shared") if (model := _model_settings(config, module))}
    if agents.base and not found:
        raise UserError("agents.base is the model of the coder and the tester, and agents play both")
    require_one_base(found)
    require_adaptable(found)
    if config.agents.shared.agent:
        raise UserError("agents.shared.agent: agents that do not learn are set per role")
    if "shared" in found:
        for role in ROLES:
            if role in found or getattr(config.agents, role).agent:
                raise UserError(f"agents.{role}: agents.shared.model plays both roles")
    return found


def _changed_options(options: AgentOptions) -> list[str]:
    """Return the names of the options of a model that are not the defaults. Lengths are also those of the roles."""
    usual = AgentOptions()
    names = (each.name for each in fields(AgentOptions) if not each.name.startswith("max_"))
    return [name for name in names if name != "agent" and getattr(options, name) != getattr(usual, name)]


def _model_settings(config: TrainingConfig, module: str) -> ModelSettings | None:
    options: AgentOptions = getattr(config.agents, module)
    if options.model and options.agent:
        raise UserError(f"agents.{module}: either model or agent, not both")
    path = config.agents.model_of(module)
    if not path:
        return None
    _require_model(config.agents.key_of(module), path)
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


def _require_model(key: str, model: str) -> None:
    try:
        require_model(key.removesuffix(".model"), model, is_trained=True)
    except UserError as error:
        raise BrokenInput(f"{key}: {error}{_how_to_make(model)}") from error


def _how_to_make(model: str) -> str:
    """Return how to make a tiny model that a preset names."""
    if model == "models/tiny":
        return "; make it with: codea1 pretrain -o models/tiny"
    command = "sft" if model.endswith("-sft-tester") else "pretrain"
    return f"; docs/coevolution.md: how to make one with codea1 {command}" if model.startswith("models/tiny") else ""
