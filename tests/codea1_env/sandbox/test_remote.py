"""A sandbox over HTTP is the sandbox of its server."""

from __future__ import annotations

import json
import pickle
import socket
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from codea1_env.errors import SandboxError, UserError
from codea1_env.judging.golden import GOLDEN_LIMITS, PROGRAM_LIMITS
from codea1_env.problems import ProblemSet
from codea1_env.rounds.referee import Referee
from codea1_env.sandbox import (
    Call,
    Guarantee,
    Job,
    Limits,
    Place,
    Sandbox,
    load_sandbox,
    remote,
    require_sandbox,
)
from codea1_env.sandbox.job_json import jobs_to_json
from codea1_env.sandbox.remote import RemoteSandbox
from codea1_env.service.bounds import ServiceBounds
from tests.support.chat_server import chat_servers
from tests.support.serving import HALF_RIGHT, RIGHT, WRONG, ServiceServer, serving


def test_over_a_remote_sandbox_the_library_works(server: ServiceServer, sandbox: Sandbox, toys: ProblemSet) -> None:
    asked = [toys[0].id] * 2, [RIGHT, WRONG], [HALF_RIGHT] * 2
    here, there = (Referee(toys, sandbox=each).rewards(*asked) for each in (sandbox, server.url))
    assert here == there
    remote = load_sandbox(server.url)
    assert remote is load_sandbox(server.url)
    assert (remote.name, remote.guarantee) == (server.url, Guarantee.ISOLATED)
    assert pickle.loads(pickle.dumps(remote)).name == server.url


def test_jobs_of_all_kinds_cross(server: ServiceServer, sandbox: Sandbox) -> None:
    remote = RemoteSandbox(server.url)
    jobs = [
        Job(RIGHT, "add", (Call("add(1, 2)"), Call("[add(i, i) for i in range(3)]", ("import math",), Place.HARNESS))),
        Job(RIGHT, "add", (Call(arguments=b'[[1,{"t":[]}],{"d":[]}]'),), limits=Limits(cpu_s=0.5)),
        Job("def f():\n    raise ValueError('\u00e9')", "f", (Call("f()"),)),
        Job("x = '\ud800'", "f", (Call("f()"),)),
    ]
    found = remote.run(jobs)
    for here, there in zip(sandbox.run(jobs), found, strict=True):
        assert [o.kind for o in there.outcomes] == [o.kind for o in here.outcomes]
        assert [o.value for o in there.outcomes] == [o.value for o in here.outcomes]
        assert (there.load.kind, there.load.error_type) == (here.load.kind, here.load.error_type)
        assert there.tier == here.tier
    assert remote.run([]) == []
    assert jobs_to_json([replace(jobs[0], problem_id="a")]) == jobs_to_json(jobs[:1])  # servers need not know the field


def test_a_server_takes_all_limits_of_our_own() -> None:
    for limits in (Limits(), GOLDEN_LIMITS, PROGRAM_LIMITS):
        assert ServiceBounds().require_allowed(limits) is limits


def test_what_is_too_large_for_one_request_is_divided(server: ServiceServer) -> None:
    remote = RemoteSandbox(server.url)
    jobs = [Job(f"def f():\n    return {n}\n#{'x' * 20_000}", "f", (Call("f()"),)) for n in range(5)]
    assert [report.outcomes[0].value for report in remote.run(jobs)] == [b"0", b"1", b"2", b"3", b"4"]
    with pytest.raises(SandboxError, match="at most 60000 bytes"):
        remote.run([Job("#" * 70_000, "f")])


def test_a_job_whose_answers_are_too_many_for_one_request_is_divided_by_its_calls(sandbox: Sandbox) -> None:
    """Else a program with large values would mask those of the others."""
    calls = tuple(Call(f"f({n})") for n in range(40))
    large, small = (Job(f"def f(n):\n    return str(n) + 'x' * {size}", "f", calls) for size in (60_000, 1))
    with serving(sandbox, bounds=ServiceBounds(max_held_bytes=3_000_000)) as server:
        reports = RemoteSandbox(server.url).run([small, large, small])
    expected = [f'"{n}x{"x" * 59_999}"'.encode() for n in range(40)]
    assert [outcome.value for outcome in reports[1].outcomes] == expected
    assert reports[1].loaded
    assert [outcome.value for outcome in reports[0].outcomes] == [f'"{n}x"'.encode() for n in range(40)]


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://user:pw@localhost", "http://x:y"])
@pytest.mark.parametrize("door", [RemoteSandbox, load_sandbox, require_sandbox])
def test_an_address_that_is_none_is_refused(url: str, door: Any) -> None:
    with pytest.raises(UserError, match="address") as caught:
        door(url)
    assert "pw" not in str(caught.value)


