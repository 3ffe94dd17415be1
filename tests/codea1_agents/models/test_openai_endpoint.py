from __future__ import annotations

import asyncio
import gc
import gzip
import json
import pickle
import threading
import time
import traceback
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from codea1_agents.models.openai_endpoint import OpenAIAgent, _requested_wait_s
from codea1_agents.models.transformers_agent import TransformersAgent
from codea1_env.errors import AgentUnavailable, UserError
from tests.support.chat_server import said

pytest.importorskip("openai")


def agent(server: Any, **options: Any) -> OpenAIAgent:
    url = server if isinstance(server, str) else server.url
    return OpenAIAgent(**{"model": "m", "base_url": url, "retries": 2, "backoff_s": 0.01, **options})


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)


# -- a real server --


@pytest.mark.slow
def test_a_real_server_replies_as_the_same_model_in_this_process(transformers_server, tiny_model, observation, infos):
    remote = agent(transformers_server, model=str(tiny_model), temperature=0, max_tokens=16, timeout_s=100)
    local = TransformersAgent(model=str(tiny_model), temperature=0, max_tokens=16, device="cpu")
    there, here = remote.complete(observation, infos[0]), local.complete(observation, infos[0])
    remote.close()
    # The server's tokens are the same; what it strips at the ends is its own affair.
    assert there.text.strip() == here.text.strip() != ""
    assert (there.finish, there.completion_tokens) == (here.finish, here.completion_tokens) == ("length", 16)
    assert there.prompt_tokens >= here.prompt_tokens


@pytest.mark.slow
def test_a_real_server_repeats_its_draws_by_seed_and_episode(transformers_server, tiny_model, observation, infos):
    remote = agent(transformers_server, model=str(tiny_model), max_tokens=12, timeout_s=100, concurrency=1)
    remote.reset(5)
    first = remote.act_batch([observation] * 4, infos)
    assert [remote.act(observation, info) for info in infos] == first
    assert len(set(first)) == 4
    remote.reset(6)
    assert remote.act(observation, infos[0]) != first[0]
    assert (remote.usage.completions, remote.usage.unanswered) == (9, 0)
    assert 0 < remote.usage.cut <= 9  # a random model may end by itself
    remote.close()


@pytest.mark.slow
def test_a_real_server_that_refuses_the_model_says_so(transformers_server, observation, infos):
    remote = agent(transformers_server, model="nobody/has-this", timeout_s=100)
    with pytest.raises(AgentUnavailable, match="nobody/has-this"):
        remote.act(observation, infos[0])
    remote.close()


# -- servers that fail --


def test_a_reply_carries_its_counts_and_the_only_model_needs_no_name(faulty, observation, infos):
    asked = agent(faulty(said("x = 1", finish_reason="length")))
    found = asked.complete(observation, infos[0])
    assert (found.cut, found.prompt_tokens, found.completion_tokens) == (True, 7, 3)
    assert asked.act(observation, infos[0]) == "x = 1"
    assert asked.usage.cut == 2
    server = faulty(said())
    asked = agent(server, model="")
    asked.act_batch([observation] * 4, infos)
    assert {each["model"] for each in server.asked} == {"only"}


def broken_connection(handler: Any, _: Any) -> None:
    handler.connection.close()


def no_text(handler: Any, _: Any) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 3\r\n\r\n\xff\xfe\xfa")


def half_a_body(handler: Any, _: Any) -> None:
    handler.send_response(200)
    handler.send_header("content-length", "1000")
    handler.send_header("content-type", "application/json")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.wfile.flush()
    handler.connection.close()


