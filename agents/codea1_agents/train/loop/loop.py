"""The training loop: train, evaluate, write, save. It starts a run or continues one."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from codea1_agents.interrupts import sigterm_interrupts
from codea1_agents.train.failures import LearnerLost, LearnersFailed, TrainingFailed, TrainingStopped
from codea1_agents.train.grpo.progress import Phase, Progress
from codea1_agents.train.loop.alarms import alarms_of, without_reward
from codea1_agents.train.loop.folder import (
    TrainingFolder,
    last_checkpoint,
    read_metrics,
    require_intact,
    step_of,
    stored_run,
)
from codea1_agents.train.loop.interrupts import Interrupts
from codea1_agents.train.loop.processor_time import processor_seconds
from codea1_agents.train.loop.resuming import facts_of, require_begun, require_same
from codea1_agents.train.ray_start import Wanted, ray_running, require_room
from codea1_agents.train.settings.loading import apply_changes, load_training
from codea1_agents.train.settings.options import TrainingConfig
from codea1_agents.train.sizing.fitting import require_fit
from codea1_agents.train.torch_threads import torch_threads
from codea1_env.errors import BrokenInput, UserError
from codea1_env.group_env import GroupEnv
from codea1_env.plugins import resolve
from codea1_env.sandbox import load_sandbox

Line = dict[str, Any]


class Watcher:
    """Receives the events of a run. This base class ignores them."""

    def begin(self, folder: Path, config: TrainingConfig, lines: Sequence[Line]) -> None:
        """Called before the first step, with the lines that the run has already."""

    def step(self, line: Line) -> None:
        """Called after each step."""

    def progress(self, progress: Progress) -> None:
        """Called when a part of a step is done; with remote runners or learners it may be called from a thread."""

    def note(self, text: str) -> None:
        """Called with a message for people."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that ended or was interrupted."""

    folder: Path
    steps: int
    """Steps done in all."""
    lines: tuple[Line, ...]
    """Lines of `metrics.jsonl`."""
    interrupted: bool = False
    models: Mapping[str, Path] = field(default_factory=dict)
    """Directories of the exported models, by module."""


def train(
    config: TrainingConfig | str | Path,
    *,
    out: Path | str | None = None,
    force: bool = False,
    watcher: Watcher | None = None,
    env: type[GroupEnv] | None = None,
) -> Finished:
    """Run a training from its first step.

    Args:
        config: settings, or a source for `load_training`.
        out: run folder, new or empty; None: `run.folder`, else a new one under `runs/`.
        force: start it even if it does not fit this machine.
        watcher: receives the events.
        env: class of the environments, which may pay otherwise than the rules; None: `code_a1_v0.group_env`.

    Raises:
        UserError: settings that make no run or do not fit this machine, a folder in use, or a full disk.
        TrainingFailed: the loss is not finite, a learner died, or an engine has old weights. The last checkpoint is
            intact.
    """
    full = config if isinstance(config, TrainingConfig) else load_training(config)
    folder = out or full.run.folder
    place = Path(folder) if folder else None
    return _run(full, place, None, watcher or Watcher(), force=force, env=env)


def resume(
    run: Path | str,
    changes: Iterable[str] | Mapping[str, Any] = (),
    *,
    config: TrainingConfig | None = None,
    force: bool = False,
    watcher: Watcher | None = None,
    env: type[GroupEnv] | None = None,
) -> Finished:
    """Continue a run from its last checkpoint, here or on another host.

    Args:
        run: its folder.
        changes: settings to change, as in `load_training`; only those that do not change the figures.
        config: settings that must agree with those of the run; None: the run's own.
        force: start it even if it does not fit this machine.
        watcher: receives the events.
        env: as in `train`; it must be the one with which the run began.

    Raises:
        UserError: the folder is not a run or is in use, or a setting differs that may not change.
        TrainingFailed: as in `train`.
    """
    run = Path(run)
    stored, _ = stored_run(run)
    config = apply_changes(config or stored, changes)
    require_begun(run, config)
    load_sandbox(config.game.sandbox)  # as below: the workers use it, but only here is known what the user has typed
    for player in (config.agents.coder, config.agents.tester):
        if player.agent:
            resolve("agents", player.agent.partition(",")[0])
    checkpoint = last_checkpoint(run)
    if checkpoint is not None and config.run.steps < step_of(checkpoint):
        raise UserError(f"{run}: run.steps must be at least {step_of(checkpoint)} (done), got {config.run.steps}")
    return _run(config, None, run, watcher or Watcher(), force=force, env=env)


