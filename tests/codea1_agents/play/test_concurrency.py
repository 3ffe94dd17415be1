from __future__ import annotations

import asyncio
import gc
import re
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from codea1_agents.play import players, runner
from codea1_agents.play.games import PlayedEpisode
from codea1_env.agent import Info, Observation
from codea1_env.book.store import MistakeBook
from codea1_env.errors import AgentUnavailable, UserError
from codea1_env.problems import ProblemSet
from codea1_env.sandbox import Sandbox
from tests.codea1_agents.play.conftest import Dice, episodes_of, lines
from tests.support.players import asserting, bad, good
from tests.support.waiting import wait_until


class Engine:
    """A coder that draws from the info, in batches."""

    stateless = True

    def __init__(self) -> None:
        self.seeds: list[int] = []
        self.batches: list[int] = []

    def reset(self, seed: int) -> None:
        self.seeds.append(seed)

    def act(self, observation: Observation, info: Info) -> str:
        return (good if (self.seeds[-1] + int(info["episode_id"], 16)) % 2 else bad)(observation)

    def act_batch(self, observations: Sequence[Observation], infos: Sequence[Info]) -> list[Any]:
        self.batches.append(len(infos))
        time.sleep(0.02)
        return [self.act(*each) for each in zip(observations, infos, strict=True)]


@pytest.fixture
def many(toys: ProblemSet) -> ProblemSet:
    """Six problems."""
    return ProblemSet("many", tuple(replace(toys[n % 2], id=f"toy/{n}") for n in range(6)))


Run = Callable[..., list[PlayedEpisode]]


@pytest.fixture
def run(many: ProblemSet, sandbox: Sandbox) -> Run:
    """Play an episode of each of the six problems, unless the options say otherwise, and return the games."""

    def run(coder: Any, tester: Any = asserting, problems: ProblemSet = many, **options: Any) -> list[PlayedEpisode]:
        return episodes_of(problems, coder, tester, sandbox=sandbox, **{"episodes": 6, **options})

    return run


# -- the same games, however many at once --


@pytest.mark.parametrize("coder", [Dice, Engine, "mutant,strength=0.6", good], ids=["class", "engine", "name", "plain"])
def test_a_run_is_the_same_with_any_concurrency(many: ProblemSet, run: Run, coder: Any) -> None:
    options: dict[str, Any] = {"episodes": 12, "rounds": 2, "seed": 3}
    with MistakeBook() as book, MistakeBook() as other:
        one = run(coder, book=book, **options)
        several = run(coder, book=other, concurrency=5, **options)
        for problem in many:
            assert list(other.entries(problem.id)) == list(book.entries(problem.id))
            assert other.round_of(problem.id) == book.round_of(problem.id)
    assert lines(several) == lines(one)
    if coder in (Dice, Engine):
        assert any(each.report.candidates[0].replayed for game in several for each in game.rounds)


def test_games_of_one_problem_never_overlap_and_come_in_order(toys: ProblemSet, run: Run) -> None:
    playing: list[str] = []

    async def coder(observation: Observation, info: Info) -> str:
        assert info["problem_id"] not in playing
        playing.append(info["problem_id"])
        await asyncio.sleep(0.01)
        playing.remove(info["problem_id"])
        return good(observation)

    games = run(coder, problems=toys, episodes=8, concurrency=8)
    assert [game.record.episode for game in games] == list(range(8))


def test_the_first_episode_whose_problem_is_free_begins_next(toys: ProblemSet, run: Run) -> None:
    begun: list[str] = []

    async def coder(observation: Observation, info: Info) -> str:
        begun.append(info["problem_id"])
        while info["problem_id"] == "toy/add" and begun.count("toy/last") < 3:
            await asyncio.sleep(0.01)
        return good(observation)

    games = run(coder, problems=toys, episodes=6, concurrency=2)
    assert sorted(begun[:2]) == ["toy/add", "toy/last"]  # these two begin at once
    assert begun[2:] == ["toy/last", "toy/last", "toy/add", "toy/add"]
    assert [game.record.episode for game in games] == list(range(6))


