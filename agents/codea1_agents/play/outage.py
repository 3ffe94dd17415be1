"""When to stop asking agents that are not there. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codea1_agents.play.games import PlayedEpisode
from codea1_env.errors import AgentUnavailable

PATIENCE = 8
"""So many games in a row without a reply end a run."""


def while_available(games: Iterable[PlayedEpisode], *, is_new_run: bool) -> Iterator[PlayedEpisode]:
    """Hand on the games; those in which an agent was unavailable only when a later one shows that the run goes on.

    So what is handed on never ends with an outage that stopped the run, and a resumed run asks again.

    Args:
        games: as they are finished.
        is_new_run: nothing was played before; then a run in which no agent ever replied also ends with an error.

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


def _is_past(absence: PlayedEpisode, game: PlayedEpisode) -> bool:
    """Whether the agent that was absent has replied in `game` since; or the game has built on that one's outcome."""
    since = game.asked_s.get(absence.absent, 0.0) > absence.asked_s[absence.absent]
    return since or game.record.problem_id == absence.record.problem_id


def _outage(held: list[PlayedEpisode], which: str) -> AgentUnavailable:
    n_games = f"{len(held)} games {which}" if len(held) > 1 else "the only game"
    return AgentUnavailable(f"no reply in {n_games}, so the run stops: {held[-1].unavailable}")
