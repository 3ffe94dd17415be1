"""The agent protocol, and `load_agent`, which makes an agent from a name, a dotted path or a function.

Any function `observation -> str` is an agent, and so is any object with `act(observation, info) -> str`. All code that
takes an agent (views, runner, command line) takes all of these, through `load_agent`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

from codea1_env.agent.options import constructor_options, parameters_of
from codea1_env.agent.threads import CLOSE_TIMEOUT_S, LoopThread
from codea1_env.errors import AgentUnavailable, UserError
from codea1_env.facts.submissions import Info, Observation, Role
from codea1_env.plugins import resolve, result_of
from codea1_env.problems.problem import ProblemSet
from codea1_env.sandbox.interface import Limits, Sandbox
from codea1_env.secret import require_no_secrets


@runtime_checkable
class Agent(Protocol):
    """An object that answers observations with text.

    Optional methods, which callers use if they exist: `reset(seed: int)` before each episode,
    `act_batch(observations, infos) -> list[str | AgentUnavailable]`, `act_stream(observations, infos) ->
    Iterator[EndedReply]`, which yields the same replies as they end, `async aact(observation, info) -> str`, `close()`.
    Optional attributes: `plays`, `"coder"` or `"tester"`, if the agent can play only that role; `thread_safe = True`
    allows several calls of `act` at once; `stateless = True` says that a reply depends only on the seed, the
    observation and its info, so that one `reset` suffices for a whole run; `interactive = True`, that a person answers
    at the terminal, one game at a time.
    """

    def act(self, observation: Observation, info: Info) -> str:
        """Return the raw reply; any text is legal."""


@dataclass(frozen=True, slots=True)
class EndedReply:
    """One reply of `act_stream`."""

    position: int
    """Of its observation."""
    reply: str | AgentUnavailable


@dataclass(frozen=True, slots=True)
class AgentContext:
    """The context that an agent class gets if it has a parameter `context`. Scripted baselines read the problems'
    solutions."""

    problems: ProblemSet
    sandbox: Sandbox
    seed: int = 0
    limits: Limits | None = None
    """Bounds per call of a program that the agent runs; None: its own."""


AgentSpec = str | Agent | Callable[..., Any]


class Unwrappable(Protocol):
    """An environment of PettingZoo, or a view or a wrapper of one."""

    @property
    def unwrapped(self) -> Any:
        """The environment itself."""


class _AsyncAgent:
    """An agent whose function returns an awaitable; all its turns run in one event loop, which it owns.

    The loop runs in its own thread, so that Ctrl-C does not wait for the agent. A caller that has an event loop uses
    `aact`, `areset` and `aclose` instead, and only these.
    """

    def __init__(self, inner: Any, function: Callable[[Observation, Info], Any]) -> None:
        self._inner = inner
        self._function = function
        self._loop = LoopThread(type(inner).__name__)
        self.stateless = getattr(inner, "stateless", False) is True

    def act(self, observation: Observation, info: Info) -> str:
        return cast(str, self._loop.run(self.aact, observation, info))

    def reset(self, seed: int) -> None:
        self._loop.run(self.areset, seed)

    async def aact(self, observation: Observation, info: Info) -> str:
        return cast(str, await _await_reply(self._function, observation, info))

    async def areset(self, seed: int) -> None:
        reset = getattr(self._inner, "reset", None)
        if callable(reset):
            await _await_reply(reset, seed)

    async def aclose(self) -> None:
        close = getattr(self._inner, "close", None)
        if callable(close):
            await _await_reply(close)

    def close(self) -> None:
        self._loop.close(self.aclose, timeout_s=CLOSE_TIMEOUT_S)

    def __repr__(self) -> str:
        return repr(self._inner)


async def _await_reply(function: Callable[..., Any], *arguments: object) -> object:
    reply = function(*arguments)
    return await reply if inspect.isawaitable(reply) else reply


class _FunctionAgent:
    """A plain function as an agent; it takes the observation, or the observation and the info."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._takes_info = _n_positional(function) >= 2
        self.thread_safe = getattr(function, "thread_safe", False) is True

    def act(self, observation: Observation, info: Info) -> str:
        reply = self._function(observation, info) if self._takes_info else self._function(observation)
        return cast(str, reply)

    def __repr__(self) -> str:
        return getattr(self._function, "__name__", repr(self._function))


