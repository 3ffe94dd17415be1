"""What a request holds is bounded in bytes, in both directions, and given back; greedy clients keep nobody out."""

from __future__ import annotations

import gc
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from http import HTTPStatus
from typing import Any

import pytest

from codea1_env.facts.submissions import TestCase
from codea1_env.facts.verdicts import CaseReport, Outcome, ValidCase, Verdict
from codea1_env.problems import ProblemSet
from codea1_env.runs.records import CaseRecord
from codea1_env.sandbox import Call, Job, Sandbox
from codea1_env.sandbox.remote import RemoteSandbox
from codea1_env.service.admission import HeldBytes, Holding, Refused
from codea1_env.service.bounds import ServiceBounds
from tests.support.benchmarks import printed_by
from tests.support.serving import HALF_RIGHT, RIGHT, ServiceServer, asked, half_sent, post, serving
from tests.support.waiting import wait_until

MOST = 8 << 20


@pytest.fixture(scope="module")
def server(sandbox: Sandbox, toys: ProblemSet) -> Iterator[ServiceServer]:
    with serving(sandbox, toys, bounds=ServiceBounds(max_held_bytes=MOST)) as server:
        yield server


def held(server: ServiceServer) -> int:
    """How many bytes all requests hold."""
    return int(server._server.config.app._held.n_bytes)


WIDE = {"value_bytes": 1 << 20, "cpu_s": 20, "wall_s": 20}
_CASE = ValidCase(TestCase("add(2, 2)", "4", (), True, 1), b'"' + b"x" * 3000 + b'"', True)
_REPLAYED = [CaseRecord.of(CaseReport(_CASE, Verdict.NOT_RUN)).model_dump(mode="json")] * 50


def jobs(program: str, *calls: list[Any], **fields: Any) -> list[Any]:
    return [{"program": program, "entry_point": "f", "calls": calls, "limits": WIDE} | fields]


RECORDS = ["[f('x' * 99999 + str(n)) for n in range(30)] and 0", [], "harness"]
TOO_MANY_TESTS = {"suites": [HALF_RIGHT] * 40, "rules": {"name": "fixed", "tests_per_suite": 10_000}}
GREEDY = {
    "values of calls": ("/jobs", jobs("def f(n): return 'x' * 900000 + str(n)", *([f"f({n})"] for n in range(20)))),
    "jobs": ("/jobs", [each for n in range(20) for each in jobs(f"def f(): return 'x' * 900000\n#{n}", ["f()"])]),
    "records": ("/jobs", jobs("def f(x): return x", *[RECORDS] * 9)),
    "calls": ("/jobs", jobs("def f(): pass", *[["f()"]] * 20_000)),
    "values of a body": ("/jobs", [[0] * 100_000]),
    "a wide text": ("/jobs", jobs("#" + "x" * 500_000 + "\U0001f600")),
    "replayed cases": ("/judge", {"programs": [RIGHT] * 40, "replayed": {"toy/add": _REPLAYED}}),
    "suites": ("/judge", {"programs": [RIGHT] * 40} | TOO_MANY_TESTS),
}


@pytest.mark.parametrize(("path", "body"), GREEDY.values(), ids=GREEDY)
def test_a_request_that_takes_too_much_is_one_sentence(server: ServiceServer, path: str, body: Any) -> None:
    if path == "/judge":
        body = {"problem_ids": ["toy/add"] * len(body["programs"])} | body
    status, text = asked(server, path, json.dumps(body, ensure_ascii=False).encode())
    said = f"with its answer, at most {MOST // 2} bytes of memory on this server: send less at once"
    assert (status, json.loads(text)["detail"]) == (413, f"a request must take, {said}")
    assert post(server)[0] == 200
    assert wait_until(lambda: held(server) == 0)


def test_what_a_request_held_is_free_without_garbage_collection(server: ServiceServer) -> None:
    path, body = GREEDY["values of calls"]

    def n_large() -> int:
        outcomes = (each for each in gc.get_objects() if isinstance(each, Outcome))
        return sum(outcome.n_bytes > 500_000 for outcome in outcomes)

    gc.collect()
    gc.disable()
    try:
        assert [post(server, path, body)[0], post(server, path, body)[0]] == [413, 413]
        assert post(server, path, jobs("def f(): return 'x' * 900000", ["f()"]))[0] == 200
        assert wait_until(lambda: n_large() == 0)
    finally:
        gc.enable()


def test_answers_of_many_jobs_are_divided_by_the_client(server: ServiceServer) -> None:
    program = "def f(n): return 'x' * 200000 + str(n)"
    made = [Job(program, "f", (Call(f"f({n})"),)) for n in range(30)]
    found = RemoteSandbox(server.url).run(made)
    assert [len(report.outcomes[0].value or b"") for report in found] == [200_002 + len(str(n)) for n in range(30)]


def test_bodies_of_the_greedy_leave_room_for_others(sandbox: Sandbox) -> None:
    with serving(sandbox, bounds=ServiceBounds(max_held_bytes=1 << 20)) as server, ExitStack() as open_ones:
        for _ in range(32):
            client = open_ones.enter_context(socket.create_connection(server.address, timeout=30))
            client.sendall(half_sent(500_000) + b" " * 400_000)
        assert wait_until(lambda: held(server) > 1 << 19)
        assert [post(server)[0] for _ in range(5)] == [200] * 5


def test_a_request_may_take_what_it_leaves_to_the_others() -> None:
    of_server = HeldBytes(100)
    one, other, late = (Holding(of_server) for _ in range(3))
    with pytest.raises(Refused) as refused:
        one.take(51)
    assert refused.value.status_code is HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    one.take(50)
    with pytest.raises(Refused) as refused:
        other.take(26)
    assert refused.value.status_code is HTTPStatus.TOO_MANY_REQUESTS
    other.take(25)
    late.take(12)
    one.close()
    with pytest.raises(Refused):
        one.take(1)
    assert of_server.n_bytes == 37
    one.take(-5)  # of a job that ends later
    for each in (other, late):
        each.close()
    assert of_server.n_bytes == 0


@pytest.mark.slow
def test_greedy_clients_leave_a_server_small_and_an_honest_client_answered() -> None:
    found = printed_by("serve.py", "--greedy", "20", timeout=220)
    assert found["peak_mb"] < 1024
    assert {status for status in found["statuses"] if status.startswith("honest")} == {"honest 200"}