# -- how agents are asked --


@pytest.mark.slow
def test_all_open_observations_go_to_one_batch(run: Run) -> None:
    class Slow(Engine):
        def act_batch(self, observations: Sequence[Observation], infos: Sequence[Info]) -> list[Any]:
            time.sleep(1.0)  # the others wait by then
            return super().act_batch(observations, infos)

    engine = Slow()
    run(engine, concurrency=6)
    assert sum(engine.batches) == 6
    assert len(engine.batches) <= 2
    assert len(engine.seeds) == 1


def test_other_games_are_judged_while_a_batch_is_in_progress(run: Run) -> None:
    called, judged = threading.Event(), threading.Event()

    async def coder(observation: Observation, info: Info) -> str:
        while info["problem_id"] == "toy/1" and not called.is_set():
            await asyncio.sleep(0.01)
        return "def (" if info["problem_id"] == "toy/1" else good(observation)

    class Tester(Engine):
        def act_batch(self, observations: Sequence[Observation], infos: Sequence[Info]) -> list[Any]:
            called.set()
            assert judged.wait(10.0)
            return [asserting(each) for each in observations]

    run(coder, Tester(), episodes=2, concurrency=2, on_early=lambda game: judged.set())


def test_one_slow_request_delays_only_its_own_game(run: Run) -> None:
    ends: list[str] = []
    others = asyncio.Event()

    async def coder(observation: Observation, info: Info) -> str:
        if info["problem_id"] == "toy/0":
            await others.wait()
        ends.append(info["problem_id"])
        if len(ends) == 5:
            others.set()
        return good(observation)

    early: list[int] = []
    games = run(coder, concurrency=6, on_early=lambda game: early.append(game.record.episode))
    assert ends[-1] == "toy/0"
    assert [game.record.episode for game in games] == list(range(6))
    assert set(early) <= {1, 2, 3, 4, 5}


@pytest.mark.parametrize("declared", [True, False])
def test_an_agent_with_act_only_is_asked_in_threads_only_if_it_says_that_it_bears_it(run: Run, declared: bool) -> None:
    busy, most, lock = 0, 0, threading.Lock()

    def coder(observation: Observation) -> str:
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        wait_until(lambda: most > 1, 10.0 if declared else 0.05)  # for another thread, which must come or must not
        with lock:
            busy -= 1
        return good(observation)

    setattr(coder, "thread_safe", declared)  # noqa: B010  mypy knows functions
    run(coder, concurrency=6)
    assert (most > 1) is declared


def test_a_class_has_one_agent_per_game_in_progress_and_all_are_closed(run: Run) -> None:
    Dice.made.clear()
    run(Dice, episodes=20, concurrency=4)
    assert 1 < len(Dice.made) <= 4
    assert {each.closed for each in Dice.made} == {1}


