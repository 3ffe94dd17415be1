"""The server of `codea1 serve`: its address, its threads, its end.

with ServiceServer(ServedJudge(sandbox, "humaneval"), port=0) as server:
    print(server.url)
"""

from __future__ import annotations

import logging
import socket
import threading
from time import monotonic
from typing import Any

from codea1_env.errors import UserError, extra_needed
from codea1_env.records.closing import Closing
from codea1_env.service.admission import Admission
from codea1_env.service.app import new_app
from codea1_env.service.guard import Guard, is_loopback
from codea1_env.service.judging import ServedJudge

with extra_needed("the server of `codea1 serve`", "serve"):
    import h11
    import uvicorn

_BACKLOG = 1024


class ServiceServer(Closing):
    """Serves from its construction until `close`, in a thread of its own.

    Args:
        judge: does the work; its sandbox stays open.
        host: address to listen on.
        port: 0 for any free port; `url` contains the number.
        token: that requests must have; None: there is none.

    Raises:
        UserError: other machines could reach it without a token, or the address is not available.
        MissingExtra: FastAPI or uvicorn is not installed.
    """

    def __init__(
        self, judge: ServedJudge, host: str = "127.0.0.1", port: int = 8080, *, token: str | None = None
    ) -> None:
        if token is None and not is_loopback(host):
            raise UserError(
                f"other machines can reach {host}, and anyone who reaches the server can run programs: it needs a token"
            )
        bounds = judge.bounds
        self.admission = Admission(bounds.n_running, bounds.n_waiting)
        self._server = _Server(
            bounds.head_s,
            uvicorn.Config(
                Guard(new_app(judge, self.admission), bounds, token),
                loop="asyncio",
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=_BACKLOG,
                timeout_keep_alive=bounds.head_s,
                timeout_graceful_shutdown=bounds.grace_s,
            ),
        )
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._socket = _listening(host, port)
        self._address: tuple[str, int] = self._socket.getsockname()[:2]
        self._thread = threading.Thread(target=self._run, name="codea1-serve", daemon=True)
        self._thread.start()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return self._address

    @property
    def url(self) -> str:
        """Address for clients."""
        host, port = self.address
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @property
    def n_connections(self) -> int:
        """Connections that are open now."""
        return len(self._server.server_state.connections)

    def close(self) -> None:
        """Stop: running requests are answered within `grace_s`, all others are refused. Idempotent."""
        self.admission.stop()
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])


class _Server(uvicorn.Server):  # type: ignore[misc]  # uvicorn is not read
    """Ends connections whose clients do not send the head of a request: uvicorn waits for it for ever."""

    def __init__(self, head_s: float, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._head_s = head_s
        self._waiting_since: dict[Any, float] = {}

    async def on_tick(self, counter: int) -> bool:
        """Look at all connections, several times per second."""
        now, before = monotonic(), self._waiting_since
        waiting = [each for each in self.server_state.connections if each.conn.their_state is h11.IDLE]
        self._waiting_since = {each: before.get(each, now) for each in waiting}
        for connection, since in self._waiting_since.items():
            if now - since > self._head_s:
                connection.transport.abort()
        return bool(await super().on_tick(counter))


def _listening(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        raise UserError(f"cannot listen on {host}, port {port}: {error}") from error
    return listener
