"""Measures what the driver of a training does per tree, with up to 10,000 trees in flight, and what saturates first.

    python benchmarks/at_scale.py [--trees 256 1024 10000] [--json]

Runners and learners are fake, the driver is not. It reads the Mistake Book for each task, gets from Ray actors what it
has to know of trees, plans, has actors in the place of learners fetch their responses, computes figures, records the
trees in a book on disk that already holds 100,000 entries, hands weights over, and pickles a checkpoint. The actors
multiply some trees that the real sandbox judged: each copy has its own tokens (300 to 700 per reply, prompts of 700),
texts and reports. Each number of trees has its own process. Seconds are processor seconds of the driver; those of the
hand-over are wall-clock seconds.

The last table takes the largest point to 64 and 1,024 GPUs. Each GPU keeps the problems that it has in a preset of the
paper with eight GPUs, so a step takes as long as there: by the arithmetic of `codea1 train --dry-run`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import pickle
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from measuring import machine, printed_by
from rich.console import Console
from rich.table import Table

_ACTORS = 2
_TREES_PER_RUNNER = 64
_CALLS_AHEAD = 4  # results of actors that wait in the object store
_PROMPT, _REPLY = 700, (300, 701)
_PROBLEMS = 10_000
_MOST_PICKLED = 128  # trees of a checkpoint; a pickle remembers each object, and so takes more memory than the trees
_HANDOVER_MB, _HANDOVERS = 256, 4
_PRESETS = ("paper-1.5b", "paper-7b")
_GPUS, _GPU = (64, 1024), "H100 80GB"
_GPUS_PER_NODE, _CORES_PER_NODE = 8, 128
_LINK_BYTES = 12.5e9
"""Bytes per second between two nodes (100 Gbit/s): assumed, as are the cores of a node and the memory of the driver."""
_DRIVER_BYTES = 512e9
_JUDGED_MS = 8.4 + 1.8  # processor time of a candidate with 8 suites: docs/benchmarks.md
_OF_DRIVER = ("tasks", "receive", "figures", "record", "plan")
GB = 1e9


# -- what is fake ----------------------------------------------------------------------------------


def judged_trees(number: int) -> list[Any]:
    """Return trees that the sandbox has judged, without tokens."""
    from workload import groups  # noqa: PLC0415

    from codea1_agents.train.grpo.hyperparameters import Shape  # noqa: PLC0415
    from codea1_agents.train.grpo.rollout import (  # noqa: PLC0415
        Answer,
        GroupEnvs,
        Task,
        TreeRoller,
    )
    from codea1_env.group_env import GroupEnv  # noqa: PLC0415
    from codea1_env.problems import ProblemSet  # noqa: PLC0415

    made, settings = groups(number, 0), settings_of_paper()
    coder = SimpleNamespace(answer=lambda ts, _: [Answer(made[t.tree].coder_replies[t.candidate]) for t in ts])
    tester = SimpleNamespace(
        answer=lambda ts, _: [Answer(made[t.tree].tester_replies[t.candidate][t.suite]) for t in ts]
    )
    problems = ProblemSet("workload", tuple(each.problem for each in made))
    shape = Shape(problems_at_once=number, keep_zero_std_groups=True)
    envs = GroupEnvs(GroupEnv, {}, problems=problems, rules=settings.rules, shape=shape, settings=settings)
    tasks = [
        Task(place, each.problem.id, tuple(case.to_valid_case() for case in each.book))
        for place, each in enumerate(made)
    ]
    trees = TreeRoller(envs, {"coder": coder, "tester": tester}).roll(tasks).trees
    envs.close()
    return list(trees)


def settings_of_paper() -> Any:
    """Return the rules of the paper's presets; both roles learn."""
    from codea1_agents.train.grpo.settings import ModelSettings, TrainingSettings  # noqa: PLC0415
    from codea1_env.rules.ruleset import preset  # noqa: PLC0415

    roles = ("coder", "tester")
    models = {role: ModelSettings(role, sharded=False) for role in roles}
    return TrainingSettings(rules=preset("release"), models=models, module_by_role=dict(zip(roles, roles, strict=True)))


