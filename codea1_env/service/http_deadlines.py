"""HTTP/1.1 of uvicorn with deadlines for head, body and reader, and a bound on connections.

uvicorn waits for ever for the rest of a request. Here a request has a time for its head and one for its body, which
single bytes do not prolong. A connection above the bound ends the one that has waited longest for its client, so
half-sent requests cost other clients nothing.
"""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any, ClassVar

from codea1_env.errors import extra_needed
from codea1_env.service.bounds import ServiceBounds

with extra_needed("the server of `codea1 serve`", "serve"):
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

_HEAD, _BODY, _IDLE, _RUNNING = "head", "body", "idle", "running"
_LINGER_S = 0.2
_FULL = "the server has too many connections: try again"


def protocol_class(bounds: ServiceBounds) -> type[DeadlineProtocol]:
    """Return the protocol of one server."""
    return type("BoundDeadlineProtocol", (DeadlineProtocol,), {"bounds": bounds, "waiting": {}})


class DeadlineProtocol(H11Protocol):  # type: ignore[misc]  # uvicorn is not read
    """One connection."""

    bounds: ClassVar[ServiceBounds]
    waiting: ClassVar[dict[DeadlineProtocol, None]]
    """The connections that wait for their clients, those first that wait longest."""
    _phase = ""
    _timer: asyncio.TimerHandle | None = None
    _reader_timer: asyncio.TimerHandle | None = None
    _is_refused = False

    def connection_made(self, transport: Any) -> None:
        """Wait for a head, or refuse the connection."""
        super().connection_made(transport)
        if len(self.connections) > self.bounds.max_connections:
            if not self.waiting:
                self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, _FULL)
                return
            next(iter(self.waiting)).end()
        self._enter(_HEAD)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all clocks."""
        self._enter("")
        self._stop_reader_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        if not self._is_refused:
            super().data_received(data)
            self._follow()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._follow()

    def pause_writing(self) -> None:
        """Wait for a client that does not read, but not for ever."""
        super().pause_writing()
        self._reader_timer = self.loop.call_later(self.bounds.response_s, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads."""
        super().resume_writing()
        self._stop_reader_timer()

    def shutdown(self) -> None:
        """Begin to stop: end the connection at once if no whole request has come."""
        if self._phase in (_HEAD, _BODY, _IDLE):
            self.end()
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP."""
        self._refuse(HTTPStatus.BAD_REQUEST, "this is not an HTTP/1.1 request")

    def end(self) -> None:
        """End a connection that waits for its client; a request that has come in part gets 408."""
        if self._phase == _HEAD or (self._phase == _BODY and not self.cycle.response_started):
            late = f"the {self._phase} of the request did not come in time"
            self.transport.write(_response(HTTPStatus.REQUEST_TIMEOUT, late))
        self._enter("")
        self.transport.close()

    def _follow(self) -> None:
        """Start the clock of the phase that the connection has come to."""
        state = self.conn.their_state
        if self.transport.is_closing() or self._is_refused:
            self._enter("")
        elif state is h11.SEND_BODY:
            self._enter(_BODY)
        elif state is h11.IDLE:
            has_begun = self._phase == _HEAD or bool(self.conn.trailing_data[0])
            self._enter(_HEAD if has_begun else _IDLE)
        else:
            self._enter(_RUNNING)

    def _enter(self, phase: str) -> None:
        if phase == self._phase:
            return
        self._phase = phase
        self.waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if phase in (_HEAD, _BODY, _IDLE):
            self.waiting[self] = None
        if phase in (_HEAD, _BODY):
            self._timer = self.loop.call_later(self.bounds.head_s if phase == _HEAD else self.bounds.body_s, self.end)

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        """Answer and close, after a moment: closing with unread data would take the answer from the client."""
        self._is_refused = True
        self._enter("")
        self.transport.write(_response(status, detail))
        self.loop.call_later(_LINGER_S, self.transport.close)

    def _stop_reader_timer(self) -> None:
        if self._reader_timer is not None:
            self._reader_timer.cancel()
            self._reader_timer = None


def _response(status: HTTPStatus, detail: str) -> bytes:
    body = json.dumps({"detail": detail}).encode()
    retry = "Retry-After: 1\r\n" if status is HTTPStatus.SERVICE_UNAVAILABLE else ""
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nConnection: close\r\n{retry}"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