TRANSIENT = {
    "429": (429, '{"error": {"message": "slow down"}}'),
    "500": (500, "Internal Server Error", "text/plain"),
    "503": (503, "{}"),
    "malformed JSON": (200, '{"choices": [{"mess'),
    "HTML": (200, "<html>maintenance</html>", "text/html"),
    "no object": (200, "[]"),
    "null": (200, "null"),
    "no choices": (200, '{"id": "x", "object": "chat.completion", "choices": []}'),
    "no message": (200, '{"id": "x", "object": "chat.completion", "choices": [{"index": 0}]}'),
    "choices no list": (200, '{"id": "x", "object": "chat.completion", "choices": 5}'),
    "ended by an error": (200, '{"choices": [{"index": 0, "message": {"content": null}, "finish_reason": "error"}]}'),
    "never ended": (200, '{"choices": [{"index": 0, "message": {"role": "assistant"}, "finish_reason": null}]}'),
    "no list of parts": (200, '{"choices": [{"index": 0, "message": {"content": [5]}, "finish_reason": "stop"}]}'),
    "content no text": (200, '{"choices": [{"index": 0, "message": {"content": 5}, "finish_reason": "stop"}]}'),
    "nested too deeply": (200, "[" * 200_000),
    "number too long": (200, '{"choices": ' + "9" * 5000 + "}"),
    "no UTF-8": no_text,
    "dropped connection": broken_connection,
    "half a body": half_a_body,
}


@pytest.mark.parametrize("fault", TRANSIENT.values(), ids=TRANSIENT)
def test_a_passing_fault_is_tried_again_and_a_lasting_one_is_one_sentence(faulty, observation, infos, fault):
    server = faulty(fault, fault, said("at last"))
    asked = agent(server)
    assert asked.act(observation, infos[0]) == "at last"
    assert asked.usage.retries == 2
    assert server.asked[0] == server.asked[1] == server.asked[2]
    asked.close()
    server = faulty(fault)
    asked = agent(server, retries=1)
    with pytest.raises(AgentUnavailable, match="gave no reply in 2 tries") as caught:
        asked.act(observation, infos[0])
    assert len(server.asked) == 2
    assert "\n" not in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert asked.usage.unanswered == 1
    asked.close()


def test_nobody_listening_is_an_unavailable_agent(faulty, observation, infos):
    server = faulty(said())
    url = server.url
    server.shutdown()
    server.server_close()
    with pytest.raises(AgentUnavailable, match="Connection error"):
        agent(url).act(observation, infos[0])


def test_a_server_that_comes_back_is_found_again(faulty, observation, infos):
    first = faulty(said("before"))
    asked = agent(first, retries=20, backoff_s=0.05)
    assert asked.act(observation, infos[0]) == "before"
    port = first.server_port
    first.shutdown()
    first.server_close()
    threading.Timer(0.3, lambda: faulty(said("after"), port=port)).start()
    assert asked.act(observation, infos[0]) == "after"
    assert asked.usage.retries > 0
    asked.close()


def dribble(handler: Any, _: Any) -> None:
    handler.send_response(200)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    for _ in range(40):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.05)


def test_a_server_that_dribbles_is_given_up_at_the_time_limit(faulty, observation, infos):
    start = time.monotonic()
    with pytest.raises(AgentUnavailable, match="no response in time"):
        agent(faulty(dribble), retries=0, timeout_s=0.3).act(observation, infos[0])
    assert time.monotonic() - start < 1.5


def packed(encoding: str, data: bytes) -> Callable[[Any, Any], None]:
    def answer(handler: Any, _: Any) -> None:
        handler.send_response(200)
        for name, value in {"content-type": "application/json", "content-encoding": encoding}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    return answer


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (packed("gzip", gzip.compress(b" " * (1 << 20))), "at most 100,000 bytes"),
        (packed("identity", b" " * (1 << 20)), "at most 100,000 bytes"),
        (packed("gzip, gzip", gzip.compress(gzip.compress(b"x"))), "the encoding 'gzip, gzip'"),
        (packed("br", b"x"), "the encoding 'br'"),
    ],
)
def test_a_long_answer_is_given_up_also_a_packed_one(faulty, observation, infos, monkeypatch, answer, why):
    monkeypatch.setattr("codea1_agents.models.openai_connection.LARGEST_ANSWER_BYTES", 100_000)
    with pytest.raises(AgentUnavailable, match=why):
        agent(faulty(answer), retries=0).act(observation, infos[0])
    assert agent(faulty(packed("gzip", gzip.compress(said()[1].encode())))).act(observation, infos[0]) == "hello"


