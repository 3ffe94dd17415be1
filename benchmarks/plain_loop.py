"""The training of Code-A1 as a plain loop, without actors, messages or checkpoints. See training_loop.py."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from codea1_agents.models.chat_format import ChatFormat, load_tokenizer
from codea1_agents.models.sampling import SamplingRules
from codea1_agents.prompts import load_prompts
from codea1_agents.train.grpo import GRPOConfig
from codea1_agents.train.grpo.batch import Budget, ScoredResponse, micro_batches, padded_batch, planned, shards
from codea1_agents.train.grpo.learner import batch_loss, lr_factor
from codea1_agents.train.grpo.rl_module import CausalLMModule
from codea1_agents.train.grpo.rollout import GroupEnvs, ModelPlayer, RolledTree, Task, TreeRoller
from codea1_agents.train.grpo.sampling import TransformersEngine
from codea1_env.book.store import MistakeBook
from codea1_env.problems import load_problems
from codea1_env.rules.mistake_book import Provenance
from codea1_env.rules.ruleset import preset


def config_of(options: argparse.Namespace) -> GRPOConfig:
    """Return the settings of both arms."""
    config: GRPOConfig = (
        GRPOConfig()
        .environment(rules=replace(preset("fixed"), tests_per_suite=options.tests))
        .problems(options.problems)
        .llm_agents(coder=options.model, tester=options.model, prompts=options.prompts)
        .training(
            lr=1e-3,
            weight_decay=0.0,
            warmup_steps=5,
            n_candidates=8,
            n_suites=4,
            n_kept=2,
            problems_per_step=options.problems_per_step,
            minibatches_per_epoch=1,
            micro_batch_size=0,
            sampling_batch_size=256,
            max_tokens={"coder": options.coder_tokens, "tester": options.tester_tokens},
        )
        .env_runners(num_env_runners=options.runners)
        .debugging(seed=options.seed)
    )
    config.validate()
    return config


class PlainLoop:
    """The training of a configuration, without running RLlib."""

    def __init__(self, config: GRPOConfig) -> None:
        self.config, self.settings = config, config.settings()
        self.problems = load_problems(self.settings.problems)
        self.modules = {
            role: CausalLMModule(model_config=model.to_dict()) for role, model in self.settings.models.items()
        }
        self.optimizers = {
            role: torch.optim.AdamW(
                [each for each in module.parameters() if each.requires_grad],
                betas=(0.9, 0.999),
                weight_decay=config.weight_decay,
            )
            for role, module in self.modules.items()
        }
        self.book = MistakeBook(None)
        envs = GroupEnvs(
            config.env,
            config.env_config,
            problems=self.problems,
            rules=self.settings.rules,
            shape=self.settings.rollout,
            settings=self.settings,
        )
        players = {role: self._player(role) for role in self.modules}
        self.roller = TreeRoller(envs, players, seed=self.settings.seed)
        self.n_updates = 0

    def _player(self, role: str) -> Any:
        settings, model = self.settings, self.modules[role].model
        path = settings.models[role].path
        tokenizer = load_tokenizer(path)
        of_model = model.generation_config.eos_token_id
        ends = {tokenizer.eos_token_id, *(of_model if isinstance(of_model, list) else [of_model])} - {None}
        sampling = SamplingRules(
            settings.lengths.max_tokens[role],
            settings.rollout.temperature,
            micro_batch_size=settings.rollout.sampling_batch_size,
        )
        return ModelPlayer(
            TransformersEngine(model),
            ChatFormat(tokenizer, path),
            sorted(ends),
            load_prompts(settings.prompts),
            sampling,
            settings.lengths.max_prompt_tokens[role],
        )

    def step(self, number: int) -> Sequence[RolledTree]:
        """Run one step."""
        trees = self.roller.roll([self._task(each) for each in self._numbers(number)]).trees
        for tree in trees:
            if tree.judged.book_report is not None:
                self.book.record(tree.judged.book_report, self.settings.rules.book, Provenance(run="plain"))
        responses = [each for tree in trees for each in tree.trained_responses(self.settings)]
        if responses:
            plan = planned(responses, self.config.minibatches_per_epoch, (self.settings.seed, number))
            (batch,) = shards(plan, 1)
            for role in sorted({each.module for each in batch}):
                self._learn(role, [each for each in batch if each.module == role])
            self.n_updates += 1
        return trees

    def _numbers(self, step: int) -> range:
        return range(step * self.config.problems_per_step, (step + 1) * self.config.problems_per_step)

    def _task(self, number: int) -> Task:
        epoch, place = divmod(number, len(self.problems))
        order = np.random.default_rng([self.settings.seed, epoch]).permutation(len(self.problems))
        problem = self.problems[int(order[place])]
        entries = self.book.retrieve(problem.id, self.settings.rules.book)
        return Task(number, problem.id, tuple(entry.to_valid_case() for entry in entries))

    def _learn(self, role: str, responses: Sequence[ScoredResponse]) -> None:
        config, module, optimizer = self.config, self.modules[role], self.optimizers[role]
        factor = lr_factor(self.n_updates, warmup_steps=config.warmup_steps, total_steps=config.total_steps)
        for group in optimizer.param_groups:
            group["lr"] = config.lr * factor
        optimizer.zero_grad(set_to_none=True)
        budget = Budget(config.micro_batch_size, config.micro_batch_tokens, module.computes_prompts_once)
        for piece in micro_batches(padded_batch(responses), budget):
            batch_loss(config, piece, module.forward_train(piece)).loss.backward()
        params = [each for each in module.parameters() if each.requires_grad]
        torch.nn.utils.clip_grad_norm_(params, config.grad_clip or math.inf)
        optimizer.step()

    def weights(self) -> dict[str, np.ndarray]:
        """Return all weights by name."""
        return {
            f"{role}/{name}": array
            for role, module in self.modules.items()
            for name, array in module.get_state().items()
        }
