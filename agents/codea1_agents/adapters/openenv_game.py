"""OpenEnv: a server of games, and a typed client.

::

    python -m codea1_agents.adapters.openenv_game --problems starter --port 8000

    with GameClient("http://localhost:8000").sync() as game:
        result = game.reset(seed=1)
        while not result.done:
            result = game.step(GameAction(text=agent(result.observation.messages)))
        print(result.observation.rewards)

Each connection has a game of its own. OpenEnv's server never sends the `metadata` of an observation, so the rewards of
both roles are fields of it. A masked reward is None, with `masked` and `masked_because`.

Server and client take the token of the environment variable CODEA1_SERVE_TOKEN, as those of `codea1 serve` do.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from codea1_agents.adapters.played_game import GameState, PlayedGame, sentences
from codea1_env.agent import Role
from codea1_env.errors import UserError, extra_needed
from codea1_env.problems import load_problems
from codea1_env.sandbox.remote import TOKEN_VARIABLE
from codea1_env.secret import secret_in
from codea1_env.service.bounds import ServiceBounds
from codea1_env.service.guard import Guard, token_of_environment

with extra_needed("the game for OpenEnv", "openenv"):
    import uvicorn
    from openenv.core import EnvClient
    from openenv.core.client_types import StepResult
    from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app
    from pydantic import Field

MAX_SESSIONS = 64
"""Connections that a server takes at once, by default."""
_LONGEST_MESSAGE = 1 << 20
"""Bytes of one message of a client."""


class GameAction(Action):  # type: ignore[misc]  # OpenEnv is not read
    """A reply of the agent whose turn it is."""

    text: str
    """As a model wrote it."""


class GameObservation(Observation):  # type: ignore[misc]  # OpenEnv is not read
    """What follows a reset or a reply."""

    agent: Literal["coder", "tester", ""] = ""
    """Whose turn it is; empty: the game is over."""
    problem_id: str = ""
    messages: list[dict[str, str]] = Field(default_factory=list)
    """Chat messages that ask the agent for its reply."""
    problem: str = ""
    entry_point: str = ""
    examples: str = ""
    program: str = ""
    """What a tester sees."""
    feedback: str = ""
    round: int = 0
    rewards: dict[str, float | None] = Field(default_factory=dict)
    """By role, of the round that this reply ended; None: masked, not ended, or a tester without a turn."""
    reward_parts: dict[str, dict[str, float]] = Field(default_factory=dict)
    """By role, the weighted terms, which add up to the reward."""
    masked: bool = False
    masked_because: str = ""
    verdict: str = ""
    """On the program, when a round ends."""


class GameEnvironment(Environment[GameAction, GameObservation, State]):  # type: ignore[misc]  # OpenEnv is not read
    """One game; `reward` is that of the role named at the reset, since OpenEnv knows one reward."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, game: PlayedGame) -> None:
        super().__init__()
        self._game = game
        self._role = ""
        self._state = State()
        self._turn: Role = "coder"

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        problem_id: str | None = None,
        role: str = "",
        **unknown: Any,
    ) -> GameObservation:
        """Begin a game.

        Args:
            seed: None: the next problem; else the random stream starts anew.
            episode_id: is in the state.
            problem_id: the problem to play.
            role: whose reward `reward` is; empty: it stays None, and `rewards` has both.
            unknown: refused.

        Raises:
            UserError: an argument is unknown or has an invalid value.
        """
        if unknown or role not in ("", "coder", "tester"):
            raise UserError(f"reset: unknown argument or role in {sorted(unknown)}, {role!r}")
        self._role = role
        self._state = State(episode_id=episode_id, step_count=0)
        return self._observed(self._game.reset(seed, problem_id))

    def step(self, action: GameAction, timeout_s: float | None = None, **_: Any) -> GameObservation:
        """Take the reply of the agent whose turn it is. `timeout_s` is ignored: the sandbox's limits bound every run.

        Raises:
            UserError: the game is over.
        """
        found = self._observed(self._game.submit(self._turn, action.text))
        self._state.step_count += 1
        return found

    @property
    def state(self) -> State:
        """The episode's id and the number of replies."""
        return self._state

    def close(self) -> None:
        """End the game."""
        self._game.close()

    def _observed(self, state: GameState) -> GameObservation:
        self._turn = "tester" if state.agent == "tester" else "coder"
        return GameObservation(
            **state.observation,
            agent=state.agent,
            problem_id=state.problem_id,
            messages=list(state.messages),
            rewards=dict(state.rewards),
            reward_parts={role: dict(terms) for role, terms in state.reward_parts.items()},
            masked=state.masked,
            masked_because=state.masked_because,
            verdict=state.verdict,
            done=state.done,
            reward=state.rewards.get(self._role),
        )


class GameClient(EnvClient[GameAction, GameObservation, State]):  # type: ignore[misc]  # OpenEnv is not read
    """Plays one game after the other on a server; `reset` takes the arguments of `GameEnvironment.reset`."""

    def __init__(self, *address: str, headers: dict[str, str] | None = None, **settings: Any) -> None:
        token = secret_in(TOKEN_VARIABLE)
        own = {"Authorization": f"Bearer {token}"} if token else {}
        super().__init__(*address, headers=own | (headers or {}), **settings)

    def _step_payload(self, action: GameAction) -> dict[str, Any]:
        return {"text": action.text}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[GameObservation]:
        reward, done = payload.get("reward"), payload.get("done", False)
        observation = GameObservation(**payload.get("observation", {}), reward=reward, done=done)
        return StepResult(observation=observation, reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State(**payload)


def app(
    problems: str = "starter",
    rules: str = "fixed",
    rounds: int = 1,
    sandbox: str = "local",
    sessions: int = MAX_SESSIONS,
) -> Any:
    """Return the server's application, for an ASGI server of your own.

    Args:
        problems: a source that `load_problems` takes; it is read once.
        rules: the name of a ruleset.
        rounds: per game.
        sandbox: name of the back end that runs the programs.
        sessions: most connections at once.

    Raises:
        UserError: a setting has an invalid value.
    """
    known = load_problems(problems)

    def make() -> GameEnvironment:
        return GameEnvironment(PlayedGame(known, rules=rules, rounds=rounds, sandbox=sandbox))

    return create_fastapi_app(make, GameAction, GameObservation, max_concurrent_envs=sessions)


def serve(
    problems: Annotated[str, typer.Option(help="A source of problems.")] = "starter",
    rules: Annotated[str, typer.Option(help="Name of the rules.")] = "fixed",
    rounds: Annotated[int, typer.Option(min=1, help="Rounds per game.")] = 1,
    sandbox: Annotated[str, typer.Option(help="What runs the programs.")] = "local",
    sessions: Annotated[int, typer.Option(min=1, max=65_535, help="Most connections at once.")] = MAX_SESSIONS,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen on.")] = 8000,
) -> None:
    """Serve games to OpenEnv clients until it is interrupted."""
    with sentences():
        guard = Guard(app(problems, rules, rounds, sandbox, sessions), ServiceBounds(), token_of_environment())
        guard.require_closed(host)
    uvicorn.run(guard, host=host, port=port, log_level="warning", ws_max_size=_LONGEST_MESSAGE, ws_max_queue=1)


if __name__ == "__main__":
    typer.run(serve)
