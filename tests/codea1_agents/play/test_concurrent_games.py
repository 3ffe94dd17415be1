from __future__ import annotations

import asyncio
import re
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codea1_agents.play import call_thread, concurrent_games, game_agents
from codea1_agents.play.concurrent_games import Schedule
from codea1_agents.play.games import PlayedEpisode
from codea1_agents.play.players import load_players
from codea1_agents.play.runner import iter_games, play
from codea1_env.agent import AgentContext, Info, Observation
from codea1_env.book.store import MistakeBook
from codea1_env.errors import AgentUnavailable, SandboxError, UserError
from codea1_env.problems import ProblemSet
from codea1_env.rules.ruleset import preset
from codea1_env.runs.records import to_line
from codea1_env.sandbox import Sandbox
from tests.support.players import BAD, GOOD, asserting, good
from tests.support.waiting import wait_until


def program(observation: Observation, seed: int) -> str:
    return (GOOD if seed % 2 else BAD)[observation["entry_point"]]


class Dice:
    """A coder that is right or wrong by the seed of its episode."""

    made: list[Dice] = []  # noqa: RUF012

    def __init__(self) -> None:
        self.seed = 0
        self.closed = 0
        Dice.made.append(self)

    def reset(self, seed: int) -> None:
        self.seed = seed

    def act(self, observation: Observation, info: Info) -> str:
        return program(observation, self.seed)

    def close(self) -> None:
        self.closed += 1


class Engine:
    """A coder that draws from the info, in batches."""

    stateless = True

    def __init__(self) -> None:
        self.seeds: list[int] = []
        self.batches: list[int] = []

    def reset(self, seed: int) -> None:
        self.seeds.append(seed)

    def act(self, observation: Observation, info: Info) -> str:
        return program(observation, self.seeds[-1] + int(info["episode_id"], 16))

    def act_batch(self, observations: Sequence[Observation], infos: Sequence[Info]) -> list[Any]:
        self.batches.append(len(infos))
        time.sleep(0.02)
        return [self.act(*each) for each in zip(observations, infos, strict=True)]


@pytest.fixture
def many(toys: ProblemSet) -> ProblemSet:
    """Six problems."""
    return ProblemSet("many", tuple(replace(toys[n % 2], id=f"toy/{n}") for n in range(6)))


def played(problems: ProblemSet, coder: Any, tester: Any, sandbox: Sandbox, **options: Any) -> list[PlayedEpisode]:
    games: list[PlayedEpisode] = []
    play(problems, coder, tester, sandbox=sandbox, on_episode=games.append, **options)
    return games


def lines(games: Sequence[PlayedEpisode]) -> list[bytes]:
    return [to_line(game.record) for game in games]


# -- the same games, however many at once --


@pytest.mark.parametrize(
    "coder", [Dice, Engine, "mutant,strength=0.6", good], ids=["class", "engine", "name", "function"]
)
def test_a_run_is_the_same_with_any_concurrency(many: ProblemSet, sandbox: Sandbox, coder: Any) -> None:
    options: dict[str, Any] = {"episodes": 12, "rounds": 2, "seed": 3}
    with MistakeBook() as book, MistakeBook() as other:
        one = played(many, coder, asserting, sandbox, book=book, **options)
        several = played(many, coder, asserting, sandbox, book=other, concurrency=5, **options)
        for problem in many:
            assert list(other.entries(problem.id)) == list(book.entries(problem.id))
            assert other.round_of(problem.id) == book.round_of(problem.id)
    assert lines(several) == lines(one)
    if coder in (Dice, Engine):
        assert any(each.report.candidates[0].replayed for game in several for each in game.rounds)


def test_games_of_one_problem_never_overlap_and_come_in_order(toys: ProblemSet, sandbox: Sandbox) -> None:
    playing: list[str] = []

    async def coder(observation: Observation, info: Info) -> str:
        assert info["problem_id"] not in playing
        playing.append(info["problem_id"])
        await asyncio.sleep(0.01)
        playing.remove(info["problem_id"])
        return good(observation)

    games = played(toys, coder, asserting, sandbox, episodes=8, concurrency=8)
    assert [game.record.episode for game in games] == list(range(8))


