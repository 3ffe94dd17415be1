from __future__ import annotations

import asyncio
from typing import Any

import pytest

from codea1_agents.adapters.batching import BatchingJudge
from codea1_agents.adapters.nemo_gym import app, dataset, reply_of, verify
from codea1_env import Referee
from codea1_env.errors import UserError
from tests.support.toys import ADD

RIGHT = "def add(a, b):\n    return a + b"
WRONG = "def add(a, b):\n    return 1"
SUITE = "assert add(7, 5) == 12"


def body(reply: str, **row: Any) -> dict[str, Any]:
    """A request as the agent server of NeMo Gym makes it from a row and a response."""
    content = [{"type": "output_text", "text": reply, "annotations": []}]
    output = [{"type": "reasoning", "summary": []}, {"type": "message", "role": "assistant", "content": content}]
    return {"response": {"output": output}, **row}


def test_rows_go_to_verify_and_come_back_with_reward_and_parts():
    (row,) = dataset("tester", [ADD], against={ADD.id: [WRONG]})
    judge = BatchingJudge("tester", Referee([ADD]))
    found = asyncio.run(verify(judge, body(SUITE, **row)))
    assert found["reward"] == pytest.approx(sum(found["reward_components"].values()))
    assert found["reward"] > 0
    assert found["mask_sample"] is False
    assert found["responses_create_params"] == row["responses_create_params"]


def test_a_masked_reply_is_masked(broken_sandbox):
    judge = BatchingJudge("coder", Referee([ADD], sandbox=broken_sandbox))
    found = asyncio.run(verify(judge, body(RIGHT, problem_id=ADD.id, given=SUITE)))
    assert (found["reward"], found["mask_sample"], found["reward_components"]) == (0.0, True, {})
    assert found["masked_because"]


def test_a_response_without_a_message_is_an_empty_reply():
    assert reply_of({"output": [{"type": "reasoning"}]}) == ""
    assert reply_of({"output": [{"type": "message", "content": None}]}) == ""
    assert reply_of({"output": [{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}]}) == ""


def test_a_request_without_a_field_is_refused():
    with pytest.raises(UserError, match="the request needs 'problem_id'"):
        asyncio.run(verify(BatchingJudge("coder", Referee([ADD])), {"response": {}}))


def test_the_server_answers():
    pytest.importorskip("fastapi", reason="the extra nemo-gym is not installed")
    pytest.importorskip("httpx2", reason="what the client of starlette's tests needs is not installed")
    from starlette import testclient

    client = testclient.TestClient(app("coder", Referee([ADD])))
    assert client.post("/seed_session", json={}).status_code == 200
    found = client.post("/verify", json=body(RIGHT, problem_id=ADD.id, given=SUITE))
    assert found.json()["reward"] == 1.0
    assert client.post("/verify", json={}).status_code == 422
