from __future__ import annotations

from collections.abc import Iterable

import pytest

from codea1_agents.play.games import PATIENCE, FinishedGames, PlayedEpisode, TimeSplit
from codea1_env.errors import AgentUnavailable, UserError
from codea1_env.runs.records import EpisodeRecord


def game(number: int, last_call_s: float, *, present: bool, seat: str = "tester_0", problem: str = "") -> PlayedEpisode:
    record = EpisodeRecord(episode=number, episode_id="0", problem_id=problem or f"toy/{number}", seed=0, rounds=())
    error = None if present else AgentUnavailable("down")
    return PlayedEpisode(record, (), TimeSplit(), error, "" if present else seat, {seat: last_call_s})


def handed_on(games: Iterable[PlayedEpisode], *, start_at: int = 0, known: Iterable[int] = ()) -> list[str]:
    """Return what is handed on of games in the order in which they finish: numbers, with `early` if out of turn."""
    found: list[str] = []
    finished = FinishedGames(
        lambda each: found.append(f"{each.record.episode}"),
        lambda each: found.append(f"{each.record.episode} early"),
        start_at=start_at,
        known={number: game(number, 0.0, present=True).record for number in known},
    )
    finished.hand_on()
    try:
        for each in games:
            finished.add(each)
        finished.end()
    except AgentUnavailable as error:
        found.append(str(error))
    return found


def test_games_are_handed_on_in_the_order_of_their_numbers_and_known_ones_at_their_place() -> None:
    games = [game(number, 1.0, present=True) for number in (5, 3)]
    assert handed_on(games, start_at=2, known=(2, 4, 7)) == ["2", "5 early", "3", "4", "5"]
    with pytest.raises(UserError, match="start_at must be at least 0, got -1"):
        handed_on([], start_at=-1)


def test_the_game_that_has_been_in_progress_for_longest_is_known() -> None:
    finished = FinishedGames(lambda _: None)
    assert finished.oldest() is None
    finished.begin(0, "toy/0", 1.0)
    finished.begin(1, "toy/1", 2.0)
    assert finished.oldest() == ("toy/0", 1.0)
    finished.add(game(0, 3.0, present=False))
    assert finished.oldest() == ("toy/1", 2.0)


def test_an_absence_is_handed_on_when_the_agent_has_replied_since_or_at_the_end_if_it_ever_did() -> None:
    games = [game(0, 1.0, present=True), game(1, 2.0, present=False), game(2, 3.0, present=True)]
    assert handed_on(games) == ["0", "1", "2"]
    masked = [game(n, float(n), present=False) for n in range(1, 4)]
    assert handed_on(masked, start_at=1) == ["1", "2", "3"]
    assert handed_on(masked) == ["no agent replied in 3 games of the run, so the run stops: down"]


def test_an_outage_is_ended_by_no_earlier_reply_nor_by_the_other_agents() -> None:
    masked = [game(n, 5.0 + n, present=False) for n in range(1, PATIENCE)]
    found = handed_on([*masked, game(0, 2.0, present=True), game(9, 99.0, present=False)])
    assert found == ["0", f"no agent replied in {PATIENCE} games in a row, so the run stops: down"]
    games = [game(0, 1.0, present=False), game(1, 9.0, present=True, seat="coder_0"), game(2, 99.0, present=True)]
    assert handed_on(games) == ["1 early", "0", "1", "2"]
    # A game never comes before an absence on the same problem that it followed.
    games = [game(1, 1.0, present=False), game(2, 9.0, present=True, seat="coder_0", problem="toy/1")]
    assert handed_on(games) == ["1 early", "2 early"]