def test_the_schedule_takes_the_first_episode_whose_problem_is_free() -> None:
    schedule = Schedule(3, start_at=1, episodes=9, done={2, 5})
    assert [schedule.begin_next() for _ in range(4)] == [1, 3, 8, None]
    schedule.finish(3)
    assert (schedule.begin_next(), schedule.begin_next()) == (6, None)
    schedule.finish(1)
    assert schedule.begin_next() == 4


# -- how agents are asked --


@pytest.mark.slow
def test_all_open_observations_go_to_one_batch(many: ProblemSet, sandbox: Sandbox) -> None:
    class Slow(Engine):
        def act_batch(self, observations: Sequence[Observation], infos: Sequence[Info]) -> list[Any]:
            time.sleep(1.0)  # the others wait by then
            return super().act_batch(observations, infos)

    engine = Slow()
    played(many, engine, asserting, sandbox, episodes=6, concurrency=6)
    assert sum(engine.batches) == 6
    assert len(engine.batches) <= 2
    assert len(engine.seeds) == 1


def test_one_slow_request_delays_only_its_own_game(many: ProblemSet, sandbox: Sandbox) -> None:
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
    options: dict[str, Any] = {"on_early": lambda game: early.append(game.record.episode)}
    games = played(many, coder, asserting, sandbox, episodes=6, concurrency=6, **options)
    assert ends[-1] == "toy/0"
    assert [game.record.episode for game in games] == list(range(6))
    assert set(early) <= {1, 2, 3, 4, 5}


@pytest.mark.parametrize("declared", [True, False])
def test_an_agent_with_act_only_is_asked_in_threads_only_if_it_says_that_it_bears_it(
    many: ProblemSet, sandbox: Sandbox, declared: bool
) -> None:
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
    played(many, coder, asserting, sandbox, episodes=6, concurrency=6)
    assert (most > 1) is declared


def test_a_class_has_one_agent_per_game_in_progress_and_all_are_closed(many: ProblemSet, sandbox: Sandbox) -> None:
    Dice.made.clear()
    played(many, Dice, asserting, sandbox, episodes=20, concurrency=4)
    assert 1 < len(Dice.made) <= 4
    assert {each.closed for each in Dice.made} == {1}


def test_an_object_that_is_reset_before_each_game_cannot_play_several(toys: ProblemSet, sandbox: Sandbox) -> None:
    with pytest.raises(UserError, match="pass its class"):
        play(toys, Dice(), asserting, sandbox=sandbox, concurrency=2)
    assert Dice.made[-1].closed == 1


def test_somebody_at_the_keyboard_plays_one_game_at_a_time(toys: ProblemSet, sandbox: Sandbox) -> None:
    with pytest.raises(UserError, match="leave concurrency at 1"):
        play(toys, "human", asserting, sandbox=sandbox, concurrency=2)


def test_an_async_agent_is_reset_and_closed_in_the_loop_that_asks_it(many: ProblemSet, sandbox: Sandbox) -> None:
    loops = set()

    class Async:
        async def reset(self, seed: int) -> None:
            loops.add(asyncio.get_running_loop())

        async def act(self, observation: Observation, info: Info) -> str:
            loops.add(asyncio.get_running_loop())
            return good(observation)

        async def close(self) -> None:
            loops.add(asyncio.get_running_loop())

    played(many, Async(), asserting, sandbox, episodes=6, concurrency=3)
    assert len(loops) == 1


# -- what goes wrong --


@pytest.mark.parametrize("concurrency", [0, -1, 5000, 1.5])
def test_a_concurrency_out_of_range_is_refused(toys: ProblemSet, sandbox: Sandbox, concurrency: Any) -> None:
    with pytest.raises(UserError, match="concurrency must be a whole number from 1 to 4096"):
        play(toys, good, asserting, sandbox=sandbox, concurrency=concurrency)


def failing(observation: Observation, info: Info) -> str:
    raise KeyError("memory lost")


class WrongCount(Engine):
    def act_batch(self, observations: Sequence[Observation], infos: Sequence[Info]) -> list[Any]:
        return ["def f(): pass"] * (len(infos) + 1)


class NoText(Engine):
    def act_batch(self, observations: Sequence[Observation], infos: Sequence[Info]) -> list[Any]:
        return [None for _ in infos]


