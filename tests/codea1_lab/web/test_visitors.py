from __future__ import annotations

import asyncio
import threading
from typing import Any
from urllib.parse import quote

import pytest

from codea1_env.errors import UserError
from codea1_env.service.admission import Admission, Refused
from codea1_lab.web.app import WebServer
from codea1_lab.web.visitors import Visitor, Visitors
from tests.codea1_lab.web.conftest import Client
from tests.support.benchmarks import printed_by

TOKEN = "t0ken-of-the-test"
DUEL = {"role": "tester", "duel": 1}


def test_every_response_has_the_policy_and_the_page_loads_only_its_own_files(serving_page: Any) -> None:
    with serving_page() as server:
        visitor = Client(server)
        _, page, headers = visitor.ask("/")
        policy = dict(rule.strip().split(" ", 1) for rule in headers["content-security-policy"].split(";"))
        assert policy == {
            "default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "connect-src": "'self'",
            "img-src": "data:", "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'",
        }  # fmt: skip
        assert "<script>" not in page
        assert "style=" not in page
        statuses = {"/assets/web.css": 200, "/assets/play.js": 200, "/assets/..%2fapp.py": 404, "/x": 404}
        for path, status in statuses.items():
            found = visitor.ask(path)
            assert (found[0], found[2].get("content-security-policy")) == (status, headers["content-security-policy"])
        refused = visitor.ask("/", Host="example.org")
        assert refused[0] == 403
        assert refused[2]["content-security-policy"] == headers["content-security-policy"]


@pytest.mark.parametrize(
    "origin",
    ["http://example.org", "null", "", "http://127.0.0.1", "http://127.0.0.1:1", "http://[", "//{}", "ftp://{}"],
)
def test_a_post_comes_from_the_page_itself(serving_page: Any, origin: str) -> None:
    with serving_page() as server:
        origin = origin.replace("{}", "{}:{}".format(*server.address))
        status, answer, headers = Client(server).ask("/play/game", DUEL, Origin=origin)
        assert (status, answer) == (403, {"detail": "Origin must be the address of this page"})
        assert "set-cookie" not in headers


@pytest.mark.parametrize("token", ["t0ken-of-the-test", "ba+e64/==of;the&test", 'per%41cent-and-quot"e'])
def test_a_token_becomes_a_cookie_that_scripts_cannot_read(serving_page: Any, token: str) -> None:
    with serving_page(token=token) as server:
        visitor = Client(server)
        assert [visitor.ask(path)[0] for path in ("/", "/play/game", "/assets/play.js", "/?token=wrong")] == [401] * 4
        assert visitor.ask("/play/game", DUEL)[0] == 401
        for address in (f"/?token={token}", f"/?token={quote(token)}"):
            status, _, headers = visitor.ask(address)
            assert (status, headers["location"]) == (303, "./")
        (name, value), rules = visitor.cookies.copy().popitem(), headers["set-cookie"].partition("; ")[2]
        assert (name, rules) == (f"codea1_token_{server.address[1]}", "Path=/; HttpOnly; SameSite=Lax")
        assert token not in value  # programs behind other ports of this host get it
        assert visitor.ask("/")[0] == 200
        assert visitor.ask("/play/game", DUEL)[0] == 200
        assert visitor.ask("/", Host="example.org")[0] == 401  # another page's cookie
        assert visitor.ask("/", Host="example.org", Cookie=f"codea1_token={value}")[0] == 200  # a proxy's name
        visitor.cookies[name] = value[:-1]
        assert visitor.ask("/")[0] == 401


def test_a_visitors_cookie_is_not_for_scripts_and_cannot_be_guessed(serving_page: Any) -> None:
    with serving_page(is_public=True) as server:
        first, second = (Client(server).ask("/play/game", DUEL)[2]["set-cookie"] for _ in range(2))
        name, *rules = first.split("; ")
        assert rules == ["Path=/", "HttpOnly", "SameSite=Lax"]
        assert len(name.partition("=")[2]) >= 22
        assert first != second


def test_other_machines_need_a_token_or_the_public(serving_page: Any) -> None:
    with pytest.raises(UserError, match="set a token in CODEA1_SERVE_TOKEN"), serving_page(host="0.0.0.0"):
        pass
    with pytest.raises(UserError, match="unset CODEA1_SERVE_TOKEN"), serving_page(token=TOKEN, is_public=True):
        pass
    with serving_page(host="0.0.0.0", is_public=True) as server:
        assert isinstance(server, WebServer)
        visitor = Client(server)
        assert visitor.ask("/", Host="play.example.org")[0] == 200
        there = {"Host": "play.example.org", "Origin": "https://play.example.org"}  # behind a proxy with TLS
        assert visitor.ask("/play/game", DUEL, **there)[0] == 200
        assert visitor.ask("/play/game", DUEL, **there | {"Origin": "https://example.org"})[0] == 403


