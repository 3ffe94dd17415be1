"""`GRPO`: one iteration syncs weights, rolls out, records in the Mistake Book, and learns.

The driver owns the book and the cursor over problems. A tree depends on the weights, on the number of its task and on
the book before the iteration, not on the runner that rolls it out. Other runners roll out the tasks of a lost runner.
"""

from __future__ import annotations

import gc
import logging
import pickle
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import chdir, suppress
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.core import COMPONENT_LEARNER, COMPONENT_LEARNER_GROUP, COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    EVALUATION_RESULTS,
    LEARNER_RESULTS,
    LEARNER_UPDATE_TIMER,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
    SYNCH_WORKER_WEIGHTS_TIMER,
    TIMERS,
)
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

from codea1_agents.train.failures import RunnerFailed, SamplerDiffers
from codea1_agents.train.grpo.batch import StoredResponse, planned, shards, with_advantages_over_batch
from codea1_agents.train.grpo.config import GRPOSettings
from codea1_agents.train.grpo.metrics import StepFacts, TreeFacts, episode_figures, mean_figures
from codea1_agents.train.grpo.progress import Meter, Part, Phase, Progress, Report, ignore_report, report_minibatches
from codea1_agents.train.grpo.rollout import RolledTree, RolloutResult, Task
from codea1_agents.train.grpo.runners import (
    MAX_ROUNDS,
    Relay,
    RolloutsAhead,
    RunnerPool,
    StoredTrees,
    fetch,
    take,
)
from codea1_agents.train.ray_start import start_ray
from codea1_env.book.store import MistakeBook
from codea1_env.errors import UserError
from codea1_env.facts.judge_version import JUDGE_VERSION, judge_version_in, require_this_judge
from codea1_env.problems import load_problems
from codea1_env.rules.mistake_book import BookDelta, Provenance
from codea1_env.rules.ruleset import BookUpdate

_LOG = logging.getLogger(__name__)
_STATE = "grpo"
_SINGLE_TOKEN = 20  # times the allowed mean: one token may differ so much
_ROLLOUT_TIMER = "rollouts"


def _refuse(method: str) -> Callable[..., None]:
    def refuse(*_: Any, **__: Any) -> None:
        """Raise UserError: modules stay the same."""
        raise UserError(
            f"{method}: modules stay those of llm_agents(...); build another GRPO, and set_weights of its own"
        )

    return refuse