@pytest.mark.parametrize(
    ("coder", "said"),
    [
        (failing, r"coder failing failed in episode \d \(problem toy/\d\): KeyError: 'memory lost'"),
        (WrongCount, r"returned \d replies to \d observations in .*episode \d"),
        (NoText, r"returned NoneType .*missing.* in episode \d \(problem toy/\d\), expected text"),
    ],
)
def test_an_agent_that_fails_stops_the_run_with_one_sentence(
    many: ProblemSet, sandbox: Sandbox, coder: Any, said: str
) -> None:
    with pytest.raises(UserError, match=said):
        play(many, coder, asserting, sandbox=sandbox, episodes=6, concurrency=4)


def test_an_async_agent_that_calls_exit_stops_the_run_with_one_sentence(many: ProblemSet, sandbox: Sandbox) -> None:
    async def coder(observation: Observation, info: Info) -> str:
        raise SystemExit(3)

    with pytest.raises(UserError, match=r"coder coder called sys\.exit\(3\) in episode \d"):
        play(many, coder, asserting, sandbox=sandbox, episodes=6, concurrency=4)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_the_error_of_an_async_agent_that_raises_cancelled_error_names_its_own_line(
    many: ProblemSet, sandbox: Sandbox, concurrency: int
) -> None:
    async def coder(observation: Observation, info: Info) -> str:
        raise asyncio.CancelledError

    line = coder.__code__.co_firstlineno + 1
    said = rf"coder coder failed in episode \d \(problem toy/\d\): CancelledError \({re.escape(__file__)}:{line}\)$"
    with pytest.raises(UserError, match=said):
        play(many, coder, asserting, sandbox=sandbox, episodes=6, concurrency=concurrency)


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

    class Batched(Engine):
        def act(self, observation: Observation, info: Info) -> str:
            return act(observation, info)

    return Batched


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
def test_a_game_whose_agent_never_returns_is_masked_and_the_others_go_on(
    many: ProblemSet, sandbox: Sandbox, coder: Any, concurrency: int
) -> None:
    HangingInReset.n_resets = 0
    games = played(many, coder, asserting, sandbox, episodes=6, concurrency=concurrency, reply_timeout_s=0.3)
    masked = [game for game in games if game.record.masked]
    if concurrency == 1 or coder not in (HangingEngine, blocking_the_loop):  # which hold several games up
        assert len(masked) == 1
    assert 1 <= len(masked) < 6
    for game in masked:
        assert re.search(r"did not return within 0\.3 s \(--reply-timeout\)", str(game.unavailable))
        assert game.record.rounds[0].candidate.detail == "the coder was unavailable"


@pytest.mark.parametrize("limit", [0, -1.0, float("nan")])
def test_a_limit_of_no_time_is_refused(toys: ProblemSet, sandbox: Sandbox, limit: float) -> None:
    with pytest.raises(UserError, match="reply_timeout_s must be above 0"):
        play(toys, good, asserting, sandbox=sandbox, reply_timeout_s=limit)


def test_an_agent_is_called_and_closed_in_one_thread_with_a_limit_and_in_the_callers_without(
    toys: ProblemSet, sandbox: Sandbox
) -> None:
    threads: list[threading.Thread] = []

    class Bound:
        def reset(self, seed: int) -> None:
            threads.append(threading.current_thread())

        def act(self, observation: Observation, info: Info) -> str:
            threads.append(threading.current_thread())
            return good(observation)

        def close(self) -> None:
            threads.append(threading.current_thread())

    play(toys, Bound, asserting, sandbox=sandbox, episodes=2)
    assert len(threads) == 5
    assert len(set(threads)) == 1
    threads[0].join(5.0)
    assert not threads[0].is_alive()
    threads.clear()
    play(toys, Bound, asserting, sandbox=sandbox, episodes=2, reply_timeout_s=None)
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
    many: ProblemSet, sandbox: Sandbox, concurrency: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_thread, "CLOSE_TIMEOUT_S", 0.2)
    options = {"episodes": 2, "concurrency": concurrency, "reply_timeout_s": 0.3}
    assert [game.record.masked for game in played(many, Sulking, asserting, sandbox, **options)] == [False, True]


