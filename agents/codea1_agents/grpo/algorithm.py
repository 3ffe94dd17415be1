"""`GRPO`: one iteration is sync, roll out, record in the Mistake Book, learn.

The driver owns the book and the cursor over problems. A tree depends on the weights, on its task's number and on the
book before the iteration, not on the runner that rolls it out; what a lost runner owes is rolled out by another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import ray
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    LEARNER_RESULTS,
    LEARNER_UPDATE_TIMER,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
    SYNCH_WORKER_WEIGHTS_TIMER,
    TIMERS,
)

from codea1_agents.grpo.batches import planned, shards
from codea1_agents.grpo.config import GRPOConfig
from codea1_agents.grpo.env_runner import Harvest, TreeEnvRunner
from codea1_agents.grpo.episodes import ScoredResponse, episode_of
from codea1_agents.grpo.trees import Task, Tree
from codea1_env.book.store import MistakeBook
from codea1_env.problems import Problem, load_problems
from codea1_env.rules.mistake_book import Provenance
from codea1_env.rules.ruleset import BookUpdate

__all__ = ["GRPO"]

_STATE = "grpo"
_MAX_ROUNDS = 4  # of dealing tasks out, before what is still owed is left out
_BOOK_STREAM = 11  # sets the book's draws apart from all others of a task
_ROLLOUT_TIMER = "rollouts"


class GRPO(Algorithm):  # type: ignore[misc]  # Ray has no types
    """Trains language models against each other."""

    @classmethod
    def get_default_config(cls) -> GRPOConfig:
        """Return the paper's settings."""
        return GRPOConfig()

    def setup(self, config: GRPOConfig) -> None:
        """Build runners and learners, open the book."""
        super().setup(config)
        self._settings = config.settings()
        self._problems = load_problems(self._settings.problems)
        self.book = MistakeBook(config.book_path or None)
        self._next_task = 0
        self.last_trees: tuple[Tree, ...] = ()
        """Of the last iteration, in the order of their tasks."""

    def training_step(self) -> None:
        """Run one iteration."""
        with self.metrics.log_time((TIMERS, SYNCH_WORKER_WEIGHTS_TIMER)):
            self._sync_weights()
        tasks = self._next_tasks()
        with self.metrics.log_time((TIMERS, _ROLLOUT_TIMER)):
            rolled = self._rolled(tasks)
        self.last_trees = tuple(rolled[number].tree for number in sorted(rolled))
        responses = [each for number in sorted(rolled) for each in rolled[number].responses]
        self._record(self.last_trees)
        n_responses = sum(len(tree.candidates) + sum(map(len, tree.suites)) for tree in self.last_trees)
        self.metrics.log_value(NUM_ENV_STEPS_SAMPLED_LIFETIME, n_responses, reduce="lifetime_sum")
        self.metrics.log_value("tasks_lost", len(tasks) - len(rolled), window=1)
        self.metrics.log_value("responses_trained", len(responses), window=1)
        self.metrics.log_value("book_size", self.book.size(), window=1)
        if responses:
            with self.metrics.log_time((TIMERS, LEARNER_UPDATE_TIMER)):
                self._learn(responses)

    # Weights

    def _sync_weights(self) -> None:
        """Give every runner the learners' weights and wait until it has them.

        RLlib's own `sync_weights` neither waits nor notices when a runner that is still busy with older weights drops
        the new ones.
        """
        state = self.learner_group.get_state(components="learner/rl_module", inference_only=True)["learner"]
        if self.env_runner is not None:
            self.env_runner.set_state(state)
        if self.env_runner_group.num_healthy_remote_workers():
            reference = ray.put(state)
            self.env_runner_group.foreach_env_runner(
                lambda runner: runner.set_state(ray.get(reference)), local_env_runner=False
            )

    # Tasks

    def _next_tasks(self) -> list[Task]:
        """Return the next tasks; every problem comes once per epoch, in an order of the epoch's own."""
        numbers = range(self._next_task, self._next_task + self.config.problems_per_step)
        self._next_task = numbers.stop
        n_problems = len(self._problems)
        orders = {
            epoch: np.random.default_rng([self._settings.seed, epoch]).permutation(n_problems)
            for epoch in {number // n_problems for number in numbers}
        }
        return [
            self._task(number, self._problems[int(orders[number // n_problems][number % n_problems])])
            for number in numbers
        ]

    def _task(self, number: int, problem: Problem) -> Task:
        rules = self._settings.rules.book
        if rules.update is BookUpdate.OFF:
            return Task(number, problem.id)
        draws = np.random.default_rng([self._settings.seed, number, _BOOK_STREAM])
        entries = self.book.retrieve(problem.id, rules, rng=draws)
        return Task(number, problem.id, tuple(entry.to_valid_case() for entry in entries))

    def _rolled(self, tasks: Sequence[Task]) -> dict[int, Harvest]:
        """Return what the tasks have given, by their numbers."""
        done: dict[int, Harvest] = {}
        for _ in range(_MAX_ROUNDS):
            owed = [task for task in tasks if task.number not in done]
            if not owed:
                break
            for share in self._dealt(owed):
                done.update({each.tree.task.number: each for each in share.harvests})
                self.metrics.aggregate([share.metrics], key=ENV_RUNNER_RESULTS)
        return done

    def _dealt(self, tasks: Sequence[Task]) -> Iterator[_Brought]:
        """Yield what each runner makes of its share; a runner that is lost yields nothing."""
        ids = self.env_runner_group.healthy_worker_ids()
        if not ids:
            if self.env_runner is not None:
                yield _Share(tasks)(self.env_runner)
            return
        shares = [tasks[start :: len(ids)] for start in range(len(ids))]
        yield from self.env_runner_group.foreach_env_runner(
            [_Share(share) for share in shares], remote_worker_ids=ids, local_env_runner=False
        )
        self.restore_env_runners(self.env_runner_group)

    # The book

    def _record(self, trees: Sequence[Tree]) -> None:
        """Enter what has happened, in the order of the tasks."""
        rules = self._settings.rules.book
        if rules.update is BookUpdate.OFF:
            return
        for tree in trees:
            if tree.report is not None and not any(each.has_internal_error for each in tree.report.candidates):
                where = Provenance(
                    run=str(self.trial_id or ""), episode_id=f"{tree.task.number:08x}", round=self.iteration
                )
                self.book.record(tree.report, rules, where)

    # Learning

    def _learn(self, responses: Sequence[ScoredResponse]) -> None:
        config = self.config
        batch = planned(responses, config.minibatches_per_epoch, (self._settings.seed, self.iteration))
        references = [
            ray.put([episode_of(each) for each in shard]) for shard in shards(batch, max(1, config.num_learners))
        ]
        results = self.learner_group.update(
            episodes_refs=references,
            timesteps={NUM_ENV_STEPS_SAMPLED_LIFETIME: self.metrics.peek(NUM_ENV_STEPS_SAMPLED_LIFETIME)},
        )
        self.metrics.aggregate(results, key=LEARNER_RESULTS)

    # State

    def get_state(
        self,
        components: str | Collection[str] | None = None,
        *,
        not_components: str | Collection[str] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Return RLlib's state, and the cursor and the book."""
        state: dict[str, Any] = super().get_state(components, not_components=not_components, **kwargs)
        if self._check_component(_STATE, components, not_components):
            state[_STATE] = {"next_task": self._next_task, "book": self.book.snapshot()}
        return state

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        super().set_state({name: value for name, value in state.items() if name != _STATE})
        if _STATE in state:
            self._next_task = state[_STATE]["next_task"]
            self.book.restore(state[_STATE]["book"])


@dataclass(frozen=True, slots=True)
class _Brought:
    """What a runner brings."""

    harvests: list[Harvest]
    metrics: Any


@dataclass(frozen=True, slots=True)
class _Share:
    """A runner's part of an iteration, as something that travels."""

    tasks: Sequence[Task]

    def __call__(self, runner: TreeEnvRunner) -> _Brought:
        harvests = runner.harvest(self.tasks)
        return _Brought(harvests, runner.get_metrics())
