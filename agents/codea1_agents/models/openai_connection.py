"""Connects one agent to one endpoint, in an event loop of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any, TypeVar

from codea1_env.agent.threads import LoopThread
from codea1_env.declared import CountOrZero, Range, require_declared
from codea1_env.errors import UserError, extra_needed
from codea1_env.secret import require_address, require_no_secrets, secret_in, without

CLOUD = "https://api.openai.com/v1"

USUAL_KEY = "OPENAI_API_KEY"

LARGEST_ANSWER_BYTES = 64 << 20
"""Longest body of a response that is read."""

T = TypeVar("T")


class OpenAIConnection:
    """A client of the `openai` package, created at the first request, with a limit on concurrent requests."""

    def __init__(self, *, base_url: str, key_env: str, timeout_s: float, concurrency: int) -> None:
        """Check the settings.

        Args:
            base_url: of the server; empty: OPENAI_BASE_URL, else OpenAI's own.
            key_env: environment variable with the key, which may be unset for a server of one's own.
            timeout_s: longest time of one request, above 0.
            concurrency: most requests at once, at least 1.

        Raises:
            UserError: a number is out of range, the address is invalid, or a key is missing for OpenAI's own endpoint.
        """
        if not (timeout_s > 0 and concurrency >= 1):
            raise UserError("timeout_s must be above 0, and concurrency at least 1")
        self.place, self._key_env = base_url or os.environ.get("OPENAI_BASE_URL", "") or CLOUD, key_env
        require_address("base_url", self.place)
        require_key(key_env, self.place)
        self._timeout_s, self._concurrency = timeout_s, concurrency
        self.loop = LoopThread("openai-agent")
        """Runs all requests; the client and its limit belong to this loop."""
        self._client: Any = None
        self._slots: asyncio.Semaphore | None = None

    def without_key(self, text: str) -> str:
        """Return a text of the server with `***` for the key, which some servers repeat in replies and errors."""
        return without(text, secret_in(self._key_env))

    @property
    def client(self) -> Any:
        """The client; use it only in `loop`."""
        if self._client is None:
            openai = imported_openai()
            self._client = openai.AsyncOpenAI(
                api_key=secret_in(self._key_env) or "none",  # the package requires one
                base_url=self.place,
                max_retries=0,  # the package's own retries draw their waits from the global random state
                timeout=self._timeout_s,
                http_client=openai.DefaultAsyncHttpxClient(
                    headers={"Accept-Encoding": "gzip, deflate"}, event_hooks={"response": [_bound]}
                ),
            )
        return self._client

    async def within_limits(self, request: Coroutine[Any, Any, T]) -> T:
        """Wait until fewer than `concurrency` requests run, then await the request.

        Raises:
            TimeoutError: the request took longer than `timeout_s`. The client's own limit applies to each read, so a
                server that sends a byte now and then would never reach it.
        """
        if self._slots is None:
            self._slots = asyncio.Semaphore(self._concurrency)
        try:
            async with self._slots, asyncio.timeout(self._timeout_s):
                return await request
        finally:
            request.close()  # matters only if the request never began

    def close(self) -> None:
        """Close the connections and cancel running requests. A later request opens new connections."""
        client, self._client, self._slots = self._client, None, None
        self.loop.close(client.close if client is not None else None)


async def _bound(response: Any) -> None:
    """Have the body of a response given up where it is too long, also when unpacked."""
    encoding, parts = response.headers.get("content-encoding", "identity"), response.aiter_bytes
    if encoding not in ("identity", "gzip", "deflate"):  # others may unpack a piece to any length
        raise ValueError(f"expected an answer in gzip at most, got the encoding {encoding!r:.60}")

    async def within() -> AsyncIterator[bytes]:
        n_bytes = 0
        async for part in parts():
            n_bytes += len(part)
            if n_bytes > LARGEST_ANSWER_BYTES:
                raise ValueError(f"expected an answer of at most {LARGEST_ANSWER_BYTES:,} bytes, got more")
            yield part

    response.aiter_bytes = within


def require_key(variable: str, base_url: str) -> None:
    """Raise UserError if a variable that was named is not set here, or is a key itself, or OpenAI would get no key."""
    require_no_secrets(f",api_key_env={variable}")
    if secret_in(variable):
        return
    if variable != USUAL_KEY:
        raise UserError("the environment variable that api_key_env names is not set: set it wherever agents run")
    if base_url == CLOUD:
        raise UserError(f"{CLOUD} needs a key: set {variable}, or set OPENAI_BASE_URL to your own server")


def imported_openai() -> Any:
    """Return the `openai` package.

    Raises:
        MissingExtra: it is not installed.
    """
    with extra_needed("the agent 'openai'", "openai"):
        import openai  # noqa: PLC0415  heavy, and an extra
    return openai


LONGEST_S = 60.0
"""Longest wait."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential waiting with jitter."""

    retries: CountOrZero = 5
    backoff_s: Annotated[float, Range(0, LONGEST_S)] = 0.5
    """The first wait."""

    def __post_init__(self) -> None:
        require_declared(self, "")

    def wait_s(self, attempt: int, draws: Random, requested_s: float | None = None) -> float:
        """Return the seconds to wait after attempt `attempt` (from 0) failed.

        Random between half and the whole of `backoff_s * 2 ** attempt`, so that clients that failed together do not
        retry together; at least `requested_s`, which the server requested, and at most `LONGEST_S`.
        """
        full = min(LONGEST_S, self.backoff_s * 2.0 ** min(attempt, 60))
        jittered = full * (0.5 + 0.5 * draws.random())
        return min(LONGEST_S, max(jittered, requested_s or 0.0))
