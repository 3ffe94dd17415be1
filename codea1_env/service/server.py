"""The servers of `codea1 serve` and `codea1 web`: their address, threads, end.

with ServiceServer(ServedJudge(sandbox, "humaneval"), port=0) as server:
    print(server.url)
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
from typing import Any

from codea1_env.errors import UserError, extra_needed
from codea1_env.records.closing import Closing
from codea1_env.service.admission import Admission
from codea1_env.service.app import new_app
from codea1_env.service.bounds import ServiceBounds
from codea1_env.service.guard import Guard
from codea1_env.service.judging import ServedJudge

with extra_needed("the server of codea1 serve", "serve"):
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

_BACKLOG = 256
_MOST_CONNECTIONS = os.sysconf("SC_OPEN_MAX") // 2
"""The sandbox needs files, too."""


class HttpServer(Closing):
    """Serves an application from its construction until `close`, in a thread of its own.

    Args:
        app: in its guard.
        admission: runs the application's work.
        bounds: on clients.
        host: address to listen on.
        port: 0 for any free port; `url` contains the number.

    Raises:
        UserError: other machines could reach it without a token, or the address is not available.
    """

    def __init__(self, app: Guard, admission: Admission, bounds: ServiceBounds, host: str, port: int) -> None:
        app.require_closed(host)
        self.admission = admission
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=_HeadsInTime,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=_BACKLOG,
                timeout_keep_alive=bounds.client_s,
                timeout_graceful_shutdown=bounds.grace_s,
            )
        )
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._socket = _listening(host, port, bounds.client_s)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        """Host and port."""
        run, sockets = self._server.run, {"sockets": [self._socket]}
        self._thread = threading.Thread(target=run, kwargs=sockets, name="codea1-serve", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Address for clients."""
        host, port = self.address
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def close(self) -> None:
        """Stop: running requests are answered within `grace_s`, all others are refused. Idempotent."""
        self.admission.stop()
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


class ServiceServer(HttpServer):
    """The server of a judge, whose sandbox stays open.

    Args:
        judge: does the work.
        host: address to listen on.
        port: 0 for any free port.
        token: that requests must have; None: there is none.

    Raises:
        UserError: other machines could reach it without a token, or the address is not available.
        MissingExtra: FastAPI or uvicorn is not installed.
    """

    def __init__(
        self, judge: ServedJudge, host: str = "127.0.0.1", port: int = 8080, *, token: str | None = None
    ) -> None:
        bounds = judge.bounds
        admission = Admission(bounds.n_running, bounds.n_waiting)
        super().__init__(Guard(new_app(judge, admission), bounds, token), admission, bounds, host, port)


class _HeadsInTime(H11Protocol):  # type: ignore[misc]  # uvicorn is not read
    """Ends a connection on which no whole head comes within uvicorn's time for idle connections.

    uvicorn starts that clock after responses only, and the first byte of a request stops it. Where there are too many
    connections, the oldest without a whole request makes room: clients that send slowly keep nobody out.
    """

    def connection_made(self, transport: Any) -> None:
        """Start the clock."""
        super().connection_made(transport)
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)
        self.begun = self.loop.time()
        if len(self.connections) > _MOST_CONNECTIONS:
            # Those without a request that has arrived and waits for its answer.
            idle = (c for c in self.connections if c.cycle is None or c.cycle.more_body or c.cycle.response_complete)
            oldest = min(idle, key=lambda each: each.begun)
            self.connections.discard(oldest)  # its end is told to it later
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request; the clock stops when its head is whole."""
        self.conn.receive_data(data)
        self.handle_events()


def _listening(host: str, port: int, client_s: float) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "linux":  # its connections inherit it: the kernel ends those whose clients do not read
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(client_s * 1000))
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        raise UserError(f"cannot listen on {host}, port {port}: {error}") from error
    return listener
