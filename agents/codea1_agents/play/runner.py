"""Plays games between two agents through the environment, one after the other or many at once.

Theory of operation. One event loop plays all games. `_Run.play` begins the first episode whose problem is not being
played as soon as an environment is free; `_Run.game` plays it, one turn after the other. The loop itself only waits:
agents reply in threads or event loops of their own (`players`), and environments read replies and judge in theirs
(`slots`). So a slow agent delays only its own game, and a stuck one cannot hold up Ctrl-C, which cancels the games in
progress. Each game that ends is handed on at once, in the order of the numbers (`games`), so nothing is left to save
when a run ends early.

All randomness in episode k derives from the run's seed and k alone, so an episode is the same in an uninterrupted and
in a resumed run, and with any number of concurrent games. The Mistake Book carries entries from earlier episodes of a
problem to later ones. So games of one problem never overlap, and a run that starts at `start_at` needs the book as it
was at that point.

**Resets.** An agent that is made from a name or a class and has only `act` is reset before each episode; for
concurrent games, each game in progress has a copy of it. An agent that declares `stateless` is reset once, at the
beginning of the run. Both give the same episodes with any `concurrency`. Other agents with `aact` or `act_batch` are
reset before each episode if games are played one after the other, else once: then their draws must derive from
`info["episode_id"]`, and they differ between `concurrency` 1 and more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

from codea1_agents.play.games import (
    EpisodeSeeds,
    FinishedGames,
    PlayedEpisode,
    RunSettings,
    TimeSplit,
    episode_seeds,
)
from codea1_agents.play.players import GameAgent, Interrupted, Players, game_agent, load_players, require_many_games
from codea1_agents.play.slots import EnvSlot, TimedSandbox
from codea1_agents.play.summary import Summary, Tally
from codea1_env import code_a1_v0
from codea1_env.agent import AgentContext, AgentSpec
from codea1_env.agent.threads import CLOSE_TIMEOUT_S, SIGNALS_S, LoopThread, await_result
from codea1_env.book.store import MistakeBook
from codea1_env.code_a1_v0 import CODER, TESTER
from codea1_env.errors import AgentUnavailable
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.judging.judged_round import JudgedRound
from codea1_env.problems import ProblemSet, ProblemSource, load_problems
from codea1_env.rounds.rounds import Turn
from codea1_env.rules.mistake_book import Provenance
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.runs.records import EpisodeRecord, RoundRecord
from codea1_env.sandbox import Sandbox, load_sandbox


def play(
    problems: ProblemSource,
    coder: AgentSpec,
    tester: AgentSpec,
    *,
    rules: Ruleset | str = "fixed",
    sandbox: Sandbox | str = "local",
    book: MistakeBook | None = None,
    on_episode: Callable[[PlayedEpisode], object] = lambda _: None,
    **settings: Any,
) -> Summary:
    """Play episodes and return their figures.

    Args:
        problems: a source that `load_problems` takes.
        coder: an agent, a function `observation -> str`, or a name.
        tester: likewise.
        rules: a ruleset, or the name of one.
        sandbox: a back end or its name.
        book: as in `play_games`.
        on_episode: called after each episode, in the order of their numbers; without concurrency, before the next one
            begins.
        settings: the other fields of `RunSettings`, such as `episodes` and `seed`.

    Raises:
        UserError: a name does not exist, an argument is out of range, or an agent failed.
        AgentUnavailable: an agent was unavailable in several games in a row.
        SandboxError: the sandbox cannot be used at all.
    """
    run = RunSettings(rules=preset(rules) if isinstance(rules, str) else rules, **settings)
    loaded, backend = load_problems(problems), load_sandbox(sandbox)
    players = load_players(coder, tester, AgentContext(loaded, backend, run.seed))
    tally = Tally(tests_per_suite=run.rules.tests_per_suite)

    def note(game: PlayedEpisode) -> None:
        tally.add(game.record)
        on_episode(game)

    play_games(loaded, players, run, FinishedGames(note), sandbox=backend, book=book)
    return tally.summary(seed=run.seed)


def play_games(
    problems: ProblemSet,
    players: Players,
    settings: RunSettings,
    finished: FinishedGames,
    *,
    sandbox: Sandbox,
    book: MistakeBook | None = None,
) -> None:
    """Play the episodes of a run that have not finished yet.

    Args:
        problems: the problems to play.
        players: the two agents; each is closed at the end if it has a `close`.
        settings: the run's settings.
        finished: takes the games as they finish.
        sandbox: where programs run.
        book: the Mistake Book after the episodes that have finished; None: a new one in memory.

    Raises:
        UserError: an agent failed, or an argument of the environment is out of range.
        AgentUnavailable: an agent was unavailable in several games in a row; these games are not handed on.
        SandboxError: the sandbox cannot be used at all.
        KeyboardInterrupt: Ctrl-C; games in progress are lost.
    """
    with ExitStack() as stack:
        book = book if book is not None else stack.enter_context(MistakeBook())
        try:
            _finish(_Run(problems, players, settings, finished).play(sandbox, book))
        except Interrupted:
            raise KeyboardInterrupt from None


def _finish(run: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end, even if the caller's event loop is running, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(run)
    else:
        with closing(LoopThread("games")) as thread:
            thread.run(lambda: run)


@dataclass(slots=True)
class _Game:
    """A game in progress."""

    number: int
    problem_id: str
    seeds: EpisodeSeeds
    rounds: list[JudgedRound] = field(default_factory=list)
    agents_s: float = 0.0
    last_call_s: dict[str, float] = field(default_factory=dict)
    unavailable: AgentUnavailable | None = None
    unavailable_agent: str = ""

    @property
    def where(self) -> str:
        """Names the game in error messages."""
        return f"episode {self.number} (problem {self.problem_id})"

    async def reply_of(self, name: str, call: Awaitable[str | None]) -> str | None:
        """Return the result of an agent's call; None if the agent is unavailable."""
        start = time.perf_counter()
        try:
            return await call
        except AgentUnavailable as error:
            self.unavailable, self.unavailable_agent = error, name
            return None
        finally:
            self.last_call_s[name] = time.perf_counter()
            self.agents_s += self.last_call_s[name] - start

    def to_episode(self, judging_s: float, total_s: float) -> PlayedEpisode:
        """Return the finished episode."""
        record = EpisodeRecord(
            judge_version=JUDGE_VERSION,
            episode=self.number,
            episode_id=self.rounds[-1].episode_id,
            problem_id=self.problem_id,
            seed=self.seeds.environment,
            rounds=tuple(map(RoundRecord.of, self.rounds)),
        )
        spent = TimeSplit(self.agents_s, judging_s, total_s)
        return PlayedEpisode(
            record, tuple(self.rounds), spent, self.unavailable, self.unavailable_agent, self.last_call_s
        )


