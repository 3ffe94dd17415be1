"""Turns the settings of a run into RLlib's configuration."""

from __future__ import annotations

from collections.abc import Collection

import torch

from codea1_agents.models.chat_format import load_chat_format
from codea1_agents.train.declared import values_of
from codea1_agents.train.grpo.algorithm import GRPOConfig
from codea1_agents.train.grpo.causal_models import adapted, empty_causal_model
from codea1_agents.train.grpo.hyperparameters import LearnerSettings, RolloutSettings, UpdateSettings
from codea1_agents.train.grpo.settings import ModelSettings
from codea1_agents.train.loop.held_out import HeldOut
from codea1_agents.train.settings.options import TrainingConfig
from codea1_agents.train.settings.run_parts import ROLES, limits_of, longest, models_of, require_game, rules_of
from codea1_env.errors import UserError


def grpo_config(config: TrainingConfig) -> GRPOConfig:
    """Return RLlib's configuration of a run, after checking it.

    Raises:
        UserError: settings that make no run; it names the key.
    """
    if not config.game.problems:
        raise UserError("game.problems: name the problems to train on, e.g. --set game.problems=humaneval")
    models = models_of(config)
    rules = rules_of(config.game)
    for role in ROLES if rules.reward.pays_tester else ("coder",):
        if not {role, "shared"} & set(models) and not getattr(config.agents, role).agent:
            raise UserError(f"nobody plays the {role}: set agents.{role}.model or agents.{role}.agent")
    require_game(config)
    cluster = config.cluster
    made = (
        GRPOConfig()
        .environment(
            rules=rules,
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
            prompts=config.rollout.prompts,
        )
        .agents(**{role: agent for role in ROLES if (agent := getattr(config.agents, role).agent)})
        .training(
            **values_of(config.rollout, RolloutSettings),
            **values_of(config.training, UpdateSettings),
            total_steps=config.run.steps if config.training.lr_schedule == "cosine" else None,
            max_tokens={role: longest(config, role, "max_tokens") for role in ROLES},
            max_prompt_tokens={role: longest(config, role, "max_prompt_tokens") for role in ROLES},
            lr_by_module={name: lr for name in models if (lr := getattr(config.agents, name).lr) is not None},
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
            **values_of(cluster, LearnerSettings),
        )
        .evaluation(custom_evaluation_function=HeldOut(config.evaluation))
        .fault_tolerance(restart_failed_env_runners=cluster.restart_lost)
        .debugging(seed=config.run.seed)
    )
    try:
        made.validate()
    except UserError:
        raise
    except ValueError as error:  # from RLlib, and from the dataclasses of settings
        raise UserError(str(error)) from error
    return made  # type: ignore[no-any-return]  # Ray has no types


def require_loadable(models: Collection[ModelSettings]) -> None:
    """Check what shows without weights: tokenizers, chat templates, and that each layer named for an adapter gets one.

    Args:
        models: the run's models.

    Raises:
        UserError: a tokenizer cannot be loaded, a chat template fails, or a layer gets no adapter.
    """
    for path in dict.fromkeys(each.path for each in models):
        load_chat_format(path)
    with torch.device("meta"):
        for path, lora in dict.fromkeys((each.path, each.lora) for each in models):
            if lora is not None:
                adapted(empty_causal_model(path), lora)