def _run(
    config: TrainingConfig,
    out: Path | None,
    run: Path | None,
    watcher: Watcher,
    *,
    force: bool = False,
    env: type[GroupEnv] | None = None,
) -> Finished:
    if not force:
        require_fit(config)
    from codea1_agents.train.loop.building import grpo_config, require_loadable  # noqa: PLC0415  slow to import
    from codea1_agents.train.loop.held_out import require_evaluation  # noqa: PLC0415  slow to import

    require_evaluation(config.evaluation, config.game.sandbox)
    made = grpo_config(config)
    if env is not None:
        made.environment(env=env)
    require_loadable(made.models.values())
    facts = facts_of(config)
    if run is not None:
        require_same(run, facts)
    opened = TrainingFolder.create(out, config, facts) if run is None else TrainingFolder.open(run)
    with opened as folder, sigterm_interrupts():
        if run is not None:
            folder.store(config)
        try:
            return _run_to_end(config, made, folder, facts, watcher)
        except BaseException as error:
            if folder.is_used:
                if not isinstance(error, UserError | TrainingFailed):  # their messages say what is intact
                    watcher.note(folder.recovery_hint())
            elif isinstance(error, KeyboardInterrupt):
                watcher.note("no step was done, so nothing is kept" if run is None else "no step was done")
            if run is None:
                folder.discard_if_unused()
            raise


def _run_to_end(
    config: TrainingConfig, made: Any, folder: TrainingFolder, facts: Mapping[str, Any], watcher: Watcher
) -> Finished:
    """Run the loop; after the loss of a learner, once more from the last checkpoint."""
    restarts = Restarts(config.cluster.max_restarts, folder, watcher.note)
    processes = made.processes
    while True:
        try:
            return _run_loop(config, made, folder, facts, watcher, processes)
        except LearnerLost as error:
            restarts.prepare(error)
            processes = []  # it waits for a node that comes back
        gc.collect()  # the models of a runner in this process are part of reference cycles


@dataclass(slots=True)
class Restarts:
    """Starts a run again that has lost a learner, from its last checkpoint, as `resume` would continue it.

    All learners have ended then, which frees their GPUs and the collectives in which they waited. Ray and all runners
    start anew, too, but this process stays, and it holds the folder.
    """

    limit: int
    """0: none."""
    folder: TrainingFolder
    note: Callable[[str], object]
    """Receives a sentence for people."""
    _n: int = field(init=False, default=0)
    _from: int = field(init=False, default=-1)
    """Steps in the checkpoint of the restart before."""

    def prepare(self, error: Exception) -> None:
        """Prepare the folder for the next start, and say why there is one.

        Args:
            error: the loss.

        Raises:
            LearnersFailed: the run did not get further often enough.
            UserError: the disk.
        """
        lines = read_metrics(self.folder.path)
        step = lines[-1]["step"] + 1 if lines else 1
        fault = str(error).strip().splitlines()[-1]
        hint = self.folder.recovery_hint()  # waits for a checkpoint in progress
        checkpoint = last_checkpoint(self.folder.path)
        done = step_of(checkpoint) if checkpoint is not None else 0
        self._n = self._n + 1 if done == self._from else 1
        self._from = done
        if self._n > self.limit:
            tried = f"; restart {self.limit} of {self.limit} brought no new checkpoint" if self.limit else ""
            raise LearnersFailed(f"step {step}: {fault}{tried}; {hint}") from error
        place = f"the checkpoint of step {done}" if done else "the first step"
        self.note(f"step {step}: {fault}; starting again from {place} (restart {self._n} of {self.limit})")
        self.folder.append_restart({"step": step, "fault": fault, "from": done})
        self.folder.cut()


