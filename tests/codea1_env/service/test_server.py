"""Processes that are killed, and the server's end."""

from __future__ import annotations

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from codea1_env.errors import UserError
from codea1_env.problems import ProblemSet
from codea1_env.rounds.referee import Referee
from codea1_env.sandbox import Job, Sandbox
from codea1_env.sandbox.local import LocalSandbox
from codea1_env.sandbox.remote import RemoteSandbox
from codea1_env.service.bounds import ServiceBounds
from tests.support.processes import descendants, kill
from tests.support.serving import RIGHT, SUITE, Gated, busy, post, serving
from tests.support.waiting import wait_until

CLIENT = """
import sys
from codea1_env.sandbox import Call, Job
from codea1_env.sandbox.remote import RemoteSandbox
print("ready", flush=True)
RemoteSandbox(sys.argv[1]).run([Job("def f():\\n    return 1", "f", (Call("f()"),))])
"""


def test_a_killed_client_costs_the_others_nothing(sandbox: Sandbox) -> None:
    gated = Gated(sandbox)
    with serving(gated, bounds=ServiceBounds(n_running=1)) as server:
        client = subprocess.Popen([sys.executable, "-c", CLIENT, server.url], stdout=subprocess.PIPE)
        gated.entered.acquire()
        with ThreadPoolExecutor(4) as pool:
            others = [pool.submit(post, server) for _ in range(4)]
            client.send_signal(signal.SIGKILL)
            client.communicate(timeout=30)
            gated.gate.set()
            assert [each.result()[0] for each in others] == [200] * 4


@pytest.mark.slow
def test_killed_workers_lose_no_verdict(toys: ProblemSet) -> None:
    before, pool = descendants(), LocalSandbox(2)
    try:
        with serving(pool, toys) as server:
            referee = Referee(toys, sandbox=RemoteSandbox(server.url))
            assert referee.rewards([toys[0].id], [RIGHT], [SUITE])[0].coder == 1.0
            workers = descendants() - before
            assert workers
            with ThreadPoolExecutor(8) as threads:
                asked = [([toys[0].id], [f"{RIGHT}\n# {n}"], [SUITE]) for n in range(40)]
                scored = [threads.submit(referee.rewards, *each) for each in asked]
                kill(workers)
                assert [each.result()[0].coder for each in scored] == [1.0] * 40
    finally:
        pool.close()


def test_running_requests_are_finished_and_waiting_ones_refused(sandbox: Sandbox) -> None:
    with busy(sandbox, n_running=1) as (server, gated, pool, running):
        waiting = pool.submit(post, server)
        assert wait_until(lambda: server.admission.n_open == 2)
        closing = pool.submit(server.close)
        assert wait_until(lambda: server.admission.is_stopping)
        gated.gate.set()
        assert running.result()[0] == 200
        assert waiting.result() == (503, {"detail": "the server is being stopped"})
        closing.result()
    server.close()
    assert sandbox.run([Job("def f(): ...", "f")])[0].loaded


def test_a_request_that_does_not_end_is_given_up(sandbox: Sandbox) -> None:
    with busy(sandbox, grace_s=0.2) as (server, gated, _, running):
        server.close()
        assert running.result() == (503, {"detail": "the server is being stopped"})
        gated.gate.set()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
def test_an_address_that_others_can_reach_needs_a_token(sandbox: Sandbox, host: str) -> None:
    with pytest.raises(UserError, match="other machines"):
        serving(sandbox, host=host)


def test_an_address_that_is_taken_is_the_callers_mistake(sandbox: Sandbox) -> None:
    with serving(sandbox) as server, pytest.raises(UserError, match="cannot listen"):
        serving(sandbox, port=server.address[1])
