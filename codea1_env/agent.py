"""What an agent is, and how a name, a dotted path or a function becomes one.

Any function `observation -> str` is an agent. So is any object with `act(observation, info) -> str`. Everything that
takes an agent (views, runner, command line) takes all of these, through `load_agent`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

from codea1_env.errors import UserError
from codea1_env.plugins import resolve
from codea1_env.problems.problem import ProblemSet
from codea1_env.sandbox.interface import Sandbox

__all__ = ["Agent", "AgentContext", "AgentSpec", "Info", "Observation", "load_agent"]

Observation = Mapping[str, Any]
"""One observation of `codea1_env.code_a1_v0`: see its module docstring for the keys."""

Info = Mapping[str, Any]
"""The environment's `infos` entry of the agent that acts."""


@runtime_checkable
class Agent(Protocol):
    """Anything that answers observations with text.

    Optional methods that callers use when they are there: `reset(seed: int)` before each episode,
    `act_batch(observations, infos) -> list[str]`, `async aact(observation, info) -> str`, `close()`.
    """

    def act(self, observation: Observation, info: Info) -> str:
        """Return the raw reply; any text is legal."""


@dataclass(frozen=True, slots=True)
class AgentContext:
    """What an agent class may ask for by naming a parameter `context`. Scripted baselines use the problems' secrets."""

    problems: ProblemSet
    sandbox: Sandbox
    seed: int = 0


AgentSpec = str | Agent | Callable[..., Any]


class _FunctionAgent:
    """A plain function as an agent; it may take the observation, or the observation and the info."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._takes_info = _n_positional(function) >= 2

    def act(self, observation: Observation, info: Info) -> str:
        reply = self._function(observation, info) if self._takes_info else self._function(observation)
        return cast(str, reply)

    def __repr__(self) -> str:
        return getattr(self._function, "__name__", repr(self._function))


def load_agent(spec: AgentSpec, context: AgentContext) -> Agent:
    """Return the agent that `spec` names or is.

    Args:
        spec: an agent, a function, a registered name (`mutant`), or `module:attribute`; names and paths may carry
            options for the agent's class, as in `mutant,strength=0.3`.
        context: handed to classes that have a `context` parameter.

    Raises:
        UserError: nothing of that name, unreadable options, or something that cannot act.
    """
    options: dict[str, Any] = {}
    target: Any = spec
    if isinstance(spec, str):
        name, *pairs = spec.split(",")
        options = dict(_option(spec, pair) for pair in pairs)
        target = resolve("agents", name)
    if inspect.isclass(target):
        target = _construct(spec, target, context, options)
    elif options:
        raise UserError(f"agent {spec!r}: only classes take options")
    if isinstance(target, Agent):
        return target
    if callable(target):
        return _FunctionAgent(target)
    raise UserError(f"agent {spec!r}: {type(target).__name__} has no act(observation, info) and is not a function")


def _construct(spec: object, cls: type, context: AgentContext, options: dict[str, Any]) -> object:
    parameters = inspect.signature(cls).parameters
    known = [name for name in parameters if name != "context"]
    for name in options:
        if name not in parameters or name == "context":
            raise UserError(
                f"agent {spec!r}: unknown option {name!r}; {cls.__name__} takes {', '.join(known) or 'none'}"
            )
    arguments = {"context": context, **options} if "context" in parameters else options
    try:
        return cls(**arguments)
    except (TypeError, ValueError) as error:
        raise UserError(f"agent {spec!r}: {error}") from error


def _option(spec: str, pair: str) -> tuple[str, Any]:
    name, separator, text = pair.partition("=")
    if not separator or not name.strip().isidentifier():
        raise UserError(f"agent {spec!r}: expected option=value, found {pair!r}")
    return name.strip(), _parsed(text.strip())


def _parsed(text: str) -> object:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def _n_positional(function: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some builtins have no signature
        return 1
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return 2
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
