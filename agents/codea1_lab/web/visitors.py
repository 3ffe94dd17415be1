"""The rights of visitors on the page: the `Door` checks every request, `Visitors` keeps them apart and gives turns."""

from __future__ import annotations

import asyncio
import heapq
import hmac
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from http import HTTPStatus
from typing import Any, Generic, TypeVar
from urllib.parse import unquote_to_bytes

from starlette.requests import cookie_parser

from codea1_env.service.admission import BUSY, Admission, Refused
from codea1_env.service.bounds import ServiceBounds
from codea1_env.service.guard import App, Guard, Message, Receive, Send, require_own_page

_T = TypeVar("_T")
_S = TypeVar("_S")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_NEW_S = 0.25
"""The assumed length of a visitor's first work: so that who is known to be quick is served before any number of new
cookies, and so that a new visitor waits no longer than this for each of the quick ones."""
_HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


def new_cookie(name: str, value: str) -> str:
    """Return the header that sets a cookie which no script can read and other sites cannot send with a POST."""
    return f"{name}={value}; Path=/; HttpOnly; SameSite=Lax"


def cookie_name(kind: str, host: str) -> str:
    """Return the name of a cookie, with the port of `Host`: cookies know none, and a machine may serve two pages."""
    port = re.search(r":(\d+)$", host)
    return f"codea1_{kind}_{port[1]}" if port else f"codea1_{kind}"


class Door(Guard):
    """A guard for browsers: the token becomes a cookie, a POST must come from the page itself, the policy is sent.

    `/?token=TOKEN` is the address to open first; any other address needs the cookie, which holds a digest of the token:
    programs behind other ports of this host get it, too.

    Args:
        app: gets each request with its whole body.
        bounds: on requests.
        token: that requests must have; None: there is none.
        is_public: whether anybody may come under any name of the host, without a token.
    """

    def __init__(self, app: App, bounds: ServiceBounds, token: str | None, *, is_public: bool = False) -> None:
        super().__init__(app, bounds, token)
        self._key, self._is_public = None if token is None else _digest(token.encode()), is_public

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request."""

        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *_HEADERS]}
            await send(message)

        name, _, token = scope["query_string"].partition(b"=")
        digests = (_digest(token), _digest(unquote_to_bytes(token)))  # how long their comparison takes tells nothing
        if self._key is not None and self._key in digests and name == b"token" and scope["path"] == "/":
            host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
            cookie = new_cookie(cookie_name("token", host), self._key)
            headers = [(b"location", b"./"), (b"set-cookie", cookie.encode())]
            await with_policy({"type": "http.response.start", "status": 303, "headers": headers})
            await with_policy({"type": "http.response.body", "body": b""})
            return
        await super().__call__(scope, receive, with_policy)

    def require_closed(self, host: str) -> None:
        """Raise UserError if other machines could reach an address without a token, unless anybody may."""
        if not self._is_public:
            super().require_closed(host)

    def _check_sender(self, scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> None:
        if self._is_public:
            return
        if self._key is None:
            super()._check_sender(scope, headers)
            return
        host, cookies = (headers.get(name, b"").decode("latin-1") for name in (b"host", b"cookie"))
        token = cookie_parser(cookies).get(cookie_name("token", host), "")
        if not hmac.compare_digest(token.encode(), self._key.encode()):
            raise Refused(HTTPStatus.UNAUTHORIZED, "a token is required: open the address with ?token=TOKEN once")

    def _check_body(self, headers: Mapping[bytes, bytes]) -> None:
        require_own_page(headers)
        super()._check_body(headers)


def _digest(token: bytes) -> str:
    return sha256(b"codea1 web: " + token).hexdigest()


@dataclass(slots=True)
class Visitor(Generic[_S]):
    """One browser and its state."""

    state: _S
    due: float = 0.0
    """The time at which its next work may begin, by the clock of `Visitors`."""
    expected_s: float = _NEW_S
    """The assumed length of its next work."""
    is_busy: bool = False


@dataclass(slots=True)
class Visitors(Generic[_S]):
    """The visitors by their cookie, and whose work is next.

    A visitor has one piece of work at a time. Those that wait get their turns by fair queueing (Demers, Keshav and
    Shenker, 1989): next is whose work would end first if all were served at once, where it is taken to be about as long
    as the visitor's last ones. So the endless loops of some are no queue for the others. Who comes anew has no credit:
    neither a new cookie nor a long absence is worth a turn more.
    """

    admission: Admission
    new_state: Callable[[], _S]
    most: int
    """Visitors that are kept; one more takes the place of the one unseen for the longest time."""
    n_free: int
    """Pieces of work that may begin now."""
    _known: OrderedDict[str, Visitor[_S]] = field(default_factory=OrderedDict, init=False)
    _waiting: list[tuple[float, int, asyncio.Future[None]]] = field(default_factory=list, init=False)
    _n_asked: int = field(default=0, init=False)
    _n_inside: int = field(default=0, init=False)
    """Pieces of work that wait or run."""
    _now: float = field(default=0.0, init=False)
    """Seconds of work that each visitor would have had so far if all had had the same."""

    def find(self, key: str) -> Visitor[_S] | None:
        """Return the visitor of a cookie; None: there is none."""
        if key in self._known:
            self._known.move_to_end(key)
        return self._known.get(key)

    def enter(self, key: str) -> tuple[Visitor[_S], str]:
        """Return the visitor of a cookie, and the cookie to set: empty for a known visitor."""
        visitor = self.find(key)
        if visitor is not None:
            return visitor, ""
        while len(self._known) >= self.most:
            self._known.popitem(last=False)
        key = secrets.token_urlsafe(16)
        self._known[key] = Visitor(self.new_state())
        return self._known[key], key

    async def run(self, visitor: Visitor[_S], work: Callable[[], _T]) -> _T:
        """Return what `work` returns, once it is this visitor's turn.

        Raises:
            Refused: the visitor's last work still runs or waits, too many wait, or the server ends.
        """
        if visitor.is_busy:
            raise Refused(HTTPStatus.CONFLICT, "your last try is still being judged")
        visitor.is_busy, due = True, max(self._now, visitor.due)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (due + visitor.expected_s, self._n_asked, turn))
        self._n_asked += 1
        self._n_inside += 1
        if len(self._waiting) > self.most:  # the last in the queue goes, whoever that is
            last = max(self._waiting)
            self._waiting.remove(last)
            heapq.heapify(self._waiting)
            if not last[-1].done():
                last[-1].set_exception(Refused(HTTPStatus.TOO_MANY_REQUESTS, BUSY))
        try:
            self._begin_next()
            await turn
            begun = time.monotonic()
            try:
                return await self.admission.run(work)
            finally:
                spent_s = time.monotonic() - begun
                visitor.expected_s = max(spent_s, visitor.expected_s / 2)  # quick work between long one hides nothing
                visitor.due = due + spent_s
                self._now += spent_s / self._n_inside
                self.n_free += 1
                self._begin_next()
        finally:
            visitor.is_busy = False
            self._n_inside -= 1

    def _begin_next(self) -> None:
        while self._waiting and self.n_free:
            turn = heapq.heappop(self._waiting)[-1]
            if not turn.done():  # else the server has given it up
                self.n_free -= 1
                turn.set_result(None)