class _Run:
    """The games of one run."""

    def __init__(self, problems: ProblemSet, players: Players, settings: RunSettings, finished: FinishedGames) -> None:
        self._problems, self._settings, self._finished = problems, settings, finished
        self._players = players.coder, players.tester
        self._agents: dict[str, GameAgent] = {}
        self._free: asyncio.Queue[EnvSlot] = asyncio.LifoQueue()
        self._ready: asyncio.Queue[int] = asyncio.PriorityQueue()
        """Episodes whose problem is not being played."""

    async def play(self, sandbox: Sandbox, book: MistakeBook) -> None:
        """Play all games. At the end, however it comes, close the agents and wait a while for the environments."""
        awake, timed = asyncio.create_task(_stay_awake()), TimedSandbox(sandbox)
        coder, tester = (game_agent(each, self._settings, timed.lock) for each in self._players)
        self._agents = {CODER: coder, TESTER: tester}
        slots: list[EnvSlot] = []
        try:
            slots += self._slots(timed, book)
            if self._settings.concurrency > 1:
                for player in self._players:
                    require_many_games(player)
            seeds = episode_seeds(self._settings.seed)
            await coder.open(seeds.coder)
            await tester.open(seeds.tester)
            await self._play_all(slots)
        except BaseExceptionGroup as failed:
            first = failed.exceptions[0]
            raise first from first.__cause__
        finally:
            awake.cancel()
            await _close((coder, tester), slots)

    async def _play_all(self, slots: Sequence[EnvSlot]) -> None:
        first, end = self._finished.start_at, self._settings.episodes
        self._finished.hand_on()
        for slot in reversed(slots):  # the last one is taken first
            self._free.put_nowait(slot)
        for number in range(first, min(first + len(self._problems), end)):
            self._make_ready(number)
        async with asyncio.TaskGroup() as games:
            for _ in set(range(first, end)) - self._finished.known:
                slot, number = await self._free.get(), await self._ready.get()
                games.create_task(self.game(slot, number))
        self._finished.end()

    async def game(self, slot: EnvSlot, number: int) -> None:
        """Play one game in a free environment; then the next game of its problem may begin."""
        problem = self._problems[number % len(self._problems)]
        game = _Game(number, problem.id, episode_seeds(self._settings.seed, number))
        start, judged_s = time.perf_counter(), slot.judging_s
        self._finished.begin(number, problem.id, time.monotonic())
        for name, seed in ((CODER, game.seeds.coder), (TESTER, game.seeds.tester)):
            await game.reply_of(name, self._agents[name].begin(slot.number, seed, game.where))
        turn = await slot.judge(_reset, slot.environment, game)
        while turn is not None:
            reply = None
            if game.unavailable is None:
                name = slot.environment.agent_selection
                reply = await game.reply_of(name, self._agents[name].reply(slot.number, turn, game.where))
            turn = await slot.judge(_step, slot.environment, game, reply)
        self._finished.add(game.to_episode(slot.judging_s - judged_s, time.perf_counter() - start))
        self._make_ready(number + len(self._problems))
        self._free.put_nowait(slot)

    def _make_ready(self, number: int) -> None:
        """Let an episode begin, or the first one after it on the same problem that was not played before."""
        while number in self._finished.known:
            number += len(self._problems)
        if number < self._settings.episodes:
            self._ready.put_nowait(number)

    def _slots(self, sandbox: TimedSandbox, book: MistakeBook) -> list[EnvSlot]:
        """Return environments that share one referee, so that each solution is evaluated only once."""
        settings, (coder, tester) = self._settings, self._players
        environments = [
            code_a1_v0.env(
                problems=self._problems,
                rules=settings.rules,
                tester_view=settings.tester_view,
                max_cycles=settings.rounds,
                book=book,
                limits=settings.limits,
                provenance=Provenance(run=settings.run_id, coder=coder.name, tester=tester.name),
                sandbox=sandbox,
            )
            for _ in range(min(settings.concurrency, len(self._problems), settings.episodes))
        ]
        for environment in environments[1:]:
            environment.unwrapped.referee = environments[0].unwrapped.referee
        return [EnvSlot(number, each, sandbox) for number, each in enumerate(environments)]


