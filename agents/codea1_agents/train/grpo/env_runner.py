"""The EnvRunner that rolls out trees. A response is one environment step, and its tokens are the action."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import ray
import torch
from ray.rllib.callbacks.utils import make_callback
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.env import INPUT_ENV_SINGLE_SPACES, INPUT_ENV_SPACES
from ray.rllib.env.env_runner import EnvRunner
from ray.rllib.utils import force_list
from ray.rllib.utils.checkpoints import Checkpointable
from ray.rllib.utils.metrics import NUM_EPISODES, WEIGHTS_SEQ_NO
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

from codea1_agents.models.sampling import SamplingRules
from codea1_agents.prompts import load_prompts
from codea1_agents.train.grpo.hyperparameters import Shape
from codea1_agents.train.grpo.metrics import TreeFacts, episode_figures, mean_figures
from codea1_agents.train.grpo.progress import Report, ignore_report
from codea1_agents.train.grpo.rollout import (
    AgentPlayer,
    GroupEnvs,
    ModelPlayer,
    Player,
    RolledTree,
    RolloutResult,
    Task,
    TreeRoller,
)
from codea1_agents.train.grpo.sampling import RolloutEngine, TransformersEngine
from codea1_agents.train.grpo.settings import TrainingSettings
from codea1_agents.train.grpo.vllm_engine import VllmAdapter, VllmEngine
from codea1_agents.train.grpo.weights import Piece, WeightReceiver
from codea1_env.agent import AgentContext, Role, agent_name, load_agent
from codea1_env.errors import CodeA1Error
from codea1_env.problems import ProblemSet, load_problems
from codea1_env.rules.ruleset import Ruleset

_SPACE = gym.spaces.MultiDiscrete(np.array([2**31 - 1]))  # token ids; nothing reads it
_FIRST_SAMPLED = 1 << 33  # number of the first task of `sample`, which neither training nor evaluation reaches
_ROLES: tuple[Role, ...] = ("coder", "tester")


class TreeEnvRunner(EnvRunner, Checkpointable):  # type: ignore[misc]  # Ray has no types
    """Holds the modules that sample and the environments in which they act. The driver sends it tasks to roll out."""

    def __init__(self, *, config: Any, **kwargs: Any) -> None:
        super().__init__(config=config, **kwargs)
        self.settings: TrainingSettings = config.settings()
        self._version = self._n_sampled = 0
        self._sampled = MetricsLogger(root=False, stats_cls_lookup=config.stats_cls_lookup)
        self._callbacks = [kind() for kind in force_list(config.callbacks_class)]
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

    def group_envs(self, problems: ProblemSet, rules: Ruleset, shape: Shape, golden: bool | None = None) -> GroupEnvs:
        """Return new environments of the class that the configuration names.

        Args:
            problems: of the episodes.
            rules: of the game.
            shape: of the groups.
            golden: as in `GroupEnvs`.
        """
        of_env = self.config.env, self.config.env_config
        return GroupEnvs(*of_env, problems=problems, rules=rules, shape=shape, settings=self.settings, golden=golden)

    def make_module(self) -> None:
        """Build the players: modules without references, and agents that do not learn."""
        self.module = self.config.get_multi_rl_module_spec(spaces=self.get_spaces(), inference_only=True).build()
        for name, settings in self.settings.models.items():
            if settings.rollout_engine == "transformers" and self.config.num_gpus_per_env_runner:
                self.module[name].to("cuda" if torch.cuda.is_available() else "cpu")
        models = {name: self.module[name].model for name in self.settings.models}
        self._receiver = WeightReceiver(models, self.settings.models)
        try:
            for name in self.settings.models:
                self.engines[name] = self._engine(name)
            players: dict[str, Player] = {role: self.player(role) for role in _ROLES if self.settings.has_player(role)}
        except CodeA1Error as error:
            if not self.worker_index:
                raise
            self._fault = error  # RLlib would log a traceback and continue without this runner
        else:
            self._roller = TreeRoller(self.env, players, seed=self.settings.seed, advantages=self.settings.advantages)
        if self.worker_index:
            gc.freeze()  # as in `GRPO.setup`

    def _engine(self, module: str) -> RolloutEngine:
        models, model = self.settings.models, self.module[module].model
        settings = models[module]
        if settings.rollout_engine == "transformers":
            return TransformersEngine(model)
        on_base = [name for name, each in models.items() if each.shares_base] if settings.shares_base else [module]
        first = self.engines.get(on_base[0])
        if isinstance(first, VllmAdapter):
            return VllmAdapter(settings, model, beside=first)
        start = {
            "gpus_per_runner": float(self.config.num_gpus_per_env_runner),
            "n_engines": len(models) - len(on_base) + 1,
            "sleeps": self.config.placement == "colocated",
            "waits": bool(self.worker_index) and ray.get_runtime_context().was_current_actor_reconstructed,
        }
        if settings.lora is None:
            return VllmEngine(settings, model, **start)
        return VllmAdapter(settings, model, **start, adapters=[lora for name in on_base if (lora := models[name].lora)])

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
        module = self.module[module_id]
        return ModelPlayer(
            self.engines[module_id],
            module.chat,
            module.ends,
            load_prompts(self.settings.prompts),
            sampling or self.sampling(role),
            self.settings.lengths.max_prompt_tokens[role],
        )

    def sampling(self, role: Role) -> SamplingRules:
        """Return how the model of a role samples; in evaluations with `explore=False`, the most probable tokens."""
        longest, rollout = self.settings.lengths.max_tokens[role], self.settings.rollout
        temperature = rollout.temperature if self.config.explore else 0.0
        return SamplingRules(longest, temperature, micro_batch_size=rollout.sampling_batch_size)

    def stop(self) -> None:
        """Close the engines and environments. The sandbox is shared within the process and ends with it."""
        for engine in self.engines.values():
            engine.close()
        self.env.close()

    # Sampling

    def roll_out(self, tasks: Sequence[Task], report: Report = ignore_report) -> RolloutResult[RolledTree]:
        """Return one tree per task, after RLlib's callbacks about them.

        Raises:
            StaleWeights: the last hand-over of weights was not completed, or there was none.
        """
        if tasks:
            self._receiver.require_complete()
        assert self._roller is not None
        rolled = self._roller.roll(tasks, report)
        shared = {"env_runner": self, "metrics_logger": self.metrics}
        for index, tree in enumerate(rolled.trees):
            more = {"env": self.env, "env_index": index, "rl_module": self.module, "prev_episode_chunks": []}
            self._call("on_episode_end", episode=tree, **more, **shared)
        self._call("on_sample_end", samples=list(rolled.trees), **shared)
        return rolled

    def _call(self, callback: str, **values: Any) -> None:
        functions = getattr(self.config, f"callbacks_{callback}")
        make_callback(callback, callbacks_objects=self._callbacks, callbacks_functions=functions, kwargs=values)

    def sample(self, *, num_episodes: int | None = None, **_: Any) -> list[RolledTree]:
        """Return complete episodes of the next problems, which train nothing, and log their figures.

        That is what custom functions of RLlib call. Each runner begins with other problems and has its own seeds.

        Args:
            num_episodes: how many; None: as many as run at a time.
        """
        problems, n_runners = self.env.referee.problems, max(1, self.num_workers)
        n = self.settings.rollout.problems_at_once if num_episodes is None else num_episodes
        numbers = [(self._n_sampled + each) * n_runners + max(0, self.worker_index - 1) for each in range(n)]
        self._n_sampled += n
        tasks = [Task(_FIRST_SAMPLED + number, problems[number % len(problems)].id) for number in numbers]
        trees = self.roll_out(tasks).trees
        facts = [TreeFacts.of(tree, self.settings) for tree in trees]
        if facts:
            for name, value in {**mean_figures(facts), **episode_figures(facts)}.items():
                self._sampled.log_value(name, value, reduce="sum" if name == NUM_EPISODES else "mean")
        return list(trees)

    def get_metrics(self) -> dict[str, Any]:
        """Return what callbacks and `sample` have logged. The driver computes the figures of its rollouts."""
        return {**self.metrics.reduce(), **self._sampled.reduce()}

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
        """Return nothing: a checkpoint has the weights of the learners."""
        return []
