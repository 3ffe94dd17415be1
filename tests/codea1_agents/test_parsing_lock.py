from __future__ import annotations

import ast
import sys
import threading

from codea1_agents.parsing_lock import ParsingLock

DEEP = "f(" * 30 + "x" + ")" * 30


def test_threads_that_hold_the_lock_parse_without_disturbing_each_other() -> None:
    lock, faults = ParsingLock(is_needed=True), []

    def parse() -> None:
        try:
            for _ in range(60):
                with lock.held():
                    ast.parse("\n".join([DEEP] * 20))
        except SystemError as error:
            faults.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=parse) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert faults == []


def test_who_waits_lets_others_in_and_has_the_lock_again_afterwards() -> None:
    lock, order = ParsingLock(is_needed=True), []

    def other() -> None:
        with lock.held():
            order.append("other")

    thread = threading.Thread(target=other)
    with lock.held():
        thread.start()
        with lock.released():
            thread.join(10)
            order.append("waited")
        late = threading.Thread(target=other)
        late.start()
        late.join(0.05)
        order.append("mine")
    late.join(10)
    assert order == ["other", "waited", "mine", "other"]


def test_giving_up_a_lock_that_is_not_held_does_nothing() -> None:
    for needed in (True, False):
        lock = ParsingLock(is_needed=needed)
        with lock.released(), lock.held(), lock.released():
            pass
