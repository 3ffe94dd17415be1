"""Checks every request before its body is read, and reads the body within bounds."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any

from codea1_env.service.admission import HOLDING, STOPPING, WAYS_TO_WAIT, HeldBytes, Holding, Refused
from codea1_env.service.bounds import ServiceBounds

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Mapping[str, Any], Receive, Send], Awaitable[None]]

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+))(?::[0-9]{1,5})?")
_READ = (b"host", b"authorization", b"content-type", b"content-length", b"transfer-encoding")
_OPEN = ("GET", "/v1/ping")
"""The request that needs no token; one with a body does."""


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address or name."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def refuse(send: Send, refused: Refused) -> None:
    """Send a refusal: its status, and one sentence as `detail`."""
    headers = [(b"content-type", b"application/json")]
    if refused.status_code in WAYS_TO_WAIT:
        headers.append((b"retry-after", b"1"))
    if refused.status_code is HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b"Bearer"))
    body = json.dumps({"detail": str(refused)}).encode()
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": refused.status_code.value, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Guard:
    """An ASGI application around another one, which gets each request with its whole body.

    Without a token, only names of this machine are accepted as `Host`: a web page that resolves its own name to this
    machine is refused. And only JSON is: a page can post other types to any address without a question.
    """

    def __init__(self, app: App, bounds: ServiceBounds, token: str | None) -> None:
        self._app, self._bounds, self._token = app, bounds, token
        self._held = HeldBytes(bounds.max_held_bytes)

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request."""
        holding, has_begun = Holding(self._held), False
        HOLDING.set(holding)

        async def noting(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            headers = dict(scope["headers"])
            if any(sum(name == each for each, _ in scope["headers"]) > 1 for name in _READ):
                raise Refused(HTTPStatus.BAD_REQUEST, f"each of {b', '.join(_READ).decode()} may appear only once")
            self._check_sender(scope, headers)
            body: bytes | None = b""
            if scope["method"] == "POST":
                self._check_body(headers)
                body = await self._body(holding, receive)
            if body is not None:
                await self._app(scope, _replaying(body, receive), noting)
        except Refused as refused:
            await refuse(send, refused)
        except asyncio.CancelledError:  # the server ends before the request; a response that has begun stays cut
            if not has_begun:
                await refuse(send, Refused(HTTPStatus.SERVICE_UNAVAILABLE, STOPPING))
        finally:
            holding.close()

    async def _body(self, holding: Holding, receive: Receive) -> bytes | None:
        """Return a whole body; None if the client has left."""
        parts = []
        try:
            async with asyncio.timeout(self._bounds.client_s):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return None
                    holding.take(len(message["body"]))
                    parts.append(message["body"])
                    if not message["more_body"]:
                        return b"".join(parts)
        except TimeoutError:
            raise Refused(HTTPStatus.REQUEST_TIMEOUT, "the body did not arrive in time") from None

    def _check_sender(self, scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> None:
        if self._token is None:
            host = _HOST.fullmatch(headers.get(b"host", b"").decode("latin-1").lower())
            if host is None or not is_loopback(host[1] or host[2]):
                raise Refused(HTTPStatus.FORBIDDEN, "without a token, Host must be localhost or a loopback address")
            return
        authorization = headers.get(b"authorization", b"")
        is_open = (scope["method"], scope["path"]) == _OPEN
        if not is_open and not hmac.compare_digest(authorization, f"Bearer {self._token}".encode()):
            raise Refused(HTTPStatus.UNAUTHORIZED, "a token is required: send Authorization: Bearer TOKEN")

    def _check_body(self, headers: Mapping[bytes, bytes]) -> None:
        content_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        length = headers.get(b"content-length", b"")
        if content_type != b"application/json":
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, "the Content-Type must be application/json")
        if not length.isdigit() or b"transfer-encoding" in headers:  # which would end the body elsewhere
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "Content-Length is required, Transfer-Encoding refused")
        if len(length) > 18 or int(length) > self._bounds.max_body_bytes:
            raise Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body must have at most {self._bounds.max_body_bytes} bytes"
            )


def _replaying(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the whole body first, then what comes."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return first.pop() if first else await receive()

    return replay
