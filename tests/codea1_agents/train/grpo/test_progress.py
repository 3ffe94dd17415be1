"""Progress of a step: counted in the driver, whoever reports it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.grpo import ON_RAY, built
from tests.support.waiting import wait_until

pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.train.grpo.progress import Meter, Part, Phase, Progress

pytestmark = ON_RAY


def test_counts_end_at_the_total_and_late_reports_are_ignored() -> None:
    shown: list[Progress] = []
    meter = Meter()
    meter.show = shown.append
    meter.begin(Phase.SAMPLING, 4)
    meter.report(Part.PROGRAMS, 3)
    meter.report(Part.PROGRAMS, 3)  # of a lost runner
    meter.begin(Phase.LEARNING, 2)
    meter.report(Part.JUDGED, 4)
    told = [str(each) for each in shown]
    assert told == ["sampling", "sampling: programs 3 of 4", "sampling: programs 4 of 4", "learning"]


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
        ends = [Progress(Phase.LEARNING, n, {Part.MINIBATCHES: n}) for n in range(n_minibatches, 2 * n_minibatches + 1)]
        assert wait_until(lambda: shown[-1] in ends), shown
    phases = [each.phase for each in shown]
    assert phases == sorted(phases, key=[Phase.SAMPLING, Phase.LEARNING].index)
    sampled = [each for each in shown if each.phase is Phase.SAMPLING][-1]
    assert sampled.total == 4
    if not n_remote:  # else the last reports may come while the learners begin
        assert sampled.done == dict.fromkeys((Part.PROGRAMS, Part.SUITES, Part.JUDGED), 4)
        assert str(shown[1]) == "sampling: programs 2 of 4"
