"""Which requests run, wait, and are refused; nobody pays for clients that leave."""

from __future__ import annotations

import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from codea1_env.problems import ProblemSet
from codea1_env.sandbox import Job, Sandbox
from codea1_env.sandbox.remote import RemoteSandbox
from codea1_env.service.bounds import ServiceBounds
from tests.support.serving import RIGHT, SUITE, WRONG, busy, post, sent, serving
from tests.support.waiting import wait_until


def test_more_than_the_places_are_told_429(sandbox: Sandbox) -> None:
    with busy(sandbox, n_running=1, n_waiting=1) as (server, gated, pool, running):
        statuses = [pool.submit(post, server) for _ in range(2)]
        assert wait_until(lambda: any(each.done() for each in statuses))
        (told,) = [each.result() for each in statuses if each.done()]
        assert told == (429, {"detail": "the server has as many requests as it can hold: try again"})
        gated.gate.set()
        assert running.result()[0] == 200
        assert sorted(each.result()[0] for each in statuses) == [200, 429]


@pytest.mark.slow
def test_a_client_waits_for_a_full_server(sandbox: Sandbox) -> None:
    bounds = ServiceBounds(n_running=1, n_waiting=1)
    with serving(sandbox, bounds=bounds) as server, ThreadPoolExecutor(8) as pool:
        remote = RemoteSandbox(server.url)
        jobs = [Job(f"def f():\n    return {n}", "f") for n in range(16)]
        assert all(reports[0].loaded for reports in pool.map(lambda job: remote.run([job]), jobs))


@pytest.mark.slow
def test_many_clients_get_the_verdicts_of_the_library(sandbox: Sandbox, toys: ProblemSet) -> None:
    bounds = ServiceBounds(n_running=4, n_waiting=4)
    with serving(sandbox, toys, bounds=bounds) as server, ThreadPoolExecutor(16) as pool:
        asked = {"problem_ids": [toys[0].id], "suites": [SUITE]}

        def ask(number: int) -> tuple[int, bool]:
            program = WRONG if number % 3 else RIGHT
            status, answer = post(server, "/judge", asked | {"programs": [f"{program}\n# {number}"]})
            return status, status != 200 or answer["items"][0]["coder"] == (0.5 if number % 3 else 1.0)

        found = list(pool.map(ask, range(200)))
        assert all(is_right for _, is_right in found)
        statuses = Counter(status for status, _ in found)
        assert statuses.keys() <= {200, 429}
        assert statuses[200]


def test_a_request_whose_client_has_left_does_not_run(sandbox: Sandbox) -> None:
    with busy(sandbox, n_running=1) as (server, gated, _, running):
        with socket.create_connection(server.address, timeout=30) as client:
            client.sendall(sent())
            admission = server.admission
            assert wait_until(lambda: admission.n_open == 2)
        gated.gate.set()
        assert running.result()[0] == 200
        assert wait_until(lambda: admission.n_open == 0)
        assert not gated.entered.acquire(blocking=False)