async def _close(agents: Sequence[GameAgent], slots: Sequence[EnvSlot]) -> None:
    """Close the agents, and wait a while for judging in progress."""
    judging = [await_result(slot.end()) for slot in slots]
    closing = asyncio.gather(*(agent.close() for agent in agents), return_exceptions=True)
    if judging:
        await asyncio.wait(judging, timeout=CLOSE_TIMEOUT_S)
    for error in await closing:
        if error is not None:
            raise error


async def _stay_awake() -> None:
    """Wake the loop up now and then, for a signal that arrives just before it begins to wait."""
    while True:
        await asyncio.sleep(SIGNALS_S)


def _reset(environment: Any, game: _Game) -> Turn | None:
    environment.reset(seed=game.seeds.environment, options={"problem_id": game.problem_id})
    return _turn(environment)


def _step(environment: Any, game: _Game, reply: str | None) -> Turn | None:
    if reply is None:
        environment.unwrapped.give_up(f"the {game.unavailable_agent.partition('_')[0]} was unavailable")
    else:
        environment.step(reply)
    judged = environment.unwrapped.last_round
    if judged is not None and (not game.rounds or judged is not game.rounds[-1]):
        game.rounds.append(judged)
    return _turn(environment)


def _turn(environment: Any) -> Turn | None:
    """Return the turn of the agent that acts next; None if the episode is over."""
    while environment.agents:
        observation, _, terminated, truncated, info = environment.last()
        if not (terminated or truncated):
            return Turn(observation, info)
        environment.step(None)
    return None
