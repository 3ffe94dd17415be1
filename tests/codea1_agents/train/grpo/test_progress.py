"""Progress of a step: counted in the driver, whoever reports it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.grpo import ON_RAY, built
from tests.support.waiting import wait_until

pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.models.sampling import Response
from codea1_agents.train.grpo import progress
from codea1_agents.train.grpo.progress import Done, Meter, Part, Phase, Progress, counted_replies

pytestmark = ON_RAY


def test_counts_end_at_the_total_and_late_reports_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    shown: list[Progress] = []
    meter = Meter()
    meter.show = shown.append
    for _ in range(2):
        meter.begin(Phase.SAMPLING, {Part.PROGRAMS: 4, Part.SUITES: 8, Part.JUDGED: 4})
        meter.report(Done(Part.PROGRAMS, 3, n_tokens=300))
        meter.report(Done(Part.PROGRAMS, 3, n_tokens=300, n_cut=1))  # of a lost runner
        meter.report(Done(Part.SUITES, 5, n_tokens=200, n_cut=1))
        meter.begin(Phase.LEARNING)
        meter.report(Done(Part.JUDGED, 4))
        meter.begin(Phase.LEARNING, {Part.MINIBATCHES: 2})
        meter.report(Done(Part.MINIBATCHES))
    first, second = ([str(each) for each in shown[part]] for part in (slice(0, 7), slice(7, 14)))
    assert first == [
        "sampling",
        "sampling: programs 3 of 4, 30 tokens/s",
        "sampling: programs 4 of 4, 1 cut, 30 tokens/s",
        "sampling: suites 5 of 8, 2 cut, 27 tokens/s",
        "learning",
        "learning",
        "learning: minibatches 1 of 2",
    ]
    assert second[1] == "sampling: programs 3 of 4, 30 tokens/s, left 0:20"
    assert second[6] == "learning: minibatches 1 of 2"


def test_replies_are_reported_as_they_end_but_not_each_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    reports: list[Done] = []
    with counted_replies(Part.SUITES, 8, reports.append) as on_end:
        for second in (0.1, 0.2, 0.7, 0.8):
            now[0] = second
            on_end(Response((1, 2), (0.0, 0.0), is_cut=second > 0.5))
    assert reports == [Done(Part.SUITES, 3, 6, 1), Done(Part.SUITES, 5, 2, 1)]


@pytest.mark.parametrize("n_remote", [0, 1])
def test_an_iteration_reports_all_problems_and_minibatches(config: Any, n_remote: int) -> None:
    config.training(minibatches_per_epoch=2, epochs_per_step=2)
    config.env_runners(num_env_runners=n_remote, num_cpus_per_env_runner=0.5)
    config.learners(num_learners=n_remote)
    shown: list[Progress] = []
    with built(config) as algorithm:
        algorithm.watch(shown.append)
        algorithm.train()
        n_minibatches = 2 * len(algorithm.last_step.n_trained)  # two epochs; equal prompts share a minibatch
        ends = [{Part.MINIBATCHES: n} for n in range(n_minibatches, 2 * n_minibatches + 1)]
        assert wait_until(lambda: shown[-1].done in ends and shown[-1].totals == shown[-1].done), shown
    phases = [each.phase for each in shown]
    assert phases == sorted(phases, key=[Phase.SAMPLING, Phase.LEARNING].index)
    sampled = [each for each in shown if each.phase is Phase.SAMPLING][-1]
    assert sampled.totals[Part.JUDGED] == 4
    if not n_remote:  # else the last reports may come while the learners begin
        assert sampled.done == sampled.totals
        assert sampled.n_tokens == algorithm.last_step.n_tokens