def test_a_retry_waits_as_long_as_the_server_asks(faulty, observation, infos):
    start = time.monotonic()
    agent(faulty(lambda handler, _: handler.send(429, "{}", retry_after="0.4"), said())).act(observation, infos[0])
    assert time.monotonic() - start >= 0.4


@pytest.mark.parametrize(("told", "wait_s"), [("2", 2.0), ("-3", 0.0), ("soon", None), ("", None)])
def test_a_server_names_seconds(told, wait_s):
    headers = {"retry-after": told}
    assert _requested_wait_s(SimpleNamespace(response=SimpleNamespace(headers=headers))) == wait_s


def told(message: str, **more: str) -> str:
    return json.dumps({"error": {"message": message, **more}})


NO_QUOTA = {"type": "insufficient_quota", "code": "insufficient_quota"}


@pytest.mark.parametrize(
    ("status", "body", "error", "said"),
    [
        (429, told("You exceeded your quota", **NO_QUOTA), UserError, "quota"),
        (402, told("Insufficient Balance"), UserError, "payment"),
        *((status, told("not you"), UserError, "not you") for status in (401, 403, 404)),
        (400, told("context length exceeded"), AgentUnavailable, "context length exceeded"),
    ],
)
def test_what_another_try_would_not_change_is_an_error_at_once(faulty, observation, infos, status, body, error, said):
    server = faulty((status, body))
    with pytest.raises(error, match=said):
        agent(server).act(observation, infos[0])
    if error is UserError:
        with pytest.raises(UserError, match=said):
            agent(server).act_batch([observation], infos[:1])
    assert len(server.asked) == 1 + (error is UserError)


def test_a_filtered_reply_or_prompt_is_unavailable_and_not_scored(faulty, observation, infos):
    filtered = told("The response was filtered", code="content_filter")
    server = faulty(said("def add(a", finish_reason="content_filter"), (400, filtered), said("fine"))
    asked = agent(server)
    replies = [asked.act_batch([observation], infos[:1])[0] for _ in range(3)]
    assert [isinstance(each, AgentUnavailable) and "filter" in str(each) for each in replies] == [True, True, False]
    assert len(server.asked) == 3
    assert (asked.usage.completions, asked.usage.unanswered) == (1, 2)


PARTS = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
    {"type": "text", "text": "x "},
    "= 1",
    {"type": "image_url", "image_url": {"url": "http://h"}},
]


EMOJI = json.loads('"\\ud83d\\ude00 \\u0000"')


@pytest.mark.parametrize(
    ("message", "text", "reasoning"),
    [
        ({"text": "x = 1", "reasoning_content": "let me think"}, "x = 1", "let me think"),
        ({"text": None, "reasoning": "hmm", "finish_reason": "length"}, "", "hmm"),  # cut while it was thinking
        ({"text": PARTS}, "x = 1", "hm"),
        ({"text": []}, "", ""),
        ({"text": [{"type": "refusal", "refusal": "No."}]}, "No.", ""),
        ({"text": None}, "", ""),
        ({"text": None, "finish_reason": "tool_calls"}, "", ""),
        ({"text": EMOJI}, EMOJI, ""),
    ],
)
def test_content_may_be_a_list_or_nothing(faulty, observation, infos, message, text, reasoning):
    found = agent(faulty(said(**message))).complete(observation, infos[0])
    assert (found.text, found.reasoning) == (text, reasoning)


