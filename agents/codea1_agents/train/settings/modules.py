"""The modules of a run, from its settings: which language model plays which role, and with what lengths."""

from __future__ import annotations

from typing import Literal

from codea1_agents.models.model_files import require_model
from codea1_agents.train.declared import values_of
from codea1_agents.train.grpo.hyperparameters import LengthSettings
from codea1_agents.train.grpo.settings import ModelOptions, ModelSettings
from codea1_agents.train.settings.options import AgentOptions, TrainingConfig
from codea1_env.agent import Role
from codea1_env.errors import BrokenInput, UserError

ROLES: tuple[Role, ...] = ("coder", "tester")


def models_of(config: TrainingConfig) -> dict[str, ModelSettings]:
    """Return the language models by module: `coder` and `tester`, or `shared`.

    Raises:
        UserError: a role has both a model and an agent, a shared model comes with another player, or a path holds no
            model.
    """
    found = {}
    for module in (*ROLES, "shared"):
        options: AgentOptions = getattr(config.agents, module)
        if options.model and options.agent:
            raise UserError(f"agents.{module}: either model or agent, not both")
        if options.model:
            _require_model(f"agents.{module}", options.model)
            found[module] = ModelSettings(path=options.model, **values_of(options, ModelOptions))
    if config.agents.shared.agent:
        raise UserError("agents.shared.agent: agents that do not learn are set per role")
    if "shared" in found:
        for role in ROLES:
            if role in found or getattr(config.agents, role).agent:
                raise UserError(f"agents.{role}: agents.shared.model plays both roles")
    return found


def longest(config: TrainingConfig, role: str, setting: Literal["max_tokens", "max_prompt_tokens"]) -> int:
    """Return a length of a role: its own, that of the shared model, or the default."""
    for options in (getattr(config.agents, role), config.agents.shared):
        if (length := getattr(options, setting)) is not None:
            return int(length)
    return int(getattr(LengthSettings(), setting)[role])


def _require_model(table: str, model: str) -> None:
    try:
        require_model(table, model)
    except UserError as error:
        raise BrokenInput(f"{table}.model: {error}{_how_to_make(model)}") from error


def _how_to_make(model: str) -> str:
    """Return how to make a tiny model that a preset names."""
    if model == "models/tiny":
        return "; make it with: codea1 pretrain -o models/tiny"
    command = "sft" if model.endswith("-sft-tester") else "pretrain"
    return f"; docs/coevolution.md: how to make one with codea1 {command}" if model.startswith("models/tiny") else ""