@pytest.mark.parametrize(("coder", "said"), [(Dice(), "pass its class"), ("human", "leave concurrency at 1")])
def test_who_cannot_play_several_games_at_once_is_refused_and_closed(run: Run, coder: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        run(coder, concurrency=2)
    assert coder == "human" or coder.closed == 1


def test_an_async_agent_is_reset_and_closed_in_the_loop_that_asks_it(run: Run) -> None:
    loops = set()

    class Async:
        async def reset(self, *_: int) -> None:
            loops.add(asyncio.get_running_loop())

        async def act(self, observation: Observation, info: Info) -> str:
            await self.reset()
            return good(observation)

        close = reset

    run(Async(), concurrency=3)
    assert len(loops) == 1


# -- what goes wrong --


def failing(observation: Observation, info: Info) -> str:
    raise KeyError("memory lost")


WrongCount = type("WrongCount", (Engine,), {"act_batch": lambda _, seen, infos: ["x"] * (len(infos) + 1)})


NoText = type("NoText", (Engine,), {"act_batch": lambda _, seen, infos: [None for _ in infos]})


async def exiting(observation: Observation, info: Info) -> str:
    raise SystemExit(3)


async def cancelling(observation: Observation, info: Info) -> str:
    raise asyncio.CancelledError


AT_ITS_LINE = rf"\({re.escape(__file__)}:{cancelling.__code__.co_firstlineno + 1}\)$"


@pytest.mark.parametrize(
    ("coder", "concurrency", "said"),
    [
        (failing, 4, r"coder failing failed in episode \d \(problem toy/\d\): KeyError: 'memory lost'"),
        (WrongCount, 4, r"returned \d replies to \d observations in .*episode \d"),
        (NoText, 4, r"returned NoneType .*missing.* in episode \d \(problem toy/\d\), expected text"),
        (exiting, 4, r"coder exiting called sys\.exit\(3\) in episode \d"),
        (cancelling, 1, rf"failed in episode \d \(problem toy/\d\): CancelledError {AT_ITS_LINE}"),
        (cancelling, 4, rf"failed in episode \d \(problem toy/\d\): CancelledError {AT_ITS_LINE}"),
    ],
)
def test_an_agent_that_fails_stops_the_run_with_one_sentence(run: Run, coder: Any, concurrency: int, said: str) -> None:
    with pytest.raises(UserError, match=said):
        run(coder, concurrency=concurrency)


Act = Callable[[Observation, Info], str]


def in_a_thread(act: Act) -> Act:
    """Return the agent as one that may be called in several threads."""

    def agent(observation: Observation, info: Info) -> str:
        return act(observation, info)

    agent.thread_safe = True  # type: ignore[attr-defined]
    return agent


def in_the_loop(act: Act) -> Callable[[Observation, Info], Awaitable[str]]:
    """Return the agent as a coroutine function that never awaits."""

    async def agent(observation: Observation, info: Info) -> str:
        return act(observation, info)

    return agent


def engine_of(act: Act) -> type[Engine]:
    """Return the agent as one that takes batches."""
    return type("Batched", (Engine,), {"act": lambda self, *turn: act(*turn)})


def hanging(observation: Observation, info: Info) -> str:
    if info["problem_id"] == "toy/1":
        threading.Event().wait()
    return good(observation)


async def hanging_in_the_loop(observation: Observation, info: Info) -> str:
    if info["problem_id"] == "toy/1":
        await asyncio.Event().wait()
    return good(observation)


class HangingInReset:
    n_resets = 0

    def reset(self, seed: int) -> None:
        HangingInReset.n_resets += 1
        if HangingInReset.n_resets == 2:
            threading.Event().wait()

    def act(self, observation: Observation, info: Info) -> str:
        return good(observation)


blocking_the_loop, HangingEngine = in_the_loop(hanging), engine_of(hanging)


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize(
    "coder",
    [hanging, in_a_thread(hanging), hanging_in_the_loop, blocking_the_loop, HangingInReset, HangingEngine],
    ids=["hanging", "in a thread", "awaiting", "blocking the loop", "in reset", "engine"],
)
def test_a_game_whose_agent_never_returns_is_masked_and_others_go_on(run: Run, coder: Any, concurrency: int) -> None:
    HangingInReset.n_resets = 0
    games = run(coder, concurrency=concurrency, reply_timeout_s=0.3)
    masked = [game for game in games if game.record.masked]
    if concurrency == 1 or coder not in (HangingEngine, blocking_the_loop):  # which hold several games up
        assert len(masked) == 1
    assert 1 <= len(masked) < 6
    for game in masked:
        assert re.search(r"did not return within 0\.3 s \(--reply-timeout\)", str(game.unavailable))
        assert game.record.rounds[0].candidate.detail == "the coder was unavailable"


def test_an_agent_is_called_and_closed_in_one_thread_with_a_limit_and_in_the_callers_without(run: Run) -> None:
    threads: list[threading.Thread] = []

    class Bound:
        def reset(self, *_: int) -> None:
            threads.append(threading.current_thread())

        def act(self, observation: Observation, info: Info) -> str:
            self.reset()
            return good(observation)

        close = reset

    run(Bound, episodes=2)
    assert len(threads) == 5
    assert len(set(threads)) == 1
    threads[0].join(5.0)
    assert not threads[0].is_alive()
    threads.clear()
    run(Bound, episodes=2, reply_timeout_s=None)
    assert set(threads) == {threading.current_thread()}


class Sulking:
    """Waits in `close` for a call that never returns."""

    def __init__(self) -> None:
        self._busy = threading.Lock()

    def act(self, observation: Observation, info: Info) -> str:
        with self._busy:
            return hanging(observation, info)

    def close(self) -> None:
        with self._busy:
            """It is free."""


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_call_that_was_given_up_does_not_keep_the_run_from_closing_its_agent(
    run: Run, concurrency: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(players, "CLOSE_TIMEOUT_S", 0.2)
    games = run(Sulking, episodes=2, concurrency=concurrency, reply_timeout_s=0.3)
    assert [game.record.masked for game in games] == [False, True]


def stuck(observation: Observation, info: Info) -> str:
    if info["problem_id"] == "toy/1":
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        threading.Event().wait()
    return good(observation)


async def deaf(observation: Observation, info: Info) -> str:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)


@pytest.mark.parametrize(
    ("coder", "concurrency"),
    [
        *((each, 4) for each in (stuck, in_a_thread(stuck), in_the_loop(stuck), engine_of(stuck))),
        *(pytest.param(each, 1, marks=pytest.mark.slow) for each in (in_the_loop(stuck), deaf)),
    ],
)
def test_an_interrupt_ends_a_run_whose_agent_never_returns(
    run: Run, coder: Any, concurrency: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (players, runner):
        monkeypatch.setattr(module, "CLOSE_TIMEOUT_S", 0.2)
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        run(coder, concurrency=concurrency)
    assert time.perf_counter() - start < 10


def test_an_interrupt_ends_a_call_in_the_callers_thread_silently(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(stuck, reply_timeout_s=None)
    gc.collect()
    assert caplog.records == []  # of asyncio, about errors that nobody saw


class Clinging:
    """Does not let itself be closed."""

    def __init__(self, reply: Callable[[Observation], str]) -> None:
        self._reply = reply

    async def act(self, observation: Observation, info: Info) -> str:
        return self._reply(observation)

    async def close(self) -> None:
        await asyncio.sleep(60)


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 4])
def test_two_agents_that_do_not_end_are_waited_for_at_the_same_time(
    run: Run, concurrency: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[float] = []
    for module in (players, runner):
        monkeypatch.setattr(module, "CLOSE_TIMEOUT_S", 2.0)
    options = {"episodes": 2, "concurrency": concurrency}
    run(Clinging(good), Clinging(asserting), on_episode=lambda game: ends.append(time.perf_counter()), **options)
    assert 1.9 < time.perf_counter() - ends[-1] < 3.5


def test_games_in_progress_are_cancelled_when_the_run_ends_and_their_agents_are_closed(run: Run) -> None:
    cancelled: list[str] = []

    async def coder(observation: Observation, info: Info) -> str:
        try:
            await asyncio.sleep(0 if info["problem_id"] == "toy/0" else 60)
        except asyncio.CancelledError:
            cancelled.append(info["problem_id"])
            raise
        return good(observation)

    def interrupt(game: PlayedEpisode) -> None:
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        run(coder, concurrency=6, on_episode=interrupt)
    assert sorted(cancelled) == [f"toy/{n}" for n in range(1, 6)]
    assert wait_until(lambda: threading.active_count() <= before + 1)


def test_a_game_finished_at_the_same_time_as_another_one_failed_is_not_lost(run: Run) -> None:
    games: list[PlayedEpisode] = []
    barrier = threading.Event()

    async def coder(observation: Observation, info: Info) -> str:
        if info["problem_id"] == "toy/1":
            await asyncio.to_thread(barrier.wait)
            raise KeyError("memory lost")
        return good(observation)

    with pytest.raises(UserError, match="memory lost"):
        run(coder, episodes=2, concurrency=2, on_episode=lambda game: (games.append(game), barrier.set()))
    assert [game.record.episode for game in games] == [0]


# -- agents that are not there --


def unavailable_for(*problems: str) -> Callable[..., Any]:
    def coder(observation: Observation, info: Info) -> str:
        if info["problem_id"] in problems:
            raise AgentUnavailable("the endpoint is down")
        return good(observation)

    return coder


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("role", ["coder", "tester"])
def test_a_game_without_a_reply_is_masked_and_the_others_go_on(run: Run, role: str, concurrency: int) -> None:
    absent = unavailable_for("toy/1")

    def tester(observation: Observation, info: Info) -> str:
        absent(observation, info)
        return asserting(observation)

    players = (absent, asserting) if role == "coder" else (good, tester)
    games = run(*players, rounds=2, concurrency=concurrency)
    assert [game.record.masked for game in games] == [False, True, False, False, False, False]
    masked = games[1]
    assert str(masked.unavailable) == "the endpoint is down"
    (judged,) = masked.record.rounds
    assert judged.candidate.detail == f"the {role} was unavailable"
    assert judged.rewards.coder.value is None
    assert judged.rewards.testers[0].value is None
    assert judged.book is None
    assert bool(judged.candidate.program) is (role == "tester")


def test_in_a_batch_only_the_game_without_a_reply_is_masked(run: Run) -> None:
    class Partly(Engine):
        def act_batch(self, observations: Sequence[Observation], infos: Sequence[Info]) -> list[Any]:
            found = zip(infos, super().act_batch(observations, infos), strict=True)
            return [AgentUnavailable("full") if info["problem_id"] == "toy/2" else reply for info, reply in found]

    games = run(Partly(), concurrency=6)
    assert [game.record.episode for game in games if game.record.masked] == [2]


@pytest.mark.parametrize("concurrency", [1, 4])
def test_an_outage_stops_the_run_and_its_games_are_asked_again(run: Run, concurrency: int) -> None:
    n_asked = 0

    def coder(observation: Observation) -> str:
        nonlocal n_asked
        n_asked += 1
        if n_asked > 4:
            time.sleep(0.01)
            raise AgentUnavailable("the endpoint is down")
        return good(observation)

    found: dict[int, Any] = {}

    def note(game: PlayedEpisode) -> None:
        found[game.record.episode] = game.record

    with pytest.raises(AgentUnavailable, match=r"8 games in a row.*the endpoint is down"):
        run(coder, episodes=30, concurrency=concurrency, on_early=note, on_episode=note)
    assert set(found) <= {0, 1, 2, 3}
    assert len(found) == 4 or concurrency > 1
    assert n_asked < 25
    assert not any(record.masked for record in found.values())
    with pytest.raises(AgentUnavailable, match="2 games of the run"):  # one in which nobody ever replied
        run(unavailable_for("toy/0", "toy/1"), episodes=2)


def test_episodes_that_were_played_before_are_handed_on_at_their_place(run: Run) -> None:
    asked: list[str] = []

    def coder(observation: Observation, info: Info) -> str:
        asked.append(info["problem_id"])
        return good(observation)

    whole = run(good)
    early = {number: whole[number].record for number in (2, 4)}
    for concurrency in (1, 3):
        asked.clear()
        games = run(coder, start_at=1, known=early, concurrency=concurrency)
        assert lines(games) == lines(whole[1:])
        assert (sorted(asked) if concurrency > 1 else asked) == ["toy/1", "toy/3", "toy/5"]
