"""From the settings of a run to RLlib's configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from codea1_agents.models.model_files import require_model
from codea1_agents.prompts import load_prompts
from codea1_agents.train.grpo.algorithm import GRPOConfig
from codea1_agents.train.grpo.model_settings import LoraSettings, ModelSettings
from codea1_agents.train.loop.options import AgentOptions, GameOptions, TrainingConfig
from codea1_env.errors import BrokenInput, UnknownName, UserError
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.runs.records import first_fault
from codea1_env.sandbox import Limits

_ROLES = ("coder", "tester")
_LONGEST_REPLY = 4096
_LONGEST_PROMPT = {"coder": 4096, "tester": 8192}

_D = TypeVar("_D")


def grpo_config(config: TrainingConfig) -> GRPOConfig:
    """Return RLlib's configuration of a run, checked.

    Raises:
        UserError: settings that make no run, with the key's path.
    """
    if not config.game.problems:
        raise UserError("game.problems: name the problems to train on, e.g. --set game.problems=humaneval")
    models = models_of(config)
    _require_players(config, models)
    load_prompts(config.rollout.prompts)  # a wrong name is found here, and not once Ray has been started
    rollout, update, cluster = config.rollout, config.training, config.cluster
    made = (
        GRPOConfig()
        .environment(
            rules=rules_of(config.game),
            tester_view=config.game.tester_view,
            sandbox=config.game.sandbox,
            limits=limits_of(config.game),
        )
        .problems(config.game.problems)
        .llm_agents(
            coder=models.get("coder", ""),
            tester=models.get("tester", ""),
            shared=models.get("shared", ""),
            frozen=[module for module in models if getattr(config.agents, module).frozen],
            prompts=rollout.prompts,
        )
        .agents(**{role: agent for role in _ROLES if (agent := getattr(config.agents, role).agent)})
        .training(
            **rollout.model_dump(exclude={"prompts"}),
            **update.model_dump(exclude={"lr_schedule"}),
            total_steps=config.run.steps if update.lr_schedule == "cosine" else None,
            max_tokens={role: _length(config, role) for role in _ROLES},
            max_prompt_tokens={role: _prompt_length(config, role) for role in _ROLES},
            lr_by_module={module: lr for module in models if (lr := getattr(config.agents, module).lr) is not None},
        )
        .env_runners(
            num_env_runners=cluster.env_runners,
            num_cpus_per_env_runner=cluster.cpus_per_env_runner,
            num_gpus_per_env_runner=cluster.gpus_per_env_runner,
        )
        .learners(
            num_learners=cluster.learners,
            num_cpus_per_learner=cluster.cpus_per_learner,
            num_gpus_per_learner=cluster.gpus_per_learner,
        )
        .fault_tolerance(restart_failed_env_runners=cluster.restart_lost)
        .debugging(seed=config.run.seed, log_level="ERROR")
    )
    try:
        made.validate()
    except UserError:
        raise
    except ValueError as error:  # RLlib's own, and those of the parts
        raise UserError(str(error)) from error
    return made  # type: ignore[no-any-return]  # Ray has no types


def rules_of(game: GameOptions) -> Ruleset:
    """Return the preset of the rules with what replaces parts of it.

    Raises:
        UserError: no such preset or part, or a value that it cannot have.
    """
    parts = ("tests_per_suite", "reading", "max_program_bytes", "validation", "confirm", "reward", "book", "comparison")
    told = {name: getattr(game, name) for name in parts if getattr(game, name) not in (None, {})}
    return _varied(preset(game.rules), told, "game")


def limits_of(game: GameOptions) -> Limits | None:
    """Return the bounds per call of a program; None: none were set.

    Raises:
        UserError: no such bound, or a value that it cannot have.
    """
    return _varied(Limits(), game.limits, "game.limits") if game.limits else None


def models_of(config: TrainingConfig) -> dict[str, ModelSettings]:
    """Return the language models by module: `coder` and `tester`, or `shared`.

    Raises:
        UserError: a seat with both a model and an agent, a shared model beside another, or a path that holds no model.
    """
    found = {}
    for seat in (*_ROLES, "shared"):
        options: AgentOptions = getattr(config.agents, seat)
        if options.model and options.agent:
            raise UserError(f"agents.{seat}: either model or agent, not both")
        if options.model:
            _require_model(f"agents.{seat}", options.model)
            found[seat] = _model_settings(options)
    if config.agents.shared.agent:
        raise UserError("agents.shared.agent: agents that do not learn are set per role")
    if "shared" in found:
        for role in _ROLES:
            if role in found or getattr(config.agents, role).agent:
                raise UserError(f"agents.{role}: agents.shared.model plays both roles")
    return found


def _require_players(config: TrainingConfig, models: Mapping[str, ModelSettings]) -> None:
    pays_tester = rules_of(config.game).reward.pays_tester
    for role in ("coder", "tester") if pays_tester else ("coder",):
        if not {role, "shared"} & set(models) and not getattr(config.agents, role).agent:
            raise UserError(f"nobody plays the {role}: set agents.{role}.model or agents.{role}.agent")


def _require_model(seat: str, model: str) -> None:
    try:
        require_model(seat, model)
    except UserError as error:
        command = "sft-tester" if model.endswith("-sft-tester") else "pretrain"
        hint = f"; docs/coevolution.md: how to make one with codea1 {command}"
        made = hint if model.startswith("models/tiny") else ""
        raise BrokenInput(f"{seat}.model: {error}{made}") from error


def _model_settings(options: AgentOptions) -> ModelSettings:
    names = ({each.name for each in fields(ModelSettings)} & set(AgentOptions.model_fields)) - {"lora"}
    lora = None if options.lora is None else LoraSettings(**options.lora.model_dump(exclude_none=True))
    return ModelSettings(path=options.model, lora=lora, **{name: getattr(options, name) for name in sorted(names)})


def _length(config: TrainingConfig, role: str) -> int:
    own: AgentOptions = getattr(config.agents, role)
    return own.max_tokens or config.agents.shared.max_tokens or _LONGEST_REPLY


def _prompt_length(config: TrainingConfig, role: str) -> int:
    own: AgentOptions = getattr(config.agents, role)
    return own.max_prompt_tokens or config.agents.shared.max_prompt_tokens or _LONGEST_PROMPT[role]


def _varied(value: _D, told: Mapping[str, Any], path: str) -> _D:
    """Return a dataclass with some of its fields replaced, also in its parts.

    Raises:
        UserError: no such field, or a value that it cannot have.
    """
    merged = _replaced(value, told, path)
    try:
        return TypeAdapter(type(value)).validate_json(json.dumps(merged), strict=True)
    except ValidationError as error:
        said = f"{path}.{first_fault(error)}".replace(".the whole: ", ": ").replace(": Value error, ", ": ")
        raise UserError(said) from error


def _replaced(value: Any, told: Mapping[str, Any], path: str) -> dict[str, Any]:
    merged: dict[str, Any] = asdict(value)
    for name, new in told.items():
        if name not in merged:
            raise UnknownName.of("setting", f"{path}.{name}", [f"{path}.{each}" for each in merged])
        own = getattr(value, name)
        merged[name] = _replaced(own, new, f"{path}.{name}") if is_dataclass(own) else new
    return merged
