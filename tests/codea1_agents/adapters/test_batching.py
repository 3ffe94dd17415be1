from __future__ import annotations

import asyncio

import pytest

from codea1_agents.adapters.batching import BatchingJudge
from codea1_env import Referee
from codea1_env.errors import UnknownName, UserError
from tests.support.toys import ADD

RIGHT, WRONG, SUITE = "def add(a, b):\n    return a + b", "def add(a, b):\n    return 9", "assert add(1, 2) == 3"


def test_replies_that_wait_at_once_are_judged_in_one_batch():
    async def play() -> list[float | None]:
        judge = BatchingJudge("coder", Referee([ADD]))
        scores = await asyncio.gather(*(judge.score(ADD.id, reply, SUITE) for reply in (RIGHT, WRONG, "") * 8))
        assert judge.n_batches == 1
        return [each.coder for each in scores]

    assert asyncio.run(play()) == [1.0, 0.0, 0.0] * 8


def test_an_error_reaches_those_that_wait_and_nobody_later():
    async def play() -> None:
        judge = BatchingJudge("coder", Referee([ADD]))
        with pytest.raises(UnknownName):
            await judge.score("toy/none", RIGHT, SUITE)
        with pytest.raises(UserError, match="a coder is paid by tests"):
            await judge.score(ADD.id, RIGHT, None)
        assert (await judge.score(ADD.id, RIGHT, SUITE)).coder == 1.0

    asyncio.run(play())