def stuck(observation: Observation, info: Info) -> str:
    if info["problem_id"] == "toy/1":
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        threading.Event().wait()
    return good(observation)


@pytest.mark.parametrize("coder", [stuck, in_a_thread(stuck), in_the_loop(stuck), engine_of(stuck)])
def test_an_interrupt_ends_a_run_whose_agent_never_returns(
    many: ProblemSet, sandbox: Sandbox, coder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (concurrent_games, game_agents):
        monkeypatch.setattr(module, "CLOSE_TIMEOUT_S", 0.2)
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        play(many, coder, asserting, sandbox=sandbox, episodes=6, concurrency=4)
    assert time.perf_counter() - start < 10


async def deaf(observation: Observation, info: Info) -> str:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)


@pytest.mark.slow
@pytest.mark.parametrize("coder", [in_the_loop(stuck), deaf])
def test_one_interrupt_ends_a_game_by_itself_too(
    many: ProblemSet, sandbox: Sandbox, coder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(game_agents, "CLOSE_TIMEOUT_S", 0.2)
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        play(many, coder, asserting, sandbox=sandbox, episodes=6)
    assert time.perf_counter() - start < 10


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
    many: ProblemSet, sandbox: Sandbox, concurrency: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[float] = []
    options: dict[str, Any] = {"on_episode": lambda game: ends.append(time.perf_counter())}
    for module in (concurrent_games, game_agents):
        monkeypatch.setattr(module, "CLOSE_TIMEOUT_S", 2.0)
    play(many, Clinging(good), Clinging(asserting), sandbox=sandbox, episodes=2, concurrency=concurrency, **options)
    assert 1.9 < time.perf_counter() - ends[-1] < 3.5


def test_a_sandbox_that_cannot_be_used_ends_a_concurrent_run(many: ProblemSet) -> None:
    class Gone:
        name = "gone"

        def run(self, jobs: Sequence[Any]) -> list[Any]:
            raise SandboxError("no worker")

        def close(self) -> None:
            """Nothing to end."""

    with pytest.raises(SandboxError, match="no worker"):
        play(many, good, asserting, sandbox=Gone(), concurrency=4)  # type: ignore[arg-type]


def test_games_that_are_no_longer_wanted_end_soon_and_let_go_of_their_agents(
    many: ProblemSet, sandbox: Sandbox
) -> None:
    cancelled: list[str] = []

    async def coder(observation: Observation, info: Info) -> str:
        try:
            await asyncio.sleep(0 if info["problem_id"] == "toy/0" else 60)
        except asyncio.CancelledError:
            cancelled.append(info["problem_id"])
            raise
        return good(observation)

    before = threading.active_count()
    players = load_players(coder, asserting, AgentContext(many, sandbox))
    games = iter_games(many, players, rules=preset("fixed"), sandbox=sandbox, episodes=6, concurrency=6)
    assert next(games).record.episode == 0
    games.close()
    assert sorted(cancelled) == [f"toy/{n}" for n in range(1, 6)]
    assert threading.active_count() <= before + 1


def test_a_game_finished_at_the_same_time_as_another_one_failed_is_not_lost(many: ProblemSet, sandbox: Sandbox) -> None:
    games: list[PlayedEpisode] = []
    barrier = threading.Event()

    async def coder(observation: Observation, info: Info) -> str:
        if info["problem_id"] == "toy/1":
            await asyncio.to_thread(barrier.wait)
            raise KeyError("memory lost")
        return good(observation)

    options: dict[str, Any] = {"on_episode": lambda game: (games.append(game), barrier.set())}
    with pytest.raises(UserError, match="memory lost"):
        play(many, coder, asserting, sandbox=sandbox, episodes=2, concurrency=2, **options)
    assert [game.record.episode for game in games] == [0]


def test_a_tape_of_concurrent_games_plays_them_again_with_any_concurrency(
    many: ProblemSet, sandbox: Sandbox, tmp_path: Path
) -> None:
    tape = tmp_path / "coder.jsonl"
    recording = f"tape,path={tape},agent=mutant;strength=0.7"
    options: dict[str, Any] = {"episodes": 8, "rounds": 2, "seed": 4}
    whole = lines(played(many, recording, asserting, sandbox, concurrency=4, **options))
    assert len(tape.read_text().splitlines()) == 16
    for concurrency in (1, 3):
        again = played(many, f"tape,path={tape}", asserting, sandbox, concurrency=concurrency, **options)
        assert lines(again) == whole


# -- agents that are not there --


def unavailable_for(*problems: str) -> Callable[..., Any]:
    def coder(observation: Observation, info: Info) -> str:
        if info["problem_id"] in problems:
            raise AgentUnavailable("the endpoint is down")
        return good(observation)

    return coder


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("role", ["coder", "tester"])
def test_a_game_without_a_reply_is_masked_and_the_others_go_on(
    many: ProblemSet, sandbox: Sandbox, role: str, concurrency: int
) -> None:
    absent = unavailable_for("toy/1")

    def tester(observation: Observation, info: Info) -> str:
        absent(observation, info)
        return asserting(observation)

    players = (absent, asserting) if role == "coder" else (good, tester)
    games = played(many, *players, sandbox, episodes=6, rounds=2, concurrency=concurrency)
    assert [game.record.masked for game in games] == [False, True, False, False, False, False]
    masked = games[1]
    assert str(masked.unavailable) == "the endpoint is down"
    (judged,) = masked.record.rounds
    assert judged.candidate.detail == f"the {role} was unavailable"
    assert judged.rewards.coder.value is None
    assert judged.rewards.testers[0].value is None
    assert judged.book is None
    assert bool(judged.candidate.program) is (role == "tester")


def test_in_a_batch_only_the_game_without_a_reply_is_masked(many: ProblemSet, sandbox: Sandbox) -> None:
    class Partly(Engine):
        def act_batch(self, observations: Sequence[Observation], infos: Sequence[Info]) -> list[Any]:
            replies = super().act_batch(observations, infos)
            return [
                AgentUnavailable("full") if i["problem_id"] == "toy/2" else r
                for i, r in zip(infos, replies, strict=True)
            ]

    games = played(many, Partly(), asserting, sandbox, episodes=6, concurrency=6)
    assert [game.record.episode for game in games if game.record.masked] == [2]


@pytest.mark.parametrize("concurrency", [1, 4])
def test_an_outage_stops_the_run_and_its_games_are_asked_again(
    many: ProblemSet, sandbox: Sandbox, concurrency: int
) -> None:
    n_asked = 0

    def coder(observation: Observation) -> str:
        nonlocal n_asked
        n_asked += 1
        if n_asked > 4:
            time.sleep(0.01)
            raise AgentUnavailable("the endpoint is down")
        return good(observation)

    found: dict[int, Any] = {}
    options: dict[str, Any] = {"on_early": lambda game: found.update({game.record.episode: game.record})}
    with MistakeBook() as book, pytest.raises(AgentUnavailable, match=r"8 games in a row.*the endpoint is down"):
        play(
            many, coder, asserting, sandbox=sandbox, episodes=30, concurrency=concurrency, book=book, **options,
            on_episode=lambda game: found.update({game.record.episode: game.record}),
        )  # fmt: skip
    assert set(found) <= {0, 1, 2, 3}
    assert len(found) == 4 or concurrency > 1
    assert n_asked < 25
    assert not any(record.masked for record in found.values())


def test_a_run_in_which_nobody_ever_replied_is_an_error_too(many: ProblemSet, sandbox: Sandbox) -> None:
    with pytest.raises(AgentUnavailable, match="2 games of the run"):
        play(many, unavailable_for("toy/0", "toy/1"), asserting, sandbox=sandbox, episodes=2)


def test_episodes_that_were_played_before_are_handed_on_at_their_place(many: ProblemSet, sandbox: Sandbox) -> None:
    asked: list[str] = []

    def coder(observation: Observation, info: Info) -> str:
        asked.append(info["problem_id"])
        return good(observation)

    whole = played(many, good, asserting, sandbox, episodes=6)
    early = {number: whole[number].record for number in (2, 4)}
    for concurrency in (1, 3):
        asked.clear()
        games = played(many, coder, asserting, sandbox, episodes=6, start_at=1, early=early, concurrency=concurrency)
        assert lines(games) == lines(whole[1:])
        assert sorted(asked) == ["toy/1", "toy/3", "toy/5"]
