"""The agent `openai`: calls any endpoint for chat completions, such as vLLM, llama.cpp, transformers serve, a cloud.

It uses the `openai` package, which handles the variants of the protocol. The package's own retries are off, since they
draw from the global random state. Requests run in one event loop in a thread, so `act`, `act_batch` and `aact` share a
client.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any

from codea1_agents.models.completions import (
    FINISHES,
    Completion,
    CompletionAgent,
    CompletionResult,
    EndedCompletion,
    Sampling,
    draw_seed,
)
from codea1_agents.models.openai_connection import (
    USUAL_KEY,
    Backoff,
    OpenAIConnection,
    imported_openai,
)
from codea1_agents.prompts import Prompts, folded_system, load_prompts
from codea1_env.agent import AgentContext, Info, Observation
from codea1_env.agent.threads import await_result, ended_calls
from codea1_env.errors import AgentUnavailable, UserError, message_of, of_type, one_of

_SETTINGS = {401: "refuses the key", 402: "requires payment", 403: "refuses access", 404: "lacks this model or path"}
"""Statuses that depend on the settings, not on the observation: they stop the run."""
_TRANSIENT = frozenset({408, 409, 425, 429})
_NO_QUOTA = "insufficient_quota"
"""Comes with status 429, but waiting does not help."""
_FILTERED = "content_filter"
_ENDS_OF_ITS_OWN = frozenset({"stop", "length", "tool_calls", "function_call"})
"""With these finish reasons, a reply without text is the model's own reply."""


class MalformedResponse(ValueError):
    """The response is not a chat completion."""


class FilteredReply(Exception):
    """The server's content filter withheld or cut a reply, which says nothing about the model."""