def tree_of(task: Any, judged: bytes) -> Any:
    """Return the tree of a task: a copy of a judged one, with tokens of its own for the responses that train."""
    import numpy as np  # noqa: PLC0415

    from codea1_agents.train.grpo.sampling import ResponseSize  # noqa: PLC0415

    tree, rng = pickle.loads(judged), np.random.default_rng(task.number)

    def with_tokens(group: Sequence[Any], *, is_trained: bool = True) -> tuple[Any, ...]:
        prompt = tuple(rng.integers(0, 150_000, _PROMPT).tolist())
        found = []
        for answer in group:
            n = int(rng.integers(*_REPLY))
            response = _response(rng, n) if is_trained else ResponseSize(n, is_cut=False)
            found.append(replace(answer, prompt=prompt, response=response))
        return tuple(found)

    suites = tuple(with_tokens(group, is_trained=kept) for group, kept in zip(tree.suites, tree.kept, strict=True))
    judged_again = replace(tree.judged, report=replace(tree.judged.report, problem_id=task.problem_id))
    candidates = with_tokens(tree.candidates)
    return replace(tree, task=task, candidates=candidates, suites=suites, judged=judged_again)


def _response(rng: Any, n_tokens: int) -> Any:
    from codea1_agents.models.sampling import Response  # noqa: PLC0415

    tokens, log_probs = rng.integers(0, 150_000, n_tokens), -rng.random(n_tokens, dtype="float32")
    return Response(tuple(tokens.tolist()), tuple(log_probs.tolist()), is_cut=False)


class FakeRunner:
    """Stands for a `TreeEnvRunner`: it copies trees instead of sampling, and receives weights as a runner does."""

    worker_index = 1

    def __init__(self, judged: Sequence[bytes]) -> None:
        from ray.rllib.utils.metrics.metrics_logger import MetricsLogger  # noqa: PLC0415

        from codea1_agents.train.grpo.weights import WeightReceiver  # noqa: PLC0415

        gc.disable()  # the copies have no cycles, and this process is not measured
        self._judged, self.settings, self.metrics = judged, settings_of_paper(), MetricsLogger(root=False)
        self.config = SimpleNamespace(settings=settings_of_paper)  # of a learner, which it stands for, too
        model, settings = fake_model()
        self._receiver = WeightReceiver({"coder": model}, {"coder": settings})

    def apply(self, work: Callable[[Any], Any]) -> Any:
        """Return the result of some work with this runner, as RLlib's actors do."""
        return work(self)

    def roll_out(self, tasks: Sequence[Any], report: Any) -> Any:
        """Return one tree per task, in no time."""
        from codea1_agents.train.grpo.rollout import RolloutResult  # noqa: PLC0415

        trees = [tree_of(task, self._judged[task.number % len(self._judged)]) for task in tasks]
        return RolloutResult(tuple(trees), 0.0, 0.0)

    def receive_weights(self, piece: Any) -> None:
        """Copy a piece into the model."""
        self._receiver.receive(piece)

    def use_weights(self, version: int) -> None:
        """Verify the weights."""
        self._receiver.verify(version)


class FakeGroup:
    """Stands for RLlib's group of runners: few actors do the work of many runners, in turn."""

    def __init__(self, actors: Sequence[Any], n_runners: int) -> None:
        self._actors, self._n_runners = actors, n_runners
        self.n_bytes = 0
        """Of the results so far."""

    def healthy_worker_ids(self) -> list[int]:
        """Return the numbers of all runners."""
        return list(range(1, self._n_runners + 1))

    def foreach_env_runner(self, work: Any, *, remote_worker_ids: Sequence[int], local_env_runner: bool) -> list[Any]:
        """Return the outcome of each runner's work."""
        assert not local_env_runner
        found = in_turn(self._actors, work if isinstance(work, list) else [work] * len(remote_worker_ids))
        self.n_bytes += sum(len(each.result) for each in found if isinstance(each.result, bytes))
        return found


def in_turn(actors: Sequence[Any], works: Sequence[Callable[[Any], Any]]) -> list[Any]:
    """Return what some actors return for many works."""
    import ray  # noqa: PLC0415

    pending, found = [], []
    for number, each in enumerate(works):
        pending.append(actors[number % len(actors)].apply.remote(each))
        if len(pending) > _CALLS_AHEAD:
            found.append(ray.get(pending.pop(0)))
    return found + [ray.get(each) for each in pending]


