"""One pool per node of a Ray cluster: the same reports as on one machine, also when a node is lost."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

ray = pytest.importorskip("ray", reason="Ray is not installed")
from codea1_agents.ray_sandbox import RaySandbox  # noqa: E402
from codea1_env.facts.problem_kinds import Script  # noqa: E402
from codea1_env.facts.verdicts import OutcomeKind  # noqa: E402
from codea1_env.sandbox import Call, Guarantee, Job, load_sandbox  # noqa: E402
from codea1_env.sandbox.local import LocalSandbox  # noqa: E402
from tests.support.ray_clusters import ray_cluster  # noqa: E402  -- needs Ray

pytestmark = pytest.mark.ray

DOUBLE = "def f(x): return 2 * x"
SLEEP = "import time\ndef f(x): time.sleep(x); return x"


def job(argument: float, program: str = DOUBLE) -> Job:
    return Job(program, "f", (Call(f"f({argument!r})"),))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with ray_cluster({"num_cpus": 1}, {"num_cpus": 1}) as cluster:
        yield cluster


@pytest.fixture
def sandbox(cluster: Any) -> Iterator[RaySandbox]:
    sandbox = RaySandbox(1, jobs_per_request=2)
    yield sandbox
    sandbox.close()


def without_clocks(reports: list[Any]) -> list[Any]:
    return [replace(report, cpu_s=0.0, call_s=()) for report in reports]


def test_reports_are_those_of_one_machine_in_the_order_of_the_jobs(sandbox: RaySandbox) -> None:
    jobs = [*map(job, range(9)), job(1, "def f(x): raise KeyError(x)"), job(1, "not python"), Job(DOUBLE, "g")]
    jobs.append(Job("print(2 * int(input()))", "run", (Call("run('7')"), Call("run('x')")), script=Script.WORDS))
    with LocalSandbox(1) as local:
        assert without_clocks(sandbox.run(jobs)) == without_clocks(local.run(jobs))


def test_both_nodes_work(sandbox: RaySandbox) -> None:
    sandbox.run([job(0.05, SLEEP)] * 12)
    pools = [node.pool for node in sandbox._nodes.values()]
    assert len({ray.get(pool.process_id.remote()) for pool in pools}) == 2
    assert sandbox.guarantee in Guarantee
    assert load_sandbox("ray").name == "ray"


def pools_of(sandbox: RaySandbox) -> dict[str, int]:
    """The process of each node's pool; a node whose pool is not ready yet is not among them."""
    return {name: ray.get(node.pool.process_id.remote()) for name, node in sandbox._nodes.items()}


def test_the_processes_of_a_node_share_one_pool(sandbox: RaySandbox) -> None:
    other = pickle.loads(pickle.dumps(sandbox))

    @ray.remote(num_cpus=0)
    def elsewhere(sandbox: RaySandbox) -> tuple[list[Any], dict[str, int]]:
        reports = sandbox.run([job(3), job(4), job(5)])
        return reports, pools_of(sandbox)

    sandbox.run([job(1)])
    reports, theirs = ray.get(elsewhere.remote(other))
    assert [report.outcomes[0].value for report in reports] == [b"6", b"8", b"10"]
    mine = pools_of(sandbox)
    shared = mine.keys() & theirs.keys()
    assert shared
    assert all(mine[name] == theirs[name] for name in shared)


def test_what_a_lost_pool_had_not_answered_is_run_again(sandbox: RaySandbox) -> None:
    sandbox.run([job(1)])
    victim = next(node for node in sandbox._nodes.values() if node.is_near)
    process = ray.get(victim.pool.process_id.remote())
    killer = threading.Timer(0.4, os.kill, (process, signal.SIGKILL))
    killer.start()
    reports = sandbox.run([job(0.3, SLEEP)] * 8)
    killer.join()
    assert [report.outcomes[0].value for report in reports] == [b"0.3"] * 8


def test_what_is_lost_too_often_is_our_failure(cluster: Any) -> None:
    sandbox = RaySandbox(1, max_attempts=1)
    sandbox.run([job(1)])
    pools = [node.pool for node in sandbox._nodes.values()]
    for pool in pools:
        ray.kill(pool)
    (report,) = sandbox.run([job(1)])
    assert report.load.kind is OutcomeKind.INTERNAL_ERROR
    assert "lost" in report.load.message
    later = [sandbox.run([job(2)])[0] for _ in pools]  # the loss of each is met once
    assert later[-1].outcomes[0].value == b"4"


def test_a_request_holds_a_job() -> None:
    with pytest.raises(ValueError, match="jobs_per_request must be at least 1"):
        RaySandbox(jobs_per_request=0)


def test_a_node_that_goes_away_costs_no_job(cluster: Any, sandbox: RaySandbox) -> None:
    node = cluster.add_node(num_cpus=4)
    cluster.wait_for_nodes()
    deadline = time.monotonic() + 60
    while len(sandbox._nodes) < 3 and time.monotonic() < deadline:  # the driver hears of it a little later
        sandbox.run([job(1)] * 20)
    assert len(sandbox._nodes) == 3
    leaving = threading.Timer(0.3, cluster.remove_node, (node,), {"allow_graceful": False})
    leaving.start()
    reports = sandbox.run([job(0.2, SLEEP)] * 24)
    leaving.join()
    assert [report.outcomes[0].value for report in reports] == [b"0.2"] * 24
