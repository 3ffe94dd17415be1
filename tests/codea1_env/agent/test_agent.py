from __future__ import annotations

import asyncio
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pytest

from codea1_env.agent import AgentContext, agent_name, load_agent
from codea1_env.errors import UserError
from codea1_env.problems import ProblemSet
from codea1_env.sandbox import Sandbox


@pytest.fixture
def context(toys: ProblemSet, sandbox: Sandbox) -> AgentContext:
    return AgentContext(toys, sandbox)


async def asynchronous(observation: Any) -> str:
    await asyncio.sleep(0)
    return f"saw {observation['round']}"


class Silent:
    def act(self, observation: Any, info: Any) -> str:
        return ""


class Awaited:
    """Remembers the loop that it lives in, as clients of model servers do."""

    def __init__(self) -> None:
        self.loops: list[Any] = []
        self.closed = False

    async def aact(self, observation: Any, info: Any) -> str:
        self.loops.append(asyncio.get_running_loop())
        return info["role"]

    async def close(self) -> None:
        self.closed = True


def test_an_async_function_is_an_agent_inside_a_running_loop_too(context: AgentContext) -> None:
    agent = load_agent(asynchronous, context)

    async def inside() -> str:
        return agent.act({"round": 1}, {})

    assert agent.act({"round": 1}, {}) == asyncio.run(inside()) == "saw 1"
    assert repr(agent) == "asynchronous"
    agent.close()  # type: ignore[attr-defined]


def test_an_agent_with_only_aact_keeps_one_loop_until_it_is_closed(context: AgentContext) -> None:
    inner = Awaited()
    agent = load_agent(inner, context)  # type: ignore[arg-type]
    assert [agent.act({}, {"role": "coder"}) for _ in range(2)] == ["coder", "coder"]
    assert inner.loops[0] is inner.loops[1]
    agent.close()  # type: ignore[attr-defined]
    assert inner.closed
    assert inner.loops[0].is_closed()


def test_an_endless_async_agent_holds_up_nothing(context: AgentContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codea1_env.agent.agent.CLOSE_TIMEOUT_S", 0.2)

    async def deaf(observation: Any) -> str:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    agent = load_agent(deaf, context)
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        agent.act({}, {})
    agent.close()  # type: ignore[attr-defined]
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize(("name", "role"), [("fuzz", "coder"), ("examples", "coder"), ("mutant", "tester")])
def test_an_agent_that_plays_the_other_role_is_refused(context: AgentContext, name: str, role: Any) -> None:
    other = "tester" if role == "coder" else "coder"
    with pytest.raises(UserError, match=f"agent '{name}' is a {other}, not a {role}"):
        load_agent(name, context, role=role)
    load_agent(name, context, role=other)
    load_agent(name, context)


def test_an_agent_that_declares_no_role_plays_both(context: AgentContext) -> None:
    for role in ("coder", "tester"):
        assert load_agent(Silent(), context, role=role).act({}, {}) == ""  # type: ignore[arg-type]


def test_names_hold_no_addresses(context: AgentContext) -> None:
    for spec, name in (("fuzz", "fuzz"), (Silent(), "Silent"), (asynchronous, "asynchronous")):
        assert agent_name(spec, load_agent(spec, context)) == name  # type: ignore[arg-type]


class Typed(Silent):
    def __init__(
        self,
        *,
        level: int = 1,
        rate: float = 0.5,
        loud: bool = False,
        name: str = "",
        mode: Literal["slow", "fast"] = "slow",
        file: Path = Path(),
        seed: int | None = 3,
        words: str | list[str] = "",
        free=None,  # type: ignore[no-untyped-def]
    ) -> None:
        self.options = {key: value for key, value in locals().items() if key != "self"}


class Named(Silent):
    def __init__(self, *, title: str) -> None: ...


class TakesAny(Silent):
    def __init__(self, **settings: Any) -> None:
        self.settings = settings


class Needy(Silent):
    def __init__(self) -> None:
        raise KeyError("token")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("level=7", 7),
        ("rate=1", 1.0),
        ("loud=true", True),
        ("name=007", "007"),
        ("mode=fast", "fast"),
        ("file=a/b", Path("a/b")),
        ("seed=none", None),
        ("seed=4", 4),
        ("words=5", "5"),
        ("free=5", 5),
        ("free=abc", "abc"),
    ],
)
def test_an_option_has_the_type_of_its_annotation(context: AgentContext, option: str, value: object) -> None:
    agent: Any = load_agent(f"{__name__}:Typed,{option}", context)
    found = agent.options[option.partition("=")[0]]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("Typed,level=abc", "option level must be a whole number"),
        ("Typed,level=1.5", "option level must be a whole number"),
        ("Typed,rate=high", "option rate must be a number"),
        ("Typed,loud=loudly", "option loud must be true or false"),
        ("Typed,mode=medium", "option mode must be slow or fast"),
        ("Typed,seed=x", "option seed must be a whole number or none"),
        ("Typed,levle=1", "unknown option 'levle': did you mean 'level'"),
        ("Typed,context=1", "unknown option 'context'"),
        ("Named", "Named needs the option title"),
        ("Needy", "KeyError: 'token'"),
    ],
)
def test_an_agent_that_cannot_be_made_is_one_sentence(context: AgentContext, spec: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        load_agent(f"{__name__}:{spec}", context)
    assert said in str(caught.value)
    name, _, option = spec.partition(",")
    assert not option or f"agent '{__name__}:{name}': " in str(caught.value)
    assert not option or option.partition("=")[2] not in str(caught.value).partition(": ")[2]  # it may be a key


def test_a_class_that_takes_any_option_gets_any(context: AgentContext) -> None:
    agent: Any = load_agent(f"{__name__}:TakesAny,depth=3,mode=x", context)
    assert agent.settings == {"depth": 3, "mode": "x"}


@pytest.mark.parametrize("spec", ["mutant,api_key=sk-1", "mutant,strength,api_key=sk-1", "json:dumps,api_key=sk-1"])
def test_a_key_in_a_specification_is_refused_and_not_repeated(context: AgentContext, spec: str) -> None:
    with pytest.raises(UserError, match="api_key_env=MY_KEY") as caught:
        load_agent(spec, context)
    assert "sk-1" not in str(caught.value)


def test_an_async_agent_can_be_asked_reset_and_closed_in_a_loop_that_runs(context: AgentContext) -> None:
    inner = Awaited()
    agent: Any = load_agent(inner, context)

    async def play() -> str:
        await agent.areset(1)
        reply: str = await agent.aact({}, {"role": "coder"})
        await agent.aclose()
        return reply

    assert asyncio.run(play()) == "coder"
    assert inner.closed
