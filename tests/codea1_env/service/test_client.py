"""A referee and a sandbox over HTTP are those of the library."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from codea1_env.errors import AgentUnavailable, SandboxError, UserError
from codea1_env.facts.submissions import TestCase
from codea1_env.facts.verdicts import ValidCase
from codea1_env.problems import ProblemSet
from codea1_env.rounds.referee import Referee
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Job, Sandbox
from codea1_env.sandbox.remote import RemoteSandbox, Service
from codea1_env.service.client import RemoteReferee
from tests.support.chat_server import chat_servers
from tests.support.serving import HALF_RIGHT, RIGHT, WRONG, ServiceServer


def nowhere() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_a_remote_referee_is_the_referee(server: ServiceServer, sandbox: Sandbox, toys: ProblemSet) -> None:
    ids = [toys[0].id] * 6
    programs: list[Any] = [RIGHT, WRONG, "def", AgentUnavailable("gone"), [{"content": RIGHT}], "x = '\ud800'"]
    suites = [HALF_RIGHT, HALF_RIGHT, HALF_RIGHT, HALF_RIGHT, None, HALF_RIGHT]
    case = ValidCase(TestCase("add(2, 2)", "4", (), True, 1), b"4", True)
    replayed = {toys[0].id: [case]}
    rules = preset("paper")
    here = Referee(toys, rules, sandbox=sandbox, golden=True).rewards(ids, programs, suites, replayed=replayed)
    for remote in (
        RemoteReferee(server.url, rules, golden=True),
        RemoteReferee(server.url, rules, problems=toys, golden=True),
    ):
        there = remote.rewards(ids, programs, suites, replayed=replayed)
        assert there[:5] == here[:5]
        assert there[5].record() == here[5].record()
    assert remote.rewards([], [], []) == []


def test_a_server_that_is_away_masks_and_is_never_a_verdict(toys: ProblemSet) -> None:
    url = nowhere()
    with pytest.raises(SandboxError, match="does not answer"):
        RemoteSandbox(url).run([Job(RIGHT, "add")])
    (scored,) = RemoteReferee(url).rewards([toys[0].id], [RIGHT], [HALF_RIGHT])
    assert (scored.coder, scored.tester, scored.report) == (None, None, None)
    assert "does not answer" in scored.masked_because
    (scored,) = Referee(toys, sandbox=url).rewards([toys[0].id], [RIGHT], [HALF_RIGHT])
    assert (scored.coder, scored.tester) == (None, None)


def test_a_wrong_request_is_the_callers_mistake(server: ServiceServer) -> None:
    with pytest.raises(UserError, match="unknown problem"):
        RemoteReferee(server.url).rewards(["nowhere"], [RIGHT])
    with pytest.raises(UserError, match="expected equal numbers"):
        RemoteReferee(server.url).rewards(["nowhere"], [])


def test_large_batches_are_several_requests(
    server: ServiceServer, toys: ProblemSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codea1_env.service.client.PROGRAMS_PER_REQUEST", 2)
    found = RemoteReferee(server.url).rewards([toys[0].id] * 5, [RIGHT, WRONG, RIGHT, WRONG, RIGHT], [HALF_RIGHT] * 5)
    assert [each.coder for each in found] == [1.0, 0.5, 1.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"judge_version": 1}, "of the judge, got 1"),
        ({"items": []}, "not in the request"),
        ({"problem_id": "toy/other"}, "not in the request"),
        ({"coder": "Infinity"}, "not a finite number"),
    ],
)
def test_an_answer_that_is_not_believed_masks(
    server: ServiceServer, toys: ProblemSet, change: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = Service.send

    def changed(self: Service, *args: Any) -> bytes:
        answer = json.loads(send(self, *args))
        for name, value in change.items():
            (answer if name in answer else answer["items"][0])[name] = float(value) if value == "Infinity" else value
        return json.dumps(answer).encode()

    monkeypatch.setattr(Service, "send", changed)
    (found,) = RemoteReferee(server.url).rewards([toys[0].id], [RIGHT], [HALF_RIGHT])
    assert (found.coder, found.tester) == (None, None)
    assert said in found.masked_because


@pytest.mark.parametrize("token", ["supersecrettoken-123\r", "supersecret\ntoken-123", "supersecrettoken-\u20ac"])
def test_a_token_that_no_header_holds_is_one_sentence(
    server: ServiceServer, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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
