"""Checks every request before its body is read, and reads the body within bounds."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any

from codea1_env.errors import UserError
from codea1_env.sandbox.remote import TOKEN_VARIABLE
from codea1_env.service.admission import HOLDING, STOPPING, WAYS_TO_WAIT, HeldBytes, Holding, Refused
from codea1_env.service.bounds import ServiceBounds

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Mapping[str, Any], Receive, Send], Awaitable[None]]

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+))(?::[0-9]{1,5})?")
_READ = (b"host", b"origin", b"authorization", b"content-type", b"content-length", b"transfer-encoding")
_OPEN = (("GET", "/v1/ping"), ("GET", "/health"))
"""The requests that need no token, the second in OpenEnv; those with a body do."""
_SHORTEST_TOKEN = 16
_POLICY_VIOLATION = 1008  # RFC 6455


def token_of_environment() -> str | None:
    """Return the token of the environment, if there is one.

    Raises:
        UserError: it is too short or not ASCII.
    """
    token = os.environ.get(TOKEN_VARIABLE) or None
    if token is not None and not re.fullmatch(rf"[!-~]{{{_SHORTEST_TOKEN},}}", token):
        raise UserError(f"the token must have at least {_SHORTEST_TOKEN} characters, all of them visible ASCII")
    return token


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
    machine is refused. And only JSON is: a page can post other types to any address without a question. It can open
    WebSockets, too, so where there is an `Origin`, it is that of a page of this server.
    """

    def __init__(self, app: App, bounds: ServiceBounds, token: str | None) -> None:
        self._app, self._bounds, self._token = app, bounds, token
        self._held = HeldBytes(bounds.max_held_bytes)

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request, or one WebSocket."""
        if scope["type"] == "websocket":
            try:
                self._check_sender(scope, _headers_of(scope))
            except Refused as refused:
                await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": str(refused)})
                return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        holding, has_begun = Holding(self._held), False
        HOLDING.set(holding)

        async def noting(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            headers = _headers_of(scope)
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

    def require_closed(self, host: str) -> None:
        """Raise UserError if other machines could reach an address of this server without a token."""
        if self._token is None and not is_loopback(host):
            raise UserError(
                f"other machines can reach {host}: set a token in {TOKEN_VARIABLE}, since what they send runs here"
            )

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
            if b"origin" in headers:
                require_own_page(headers)
            return
        given = headers.get(b"authorization", b"")
        is_open = (scope.get("method"), scope["path"]) in _OPEN
        if not is_open and not hmac.compare_digest(given, f"Bearer {self._token}".encode()):
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


def _headers_of(scope: Mapping[str, Any]) -> dict[bytes, bytes]:
    """Return the headers by name.

    Raises:
        Refused: one that is read appears twice.
    """
    if any(sum(name == each for each, _ in scope["headers"]) > 1 for name in _READ):
        raise Refused(HTTPStatus.BAD_REQUEST, f"each of {b', '.join(_READ).decode()} may appear only once")
    return dict(scope["headers"])


def require_own_page(headers: Mapping[bytes, bytes]) -> None:
    """Raise Refused unless the sender is a page of this server."""
    host = headers.get(b"host", b"").lower()
    if not host or headers.get(b"origin", b"").lower() not in (b"http://" + host, b"https://" + host):
        raise Refused(HTTPStatus.FORBIDDEN, "Origin must be the address of this page")


def _replaying(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the whole body first, then what comes."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return first.pop() if first else await receive()

    return replay
