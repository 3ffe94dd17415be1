from __future__ import annotations

from collections.abc import Iterator

import pytest

from codea1_agents.play.games import PlayedEpisode, TimeSplit
from codea1_agents.play.outage import PATIENCE, while_available
from codea1_env.errors import AgentUnavailable
from codea1_env.runs.records import EpisodeRecord


def game(number: int, last_call_s: float, *, present: bool, seat: str = "tester_0", problem: str = "") -> PlayedEpisode:
    record = EpisodeRecord(
        episode=number, episode_id=f"{number}", problem_id=problem or f"toy/{number}", seed=0, rounds=()
    )
    error = None if present else AgentUnavailable("down")
    return PlayedEpisode(record, (), TimeSplit(), error, "" if present else seat, {seat: last_call_s})


def numbers(games: Iterator[PlayedEpisode]) -> list[int]:
    return [each.record.episode for each in games]


def test_an_absence_is_handed_on_when_the_agent_has_replied_since() -> None:
    games = [game(0, 1.0, present=True), game(1, 2.0, present=False), game(2, 3.0, present=True)]
    assert numbers(while_available(games, is_new_run=True)) == [0, 1, 2]


def test_a_game_whose_agent_replied_before_the_outage_does_not_end_it() -> None:
    masked = [game(n, 5.0 + n, present=False) for n in range(1, PATIENCE)]
    found = while_available([*masked, game(0, 2.0, present=True), game(9, 99.0, present=False)], is_new_run=True)
    assert next(found).record.episode == 0
    with pytest.raises(AgentUnavailable, match=f"{PATIENCE} games in a row, so the run stops: down"):
        next(found)


def test_the_other_agents_replies_do_not_end_an_outage() -> None:
    games = [game(0, 1.0, present=False), game(1, 9.0, present=True, seat="coder_0"), game(2, 99.0, present=True)]
    found = while_available(games, is_new_run=True)
    assert next(found).record.episode == 1
    assert numbers(found) == [0, 2]


def test_a_game_never_comes_before_an_absence_on_the_same_problem_that_it_followed() -> None:
    games = [game(0, 1.0, present=False), game(2, 9.0, present=True, seat="coder_0", problem="toy/0")]
    assert numbers(while_available(games, is_new_run=True)) == [0, 2]


def test_a_short_outage_at_the_end_is_handed_on_unless_nobody_ever_replied() -> None:
    masked = [game(n, float(n), present=False) for n in range(3)]
    assert numbers(while_available(masked, is_new_run=False)) == [0, 1, 2]
    with pytest.raises(AgentUnavailable, match="3 games of the run"):
        list(while_available(masked, is_new_run=True))