def _bytes(head: str, body: bytes = b"") -> Any:
    def answer(handler: Any) -> None:
        handler.wfile.write(f"HTTP/1.1 {head}\r\n\r\n".encode() + body)

    return answer


_ANSWERS = {
    **{name: (200, text) for name, text in {"html": "<html>", "list": "[]", "deep": "[" * 200_000, "none": ""}.items()},
    **{name: (200, json.dumps({"sandbox": held})) for name, held in {"text": "x", "promise": {"guarantee": 1}}.items()},
    "moved": (302, ""),
    "deep refusal": (404, "[" * 200_000),
    "unknown status": _bytes("999 x\r\ncontent-length: 0"),
    "latin": _bytes("200 OK\r\ncontent-length: 3", b"\xff\xfe\xfa"),
    "early end": _bytes("200 OK\r\ncontent-length: 9", b'"po'),
    "bad chunk": _bytes("200 OK\r\ntransfer-encoding: chunked", b"zz\r\n"),
    "no HTTP": lambda handler: handler.wfile.write(b"\0\1\2\r\n\r\n"),
    "huge": _bytes("200 OK", b" " * 5000),
}


@pytest.mark.parametrize("answer", _ANSWERS.values(), ids=_ANSWERS)
def test_a_server_that_is_none_of_ours_ends_in_one_sentence(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "LARGEST_ANSWER_BYTES", 4000)
    give = answer if callable(answer) else lambda handler: handler.send(*answer)
    with chat_servers() as start:
        server = start(lambda handler, _: give(handler))
        server.give, sandbox = give, RemoteSandbox(server.url)
        for ask in (lambda: sandbox.guarantee, lambda: sandbox.run([Job(RIGHT, "add")])):
            with pytest.raises((UserError, SandboxError), match="http://") as caught:
                ask()
            assert "\n" not in str(caught.value)


def test_a_server_that_dribbles_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_PING_S", 0.3)

    def dribble(handler: Any) -> None:
        _bytes("200 OK\r\ncontent-length: 1000000")(handler)
        with suppress(OSError):
            while True:
                handler.wfile.write(b" ")
                handler.wfile.flush()
                time.sleep(0.02)  # the time of the server, for which nobody waits

    with chat_servers() as start:
        server = start()
        server.give = dribble
        with pytest.raises(SandboxError, match="did not end in time"):
            _ = RemoteSandbox(server.url).guarantee


def test_a_server_that_is_away_masks_and_is_never_a_verdict(toys: ProblemSet) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        url = f"http://127.0.0.1:{gone.getsockname()[1]}"
    with pytest.raises(SandboxError, match="does not answer"):
        RemoteSandbox(url).run([Job(RIGHT, "add")])
    (scored,) = Referee(toys, sandbox=url).rewards([toys[0].id], [RIGHT], [HALF_RIGHT])
    assert (scored.coder, scored.tester) == (None, None)
    assert "does not answer" in scored.masked_because


@pytest.mark.parametrize("token", ["supersecrettoken-123\r", "supersecret\ntoken-123", "supersecrettoken-\u20ac"])
def test_a_token_for_no_header_is_told(server: ServiceServer, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEA1_SERVE_TOKEN", token)
    with pytest.raises(UserError, match="must be visible ASCII") as caught:
        RemoteSandbox(server.url).run([Job(RIGHT, "add")])
    assert "supersecret" not in str(caught.value)


def test_a_token_that_a_server_repeats_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_MINE", "canary-of-the-service")

    def echo(handler: Any, _: Any) -> None:
        handler.send(401, json.dumps({"detail": handler.headers["authorization"]}))

    with chat_servers() as start, pytest.raises(UserError, match=r"Bearer \*\*\* \(401\)"):
        RemoteSandbox(start(echo).url, token_env="OF_MINE").run([Job(RIGHT, "add")])
