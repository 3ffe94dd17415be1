"""A coder of chance, and the lines of records, for comparisons of games."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from codea1_agents.play.games import FinishedGames, PlayedEpisode, RunSettings
from codea1_agents.play.players import load_players
from codea1_agents.play.runner import play_games
from codea1_env.agent import AgentContext, Info, Observation
from codea1_env.book.store import MistakeBook
from codea1_env.problems import ProblemSet
from codea1_env.rules.ruleset import preset
from codea1_env.runs.records import EpisodeRecord, to_line
from codea1_env.sandbox import Sandbox
from tests.support.players import bad, good


class Dice:
    """A coder that is right or wrong by the seed of its episode."""

    made: ClassVar[list[Dice]] = []

    def __init__(self) -> None:
        self.seeds: list[int] = []
        self.closed = 0
        Dice.made.append(self)

    def reset(self, seed: int) -> None:
        self.seeds.append(seed)

    def act(self, observation: Observation, info: Info) -> str:
        return (good if self.seeds[-1] % 2 else bad)(observation)

    def close(self) -> None:
        self.closed += 1


def episodes_of(
    problems: ProblemSet,
    coder: Any,
    tester: Any,
    *,
    sandbox: Sandbox,
    book: MistakeBook | None = None,
    on_episode: Callable[[PlayedEpisode], object] = lambda _: None,
    on_early: Callable[[PlayedEpisode], object] = lambda _: None,
    start_at: int = 0,
    known: Mapping[int, EpisodeRecord] | None = None,
    **settings: Any,
) -> list[PlayedEpisode]:
    """Play with the rules `fixed` and return the episodes in the order in which they are handed on."""
    games: list[PlayedEpisode] = []

    def note(game: PlayedEpisode) -> None:
        games.append(game)
        on_episode(game)

    finished = FinishedGames(note, on_early, start_at=start_at, known=known)
    players = load_players(coder, tester, AgentContext(problems, sandbox, settings.get("seed", 0)))
    run = RunSettings(rules=preset("fixed"), **settings)
    play_games(problems, players, run, finished, sandbox=sandbox, book=book)
    return games


def lines(games: Sequence[PlayedEpisode]) -> list[bytes]:
    return [to_line(game.record) for game in games]