def _run_loop(
    config: TrainingConfig,
    made: Any,
    folder: TrainingFolder,
    facts: Mapping[str, Any],
    watcher: Watcher,
    processes: Iterable[Wanted],
) -> Finished:
    """Build everything and run the loop, from the last checkpoint if there is one."""
    from codea1_agents.train.loop.export import is_sharded_checkpoint  # noqa: PLC0415  slow to import
    from codea1_agents.train.loop.logs import TensorBoard  # noqa: PLC0415  slow to import

    checkpoint = last_checkpoint(folder.path)
    if checkpoint is not None and is_sharded_checkpoint(checkpoint) != made.is_sharded:
        held = "none" if made.is_sharded else "full"
        raise UserError(f"{checkpoint}: cannot be continued with these learners: set cluster.sharding={held}")
    done = step_of(checkpoint) if checkpoint is not None else 0
    lines = read_metrics(folder.path)
    with TensorBoard(config, folder.path, done, watcher.note) as log, torch_threads(config.cluster.torch_threads):
        watcher.progress(Progress(Phase.STARTING))
        with ray_running(made.n_cpus, config.cluster.address):
            require_room(processes)
            watcher.progress(Progress(Phase.LOADING))
            with _algorithm(made, checkpoint) as algorithm:
                watcher.begin(folder.path, config, tuple(lines))
                return _Loop(config, folder, algorithm, log, watcher, facts, lines, done).run()


@contextmanager
def _algorithm(made: Any, checkpoint: Path | None) -> Iterator[Any]:
    algorithm = made.build_algo()
    try:
        if checkpoint is not None:
            _restore(algorithm, checkpoint)
        yield algorithm
    except KeyboardInterrupt:
        algorithm.kill_remote_runners()
        raise
    finally:
        with suppress(Exception):  # the results are written, and Ray may have stopped
            algorithm.stop()


_DAMAGED = (OSError, EOFError, LookupError, ValueError, UnpicklingError)
"""Raised for files that are missing, cut or damaged."""


def _restore(algorithm: Any, checkpoint: Path) -> None:
    require_intact(checkpoint)
    try:
        algorithm.restore_from_path(str(checkpoint.resolve()))
    except (LearnerLost, *_DAMAGED) as error:
        is_of_learner = isinstance(error, LearnerLost)  # one that has read the files
        raised = getattr(error.__cause__, "cause", None) if is_of_learner else error
        if not isinstance(raised, _DAMAGED):
            raise
        fault = " ".join(str(raised).split()) or type(raised).__name__
        hint = "without this folder the run continues from the one before"
        raise BrokenInput(f"{checkpoint}: it cannot be restored ({fault}); {hint}") from error


