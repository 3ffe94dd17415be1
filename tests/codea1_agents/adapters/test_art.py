from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from codea1_agents.adapters.art import groups
from codea1_env import Referee
from tests.support.toys import ADD

RIGHT, WRONG = "def add(a, b):\n    return a + b", "def add(a, b):\n    return a - b"
SUITES = ["assert add(7, 5) == 12", "assert add(7, 5) == 0"]

pytestmark = pytest.mark.filterwarnings("ignore")  # of ART and what it imports


def says(replies: Sequence[str], seen: list[Any]) -> Any:
    """A model that says these in turn, as choices of a chat completion."""
    from openai.types.chat import ChatCompletionMessage
    from openai.types.chat.chat_completion import Choice

    text: Iterator[str] = iter(replies)

    async def ask(messages: list[dict[str, str]]) -> Any:
        seen.append(messages)
        reply = ChatCompletionMessage(role="assistant", content=next(text))
        return Choice(finish_reason="stop", index=0, message=reply)

    return ask


@pytest.fixture
def art() -> Any:
    return pytest.importorskip("art", reason="openpipe-art is not installed (its own environment: make adapters-test)")


def test_a_round_is_a_group_of_the_coder_and_one_of_the_tester_per_program(art):
    asked: dict[str, list[Any]] = {"coder": [], "tester": []}
    coder, tester = says([RIGHT, WRONG, "def add("], asked["coder"]), says(SUITES * 2, asked["tester"])
    found = asyncio.run(groups(ADD, Referee([ADD]), coder, tester, n_programs=3, n_suites=2))
    (of_coder,), of_testers = found["coder"], found["tester"]
    assert isinstance(of_coder, art.TrajectoryGroup)
    assert len(of_coder.trajectories) == 3
    assert of_coder.trajectories[0].reward > of_coder.trajectories[1].reward >= of_coder.trajectories[2].reward
    assert [len(group.trajectories) for group in of_testers] == [2, 2]  # none for the program that does not load
    assert "return a - b" in str(of_testers[1].trajectories[0].messages_and_choices[0:2])
    assert of_testers[1].trajectories[0].reward > of_testers[1].trajectories[1].reward
    assert (len(asked["coder"]), len(asked["tester"])) == (3, 4)


def test_masked_replies_have_no_trajectory(art, broken_sandbox):
    referee = Referee([ADD], sandbox=broken_sandbox)
    found = asyncio.run(groups(ADD, referee, says([RIGHT] * 2, []), says(SUITES, []), n_programs=2, n_suites=2))
    assert found == {"coder": [], "tester": []}