class GRPO(Algorithm):  # type: ignore[misc]  # Ray has no types
    """Trains language models in a game against each other."""

    @classmethod
    def get_default_config(cls) -> GRPOConfig:
        """Return the settings of the paper."""
        return GRPOConfig()

    def __init__(self, config: GRPOConfig | None = None, **more: Any) -> None:
        """Build an algorithm; start Ray if it does not run in this process (`ray_start.start_ray`)."""
        if not ray.is_initialized():
            start_ray(ray, getattr(config, "n_cpus", 2))
        super().__init__(config, **more)

    def _setup_logdir(self) -> None:
        """Use Tune's folder; without Tune nothing is written, so RLlib's folder in the home directory is not made."""
        self._logdir = tempfile.gettempdir()
        if self._storage:
            with chdir(Path.cwd()):  # Tune would go to the folder of the trial, where no relative path leads to a model
                super()._setup_logdir()

    def setup(self, config: GRPOConfig) -> None:
        """Build runners and learners, and open the Mistake Book."""
        if gc.get_freeze_count():  # below, by an algorithm that may not have been stopped
            gc.unfreeze()
            gc.collect()
        self.settings = config.settings()
        self.problems = load_problems(self.settings.problems)
        self.book = MistakeBook()
        self.book.require_this_judge()
        self._next_task = 0
        self.last_trees: Sequence[RolledTree] = StoredTrees()
        """Trees of the last iteration, in the order of their tasks; what is read is fetched from their runners."""
        self.last_step = StepFacts()
        """Facts about the last iteration."""
        self._logged_skips: set[str] = set()  # skipped problems that are in the log already
        self.meter = Meter()
        """Progress of the iteration."""
        self._relay: Relay | None = None
        self._report: Report = ignore_report
        self._compared: set[str] = set()  # modules whose sampler was compared with the learner
        self._ahead: RolloutsAhead | None = None  # those of the next iteration
        self._evaluated: tuple[str, ...] = ()  # names of the last evaluation's figures
        super().setup(config)  # last, as it calls `on_algorithm_init`
        gc.freeze()  # a full collection would walk all that is loaded: .3 s every ten steps of tiny models

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
        if self._ahead is not None and not self._ahead.is_over:
            self.kill_remote_runners()
        try:
            if self._relay is not None:
                self._relay.close()
            super().cleanup()
        finally:
            gc.unfreeze()  # what others have frozen, too: it only costs time

    def training_step(self) -> None:
        """Run one iteration."""
        begun = time.perf_counter()
        n, shape = self.config.problems_per_step, self.settings.rollout
        replies = {Part.PROGRAMS: shape.n_candidates, Part.SUITES: shape.n_groups * shape.n_suites}
        parts = {**{part: shape.turns * count for part, count in replies.items()}, Part.JUDGED: 1}
        self.meter.begin(Phase.SAMPLING, {part: n * per_problem for part, per_problem in parts.items() if per_problem})
        synced_s = 0.0 if self._ahead is not None else self._sync_timed()
        with self.metrics.log_time((TIMERS, _ROLLOUT_TIMER)):
            if self._ahead is not None:  # sampled during the last iteration
                rolled, self._ahead = self._ahead.finish(), None
            else:
                tasks = self._next_tasks()
                rolled = self.pool().roll_out(tasks, self._report)
                self._next_task += len(tasks)
            rolled, batch, references = self._assign(rolled)
        rolled_s = time.perf_counter() - begun - synced_s
        self.metrics.aggregate(rolled.metrics, key=ENV_RUNNER_RESULTS)
        self.meter.begin(Phase.LEARNING)
        self.last_trees = StoredTrees(rolled.trees)
        book = self._record(rolled.trees)
        if self.config.overlap:  # with the present weights
            self.restore_env_runners(self.env_runner_group)
            synced_s += self._sync_timed()
            tasks = self._next_tasks()
            self._ahead = RolloutsAhead(self.pool(), tasks)
            self._next_task += len(tasks)
        self.last_step = StepFacts(
            figures=mean_figures(rolled.trees),
            n_tokens=sum(tree.n_tokens for tree in rolled.trees),
            skipped={tree.problem_id: tree.skipped for tree in rolled.trees if tree.skipped},
            n_tasks_lost=len(rolled.tasks) - len(rolled.trees),
            n_trained=dict(Counter(row.module for row in batch)),
            staleness=self.iteration - rolled.iteration,
            book_size=self.book.size(),
            book_added=sum(delta.added for delta in book),
            book_removed=sum(delta.removed for delta in book),
            sync_s=synced_s,
            rollout_s=rolled_s,
            generate_s=rolled.generate_s,
            judge_s=rolled.judge_s,
        )
        self._log(self.last_step, rolled.trees)
        if references:
            learning = time.perf_counter()
            if self.config.placement == "colocated":
                self.pool().release_samplers()
            with self.metrics.log_time((TIMERS, LEARNER_UPDATE_TIMER)):
                self._learn(batch, references)
            self.last_step = replace(self.last_step, learn_s=time.perf_counter() - learning)

    def _log(self, facts: StepFacts, trees: Sequence[TreeFacts]) -> None:
        """Log the facts about an iteration as RLlib's metrics, and each skipped problem once."""
        for name, value in {**facts.figures, **episode_figures(trees)}.items():
            self.metrics.log_value((ENV_RUNNER_RESULTS, name), value, window=1)
        n_responses = sum(each.n_responses for each in trees)
        self.metrics.log_value(NUM_ENV_STEPS_SAMPLED_LIFETIME, n_responses, reduce="lifetime_sum")
        self.metrics.log_value("tasks_lost", facts.n_tasks_lost, window=1)
        self.metrics.log_value("responses_trained", sum(facts.n_trained.values()), window=1)
        self.metrics.log_value("book_size", facts.book_size, window=1)
        self.metrics.log_value("problems_skipped", len(facts.skipped), window=1)
        for problem_id in facts.skipped.keys() - self._logged_skips:
            _LOG.warning("problem %s is skipped: %s", problem_id, facts.skipped[problem_id])
        self._logged_skips |= facts.skipped.keys()

    # Weights

    def sync_runners(self) -> None:
        """Send the learners' weights to each runner, in pieces, and wait until it has verified them.

        RLlib's own `sync_weights` does not wait, and it does not notice when a busy runner drops the new weights. So
        runners ignore the states that RLlib itself sends. Rollouts in progress end first.

        Raises:
            StaleWeights: a runner does not have the weights.
        """
        if self._ahead is not None:
            self._ahead.finish()
        self.pool().send_weights()

    def restore_env_runners(self, env_runner_group: Any) -> list[int]:
        """Start lost runners again and send them the learners' weights, unless their rollouts are in progress."""
        is_of_training = env_runner_group is self.env_runner_group
        if is_of_training and self._ahead is not None and not self._ahead.is_over:
            return []
        restored: list[int] = super().restore_env_runners(env_runner_group)
        if restored:
            self.pool(env_runner_group).send_weights(restored)
        return restored

    def get_module(self, module_id: str = DEFAULT_MODULE_ID) -> Any:
        """Return a module as runners have it, with the learners' present weights."""
        self.sync_runners()
        return super().get_module(module_id)

    def restore_from_path(self, path: Any, *args: Any, **kwargs: Any) -> None:
        """Load a checkpoint and send its weights to the runners."""
        super().restore_from_path(path, *args, **kwargs)
        self.sync_runners()

    def set_weights(self, weights: Mapping[str, Any]) -> None:
        """Load weights of some modules, as `get_weights` returns them, and send them to the runners.

        Raises:
            UserError: there is no such module.
        """
        for module in weights.keys() - self.settings.models.keys():
            raise UserError(f"set_weights: modules are {', '.join(self.settings.models)}, got {module!r}")
        self.set_state({COMPONENT_LEARNER_GROUP: {COMPONENT_LEARNER: {COMPONENT_RL_MODULE: dict(weights)}}})

    add_module, remove_module = _refuse("add_module"), _refuse("remove_module")
    add_policy, remove_policy = _refuse("add_policy"), _refuse("remove_policy")

    def pool(self, group: Any = None) -> RunnerPool:
        """Return the runners of a group of RLlib's; None: those of the training."""
        return RunnerPool(group or self.env_runner_group, self.learner_group, self.restore_env_runners, self.iteration)

    def _sync_timed(self) -> float:
        """Send the weights to each runner and return how many seconds that took."""
        begun = time.perf_counter()
        with self.metrics.log_time((TIMERS, SYNCH_WORKER_WEIGHTS_TIMER)):
            self.sync_runners()
        return time.perf_counter() - begun

    # Evaluation

    def evaluate(self, parallel_train_future: Any = None) -> dict[str, Any]:
        """Evaluate the present weights, and return RLlib's results; `evaluate_episodes` says on which problems.

        Raises:
            RunnerFailed: a runner raised an exception, or all were lost.
        """
        if self.eval_env_runner_group is None:
            self.sync_runners()
        else:
            self.pool(self.eval_env_runner_group).send_weights()
        results: dict[str, Any] = super().evaluate(parallel_train_future)
        figures = results.get(ENV_RUNNER_RESULTS, {})  # in an order that changes from run to run
        ordered = (*self._evaluated, *sorted(figures))
        return {**results, ENV_RUNNER_RESULTS: {name: figures[name] for name in ordered if name in figures}}

    def log_evaluation(self, figures: Mapping[str, float]) -> None:
        """Report figures as the results of an evaluation, instead of those of the last one.

        For functions that `evaluation(custom_evaluation_function=...)` sets.
        """
        place = (EVALUATION_RESULTS, ENV_RUNNER_RESULTS)
        for name in self._evaluated:
            self.metrics.delete((*place, name), key_error=False)
        self._evaluated = tuple(figures)
        logger = MetricsLogger(root=False, stats_cls_lookup=self.config.stats_cls_lookup)
        for name, value in figures.items():
            logger.log_value(name, value, reduce="mean", window=1)
        self.metrics.aggregate([logger.reduce()], key=place)

    def _compile_iteration_results(self, **parts: Any) -> dict[str, Any]:
        """Return RLlib's results; those of learners are there, by module, also when no reply trained them."""
        results = super()._compile_iteration_results(**parts)
        learned = results.get(LEARNER_RESULTS, {})
        return {**results, LEARNER_RESULTS: {name: {} for name in self.settings.models} | learned}

    # Tasks

    def _next_tasks(self) -> list[Task]:
        """Return the next tasks. Each problem comes once per epoch; each epoch has its own order."""
        numbers = range(self._next_task, self._next_task + self.config.problems_per_step)
        n_problems = len(self.problems)
        orders = {
            epoch: np.random.default_rng([self.settings.seed, epoch]).permutation(n_problems)
            for epoch in {number // n_problems for number in numbers}
        }
        rules, tasks = self.settings.rules.book, []
        for number in numbers:
            problem = self.problems[int(orders[number // n_problems][number % n_problems])]
            entries = () if rules.update is BookUpdate.OFF else self.book.retrieve(problem.id, rules)
            tasks.append(Task(number, problem.id, tuple(entry.to_valid_case() for entry in entries)))
        return tasks

    def _assign(
        self, rolled: RolloutResult[TreeFacts]
    ) -> tuple[RolloutResult[TreeFacts], list[StoredResponse], list[Any]]:
        """Plan the batch, then let each learner fetch its part of the responses from the nodes of the runners.

        What a lost runner held is rolled out again, by others with the same weights.

        Returns:
            What is known of all trees, the plan, and a reference to each learner's responses; none if none train.

        Raises:
            RunnerFailed: runners were lost again and again.
        """
        for _ in range(MAX_ROUNDS):
            batch = [response for tree in rolled.trees for response in tree.trained]
            if self.config.advantages == "decoupled":
                batch = with_advantages_over_batch(batch, "tester")
            together = attrgetter("prompt" if self.config.turns == 1 else "task")
            seed = self.settings.seed, self.iteration
            batch = planned(batch, self.config.minibatches_per_epoch, seed, together)
            if not batch:
                return rolled, [], []
            stored = {tree.number: tree.stored for tree in rolled.trees}
            parts = shards(batch, max(1, self.config.num_learners))
            works = [partial(take, rows=rows, stored={row.task: stored[row.task] for row in rows}) for rows in parts]
            references, lost = zip(*self.learner_group.each(works), strict=True)
            if not any(lost):
                return rolled, batch, list(references)
            rolled = self._roll_out_again(rolled, frozenset().union(*lost))
        raise RunnerFailed(f"trees were lost in each of {MAX_ROUNDS} rounds of iteration {self.iteration + 1}")

    def _roll_out_again(self, rolled: RolloutResult[TreeFacts], lost: Collection[int]) -> RolloutResult[TreeFacts]:
        """Return the same with new trees of some tasks, whose runners are lost."""
        held = replace(rolled, trees=tuple(tree for tree in rolled.trees if tree.number not in lost))
        pool = replace(self.pool(), iteration=rolled.iteration)
        return pool.roll_out(rolled.tasks, self._report, done=[held])

    # The book

    def _record(self, trees: Sequence[TreeFacts]) -> list[BookDelta]:
        """Record the trees in the book, in the order of their tasks; return the changes."""
        rules = self.settings.rules.book
        if rules.update is BookUpdate.OFF:
            return []
        deltas = []
        for tree in trees:
            if tree.book is not None:
                where = Provenance(
                    run=str(self.trial_id or ""),
                    episode_id=f"{tree.number:08x}",
                    round=self.iteration,
                    coder=self.settings.player_of("coder"),
                    tester=self.settings.player_of("tester"),
                )
                of_turns = pickle.loads(tree.book)
                deltas += [self.book.apply(tree.problem_id, changes, rules, where) for changes in of_turns]
        return deltas

    # Learning

    def _learn(self, batch: Sequence[StoredResponse], references: Sequence[Any]) -> None:
        n_minibatches = len({(response.module, response.minibatch) for response in batch})
        self.meter.begin(Phase.LEARNING, {Part.MINIBATCHES: n_minibatches * self.config.epochs_per_step})
        results = self.learner_group.update(
            episodes_refs=list(references),
            timesteps={NUM_ENV_STEPS_SAMPLED_LIFETIME: self.metrics.peek(NUM_ENV_STEPS_SAMPLED_LIFETIME)},
        )
        self.metrics.aggregate(results, key=LEARNER_RESULTS)
        if not self.last_step.staleness:  # a run that continues with overlap has replies of the weights before
            for module in sorted({response.module for response in batch} - self._compared):
                self._compared.add(module)
                self._require_same_model(module)

    def _require_same_model(self, module: str) -> None:
        """Raise SamplerDiffers if the sampler of a module did not have its policy when the run began.

        Whatever engine sampled, the first batch has its log-probabilities of real replies, and sampler and learner had
        the same weights. A gap beyond rounding means that they compute different functions: an architecture that is
        sampled without its context, a missing scale, another soft cap.
        """
        gaps = (self.metrics.peek((LEARNER_RESULTS, module, f"sampler_gap{of}"), default=0.0) for of in ("", "_max"))
        mean, most = map(float, gaps)  # 0 where a connector has dropped all of its responses
        allowed = self.settings.models[module].allowed_gap
        if not (mean <= allowed and most <= _SINGLE_TOKEN * allowed):
            raise SamplerDiffers(
                f"{module!r}: sampler and learner do not compute the same model: their log-probabilities differ by "
                f"{mean:.2g} nats in the mean and {most:.2g} at most; allowed are {allowed:g} and "
                f"{_SINGLE_TOKEN * allowed:g}. Choose another rollout_engine or data types of more bits "
                "(sampling_dtype, autocast), or raise largest_gap if this is rounding"
            )

    # State

    def get_state(
        self,
        components: str | Collection[str] | None = None,
        *,
        not_components: str | Collection[str] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Return RLlib's state, the cursor over problems, trees that were sampled ahead, and the Mistake Book."""
        state: dict[str, Any] = super().get_state(components, not_components=not_components, **kwargs)
        if self._check_component(_STATE, components, not_components):
            state[_STATE] = {
                "next_task": self._next_task,
                "evaluated": self._evaluated,
                "ahead": None if self._ahead is None else self._with_trees(self._ahead.finish()),
                "book": self.book.snapshot(),
                "judge_version": JUDGE_VERSION,
            }
        return state

    def _with_trees(self, rolled: RolloutResult[TreeFacts]) -> RolloutResult[TreeFacts]:
        """Return the same with the trees themselves; those of lost runners are rolled out again."""
        for _ in range(MAX_ROUNDS):
            trees = fetch({facts.number: facts.stored for facts in rolled.trees})
            lost = {facts.number for facts in rolled.trees} - trees.keys()
            if not lost:
                held = tuple(replace(facts, stored=trees[facts.number]) for facts in rolled.trees)
                return replace(rolled, trees=held)
            rolled = self._roll_out_again(rolled, lost)
        raise RunnerFailed(f"trees were lost in each of {MAX_ROUNDS} rounds")

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Load a state.

        Raises:
            UserError: its Mistake Book holds verdicts of another version of the judge.
        """
        if _STATE in state:
            require_this_judge(judge_version_in(state[_STATE]), "the checkpoint", "begin a new training")
            if self._ahead is not None:
                with suppress(RunnerFailed):
                    self._ahead.finish()  # nobody needs its trees, but runners are to get other weights
        super().set_state({name: value for name, value in state.items() if name != _STATE})
        if _STATE in state:
            self._next_task = state[_STATE]["next_task"]
            self._evaluated = state[_STATE].get("evaluated", ())
            self._ahead, ahead = None, state[_STATE]["ahead"]
            if ahead is not None:
                trees = tuple(replace(facts, stored=ray.put(facts.stored)) for facts in ahead.trees)
                self._ahead = RolloutsAhead(self.pool(), ahead.tasks, replace(ahead, trees=trees))
            self.book.restore(state[_STATE]["book"])
        if COMPONENT_LEARNER_GROUP in state:
            self.sync_runners()


class GRPOConfig(GRPOSettings):
    """Settings of `GRPO`, in the style of any RLlib configuration."""

    def __init__(self, algo_class: Any = None) -> None:
        super().__init__(algo_class or GRPO)
