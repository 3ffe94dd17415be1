from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import sys
import threading

import pytest

from codea1_env.agent.threads import LoopThread
from tests.support.processes import forked, wait_for
from tests.support.waiting import wait_until


async def one() -> int:
    return 1


async def exits() -> None:
    sys.exit(3)


async def exits_in_a_task() -> None:
    await asyncio.gather(exits())


@pytest.fixture
def thread():
    thread = LoopThread("test")
    yield thread
    thread.close()


@pytest.mark.parametrize("exiting", [exits, exits_in_a_task])
def test_an_exit_reaches_its_caller_and_the_loop_goes_on(thread, exiting):
    with pytest.raises(SystemExit, match="3"):
        thread.run(exiting)
    assert thread.run(one) == 1


def asks(thread):
    assert thread.run(one) == 1


@pytest.mark.parametrize("does", [asks, LoopThread.close])
def test_a_fork_has_a_loop_of_its_own_and_waits_for_nothing_of_its_parents(thread, does):
    thread.run(one)
    wait_for(forked(lambda: does(thread)))
    assert thread.run(one) == 1


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda thread: pickle.loads(pickle.dumps(thread))])
def test_a_copy_has_a_loop_of_its_own(thread, copied):
    thread.run(one)
    other = copied(thread)
    assert other.run(one) == 1
    other.close()
    assert thread.run(one) == 1


def test_what_nobody_holds_ends_its_thread():
    before = threading.active_count()
    LoopThread("test").run(one)
    gc.collect()
    assert wait_until(lambda: threading.active_count() <= before)
