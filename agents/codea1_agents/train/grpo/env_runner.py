"""The EnvRunner that rolls out trees. A response is one environment step, and its tokens are the action."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.core import COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from ray.rllib.env import INPUT_ENV_SINGLE_SPACES, INPUT_ENV_SPACES
from ray.rllib.env.env_runner import EnvRunner
from ray.rllib.utils.checkpoints import Checkpointable
from ray.rllib.utils.metrics import WEIGHTS_SEQ_NO

from codea1_agents.models.chat_format import ChatFormat, load_tokenizer
from codea1_agents.prompts import load_prompts
from codea1_agents.train.grpo.hyperparameters import Shape
from codea1_agents.train.grpo.players import AgentPlayer, ModelPlayer, Player
from codea1_agents.train.grpo.progress import Report, unreported
from codea1_agents.train.grpo.rollout import GroupEnvs, RolledTrees, Task, TreeRoller
from codea1_agents.train.grpo.sampling import RolloutEngine, SamplingRules, TransformersEngine
from codea1_agents.train.grpo.settings import TrainingSettings
from codea1_agents.train.grpo.vllm_engine import VllmEngine
from codea1_agents.train.grpo.weights import Piece, WeightReceiver
from codea1_env.agent import AgentContext, Role, agent_name, load_agent
from codea1_env.errors import CodeA1Error
from codea1_env.problems import ProblemSet, load_problems
from codea1_env.rules.ruleset import Ruleset

_SPACE = gym.spaces.MultiDiscrete(np.array([2**31 - 1]))  # token ids; nothing reads it
_ROLES: tuple[Role, ...] = ("coder", "tester")


class TreeEnvRunner(EnvRunner, Checkpointable):  # type: ignore[misc]  # Ray has no types
    """Holds the modules that sample and the environments in which they act. The driver sends it tasks to roll out."""

    def __init__(self, *, config: Any, **kwargs: Any) -> None:
        super().__init__(config=config, **kwargs)
        self.settings: TrainingSettings = config.settings()
        self._version = 0
        self.module: Any = None
        self.engines: dict[str, RolloutEngine] = {}
        """By module."""
        self._sleeps = False
        self._fault: CodeA1Error | None = None
        self._roller: TreeRoller | None = None
        self.make_env()
        self.make_module()

    # What RLlib calls

    def assert_healthy(self) -> None:
        """Raise AssertionError if the constructor did not finish."""
        assert self._roller is not None or self._fault is not None

    def get_spaces(self) -> dict[str, tuple[gym.Space[Any], gym.Space[Any]]]:
        """Return placeholders: prompts and responses are token ids of any length."""
        modules = dict.fromkeys((*sorted(self.settings.models), DEFAULT_MODULE_ID), (_SPACE, _SPACE))
        agents = gym.spaces.Dict(dict.fromkeys(_ROLES, _SPACE))
        return {INPUT_ENV_SPACES: (agents, agents), INPUT_ENV_SINGLE_SPACES: (agents, agents), **modules}

    def make_env(self) -> None:
        """Make the environments of the configuration."""
        settings = self.settings
        self.env = self.group_envs(load_problems(settings.problems), settings.rules, settings.rollout)

    def group_envs(self, problems: ProblemSet, rules: Ruleset, shape: Shape) -> GroupEnvs:
        """Return new environments of the class that the configuration names.

        Args:
            problems: of the episodes.
            rules: of the game.
            shape: of the groups.
        """
        return GroupEnvs(
            self.config.env, self.config.env_config, problems=problems, rules=rules, shape=shape, settings=self.settings
        )

    def make_module(self) -> None:
        """Build the players: modules without references, and agents that do not learn."""
        spec = self.config.get_multi_rl_module_spec(spaces=self.get_spaces(), inference_only=True)
        spec.inference_only = True
        for sub_spec in spec.rl_module_specs.values():
            sub_spec.inference_only = True  # RLlib sets it only on specs that it made
        self.module = spec.build()
        for name, settings in self.settings.models.items():
            if settings.rollout_engine == "transformers" and self.config.num_gpus_per_env_runner:
                self.module[name].to("cuda" if torch.cuda.is_available() else "cpu")
        models = {name: self.module[name].model for name in self.settings.models}
        self._receiver = WeightReceiver(models, self.settings.models)
        try:
            self.engines = {name: self._engine(name) for name in self.settings.models}
            players: dict[str, Player] = {role: self.player(role) for role in _ROLES if self.settings.has_player(role)}
        except CodeA1Error as error:
            if not self.worker_index:
                raise
            self._fault = error  # RLlib would log a traceback and continue without this runner
        else:
            self._roller = TreeRoller(self.env, players, seed=self.settings.seed, advantages=self.settings.advantages)

    def _engine(self, module: str) -> RolloutEngine:
        settings, model = self.settings.models[module], self.module[module].model
        if settings.rollout_engine == "transformers":
            return TransformersEngine(model)
        return VllmEngine(
            settings,
            model,
            gpus_per_runner=float(self.config.num_gpus_per_env_runner),
            n_engines=len(self.settings.models),
            sleeps=self.config.is_colocated,
        )

    def player(self, role: Role, sampling: SamplingRules | None = None) -> Player:
        """Return the player of a role.

        Args:
            role: `coder` or `tester`.
            sampling: how a model samples; None: as in training.
        """
        module_id = self.settings.module_of(role)
        if not module_id:
            referee, spec = self.env.referee, self.settings.agents[role]
            context = AgentContext(referee.problems, referee.sandbox, self.settings.seed)
            agent = load_agent(spec, context, role=role)
            return AgentPlayer(agent, f"{role} {agent_name(spec, agent)}")
        model = self.module[module_id].model
        path = self.settings.models[module_id].path
        chat = ChatFormat(load_tokenizer(path), path)
        chat.require_embedding_of(model)
        return ModelPlayer(
            self.engines[module_id],
            chat,
            chat.ends(model.generation_config),
            load_prompts(self.settings.prompts),
            sampling or self.sampling(role),
            self.settings.lengths.max_prompt_tokens[role],
        )

    def sampling(self, role: Role) -> SamplingRules:
        """Return how the model of a role samples in training."""
        longest, rollout = self.settings.lengths.max_tokens[role], self.settings.rollout
        return SamplingRules(longest, rollout.temperature, rows_at_once=rollout.rows_sampled_at_once)

    def stop(self) -> None:
        """Close the engines and environments. The sandbox is shared within the process and ends with it."""
        for engine in self.engines.values():
            engine.close()
        self.env.close()

    # Sampling

    def sample(self, *, tasks: Sequence[Task] = (), report: Report = unreported, **_: Any) -> RolledTrees:
        """Return one tree per task.

        Raises:
            StaleWeights: the last hand-over of weights was not completed, or there was none.
        """
        if tasks:
            self._receiver.require_complete()
        assert self._roller is not None
        return self._roller.roll(tasks, report)

    def get_metrics(self) -> Any:
        """Return RLlib's own metrics. The driver computes the figures of rollouts, as it has all trees."""
        return self.metrics.reduce()

    # State

    def get_state(self, *_: Any, **__: Any) -> dict[str, Any]:
        """Return the version number of the weights. The learner has the weights."""
        return {WEIGHTS_SEQ_NO: self._version}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Do nothing: weights come in pieces, with their number (`receive_weights`, `use_weights`)."""

    def sleep(self) -> None:
        """Release the memory of the engines on their device. `receive_weights` wakes them."""
        for engine in () if self._sleeps else self.engines.values():
            engine.sleep()
        self._sleeps = True

    def receive_weights(self, piece: Piece) -> None:
        """Copy a piece of the learner's weights into a module; the engines wake before.

        Raises:
            StaleWeights: the module has no such tensors.
            CodeA1Error: an engine or an agent cannot be loaded on this machine.
        """
        if self._fault is not None:
            raise self._fault
        for engine in self.engines.values() if self._sleeps else ():
            engine.wake()
        self._sleeps = False
        self._receiver.receive(piece)

    def use_weights(self, version: int) -> None:
        """Verify the weights that were received, and sample with them from now on.

        Args:
            version: number of the weights; after a restore it may be smaller than the last one.

        Raises:
            StaleWeights: they are not those that the learner sent, or an engine does not compute with them. No engine
                samples until a hand-over succeeds.
        """
        self._receiver.verify(version)
        for engine in self.engines.values():
            engine.load_weights(version)
        self._version = version

    def get_ctor_args_and_kwargs(self) -> tuple[tuple[()], dict[str, Any]]:
        """Return the constructor arguments of a copy of this runner."""
        return (), {"config": self.config}

    def get_checkpointable_components(self) -> list[tuple[str, Any]]:
        """Return the modules."""
        return [(COMPONENT_RL_MODULE, self.module)]
