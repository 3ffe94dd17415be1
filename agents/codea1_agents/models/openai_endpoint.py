"""The agent `openai`: any endpoint for chat completions, such as vLLM, llama.cpp, transformers serve, a cloud.

Built on the `openai` package, which knows the protocol's dialects; its own retries are off, since they draw from the
global random state. Requests run in one event loop in a thread, so `act`, `act_batch` and `aact` share a client.
"""

from __future__ import annotations

import asyncio
import json
import os
import weakref
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import Random
from typing import Any

from codea1_agents.models.backoff import Backoff
from codea1_agents.models.completion_agent import CompletionAgent, CompletionResult
from codea1_agents.models.completions import FINISHES, Completion, Sampling, draw_seed
from codea1_agents.models.openai_connection import (
    OpenAIConnection,
    imported_openai,
    required_key,
    usable_address,
)
from codea1_agents.prompts import Prompts, folded_system, load_prompts
from codea1_env.agent import AgentContext, Info, Observation
from codea1_env.errors import AgentUnavailable, UserError
from codea1_env.secret import cleaned, discreet

__all__ = ["FilteredReply", "MalformedResponse", "OpenAIAgent", "read_completion"]

_SETTINGS = {
    401: "refuses the key",
    402: "wants to be paid first",
    403: "refuses access",
    404: "has no such model or path",
}
"""Statuses that no other observation would mend."""
_TRANSIENT = frozenset({408, 409, 425, 429})
_NO_QUOTA = "insufficient_quota"
"""Comes with status 429, but no waiting helps."""
_FILTERED = "content_filter"
_ENDS_OF_ITS_OWN = frozenset({"stop", "length", "tool_calls", "function_call"})
"""With these, a reply without text is the model's own doing."""


class MalformedResponse(ValueError):
    """A server answered with something that is no chat completion."""


class FilteredReply(Exception):
    """A server's filter has withheld or cut a reply; that says nothing about the model."""