class Clock:
    """Work whose lengths are as told; its order is seen."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.order = 0.0, []
        monkeypatch.setattr("codea1_lab.web.visitors.time.monotonic", lambda: self.now)

    def work(self, name: str, seconds: float) -> Any:
        def done() -> None:
            self.order.append(name)
            self.now += seconds

        return done


def gaps(order: list[str]) -> list[int]:
    """Return how many others came before each quick one."""
    return [len(between) for between in "".join("q" if name == "quick" else "l" for name in order).split("q")][:-1]


def test_who_has_taken_long_waits_for_those_who_have_not(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, admission = Clock(monkeypatch), Admission(1, 0)
    visitors: Visitors[None] = Visitors(admission, lambda: None, 10, 1)

    async def repeated(name: str, seconds: float, times: int) -> None:
        visitor, _ = visitors.enter("")
        for _ in range(times):
            await visitors.run(visitor, clock.work(name, seconds))

    async def all_of_them() -> None:
        await asyncio.gather(*(repeated(f"loop {n}", 10.0, 20) for n in range(4)), repeated("quick", 0.1, 8))

    asyncio.run(all_of_them())
    first, *others = gaps(clock.order)
    assert first <= 4
    assert max(others) <= 1  # in the order of asking it would be four


def test_a_new_cookie_is_worth_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, admission = Clock(monkeypatch), Admission(1, 0)
    visitors: Visitors[None] = Visitors(admission, lambda: None, 100, 1)

    async def thrown_away(times: int) -> None:
        for _ in range(times):
            await visitors.run(visitors.enter("")[0], clock.work("loop", 10.0))

    async def all_of_them() -> None:
        quick, _ = visitors.enter("")
        loops = asyncio.gather(*(thrown_away(5) for _ in range(3)))
        await asyncio.sleep(0)
        for _ in range(4):
            await visitors.run(quick, clock.work("quick", 0.1))
        await loops

    asyncio.run(all_of_them())
    assert max(gaps(clock.order)) <= 3  # those that came before


def test_a_new_visitor_waits_a_quarter_of_a_second_for_each_quick_one(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    visitors: Visitors[None] = Visitors(Admission(1, 0), lambda: None, 100, 1)

    async def all_of_them() -> None:
        known = [visitors.enter("")[0] for _ in range(32)]
        for visitor in known * 6:  # the first work of each is no longer seen
            await visitors.run(visitor, clock.work("greedy", 0.05))
        clock.order.clear()

        async def ask_again(visitor: Visitor[None]) -> None:
            while "new" not in clock.order:
                await visitors.run(visitor, clock.work("greedy", 0.05))

        greedy = asyncio.gather(*map(ask_again, known))
        await asyncio.sleep(0)
        await visitors.run(visitors.enter("")[0], clock.work("new", 0.05))
        await greedy

    asyncio.run(all_of_them())
    assert clock.order.index("new") <= 32 * 0.25 / 0.05 + 1


def test_who_is_known_to_be_quick_comes_before_new_cookies(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, admission = Clock(monkeypatch), Admission(1, 0)
    visitors: Visitors[None] = Visitors(admission, lambda: None, 100, 1)

    async def all_of_them() -> None:
        quick, _ = visitors.enter("")
        for _ in range(3):
            await visitors.run(quick, clock.work("quick", 0.1))
        clock.order.clear()
        new = [visitors.run(visitors.enter("")[0], clock.work("loop", 2.0)) for _ in range(20)]
        loops = asyncio.gather(*new)
        await asyncio.sleep(0)
        await visitors.run(quick, clock.work("quick", 0.1))
        await loops

    asyncio.run(all_of_them())
    assert clock.order.index("quick") <= 1  # the one that runs already


def test_the_longest_unseen_visitor_makes_room_and_a_turn_is_passed_on_after_a_failure() -> None:
    visitors: Visitors[None] = Visitors(Admission(1, 0), lambda: None, 2, 1)
    keys = [visitors.enter("")[1] for _ in range(2)]
    visitors.find(keys[0])
    visitors.enter("")
    assert [visitors.find(key) is not None for key in keys] == [True, False]

    def fails() -> None:
        raise UserError("no")

    async def one_after_the_other() -> int:
        with pytest.raises(UserError):
            await visitors.run(Visitor(None), fails)
        return await visitors.run(Visitor(None), lambda: 7)

    assert asyncio.run(one_after_the_other()) == 7


@pytest.mark.slow
def test_greedy_visitors_leave_a_server_small_and_an_honest_one_answered() -> None:
    figures = printed_by("web.py", "--greedy", "20", timeout=220)
    assert figures["peak_mb"] < 1024
    assert figures["honest"] > 0
    assert not figures["honest_refused"]


def test_of_too_many_the_last_in_the_queue_goes() -> None:
    visitors: Visitors[None] = Visitors(Admission(1, 0), lambda: None, 2, 1)

    async def waiting() -> None:
        gate = threading.Event()
        greedy = [Visitor(None, due=float(n)) for n in range(3)]
        running = [asyncio.ensure_future(visitors.run(each, lambda: gate.wait(20))) for each in greedy]
        await asyncio.sleep(0)
        new = asyncio.ensure_future(visitors.run(Visitor(None), lambda: None))
        with pytest.raises(Refused, match="as many requests as it can hold"):
            await running.pop()
        assert not greedy[-1].is_busy
        with pytest.raises(Refused, match="as many requests as it can hold"):
            await visitors.run(greedy[-1], lambda: None)
        gate.set()
        await asyncio.gather(new, *running)

    asyncio.run(waiting())