class OpenAIAgent(CompletionAgent):
    """Calls an OpenAI-compatible endpoint with one request per reply.

    A request that fails (429, 5xx, no connection, time-out, a malformed response) is sent again after growing waits.
    After the last try the reply is `AgentUnavailable`; a request that the server's content filter stops is so at once.
    A reply is the same in a single call and in a batch if the server respects `seed`. n samples of one observation are
    n requests whose infos differ (`draw_seed`).

    Some servers ignore the temperature by default: transformers serve samples only if the model's generation settings
    say `do_sample`, or `extra_body` contains such settings. If so, all samples of a problem are equal.
    """

    def __init__(
        self,
        context: AgentContext | None = None,
        *,
        model: str = "",
        base_url: str = "",
        api_key_env: str = USUAL_KEY,
        prompts: str | Prompts = "default",
        temperature: float = 1.0,
        top_p: float = 1.0,
        max_tokens: int = 4096,
        limit_field: str = "max_tokens",
        seed: int | None = None,
        send_seed: bool = True,
        system: bool = True,
        retries: int = 5,
        backoff_s: float = 0.5,
        timeout_s: float = 600.0,
        concurrency: int = 16,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        """Make an agent. The first reply sends the first request.

        Args:
            context: its seed is used if `seed` is None.
            model: the server's name of the model; empty: OPENAI_MODEL, else the only model that the server lists.
            base_url: the address up to and including `/v1`; empty: OPENAI_BASE_URL, else OpenAI's own.
            api_key_env: environment variable with the key, if the server needs one.
            prompts: a wording's name, a file, or `Prompts`.
            temperature: 0: greedy.
            top_p: within (0, 1].
            max_tokens: longest reply, in tokens.
            limit_field: the request's field for `max_tokens`; newer OpenAI models require `max_completion_tokens`.
            seed: seeds the sampling until `reset`.
            send_seed: whether requests contain a seed; some servers refuse it.
            system: False: the system message becomes part of the user's message.
            retries: further requests after the first one failed.
            backoff_s: first wait; each later wait is twice as long, at most a minute.
            timeout_s: longest time for one request, from sending to its last byte.
            concurrency: most concurrent requests.
            extra_body: fields of the request that OpenAI's protocol does not define.

        Raises:
            MissingExtra: the `openai` package is not installed.
            UserError: an option is out of range, the address is invalid, or a key is missing for OpenAI's own endpoint.
        """
        imported_openai()
        Sampling(temperature, top_p, max_tokens)  # for its checks
        one_of("limit_field", limit_field, ("max_tokens", "max_completion_tokens"))
        self._backoff = Backoff(retries, backoff_s)
        self._model = str(model) or os.environ.get("OPENAI_MODEL", "")
        self._prompts, self._system = load_prompts(prompts), system
        self._fixed = {"temperature": temperature, "top_p": top_p, limit_field: max_tokens}
        self._send_seed, self._extra_body = send_seed, dict(extra_body or {})
        self._connection = OpenAIConnection(
            base_url=base_url, key_env=api_key_env, timeout_s=timeout_s, concurrency=concurrency
        )
        weakref.finalize(self, self._connection.close)
        super().__init__(context, seed)

    async def aact(self, observation: Observation, info: Info) -> str:
        """Return the model's reply, as `act` does, in any event loop."""
        completion: Completion = await await_result(self._connection.loop.submit(self._complete, observation, info))
        return completion.text

    def complete_stream(self, observations: Sequence[Observation], infos: Sequence[Info]) -> Iterator[EndedCompletion]:
        """Yield the completions, each when it ends."""
        pairs = enumerate(zip(observations, infos, strict=True))
        calls = {self._connection.loop.submit(self._result, *pair): position for position, pair in pairs}
        try:
            for call in ended_calls(calls):
                yield EndedCompletion(calls[call], call.result())
        finally:
            for call in calls:
                call.cancel()

    def close(self) -> None:
        """Close the connections; a later reply opens new ones."""
        self._connection.close()

    def __repr__(self) -> str:
        return f"openai({self._model or 'the only model'} at {self._connection.place})"

    async def _result(self, observation: Observation, info: Info) -> CompletionResult:
        try:
            return await self._complete(observation, info)
        except AgentUnavailable as error:
            return error

    async def _complete(self, observation: Observation, info: Info) -> Completion:
        completion = await self._with_retries(observation, info)
        self._usage = self._usage.with_completions([completion])
        hidden = self._connection.without_key
        return replace(completion, text=hidden(completion.text), reasoning=hidden(completion.reasoning))

    async def _with_retries(self, observation: Observation, info: Info) -> Completion:
        seed = draw_seed(self._seed, observation, info)
        messages = self._prompts.messages(observation, info)
        chat = [message.to_dict() for message in (messages if self._system else folded_system(messages))]
        body = self._fixed | ({"seed": seed} if self._send_seed else {}) | {"messages": chat}
        draws = Random(seed)  # for the waits
        fault = ""
        for attempt in range(self._backoff.retries + 1):
            requested_s: float | None = None
            try:
                return await self._connection.within_limits(self._send(body))
            except FilteredReply as error:
                raise self._unavailable(str(error)) from None
            except imported_openai().APIStatusError as error:
                fault, requested_s = self._fault_of(error), _requested_wait_s(error)
            except (imported_openai().OpenAIError, TimeoutError, MalformedResponse) as error:
                fault = self._sentence(error)
            if attempt < self._backoff.retries:
                self._usage = replace(self._usage, retries=self._usage.retries + 1)
                await asyncio.sleep(self._backoff.wait_s(attempt, draws, requested_s))
        raise self._unavailable(f"gave no reply in {self._backoff.retries + 1} tries; the last one: {fault}")

    async def _send(self, body: dict[str, Any]) -> Completion:
        client = self._connection.client
        with _as_malformed_response():
            listed = [] if self._model else [of_type("a model", each.id, str) async for each in client.models.list()]
        self._model = self._model or self._only([self._connection.without_key(name) for name in listed])
        with _as_malformed_response():
            response = await client.chat.completions.create(**body, model=self._model, extra_body=self._extra_body)
        return read_completion(response)

    def _only(self, listed: list[str]) -> str:
        if len(listed) != 1:
            some = ", ".join(listed[:6]) + (", ..." if len(listed) > 6 else "")
            raise UserError(f"{self!r}: the server lists {len(listed)} models ({some}); choose one with model=")
        return listed[0]

    def _fault_of(self, error: Any) -> str:
        """Return a sentence about a status after which a retry makes sense; raise for any other status."""
        status, message = int(error.status_code), self._sentence(error)
        if status in _SETTINGS:
            raise UserError(f"{self!r} {_SETTINGS[status]}: {message}") from None
        if _NO_QUOTA in (error.code, error.type):
            raise UserError(f"{self!r} refuses, as this key's quota is used up: {message}") from None
        if status < 500 and status not in _TRANSIENT:
            refuses = "filters the request" if error.code == _FILTERED else "refuses the request"
            raise self._unavailable(f"{refuses}: {message}") from None
        return message

    def _sentence(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return "no response in time"
        hidden = self._connection.without_key  # before it is cut, so that no half of a key remains
        message = " ".join(hidden(str(error)).split())[:300] or type(error).__name__
        response = getattr(error, "response", None)
        if response is not None and len(message) > len("Error code: 500"):
            return message  # it contains the server's own message
        text = response.text if response is not None else error.__cause__ or ""
        detail = " ".join(hidden(str(text)).split())[:200]
        return f"{message} ({detail})" if detail and detail not in message else message

    def _unavailable(self, what: str) -> AgentUnavailable:
        self._usage = replace(self._usage, unanswered=self._usage.unanswered + 1)
        return AgentUnavailable(f"{self!r} {what}")


@contextmanager
def _as_malformed_response() -> Iterator[None]:
    """Turn what the package raises where a response is not as it expects into a MalformedResponse."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise MalformedResponse(f"the response cannot be read: {type(error).__name__}: {message_of(error)}") from error


def read_completion(response: Any) -> Completion:
    """Return the first choice of a chat completion of the `openai` package.

    Reasoning that the server returns separately (`reasoning_content`, `reasoning` in newer servers, or parts of the
    content called `thinking`) is not part of the text. Content in parts becomes the text of its parts; no content is an
    empty reply if the model ended by itself.

    Raises:
        MalformedResponse: it is not a chat completion, or an unfinished one.
        FilteredReply: the server's content filter stopped it.
    """
    choices = getattr(response, "choices", None)
    first = choices[0] if isinstance(choices, list) and choices else None
    message = getattr(first, "message", None)
    if message is None:
        raise MalformedResponse(f"the response is not a chat completion: {str(response)!r}")
    finish = str(getattr(first, "finish_reason", ""))
    if finish == _FILTERED:
        raise FilteredReply("gave a reply that the server's content filter stopped")
    text, thoughts = _parts_of(message, finish)
    usage = getattr(response, "usage", None)
    return Completion(
        text,
        finish=FINISHES.get(finish, "other"),
        reasoning=thoughts or _text_of(message, "reasoning_content") or _text_of(message, "reasoning"),
        prompt_tokens=_count_of(usage, "prompt_tokens"),
        completion_tokens=_count_of(usage, "completion_tokens"),
    )


def _parts_of(message: Any, finish: str) -> tuple[str, str]:
    """Return text and reasoning of a message's content."""
    content = getattr(message, "content", None)
    if isinstance(content, str):
        return content, ""
    if content is None:
        refusal = _text_of(message, "refusal")
        if not refusal and finish not in _ENDS_OF_ITS_OWN:
            raise MalformedResponse(f"it contains no reply (finish reason {finish!r})")
        return refusal, ""
    if not isinstance(content, list) or not all(isinstance(part, str | dict) for part in content):
        raise MalformedResponse(f"the reply is not text: {str(content)!r}")
    return "".join(_texts(content, "text", "refusal")), "".join(_texts(content, "thinking", "reasoning"))


def _texts(parts: Sequence[Any], *kinds: str) -> Iterator[str]:
    """Yield the texts of the parts of these kinds; a plain string is a part of kind `text`."""
    for each in parts:
        part = {"type": "text", "text": each} if isinstance(each, str) else each
        kind = part.get("type")
        value = part.get(kind) if kind in kinds else None
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):  # reasoning may itself consist of parts
            yield from _texts([inner for inner in value if isinstance(inner, str | dict)], "text")


def _text_of(message: Any, name: str) -> str:
    value = getattr(message, name, None)
    return value if isinstance(value, str) else ""


def _count_of(usage: Any, name: str) -> int:
    value = getattr(usage, name, None)
    return value if isinstance(value, int) else 0


def _requested_wait_s(error: Any) -> float | None:
    """Return the wait that the server requests in seconds; None if it requests none, or names a date."""
    try:
        return max(0.0, float(error.response.headers.get("retry-after", "")))
    except ValueError:
        return None
