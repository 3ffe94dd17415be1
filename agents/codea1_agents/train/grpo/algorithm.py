"""`GRPO`: one iteration syncs weights, rolls out, records in the Mistake Book, and learns.

The driver owns the book and the cursor over problems. A tree depends on the weights, on the number of its task and on
the book before the iteration, not on the runner that rolls it out. Other runners roll out the tasks of a lost runner.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import ray
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.core import COMPONENT_LEARNER_GROUP
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    LEARNER_RESULTS,
    LEARNER_UPDATE_TIMER,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
    SYNCH_WORKER_WEIGHTS_TIMER,
    TIMERS,
)

from codea1_agents.train.grpo.batches import planned, shards
from codea1_agents.train.grpo.config import GRPOSettings
from codea1_agents.train.grpo.env_runner import ScoredTree, TreeEnvRunner
from codea1_agents.train.grpo.episodes import ScoredResponse, episode_of
from codea1_agents.train.grpo.failures import LearnerLost, NotFinite, RunnerFailed
from codea1_agents.train.grpo.progress import Meter, Phase, Progress, Report, report_minibatches, unreported
from codea1_agents.train.grpo.relay import Relay
from codea1_agents.train.grpo.runner_map import map_over_runners
from codea1_agents.train.grpo.statistics import StepFacts, mean_figures, skipped_problems
from codea1_agents.train.grpo.trees import RolloutTimes, Task, Tree
from codea1_agents.train.grpo.weight_sync import Receivers, send_weights
from codea1_env.book.store import MistakeBook
from codea1_env.facts.judge_version import JUDGE_VERSION, judge_version_in, require_this_judge
from codea1_env.problems import Problem, load_problems
from codea1_env.rules.mistake_book import BookDelta, Provenance
from codea1_env.rules.ruleset import BookUpdate

_LOG = logging.getLogger(__name__)
_STATE = "grpo"
_BOOK_STREAM = 11  # separates the random numbers of the book from the others of a task
_LEARNER_TIMEOUT_S = 60.0  # a learner that does not answer for so long is lost
_ROLLOUT_TIMER = "rollouts"


class GRPO(Algorithm):  # type: ignore[misc]  # Ray has no types
    """Trains language models in a game against each other."""

    @classmethod
    def get_default_config(cls) -> GRPOConfig:
        """Return the settings of the paper."""
        return GRPOConfig()

    def setup(self, config: GRPOConfig) -> None:
        """Build runners and learners, and open the Mistake Book."""
        super().setup(config)
        self.settings = config.settings()
        self.problems = load_problems(self.settings.problems)
        self.book = MistakeBook(config.book_path or None)
        self.book.require_this_judge()
        self._next_task = 0
        self.last_trees: tuple[Tree, ...] = ()
        """Trees of the last iteration, in the order of their tasks."""
        self.last_step = StepFacts()
        """Facts about the last iteration."""
        self._logged_skips: set[str] = set()  # skipped problems that are in the log already
        self.meter = Meter()
        """Progress of the iteration."""
        self._relay: Relay | None = None
        self._report: Report = unreported

    def watch(self, show: Callable[[Progress], object]) -> None:
        """Call a function with the progress of every iteration; at once, or from a thread.

        Args:
            show: the function. Where work is remote, a thread calls it, too.
        """
        is_remote = bool(self.env_runner_group.num_remote_workers() or self.learner_group.is_remote)
        self.meter.show = show
        self._relay = Relay(self.meter.report) if is_remote else None
        self._report = self._relay.remote if self._relay else self.meter.report
        first = [0] if self.learner_group.is_remote else None  # all learners make the same steps
        self.learner_group.foreach_learner(partial(report_minibatches, report=self._report), remote_actor_ids=first)

    def kill_remote_runners(self) -> None:
        """End remote runners at once. `stop` would wait for the rollouts in progress. No iteration can follow."""
        self.env_runner_group._worker_manager.clear()

    def cleanup(self) -> None:
        """Stop runners and learners."""
        if self._relay is not None:
            self._relay.close()
        super().cleanup()

    def training_step(self) -> None:
        """Run one iteration."""
        begun = time.perf_counter()
        self.meter.begin(Phase.SAMPLING, self.config.problems_per_step)
        with self.metrics.log_time((TIMERS, SYNCH_WORKER_WEIGHTS_TIMER)):
            self.sync_runners()
        synced = time.perf_counter()
        tasks = self._next_tasks()
        self._rollout_times: list[RolloutTimes] = []
        with self.metrics.log_time((TIMERS, _ROLLOUT_TIMER)):
            rolled = self._roll_out(tasks)
        rolled_out = time.perf_counter()
        self.meter.begin(Phase.LEARNING)
        self._next_task += len(tasks)
        self.last_trees = tuple(rolled[number].tree for number in sorted(rolled))
        for name, value in mean_figures(self.last_trees, self.settings.rules.tests_per_suite).items():
            self.metrics.log_value((ENV_RUNNER_RESULTS, name), value, window=1)
        responses = [each for number in sorted(rolled) for each in rolled[number].responses]
        book = self._record(self.last_trees)
        n_responses = sum(len(tree.candidates) + sum(map(len, tree.suites)) for tree in self.last_trees)
        self.metrics.log_value(NUM_ENV_STEPS_SAMPLED_LIFETIME, n_responses, reduce="lifetime_sum")
        self.metrics.log_value("tasks_lost", len(tasks) - len(rolled), window=1)
        self.metrics.log_value("responses_trained", len(responses), window=1)
        self.metrics.log_value("book_size", self.book.size(), window=1)
        skipped = skipped_problems(self.last_trees)
        self.metrics.log_value("problems_skipped", len(skipped), window=1)
        for problem_id in skipped.keys() - self._logged_skips:
            _LOG.warning("problem %s is skipped: %s", problem_id, skipped[problem_id])
        self._logged_skips |= skipped.keys()
        self.last_step = StepFacts(
            skipped=skipped,
            n_tasks_lost=len(tasks) - len(rolled),
            n_trained=dict(Counter(each.module for each in responses)),
            book_size=self.book.size(),
            book_added=sum(delta.added for delta in book),
            book_removed=sum(delta.removed for delta in book),
            sync_s=synced - begun,
            rollout_s=rolled_out - synced,
            generate_s=max((each.generate_s for each in self._rollout_times), default=0.0),
            judge_s=max((each.judge_s for each in self._rollout_times), default=0.0),
        )
        if responses:
            learning = time.perf_counter()
            with self.metrics.log_time((TIMERS, LEARNER_UPDATE_TIMER)):
                self._learn(responses)
            self.last_step = replace(self.last_step, learn_s=time.perf_counter() - learning)

    # Weights

    def sync_runners(self) -> None:
        """Send the learners' weights to each runner, in pieces, and wait until it has verified them.

        RLlib's own `sync_weights` does not wait, and it does not notice when a busy runner drops the new weights. So
        runners ignore the states that RLlib itself sends.

        Raises:
            StaleWeights: a runner does not have the weights.
        """
        group = self.env_runner_group
        self._send_weights(Receivers(self.env_runner, group, group.healthy_worker_ids()))

    def restore_env_runners(self, env_runner_group: Any) -> list[int]:
        """Start lost runners again and send them the learners' weights."""
        restored: list[int] = super().restore_env_runners(env_runner_group)
        if restored:
            self._send_weights(Receivers(None, env_runner_group, restored))
        return restored

    def restore_from_path(self, path: Any, *args: Any, **kwargs: Any) -> None:
        """Load a checkpoint and send its weights to the runners."""
        super().restore_from_path(path, *args, **kwargs)
        self.sync_runners()

    def _send_weights(self, receivers: Receivers) -> None:
        with self._named_errors():
            send_weights(self.learner_group, receivers)

    # Tasks

    def _next_tasks(self) -> list[Task]:
        """Return the next tasks. Each problem comes once per epoch; each epoch has its own order."""
        numbers = range(self._next_task, self._next_task + self.config.problems_per_step)
        n_problems = len(self.problems)
        orders = {
            epoch: np.random.default_rng([self.settings.seed, epoch]).permutation(n_problems)
            for epoch in {number // n_problems for number in numbers}
        }
        return [
            self._task(number, self.problems[int(orders[number // n_problems][number % n_problems])])
            for number in numbers
        ]

    def _task(self, number: int, problem: Problem) -> Task:
        rules = self.settings.rules.book
        if rules.update is BookUpdate.OFF:
            return Task(number, problem.id)
        draws = np.random.default_rng([self.settings.seed, number, _BOOK_STREAM])
        entries = self.book.retrieve(problem.id, rules, rng=draws)
        return Task(number, problem.id, tuple(entry.to_valid_case() for entry in entries))

    def _roll_out(self, tasks: Sequence[Task]) -> dict[int, ScoredTree]:
        """Return the trees of the tasks, by task number.

        Raises:
            RunnerFailed: a runner raised an exception, or all were lost.
        """
        done: dict[int, ScoredTree] = {}
        work_on = partial(_RolloutWork, report=self._report)
        for result in map_over_runners(self, tasks, work_on, lambda task: task.number in done):
            done.update({each.tree.task.number: each for each in result.trees})
            self._rollout_times.append(result.times)
        if tasks and not done:
            raise RunnerFailed(f"no runner returned a tree in iteration {self.iteration + 1}: all were lost")
        return done

    # The book

    def _record(self, trees: Sequence[Tree]) -> list[BookDelta]:
        """Record the trees in the book, in the order of their tasks; return the changes."""
        rules = self.settings.rules.book
        if rules.update is BookUpdate.OFF:
            return []
        deltas = []
        for tree in trees:
            if tree.book_report is not None:
                where = Provenance(
                    run=str(self.trial_id or ""), episode_id=f"{tree.task.number:08x}", round=self.iteration
                )
                deltas.append(self.book.record(tree.book_report, rules, where))
        return deltas

    # Learning

    def _learn(self, responses: Sequence[ScoredResponse]) -> None:
        config = self.config
        batch = planned(responses, config.minibatches_per_epoch, (self.settings.seed, self.iteration))
        n_minibatches = len({(each.module, each.minibatch) for each in batch})
        self.meter.begin(Phase.LEARNING, n_minibatches * config.epochs_per_step)
        references = [
            ray.put([episode_of(each) for each in shard]) for shard in shards(batch, max(1, config.num_learners))
        ]
        with self._named_errors():
            results = self.learner_group.update(
                episodes_refs=references,
                timesteps={NUM_ENV_STEPS_SAMPLED_LIFETIME: self.metrics.peek(NUM_ENV_STEPS_SAMPLED_LIFETIME)},
            )
        self.metrics.aggregate(results, key=LEARNER_RESULTS)

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Convert the many exceptions of a lost learner into `LearnerLost`, and those of a wrong loss into `NotFinite`.

        Raises:
            LearnerLost: the process of a learner has ended. The other learners have the same weights and wait for it.
                RLlib cannot replace it, so the run ends. In Tune, `FailureConfig(max_failures=...)` starts the run
                again from its last checkpoint.
            NotFinite: the loss or its gradient is not finite.
        """
        try:
            yield
        except NotFinite as error:
            raise NotFinite(str(getattr(error, "cause", error))) from None
        except Exception as error:
            if not self._is_learner_lost():
                raise
            raise LearnerLost(
                f"a learner died in iteration {self.iteration + 1}; start again from the last checkpoint"
            ) from error

    def _is_learner_lost(self) -> bool:
        """Return whether a learner does not answer; RLlib also counts one as lost that waited for a dead one."""
        if self.learner_group.is_local:
            return False
        alive = self.learner_group.foreach_learner(lambda _: True, timeout_seconds=_LEARNER_TIMEOUT_S)
        return sum(1 for result in alive if result.ok) < int(self.config.num_learners)

    # State

    def get_state(
        self,
        components: str | Collection[str] | None = None,
        *,
        not_components: str | Collection[str] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Return RLlib's state, the cursor over problems, and the Mistake Book."""
        state: dict[str, Any] = super().get_state(components, not_components=not_components, **kwargs)
        if self._check_component(_STATE, components, not_components):
            state[_STATE] = {"next_task": self._next_task, "book": self.book.snapshot(), "judge_version": JUDGE_VERSION}
        return state

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Load a state.

        Raises:
            UserError: its Mistake Book holds verdicts of another version of the judge.
        """
        if _STATE in state:
            require_this_judge(judge_version_in(state[_STATE]), "the checkpoint", "begin a new training")
        super().set_state({name: value for name, value in state.items() if name != _STATE})
        if _STATE in state:
            self._next_task = state[_STATE]["next_task"]
            self.book.restore(state[_STATE]["book"])
        if COMPONENT_LEARNER_GROUP in state:
            self.sync_runners()


@dataclass(frozen=True, slots=True)
class _RolloutResult:
    """The trees of one runner."""

    trees: list[ScoredTree]
    times: RolloutTimes


@dataclass(frozen=True, slots=True)
class _RolloutWork:
    """The work of one runner in an iteration; it can be pickled."""

    tasks: Sequence[Task]
    report: Report

    def __call__(self, runner: TreeEnvRunner) -> _RolloutResult:
        return _RolloutResult(runner.scored_trees(self.tasks, self.report), runner.rollout_times())


class GRPOConfig(GRPOSettings):
    """Settings of `GRPO`, in the style of any RLlib configuration."""

    def __init__(self, algo_class: Any = None) -> None:
        super().__init__(algo_class or GRPO)
