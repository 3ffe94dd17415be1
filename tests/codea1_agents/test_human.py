from __future__ import annotations

import io
import os
import pty
import subprocess
import sys

import pytest

from codea1_agents.human import HumanAgent
from codea1_env.agent import AgentContext, load_agent
from codea1_env.errors import UserError
from codea1_env.observations import observation_of
from tests.support.toys import ADD

CODER = {"role": "coder", "tests_per_suite": 8}
TESTER = {"role": "tester", "tests_per_suite": 8}
SEEN = observation_of(ADD, 0) | {"problem": "def add(a, b): ...", "round": 0}


def typed(text: str, seen=SEEN, info=CODER) -> tuple[str, str]:
    """Return the reply and what was shown."""
    screen = io.StringIO()
    reply = HumanAgent(keyboard=io.StringIO(text), screen=screen).act(seen, info)
    return reply, screen.getvalue()


@pytest.mark.parametrize("end", [".\nnot this\n", ""], ids=["a lone dot", "the end of input"])
def test_lines_become_the_reply(end):
    assert typed("def add(a, b):\n    return a + b\n" + end)[0] == "def add(a, b):\n    return a + b"


def test_an_empty_reply_is_legal_but_must_be_sent_and_a_player_may_leave():
    assert typed(".\n")[0] == ""
    screen = io.StringIO()
    with pytest.raises(UserError, match="ended before anything"):
        HumanAgent(keyboard=io.StringIO(""), screen=screen).act(SEEN, CODER)
    assert screen.getvalue().endswith("  1> \n")  # the error has a line of its own
    with pytest.raises(KeyboardInterrupt):
        typed("one\n:q\n")


@pytest.mark.parametrize(
    ("text", "reply", "shown"),
    [
        pytest.param("one\ntwo\nthree\n:u\n:u\nzwei\n.\n", "one\nzwei", "took back: three", id="lines are taken back"),
        pytest.param(":u\n:u\none\n.\n", "one", "", id="more lines than there are are taken back"),
        pytest.param("one\n:p\n:c\ntwo\n.\n", "two", "1  one", id="the reply is shown and begun again"),
        pytest.param("..\n: no\n.\n", "..", "no such command", id="an unknown command is said"),
    ],
)
def test_a_reply_can_be_edited(text, reply, shown):
    found, screen = typed(text)
    assert found == reply
    assert shown in screen


BREAK = SEEN | {"program": "def add(a, b): return 7"}
REPAIR = SEEN | {"round": 1, "program": "x = 1", "feedback": "1 of 2 tests failed."}
STEERS = SEEN | {"program": "# \x1b[2J\x07 [bold]x[/bold] \u202e"}


@pytest.mark.parametrize(
    ("seen", "info", "held", "absent"),
    [
        (SEEN, CODER, ["def add(a, b): ...", "assert add(1, 2) == 3", "You are the coder"], []),
        (BREAK, TESTER, ["the program to break", "return 7", "at most 8 tests count"], ["round"]),
        (REPAIR, CODER, ["round 2", "your previous program", "1 of 2 tests failed."], []),
        (STEERS, TESTER, ["[bold]x[/bold]"], ["\x1b[2J", "\x07", "\u202e"]),
    ],
    ids=["coder", "tester", "a later round", "what steers a terminal"],
)
def test_a_turn_is_shown_in_80_columns(seen, info, held, absent):
    _, shown = typed(".\n", seen, info)
    assert [each for each in held if each not in shown] == [each for each in absent if each in shown] == []
    assert max(map(len, shown.split("\n"))) <= 80


def test_it_plays_either_role_by_name(toys, sandbox):
    for role in ("coder", "tester"):
        assert repr(load_agent("human", AgentContext(toys, sandbox), role=role)) == "human"


@pytest.mark.slow
def test_it_works_at_a_real_terminal():
    code = f"from codea1_agents.human import HumanAgent\nprint(repr(HumanAgent().act({SEEN!r}, {CODER!r})))"
    master, slave = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", code], stdin=slave, stdout=subprocess.PIPE, stderr=slave) as child:
        os.close(slave)
        os.write(master, b"one\nslip\n:u\n\x04")  # Ctrl-D ends the input
        shown = b""
        while b"\x1b[" not in shown or b"took back: slip" not in shown:
            shown += os.read(master, 4096)
        assert child.communicate(timeout=60)[0] == b"'one'\n"
    os.close(master)