def test_what_a_server_says_of_a_key_is_not_told_also_among_its_models(faulty, observation, infos, monkeypatch):
    monkeypatch.setenv("MY_KEY", "canary-of-the-endpoint")

    def echo(handler: Any, _: Any) -> None:
        filler = "x" * (290 - len("Error code: 400 - {'error': {'message': '"))  # so that a cut meets the key
        handler.send(400, json.dumps({"error": {"message": f"{filler} {handler.headers['authorization']}"}}))

    def reply(handler: Any, _: Any) -> None:
        handler.send(*said(f"hello {handler.headers['authorization']}", reasoning=handler.headers["authorization"]))

    asked = agent(faulty(echo, reply), api_key_env="MY_KEY")
    with pytest.raises(AgentUnavailable) as caught:
        asked.act(observation, infos[0])
    assert "canary" not in "".join(traceback.format_exception(caught.value))
    found = asked.complete(observation, infos[0])
    assert (found.text, found.reasoning) == ("hello Bearer ***", "Bearer ***")
    assert "canary" not in repr(vars(asked)) + repr(vars(asked._connection))
    server = faulty((500, ""))
    server.models = ["canary-of-the-endpoint", "b"]
    with pytest.raises(UserError, match=r"lists 2 models \(\*\*\*, b\)"):
        OpenAIAgent(base_url=server.url, api_key_env="MY_KEY", retries=0).act(observation, infos[0])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("WITH_A_LINE", "WITH_A_LINE must be visible ASCII"),
        ("WITH_A_SIGN", "WITH_A_SIGN must be visible ASCII"),
        ("NOT_SET", "the environment variable that api_key_env names is not set"),
        ("sk-canary", "in capitals"),
    ],
)
def test_a_key_that_no_header_holds_or_that_is_not_there_is_refused_and_not_told(name, said, monkeypatch):
    monkeypatch.setenv("WITH_A_LINE", "canary-with-a-line\n")
    monkeypatch.setenv("WITH_A_SIGN", "canary-\u20ac")
    with pytest.raises(UserError, match=said) as caught:
        OpenAIAgent(model="m", base_url="http://127.0.0.1:9/v1", api_key_env=name)
    assert "canary" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("url", ["http://me:canary-w/ord@h/v1", "h?key=canary-query", "http://h/v1?sig=canary"])
@pytest.mark.parametrize("by_variable", [False, True])
def test_an_address_with_secrets_is_refused_without_them(url, by_variable, monkeypatch):
    if by_variable:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(UserError) as caught:
        OpenAIAgent(base_url="" if by_variable else url)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["[]", "null", "[" * 200_000, '{"data": 3}', '{"data": [{"id": ["x"]}]}', '{"data": []}'], ids=range(6)
)
def test_a_list_of_models_that_is_none_is_one_sentence(faulty, observation, infos, text):
    server = faulty(said())
    server.give = lambda handler: handler.send(200, text)
    asked = agent(server, model="", retries=0)
    with pytest.raises((AgentUnavailable, UserError), match="openai") as caught:
        asked.act(observation, infos[0])
    assert "\n" not in str(caught.value)
    asked.close()


def test_a_failing_request_costs_the_others_of_its_batch_nothing(faulty, observation, infos):
    def only_b_fails(handler: Any, body: dict[str, Any]) -> None:
        text = body["messages"][-1]["content"]
        handler.send(*((500, "{}") if "def b" in text else (200, said("fine")[1])))

    observations = [observation | {"problem": f"def {name}(): ..."} for name in "abcd"]
    replies = agent(faulty(only_b_fails), retries=1).act_batch(observations, infos)
    assert [isinstance(each, AgentUnavailable) for each in replies] == [False, True, False, False]
    assert replies[0] == replies[2] == replies[3] == "fine"


def test_a_batch_is_answered_in_order_and_together_but_within_the_limit(faulty, observation, infos):
    def echo(handler: Any, body: dict[str, Any]) -> None:
        time.sleep(0.1)
        handler.send(200, said(body["messages"][-1]["content"])[1])

    server = faulty(echo)
    observations = [observation | {"problem": f"number {number}"} for number in range(12)]
    replies = agent(server, concurrency=4).act_batch(observations, infos * 3)
    assert [f"number {number}" in reply for number, reply in enumerate(replies)] == [True] * 12
    assert server.busiest == 4