@dataclass(slots=True)
class _Loop:
    """One run in progress."""

    config: TrainingConfig
    folder: TrainingFolder
    algorithm: Any
    log: Any
    watcher: Watcher
    facts: Mapping[str, Any]
    lines: list[Line]
    done: int
    """Steps that are done."""
    saved: int = field(init=False)
    """Steps that the last checkpoint holds."""
    _saved_at: float = field(init=False, default_factory=time.monotonic)
    _phase: Phase | None = field(init=False, default=None)
    _interrupts: Interrupts = field(init=False)

    def __post_init__(self) -> None:
        self.saved = self.done
        self._interrupts = Interrupts(
            self._may_discard,
            lambda: "the first evaluation" if self._phase is Phase.FIRST_EVALUATION else "this step",
            self.watcher.note,
        )

    def run(self) -> Finished:
        self.algorithm.watch(self._show)
        with self._interrupts.handle():
            try:
                self._run_steps()
            except KeyboardInterrupt:
                if not self._interrupts.discards_step:
                    raise
                self.algorithm.kill_remote_runners()
            if not self.folder.is_used:  # nothing is done
                raise KeyboardInterrupt
            if self.saved < self.done:
                self._save()
            self.folder.finish()
            is_over = self.done >= self.config.run.steps
            models = self._export() if is_over and self.config.checkpoints.export else {}
        return Finished(self.folder.path, self.done, tuple(self.lines), not is_over, models)

    def _run_steps(self) -> None:
        evaluation = self.config.evaluation
        if not self.lines and evaluation.every and evaluation.at_start:
            self._write({"step": 0, "evaluation": self._evaluate(Phase.FIRST_EVALUATION)})
        while self.done < self.config.run.steps and not self._interrupts.requested:
            self._step()
            self.folder.check()
            self._give_up_without_reward()
            options, minutes = self.config.checkpoints, (time.monotonic() - self._saved_at) / 60
            if _is_due(self.done, options.every) or 0 < options.every_minutes <= minutes:
                self._save()

    def _give_up_without_reward(self) -> None:
        """Save the run and end it where its coder has learned nothing for long.

        Raises:
            TrainingFailed: it has.
        """
        n_steps = self.config.run.give_up_after
        figures = [line["figures"] for line in self.lines[-n_steps - 1 :] if "figures" in line]
        alarm = without_reward(figures, n_steps) if "coder" in self.algorithm.settings.trained_roles else ""
        if alarm and self.done < self.config.run.steps:
            self._save()
            raise TrainingFailed(f"step {self.done}: {alarm}; {self.folder.recovery_hint()}")

    def _may_discard(self) -> bool:
        """Return whether the steps before the present one are saved, or the algorithm still is as after them."""
        if self._phase is Phase.SAMPLING and not self.config.rollout.overlap:
            return True  # with overlap, a checkpoint needs what the runners sample
        return self._phase is not Phase.SAVING and self.saved == self.done

    def _show(self, progress: Progress) -> None:
        self._phase = progress.phase
        self.watcher.progress(progress)

    def _step(self) -> None:
        begun, spent = time.perf_counter(), processor_seconds()
        with self._naming_failures(self.done + 1):
            learners = self.algorithm.train().get("learners", {})
        self.done += 1
        figures = self.algorithm.last_step.numbers(learners)
        times = self.algorithm.last_step.times(time.perf_counter() - begun)
        times["cpu_s"] = processor_seconds() - spent
        history = [line["figures"] for line in self.lines[-32:] if "figures" in line]
        line: Line = {"step": self.done, "figures": figures, "times": times, "alarms": alarms_of([*history, figures])}
        every = self.config.evaluation.every
        if _is_due(self.done, every) or (every and self.done == self.config.run.steps):
            line["evaluation"] = self._evaluate()
        if _is_due(self.done, self.config.logging.samples_every):
            self._keep_samples()
        self._write(line)

    @contextmanager
    def _naming_failures(self, step: int) -> Iterator[None]:
        """Convert `TrainingStopped` into an error that names the step and the intact checkpoint.

        Raises:
            LearnerLost: the run can start again.
        """
        try:
            yield
        except TrainingStopped as error:
            if isinstance(error, LearnerLost) and not self._interrupts.requested:
                raise
            fault = str(error).strip().splitlines()[-1]
            raise TrainingFailed(f"step {step}: {fault}; {self.folder.recovery_hint()}") from error

    def _write(self, line: Line) -> None:
        from codea1_agents.train.loop.logs import flat  # noqa: PLC0415  slow to import

        self.folder.append(line)
        self.lines.append(line)
        self.log.write(line["step"], flat(line))
        self.watcher.step(line)

    def _evaluate(self, phase: Phase = Phase.EVALUATING) -> dict[str, float]:
        self.algorithm.meter.begin(phase)
        with self._naming_failures(self.done):  # an evaluation hands weights over, too
            return {name: float(value) for name, value in self.algorithm.evaluate()["env_runners"].items()}

    def _keep_samples(self) -> None:
        from codea1_agents.train.loop.samples import write_samples  # noqa: PLC0415  slow to import

        trees = self.algorithm.last_trees[: self.config.logging.samples]
        problems, settings = self.algorithm.problems, self.algorithm.settings
        self.folder.replace(
            f"samples/step-{self.done:04d}", lambda place: write_samples(place, trees, problems, settings, self.facts)
        )

    def _save(self) -> None:
        self.algorithm.meter.begin(Phase.SAVING)
        algorithm, keep = self.algorithm, self.config.checkpoints.keep
        with self._naming_failures(self.done):
            self.folder.save(
                self.done, lambda place: algorithm.save_to_path(str(place.resolve())), algorithm.book.snapshot, keep
            )
        self.saved, self._saved_at = self.done, time.monotonic()

    def _export(self) -> dict[str, Path]:
        from codea1_agents.train.loop.export import export_module  # noqa: PLC0415  slow to import

        models = self.algorithm.config.models
        return {
            module: self.folder.replace(
                f"models/{module}",
                partial(export_module, self._state_of(module), settings),  # the folder is the last argument
            )
            for module, settings in models.items()
        }

    def _state_of(self, module: str) -> Mapping[str, Any]:
        """Return the weights of a module: from the learners, or if they hold parts, from the last checkpoint."""
        if self.algorithm.config.is_sharded:
            from codea1_agents.train.loop.export import state_in  # noqa: PLC0415  slow to import

            self.folder.finish()
            checkpoint = last_checkpoint(self.folder.path)
            assert checkpoint is not None
            return state_in(checkpoint, module, self.folder.path)
        state = self.algorithm.learner_group.get_state(components=f"learner/rl_module/{module}")
        return dict(state["learner"]["rl_module"][module])


def _is_due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0