class OpenAIAgent(CompletionAgent):
    """Asks an OpenAI-compatible endpoint, one request per reply.

    A request that fails (429, 5xx, no connection, time-out, a malformed answer) is sent again, with growing waits;
    after the last try it is `AgentUnavailable`, as is at once one that the server's content filter stops. One reply is
    the same whether asked for alone or in a batch, as far as the server honours `seed`; n samples of one observation
    are n requests whose infos differ (`draw_seed`).

    Some servers ignore the temperature unless told to draw: transformers serve does so where the model's own generation
    settings say `do_sample`, or `extra_body` holds them. All samples of a problem being equal is the sign of it.
    """

    def __init__(
        self,
        context: AgentContext | None = None,
        *,
        model: str = "",
        base_url: str = "",
        key_env: str = "OPENAI_API_KEY",
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
        api_key: str = "",
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        """Make an agent; nothing is sent before the first reply is asked for.

        Args:
            context: its seed is used where `seed` is None.
            model: the server's name of it; empty: OPENAI_MODEL, else the only one that the server lists.
            base_url: up to and with `/v1`; empty: OPENAI_BASE_URL, else OpenAI's own.
            key_env: environment variable that holds the key.
            prompts: a wording's name, a file, or `Prompts`.
            temperature: 0: greedy.
            top_p: within (0, 1].
            max_tokens: longest reply.
            limit_field: what the server calls that; newer OpenAI models want `max_completion_tokens`.
            seed: of the draws, until `reset`.
            send_seed: whether requests carry a seed; some servers refuse it.
            system: False: the system message becomes part of the user's.
            retries: requests after the first one failed.
            backoff_s: first wait; each later one is twice as long, at most a minute.
            timeout_s: longest time for one request, from sending to its last byte.
            concurrency: most requests in flight.
            api_key: the key itself; in a specification text it would be kept in the run's record.
            extra_body: fields of the request that OpenAI's protocol does not know.

        Raises:
            MissingExtra: the `openai` package is not installed.
            UserError: an option out of range, no usable address, or no key for OpenAI's own endpoint.
        """
        imported_openai()
        Sampling(temperature, top_p, max_tokens)  # for its checks
        if not (timeout_s > 0 and concurrency >= 1):
            raise UserError("timeout_s must be above 0, and concurrency at least 1")
        self._backoff = Backoff(retries, backoff_s)
        self._model = str(model) or os.environ.get("OPENAI_MODEL", "")
        self._prompts, self._system = load_prompts(prompts), system
        self._fixed = {"temperature": temperature, "top_p": top_p, limit_field: max_tokens}
        self._send_seed, self._extra_body = send_seed, dict(extra_body or {})
        address = usable_address(base_url)
        self._connection = OpenAIConnection(
            base_url=address,
            key=required_key(api_key, key_env, address),
            timeout_s=timeout_s,
            concurrency=concurrency,
        )
        weakref.finalize(self, self._connection.close)
        super().__init__(context, seed)

    async def aact(self, observation: Observation, info: Info) -> str:
        """Return the model's reply; as `act`, in any event loop."""
        return (await self._connection.join(self._completed(observation, info))).text

    def complete_batch(self, observations: Sequence[Observation], infos: Sequence[Info]) -> list[CompletionResult]:
        """Return what `act_batch` does, with token counts, reasoning and end."""
        pairs = zip(observations, infos, strict=True)
        return self._connection.run(_all(self._completed(observation, info) for observation, info in pairs))

    def close(self) -> None:
        """End the connections; a later reply opens new ones."""
        self._connection.close()

    def __repr__(self) -> str:
        return cleaned(f"openai({self._model or 'the only model'} at {self._connection.place})")

    async def _completed(self, observation: Observation, info: Info) -> Completion:
        with discreet():
            found = await self._with_retries(observation, info)
        self._usage = self._usage.with_completions([found])
        return replace(found, text=cleaned(found.text), reasoning=cleaned(found.reasoning))

    async def _with_retries(self, observation: Observation, info: Info) -> Completion:
        seed = draw_seed(self._seed, observation, info)
        messages = self._prompts.messages(observation, info)
        told = [each.to_dict() for each in (messages if self._system else folded_system(messages))]
        body = self._fixed | ({"seed": seed} if self._send_seed else {}) | {"messages": told}
        draws = Random(seed)  # of the waits
        fault = ""
        for attempt in range(self._backoff.retries + 1):
            asked_s: float | None = None
            try:
                return await self._asked(body)
            except FilteredReply as error:
                raise self._unavailable(str(error)) from None
            except imported_openai().APIStatusError as error:
                fault, asked_s = self._fault_of(error), _asked_wait_s(error)
            except (imported_openai().OpenAIError, TimeoutError, json.JSONDecodeError, MalformedResponse) as error:
                fault = _sentence(error)
            if attempt < self._backoff.retries:
                self._usage = replace(self._usage, retries=self._usage.retries + 1)
                await asyncio.sleep(self._backoff.wait_s(attempt, draws, asked_s))
        raise self._unavailable(f"gave no reply in {self._backoff.retries + 1} tries; the last one: {fault}")

    async def _asked(self, body: dict[str, Any]) -> Completion:
        return await self._connection.within_limits(self._sent(body))

    async def _sent(self, body: dict[str, Any]) -> Completion:
        client = self._connection.client
        if not self._model:
            self._model = self._only([each.id async for each in client.models.list()])
        found = await client.chat.completions.create(**body, model=self._model, extra_body=self._extra_body)
        return read_completion(found)

    def _only(self, listed: list[str]) -> str:
        if len(listed) != 1:
            some = ", ".join(listed[:6]) + (", ..." if len(listed) > 6 else "")
            raise UserError(f"{self!r}: the server lists {len(listed)} models ({some}); choose one with model=")
        return listed[0]

    def _fault_of(self, error: Any) -> str:
        """Return what to say about a status worth another try; raise for any other."""
        status, said = int(error.status_code), _sentence(error)
        if status in _SETTINGS:
            raise UserError(f"{self!r} {_SETTINGS[status]}: {said}") from error
        if _NO_QUOTA in (error.code, error.type):
            raise UserError(f"{self!r} has no quota left for this key: {said}") from error
        if status < 500 and status not in _TRANSIENT:
            refuses = "filters the request" if error.code == _FILTERED else "refuses the request"
            raise self._unavailable(f"{refuses}: {said}") from error
        return said

    def _unavailable(self, what: str) -> AgentUnavailable:
        self._usage = replace(self._usage, unanswered=self._usage.unanswered + 1)
        return AgentUnavailable(f"{self!r} {what}")


def read_completion(response: Any) -> Completion:
    """Return the first choice of a chat completion, as the `openai` package gives it.

    Reasoning that the server tells apart (`reasoning_content`, or `reasoning` in newer servers, or parts of the content
    called `thinking`) stays apart. Content in parts is the text of its parts; no content is an empty reply if the model
    came to an end of its own.

    Raises:
        MalformedResponse: it is no chat completion, or an unfinished one.
        FilteredReply: the server's content filter has stopped it.
    """
    choices = getattr(response, "choices", None)
    first = choices[0] if isinstance(choices, list) and choices else None
    message = getattr(first, "message", None)
    if message is None:
        raise MalformedResponse(f"the answer is no chat completion: {cleaned(str(response))[:80]!r}")
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


async def _all(asked: Any) -> list[CompletionResult]:
    tasks = [asyncio.ensure_future(_caught(each)) for each in asked]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


async def _caught(asked: Coroutine[Any, Any, Completion]) -> CompletionResult:
    try:
        return await asked
    except AgentUnavailable as error:
        return error


def _parts_of(message: Any, finish: str) -> tuple[str, str]:
    """Return text and reasoning of a message's content."""
    content = getattr(message, "content", None)
    if isinstance(content, str):
        return content, ""
    if content is None:
        refusal = _text_of(message, "refusal")
        if not refusal and finish not in _ENDS_OF_ITS_OWN:
            raise MalformedResponse(f"there is no reply, and it ended by {finish!r}")
        return refusal, ""
    if not isinstance(content, list) or not all(isinstance(part, str | dict) for part in content):
        raise MalformedResponse(f"the reply is no text: {cleaned(str(content))[:80]!r}")
    return "".join(_texts(content, "text", "refusal")), "".join(_texts(content, "thinking", "reasoning"))


def _texts(parts: Sequence[Any], *kinds: str) -> Iterator[str]:
    """Yield the texts of the parts of some kinds; a part of plain text is of the kind `text`."""
    for each in parts:
        part = {"type": "text", "text": each} if isinstance(each, str) else each
        kind = part.get("type")
        value = part.get(kind) if kind in kinds else None
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):  # thoughts may be in parts themselves
            yield from _texts([inner for inner in value if isinstance(inner, str | dict)], "text")


def _text_of(message: Any, name: str) -> str:
    value = getattr(message, name, None)
    return value if isinstance(value, str) else ""


def _count_of(usage: Any, name: str) -> int:
    value = getattr(usage, name, None)
    return value if isinstance(value, int) else 0


def _asked_wait_s(error: Any) -> float | None:
    headers = error.response.headers
    told = headers.get("retry-after", "")
    try:
        return max(0.0, float(told))
    except ValueError:
        until = _date(told)
    # By the server's own clock, where it tells it.
    return None if until is None else max(0.0, (until - (_date(headers.get("date", "")) or _now())).total_seconds())


def _date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _now() -> datetime:
    return datetime.now(UTC)


def _sentence(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    said = " ".join(cleaned(str(error)).split())[:300] or type(error).__name__  # cleaned first: no half of a key
    response = getattr(error, "response", None)
    if response is not None and len(said) > len("Error code: 500"):
        return said  # the package has found the server's own words
    told = " ".join(cleaned(str(response.text if response is not None else error.__cause__ or "")).split())[:200]
    return f"{said} ({told})" if told and told not in said else said