def test_a_slow_request_delays_only_itself(faulty, observation, infos):
    b_is_answered = threading.Event()

    def slow_a(handler: Any, body: dict[str, Any]) -> None:
        assert "def b" in body["messages"][-1]["content"] or b_is_answered.wait(20)
        handler.send(200, said()[1])

    async def main() -> None:
        asked = agent(faulty(slow_a))
        slow = asyncio.ensure_future(asked.aact(observation | {"problem": "def a(): ..."}, infos[0]))
        await asked.aact(observation | {"problem": "def b(): ..."}, infos[1])
        assert not slow.done()
        b_is_answered.set()
        await slow

    asyncio.run(main())


def test_what_is_sent_says_everything_that_was_set_in_any_dialect(faulty, observation, infos):
    server, odd = faulty(said()), observation | {"problem": "\ud800 \x00 ½"}  # JSON does not hold all of it
    agent(server, temperature=0.7, top_p=0.95, max_tokens=99, extra_body={"min_p": 0.1}).act(odd, infos[0])
    sent = server.asked[0]
    assert (sent["model"], sent["temperature"], sent["top_p"], sent["max_tokens"]) == ("m", 0.7, 0.95, 99)
    assert sent["min_p"] == 0.1
    assert 0 <= sent["seed"] < 2**31
    assert "n" not in sent
    assert "½" in sent["messages"][-1]["content"]
    assert [each["role"] for each in sent["messages"]] == ["system", "user"]
    server = faulty(said())
    asked = agent(server, limit_field="max_completion_tokens", send_seed=False, system=False)
    asked.act(observation, infos[0])
    sent = server.asked[0]
    assert sent["max_completion_tokens"] == 4096
    assert {"seed", "max_tokens"} & set(sent) == set()
    assert [each["role"] for each in sent["messages"]] == ["user"]


def test_address_key_and_model_come_from_the_environment(faulty, observation, infos, monkeypatch):
    keys: list[str] = []

    def note(handler: Any, body: dict[str, Any]) -> None:
        keys.append(handler.headers["authorization"])
        handler.send(200, said(body["model"])[1])

    monkeypatch.setenv("OPENAI_BASE_URL", faulty(note).url)
    monkeypatch.setenv("OPENAI_API_KEY", "secret-1")
    monkeypatch.setenv("OPENAI_MODEL", "of-the-environment")
    monkeypatch.setenv("MY_KEY", "secret-2")
    assert OpenAIAgent().act(observation, infos[0]) == "of-the-environment"
    assert OpenAIAgent(model="mine", api_key_env="MY_KEY").act(observation, infos[0]) == "mine"
    assert keys == ["Bearer secret-1", "Bearer secret-2"]
    assert "secret" not in repr(OpenAIAgent(api_key_env="MY_KEY"))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"base_url": "localhost:8000"}, "must be an address"),
        ({"base_url": ""}, "OPENAI_API_KEY"),
        ({"temperature": -1}, "temperature"),
        ({"concurrency": 0}, "concurrency"),
        ({"retries": -1}, "retries"),
        ({"prompts": "papr"}, "papr"),
    ],
)
def test_bad_options_are_refused_before_anything_is_sent(options, told):
    with pytest.raises(UserError, match=told):
        OpenAIAgent(**{"base_url": "http://127.0.0.1:1/v1", **options})


def test_it_closes_twice_and_works_again_afterwards_and_leaves_no_thread(faulty, observation, infos):
    server = faulty(said())
    asked = agent(server)
    for _ in range(2):
        assert asked.act(observation, infos[0]) == "hello"
        asked.close()
        asked.close()
    forgotten = agent(server)
    forgotten.act(observation, infos[0])
    del forgotten
    gc.collect()
    assert "openai-agent" not in [thread.name for thread in threading.enumerate()]
