"""A coder of chance, and the lines of records, for comparisons of games."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from codea1_agents.play.games import PlayedEpisode
from codea1_env.agent import Info, Observation
from codea1_env.runs.records import to_line
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


def lines(games: Sequence[PlayedEpisode]) -> list[bytes]:
    return [to_line(game.record) for game in games]