def load_agent(spec: AgentSpec, context: Unwrappable | AgentContext, *, role: Role | None = None) -> Agent:
    """Return the agent that `spec` names or is. An `async` one gets its own event loop.

    >>> from codea1_env import code_a1_v0, load_agent
    >>> env = code_a1_v0.env("starter")
    >>> env.reset(seed=0, options={"problem_id": "starter/count_carries"})
    >>> agent = load_agent(lambda observation: f"def {observation['entry_point']}(*args): return 0", env, role="coder")
    >>> agent.act(env.observe("coder_0"), {})
    'def count_carries(*args): return 0'

    Args:
        spec: an agent, a function, a registered name (`mutant`), or `module:attribute`; names and paths may carry
            options for the agent's class, as in `mutant,strength=0.3`.
        context: the environment that it will play in (`code_a1_v0.env`, `parallel_env` or `group_env`, wrapped or not);
            where there is none, an `AgentContext`. Classes with a `context` parameter get it.
        role: the role that it will play; None: not known yet.

    Raises:
        UserError: the specification holds a key, the name is unknown, an option is unknown, missing or not of its
            annotated type, the object cannot act, it plays the other role, or the environment has no problems in text.
    """
    known, (target, options) = _context_of(context), _resolve(spec)
    if inspect.isclass(target):
        target = _construct(spec, target, known, options)
    plays = getattr(target, "plays", None)
    if role is not None and plays in _ROLES and plays != role:
        raise UserError(f"agent {_describe_spec(spec)} is a {plays}, not a {role}")
    return _as_agent(spec, target)


def require_agent(spec: AgentSpec) -> None:
    """Check what names or is an agent, without making one; see `load_agent` for the forms and the errors."""
    target, _ = _resolve(spec)
    if not inspect.isclass(target):
        _as_agent(spec, target)


def _resolve(spec: AgentSpec) -> tuple[Any, dict[str, str]]:
    """Return what a specification names, and its options, which only a class takes."""
    options: dict[str, str] = {}
    target: Any = spec
    if isinstance(spec, str):
        require_no_secrets(spec)
        name, *pairs = spec.split(",")
        for pair in pairs:
            option, separator, text = pair.partition("=")
            if not separator or not option.strip().isidentifier():
                raise UserError(f"agent {_describe_spec(spec)}: expected option=value after each comma")
            options[option.strip()] = text.strip()
        target = resolve("agents", name)
    if options and not inspect.isclass(target):
        raise UserError(f"agent {_describe_spec(spec)}: only classes take options")
    return target, options


_ROLES = ("coder", "tester")


def _context_of(source: object) -> AgentContext:
    if isinstance(source, AgentContext):
        return source
    game: Any = getattr(source, "unwrapped", None)
    if not hasattr(game, "referee"):
        description = f"{type(source).__name__} ({source!r:.100})"
        raise UserError(f"load_agent needs an environment of code_a1_v0 or an AgentContext, got {description}")
    return AgentContext(game.problems, game.referee.sandbox)


def agent_name(spec: AgentSpec, agent: Agent) -> str:
    """Return an agent's display name. It contains no memory address, so that every process shows the same name."""
    if isinstance(spec, str):
        return spec
    name = repr(agent)
    return type(agent).__name__ if " at 0x" in name else name


def _as_agent(spec: AgentSpec, target: Any) -> Agent:
    if isinstance(target, Agent):
        return _AsyncAgent(target, target.act) if inspect.iscoroutinefunction(target.act) else target
    if inspect.iscoroutinefunction(getattr(target, "aact", None)):
        return _AsyncAgent(target, target.aact)
    if callable(target):
        agent = _FunctionAgent(target)
        is_async = inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(type(target).__call__)
        return _AsyncAgent(agent, agent.act) if is_async else agent
    raise UserError(
        f"agent {_describe_spec(spec)}: expected a function or an object with act(), got {type(target).__name__}"
    )


def _describe_spec(spec: object) -> str:
    """Return the name in a specification, without its options, whose values may be anything."""
    return repr(spec.partition(",")[0]) if isinstance(spec, str) else f"{spec!r:.100}"


def _construct(spec: object, cls: type, context: AgentContext, options: dict[str, str]) -> object:
    try:
        arguments = constructor_options(cls, options)
    except UserError as error:
        raise type(error)(f"agent {_describe_spec(spec)}: {error}") from None
    if "context" in parameters_of(cls):
        arguments["context"] = context
    return result_of(f"agent {_describe_spec(spec)}", cls, **arguments)


def _n_positional(function: Callable[..., Any]) -> int:
    parameters = parameters_of(function).values()
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return 2
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
