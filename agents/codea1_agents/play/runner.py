"""Plays games between two agents through the environment, one after the other or many at once.

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

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from typing import Any

from codea1_agents.play.call_thread import REPLY_TIMEOUT_S
from codea1_agents.play.concurrent_games import ConcurrentGames, Schedule, one_by_one
from codea1_agents.play.game_agents import CallTerms, concurrent_agent, sequential_agent
from codea1_agents.play.games import EnvSlot, EpisodeSeeds, Game, PlayedEpisode, TimedSandbox, TimeSplit
from codea1_agents.play.named_agent import NamedAgent
from codea1_agents.play.outage import while_available
from codea1_agents.play.players import Players, load_players
from codea1_agents.play.summary import Summary, Tally
from codea1_env import code_a1_v0
from codea1_env.agent import AgentContext, AgentSpec
from codea1_env.book.store import MistakeBook
from codea1_env.code_a1_v0 import CODER, TESTER
from codea1_env.errors import UserError, whole_number
from codea1_env.problems import ProblemSet, ProblemSource, load_problems
from codea1_env.rules.mistake_book import Provenance
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.runs.records import EpisodeRecord
from codea1_env.sandbox import Limits, Sandbox, load_sandbox

MAX_CONCURRENCY = 4096
"""Each game in progress has an environment, and a copy of an agent that has only `act`."""


def play(
    problems: ProblemSource,
    coder: AgentSpec,
    tester: AgentSpec,
    *,
    rules: Ruleset | str = "fixed",
    episodes: int = 10,
    seed: int = 0,
    sandbox: Sandbox | str = "local",
    on_episode: Callable[[PlayedEpisode], object] | None = None,
    **options: Any,
) -> Summary:
    """Play episodes and return their figures.

    Args:
        problems: a source that `load_problems` takes.
        coder: an agent, a function `observation -> str`, or a name.
        tester: likewise.
        rules: a ruleset, or the name of a preset.
        episodes: number of episodes of the whole run.
        seed: of the run and of the bootstrap intervals.
        sandbox: a back end or its name.
        on_episode: called after each episode, in the order of their numbers; without concurrency, before the next one
            begins.
        options: the other arguments of `iter_games`: rounds, tester_view, book, limits, concurrency, start_at, early,
            on_early, run_id, reply_timeout_s.

    Raises:
        UserError: a name does not exist, an argument is out of range, or an agent failed.
        AgentUnavailable: an agent was unavailable in several games in a row.
        SandboxError: the sandbox cannot be used at all.
    """
    ruleset = preset(rules) if isinstance(rules, str) else rules
    loaded, backend = load_problems(problems), load_sandbox(sandbox)
    players = load_players(coder, tester, AgentContext(loaded, backend, seed))
    tally = Tally(tests_per_suite=ruleset.tests_per_suite)
    games = iter_games(loaded, players, rules=ruleset, episodes=episodes, seed=seed, sandbox=backend, **options)
    with closing(games):
        for game in games:
            tally.add(game.record)
            if on_episode is not None:
                on_episode(game)
    return tally.summary(seed=seed)


def iter_games(
    problems: ProblemSet,
    players: Players,
    *,
    rules: Ruleset,
    sandbox: Sandbox,
    episodes: int = 10,
    rounds: int = 1,
    seed: int = 0,
    tester_view: str = "white_box",
    book: MistakeBook | None = None,
    limits: Limits | None = None,
    concurrency: int = 1,
    start_at: int = 0,
    early: Mapping[int, EpisodeRecord] | None = None,
    on_early: Callable[[PlayedEpisode], object] | None = None,
    run_id: str = "",
    reply_timeout_s: float | None = REPLY_TIMEOUT_S,
) -> Generator[PlayedEpisode, None, None]:
    """Yield the finished episodes `start_at` to `episodes - 1` in order; episode k plays problem k modulo their number.

    An episode in which an agent is unavailable is masked. It is yielded after a later episode was not masked; see
    `while_available`.

    Args:
        problems: the problems to play.
        players: the two agents; each is closed at the end if it has a `close`.
        rules: of the game.
        sandbox: where programs run.
        episodes: number of episodes of the whole run, at least 1.
        rounds: rounds per episode, at least 1.
        seed: of the run, not negative.
        tester_view: `white_box` or `black_box`.
        book: the Mistake Book before episode `start_at`, including the entries of `early`; None: a new one in memory.
        limits: bounds per call of a program.
        concurrency: most games in progress, from 1 to `MAX_CONCURRENCY`; never two of one problem.
        start_at: first episode to play.
        early: episodes from `start_at` on that were played before; they are yielded at their place.
        on_early: called at once for an episode that finishes before an earlier one.
        run_id: stored with the players' names in new entries of the book.
        reply_timeout_s: seconds after which a call of an agent is given up and its game masked, times the length of a
            batch; None: never. With a limit, agents are called in threads of their own, except a person's.

    Raises:
        UserError: an argument is out of range, or an agent failed; episodes yielded before stay valid.
        AgentUnavailable: an agent was unavailable in several games in a row; these games are not yielded.
        SandboxError: the sandbox cannot be used at all.
    """
    _require_in_range(episodes=(episodes, 1), seed=(seed, 0), start_at=(start_at, 0))
    if reply_timeout_s is not None and not reply_timeout_s > 0:  # also catches nan
        raise UserError(f"reply_timeout_s must be above 0, not {reply_timeout_s}")
    concurrency = whole_number("concurrency", concurrency, most=MAX_CONCURRENCY)
    schedule = Schedule(len(problems), start_at=start_at, episodes=episodes, done=early or {})
    with ExitStack() as stack:
        coder = NamedAgent(players.coder, f"coder {players.coder_name}")
        tester = NamedAgent(players.tester, f"tester {players.tester_name}")
        stack.callback(coder.close)
        stack.callback(tester.close)
        options = {
            "problems": problems,
            "rules": rules,
            "tester_view": tester_view,
            "max_cycles": rounds,
            "book": book if book is not None else stack.enter_context(MistakeBook()),
            "limits": limits,
            "provenance": Provenance(run=run_id, coder=players.coder_name, tester=players.tester_name),
        }
        slots = _env_slots(min(concurrency, len(problems), episodes), sandbox, options)
        serving = sequential_agent if concurrency == 1 else concurrent_agent
        terms, seeds = CallTerms(slots[0].sandbox.lock, reply_timeout_s), EpisodeSeeds.of_run(seed)
        agents = {CODER: serving(coder, terms, players.coder_copies)}
        agents[TESTER] = serving(tester, terms, players.tester_copies)

        def play(number: int, slot: EnvSlot) -> PlayedEpisode:
            return Game(slot, number, problems[number % len(problems)], seed).play(agents)

        for end in ("close", "stop"):  # called in reverse: all agents stop before the first is closed
            for agent in agents.values():
                stack.callback(getattr(agent, end))
        for name, of_run in ((CODER, seeds.coder), (TESTER, seeds.tester)):
            agents[name].open(of_run)
        many = ConcurrentGames(play, schedule, slots, agents)
        played = one_by_one(play, schedule, slots[0]) if serving is sequential_agent else many.played()
        available = while_available(stack.enter_context(closing(played)), is_new_run=start_at == 0 and not early)
        yield from _in_order(available, start_at, early or {}, on_early)


def _require_in_range(**numbers: tuple[int, int]) -> None:
    """Raise UserError unless each number is at least its minimum; values are pairs (number, minimum)."""
    for name, (value, least) in numbers.items():
        if value < least:
            raise UserError(f"{name} must be at least {least}, not {value}")


def _env_slots(n_slots: int, sandbox: Sandbox, options: dict[str, Any]) -> list[EnvSlot]:
    """Return environments that share one referee, so that each solution is evaluated only once."""
    timed = TimedSandbox(sandbox)
    environments = [code_a1_v0.env(**options, sandbox=timed) for _ in range(n_slots)]
    for environment in environments[1:]:
        environment.unwrapped.referee = environments[0].unwrapped.referee
    return [EnvSlot(number, environment, timed) for number, environment in enumerate(environments)]


def _in_order(
    games: Iterable[PlayedEpisode],
    start_at: int,
    known: Mapping[int, EpisodeRecord],
    on_early: Callable[[PlayedEpisode], object] | None,
) -> Iterator[PlayedEpisode]:
    """Yield new and known episodes in the order of their numbers."""
    waiting = {number: PlayedEpisode(record, (), TimeSplit()) for number, record in known.items()}
    place = start_at
    while place in waiting:
        yield waiting.pop(place)
        place += 1
    for game in games:
        number = game.record.episode
        waiting[number] = game
        if number != place and on_early is not None:
            on_early(game)
        while place in waiting:
            yield waiting.pop(place)
            place += 1