def fake_model() -> tuple[Any, Any]:
    """Return a model of bfloat16 weights and its settings; both are the same in each process."""
    import torch  # noqa: PLC0415

    from codea1_agents.train.grpo.settings import ModelSettings  # noqa: PLC0415

    torch.manual_seed(0)
    width = 4096
    layers = [torch.nn.Linear(width, width, bias=False) for _ in range(_HANDOVER_MB * 2**20 // (2 * width**2))]
    return torch.nn.Sequential(*layers).bfloat16(), ModelSettings("none", sampling_dtype="bfloat16", sharded=False)


class FakeLearners:
    """Stands for the group of learners: one in this process has the weights, and actors fetch the responses of many."""

    def __init__(self, actors: Sequence[Any] = ()) -> None:
        self._actors = actors
        model, settings = fake_model()
        self.module = {"coder": SimpleNamespace(unwrapped=lambda: SimpleNamespace(model=model, settings=settings))}
        self._weights_seq_no = 1

    def foreach_learner(self, get: Callable[[Any], Any]) -> list[Any]:
        """Return the result of the learner."""
        found = get(self)
        return [SimpleNamespace(get=lambda: found)]

    def each(self, works: Sequence[Callable[[Any], Any]]) -> list[Any]:
        """Return what learners return; without their responses, which here would fill the memory of one machine."""
        return [("", lost) for _, lost in in_turn(self._actors, works)]


def driver_of(n_trees: int, book: Any, group: FakeGroup, learners: FakeLearners) -> Any:
    """Return the driver itself, without RLlib's parts."""
    from codea1_agents.train.grpo.algorithm import GRPO  # noqa: PLC0415

    class Driver(GRPO):  # type: ignore[misc]  # Ray has no types
        env_runner = None
        iteration = 0
        trial_id = "at-scale"

        def __init__(self) -> None:
            self.settings, self.book, self.env_runner_group = settings_of_paper(), book, group
            self.learner_group = learners
            self.problems = [SimpleNamespace(id=f"problem {number}") for number in range(_PROBLEMS)]
            n_learners = -(-n_trees // _TREES_PER_RUNNER)
            of_plans = {"num_learners": n_learners, "minibatches_per_epoch": 2, "turns": 1, "advantages": "sum"}
            self.config = SimpleNamespace(problems_per_step=n_trees, **of_plans)
            self._next_task = 0

        def restore_env_runners(self, env_runner_group: Any) -> list[int]:
            return []

    return Driver()


# -- one number of trees ---------------------------------------------------------------------------


class Clock:
    """Collects processor seconds of this process by part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Add the seconds of a block to a part."""
        begun = time.process_time()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - begun


class Sink:
    """Counts bytes that are written to it."""

    n_bytes = 0

    def write(self, data: bytes) -> int:
        """Count some bytes."""
        self.n_bytes += len(data)
        return len(data)


def run_arm(n_trees: int, n_entries: int) -> dict[str, Any]:
    """Return the figures of one step with so many trees, and a book that holds so many entries before."""
    import ray  # noqa: PLC0415
    from book import fill, filling  # noqa: PLC0415

    from codea1_env.book.store import MistakeBook  # noqa: PLC0415

    ray.init("local", num_cpus=_ACTORS, include_dashboard=False, log_to_driver=False, object_store_memory=int(5e9))
    judged = [pickle.dumps(each) for each in judged_trees(8)]
    actors = [ray.remote(num_cpus=1)(FakeRunner).remote(judged) for _ in range(_ACTORS)]
    with tempfile.TemporaryDirectory(prefix="codea1-at-scale-") as folder:
        book = MistakeBook(Path(folder) / "book.sqlite")
        names = [f"problem {number}" for number in range(_PROBLEMS)]
        fill(book, filling(names, n_entries), at_round=1)
        found = measured(n_trees, book, actors)
        book.close()
    ray.shutdown()
    return found


def measured(n_trees: int, book: Any, actors: Sequence[Any]) -> dict[str, Any]:
    """Return the figures of a step: the parts in the order of `GRPO.training_step`."""
    from codea1_agents.train.grpo.metrics import mean_figures  # noqa: PLC0415

    group, clock = FakeGroup(actors, -(-n_trees // _TREES_PER_RUNNER)), Clock()
    driver = driver_of(n_trees, book, group, FakeLearners(actors))
    before, begun = resident_bytes(), time.perf_counter()
    with clock.part("tasks"):
        tasks = driver._next_tasks()
    with clock.part("receive"):
        rolled = driver.pool().roll_out(tasks)
    held = resident_bytes() - before
    with clock.part("plan"):
        rolled, batch, _ = driver._assign(rolled)
    trees = rolled.trees
    with clock.part("figures"):
        mean_figures(trees)
    recording = time.perf_counter()
    with clock.part("record"):
        deltas = driver._record(trees)
    recorded_s = time.perf_counter() - recording
    step_s = time.perf_counter() - begun
    with clock.part("snapshot"):
        snapshot = len(book.snapshot())
    ahead, sink = replace(rolled, trees=rolled.trees[:_MOST_PICKLED]), Sink()
    with clock.part("pickle"):
        pickle.dump(driver._with_trees(ahead), sink)
    n_pickled = len(ahead.trees)
    return {
        "trees": len(trees),
        "cpu_ms_per_tree": {
            name: 1000 * seconds / (n_pickled if name == "pickle" else n_trees)
            for name, seconds in clock.seconds.items()
        },
        "bytes_per_tree": {
            "received": group.n_bytes / n_trees,
            "held": held / n_trees,
            "planned": len(pickle.dumps(batch[:_MOST_PICKLED])) / len(batch[:_MOST_PICKLED]) * len(batch) / n_trees,
            "checkpoint": sink.n_bytes / n_pickled,
            "added to the book": sum(each.added for each in deltas) / n_trees * snapshot / max(book.size(), 1),
        },
        "record_wall_ms": 1000 * recorded_s / n_trees,
        "book": {"entries": book.size(), "bytes": snapshot, "added_per_tree": sum(e.added for e in deltas) / n_trees},
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GB,
        "step_wall_s": step_s,
        "handover_s_per_gb": handover(actors),
    }


def handover(actors: Sequence[Any]) -> dict[str, float]:
    """Return the seconds per GB of a hand-over to one receiver and to two on one node."""
    from codea1_agents.train.grpo.runners import RunnerPool  # noqa: PLC0415

    learners, found = FakeLearners(), {}
    for n in (1, len(actors)):
        group, times = FakeGroup(actors[:n], n), []
        for _ in range(_HANDOVERS):
            begun = time.perf_counter()
            RunnerPool(group, learners, print, 0).send_weights(range(n))
            times.append(time.perf_counter() - begun)
        found[str(n)] = statistics.median(times[1:]) / (_HANDOVER_MB * 2**20 / GB)  # the first one warms up
    return found


def resident_bytes() -> int:
    """Return the memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# -- arithmetic ------------------------------------------------------------------------------------


def saturation(point: dict[str, Any], preset: str, n_gpus: int) -> dict[str, Any]:
    """Return the seconds of each part that every step waits for, or uses up, on so many GPUs."""
    from codea1_agents.train.settings.loading import load_training  # noqa: PLC0415
    from codea1_agents.train.sizing.devices import parse_devices  # noqa: PLC0415
    from codea1_agents.train.sizing.run_size import size_of  # noqa: PLC0415

    config = load_training(preset)
    size = size_of(config, parse_devices(f"8 x {_GPU}"))
    assert size.seconds is not None
    trees, n_nodes = config.rollout.problems_per_step * n_gpus // 8, n_gpus // _GPUS_PER_NODE
    ms, n_bytes = point["cpu_ms_per_tree"], point["bytes_per_tree"]
    weights = weights_bytes(preset)
    copied = point["handover_s_per_gb"]["1"] * weights / GB
    book_s = trees * (ms["tasks"] + ms["record"]) / 1000
    seconds = {
        "driver, without the book": trees * sum(ms[name] for name in _OF_DRIVER) / 1000 - book_s,
        "book": book_s,
        "network of the driver: trees": trees * (n_bytes["received"] + n_bytes["planned"]) / _LINK_BYTES,
        "hand-over: copies of one piece after the other": copied,
        "hand-over: the driver's node sends to each node": n_nodes * weights / _LINK_BYTES,
        "sandbox, beside sampling": trees * config.rollout.n_candidates * _JUDGED_MS / 1000 / n_nodes / _CORES_PER_NODE,
    }
    first = max(seconds, key=seconds.__getitem__)
    memory = trees * (n_bytes["held"] + n_bytes["received"]) / GB
    return {
        "preset": preset,
        "gpus": n_gpus,
        "trees": trees,
        "step_s": size.seconds.total,
        "seconds": seconds,
        "shares": {name: value / size.seconds.total for name, value in seconds.items()},
        "first": first,
        "driver_gb": memory,
        "driver_memory_share": memory * GB / _DRIVER_BYTES,
        "checkpoint_gb": trees * n_bytes["checkpoint"] / GB,
    }


def weights_bytes(preset: str) -> int:
    """Return the bytes that both roles hand over in bfloat16."""
    from codea1_agents.models.shapes import shape_of  # noqa: PLC0415
    from codea1_agents.train.settings.loading import load_training  # noqa: PLC0415
    from codea1_agents.train.settings.run_parts import models_of  # noqa: PLC0415

    return sum(2 * shape_of(each.path).parameters for each in models_of(load_training(preset)).values())


def growth(points: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return how much more a tree costs at the last point than at the first; 1 is linear growth."""
    first, last = points[0]["cpu_ms_per_tree"], points[-1]["cpu_ms_per_tree"]
    return {name: last[name] / first[name] for name in first if first[name]}


# -- all of it -------------------------------------------------------------------------------------


def run_in_process(n_trees: int, n_entries: int) -> dict[str, Any]:
    """Measure one number of trees in its own process."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_AUTH_MODE": "disabled", "TOKENIZERS_PARALLELISM": "0"}
    return printed_by([__file__, "--arm", str(n_trees), "--book", str(n_entries)], environment)


def show(found: dict[str, Any]) -> None:
    """Print tables."""
    console, points = Console(width=120), found["points"]
    table = Table("per tree", *(f"{each['trees']:,} trees" for each in points), "growth")
    for name, ratio in found["growth"].items():
        table.add_row(f"{name}, ms", *(f"{each['cpu_ms_per_tree'][name]:.2f}" for each in points), f"{ratio:.2f}")
    table.add_row("record, wall-clock ms", *(f"{each['record_wall_ms']:.2f}" for each in points), "")
    for name in points[0]["bytes_per_tree"]:
        table.add_row(f"{name}, kB", *(f"{each['bytes_per_tree'][name] / 1000:,.0f}" for each in points), "")
    table.add_row("in all: peak memory of the driver, GB", *(f"{each['peak_gb']:.1f}" for each in points), "")
    table.add_row("entries of the book", *(f"{each['book']['entries']:,}" for each in points), "")
    table.add_row("snapshot of the book, MB", *(f"{each['book']['bytes'] / 1e6:,.0f}" for each in points), "")
    table.add_row("hand-over to 1; 2 receivers, s per GB", *map(_handover_cell, points), "")
    console.print(table)
    table = Table("seconds of a step", *(f"{each['preset']}, {each['gpus']:,} GPUs" for each in found["scaled"]))
    table.add_row("trees", *(f"{each['trees']:,}" for each in found["scaled"]))
    table.add_row("step of the models", *(f"{each['step_s']:.0f}" for each in found["scaled"]))
    for name in found["scaled"][0]["seconds"]:
        cells = (f"{each['seconds'][name]:.1f} ({each['shares'][name]:.0%})" for each in found["scaled"])
        table.add_row(name, *cells)
    table.add_row("memory of the driver, GB", *(f"{each['driver_gb']:.0f}" for each in found["scaled"]))
    table.add_row("trees ahead in a checkpoint, GB", *(f"{each['checkpoint_gb']:.1f}" for each in found["scaled"]))
    console.print(table)
    for each in found["scaled"]:
        share = each["shares"][each["first"]]
        console.print(f"first on {each['gpus']:,} GPUs, {each['preset']}: {each['first']}, {share:.0%} of a step")
    console.print(f"{found['machine']}; {found['wall_s']:.0f} s")


def _handover_cell(point: dict[str, Any]) -> str:
    return "; ".join(f"{seconds:.1f}" for seconds in point["handover_s_per_gb"].values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, nargs="+", default=[256, 1024, 10_000])
    parser.add_argument("--book", type=int, default=100_000, help="entries before the step")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--arm", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.arm is not None:
        print(json.dumps(run_arm(options.arm, options.book)))
        return
    begun, facts = time.perf_counter(), machine()
    points = [run_in_process(each, options.book) for each in options.trees]
    found = {
        "machine": facts,
        "points": points,
        "growth": growth(points),
        "scaled": [saturation(points[-1], preset, n_gpus) for preset in _PRESETS for n_gpus in _GPUS],
        "wall_s": time.perf_counter() - begun,
    }
    print(json.dumps(found, indent=2)) if options.json else show(found)


if __name__ == "__main__":
    main()
