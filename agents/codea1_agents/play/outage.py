"""Stops a run whose agents have become unavailable. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codea1_agents.play.games import PlayedEpisode
from codea1_env.errors import AgentUnavailable

PATIENCE = 8
"""Number of games in a row without a reply that ends a run."""


def while_available(games: Iterable[PlayedEpisode], *, is_new_run: bool) -> Iterator[PlayedEpisode]:
    """Yield the games. A game with an unavailable agent is yielded only after a later game shows that the run goes on.

    So the games of an outage that stops the run are never yielded, and a resumed run plays them again.

    Args:
        games: as they finish.
        is_new_run: whether nothing was played before; then a run without any reply also ends with an error.

    Raises:
        AgentUnavailable: `PATIENCE` games in a row had no reply.
    """
    held: list[PlayedEpisode] = []
    were_available = not is_new_run
    for game in games:
        if game.unavailable is not None:
            held.append(game)
            if len(held) >= PATIENCE:
                raise _outage(held, "in a row")
            continue
        were_available = True
        yield from (each for each in held if _is_past(each, game))
        held = [each for each in held if not _is_past(each, game)]
        yield game
    if held and not were_available:
        raise _outage(held, "of the run")
    yield from held


def _is_past(masked: PlayedEpisode, game: PlayedEpisode) -> bool:
    """Whether the agent that was unavailable in `masked` has replied in `game` since, or both play the same problem.

    A later game of the same problem depends on the outcome of the earlier one.
    """
    since = game.last_call_s.get(masked.unavailable_agent, 0.0) > masked.last_call_s[masked.unavailable_agent]
    return since or game.record.problem_id == masked.record.problem_id


def _outage(held: list[PlayedEpisode], which: str) -> AgentUnavailable:
    n_games = f"{len(held)} games {which}" if len(held) > 1 else "the only game"
    return AgentUnavailable(f"no reply in {n_games}, so the run stops: {held[-1].unavailable}")
