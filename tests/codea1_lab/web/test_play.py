"""The routes of Play, and what visitors are told."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from codea1_agents.play.person import DOUBT
from codea1_agents.scripted.duels import TOPICS
from codea1_env.errors import AgentUnavailable
from codea1_env.problems import ProblemSet, load_problems
from codea1_env.sandbox import Sandbox
from tests.codea1_agents.cli.test_demo_duel import FINDS
from tests.codea1_lab.web.conftest import Client
from tests.support.serving import Gated
from tests.support.toys import ADD

DUEL = {"role": "tester", "duel": 1}
TOYS = ProblemSet("toys", (ADD,))
WRONG = "def add(a, b):\n    return a + b if a else a"


def test_a_duel_from_begin_to_story(serving_page: Any) -> None:
    with serving_page() as server:
        visitor = Client(server)
        found = visitor.ask("/play/game")[1]
        assert found["game"] is None
        assert found["choices"]["duels"] == list(TOPICS)
        assert (found["choices"]["coders"], found["choices"]["testers"]) == (["mutant"], ["fuzz"])
        game = visitor.post("/play/game", DUEL)["game"]
        assert (game["role"], game["points"], game["draft"]) == ("tester", 3, "assert is_balanced(")
        text = "assert is_balanced('()')\nassert is_balanced('(') == True\nhello\nassert 1 == 1\nassert is_balanced("
        told = visitor.post("/play/try", {"text": text.rpartition("\n")[0]})["try"]
        assert [(test["test"], test["tone"]) for test in told["tests"]] == [
            ("assert bool(is_balanced('()')) == True", ""),
            ("assert is_balanced('(') == True", "bad"),
        ]
        wrong = "Wrong answer. A test with a wrong answer finds nothing, though the program gives True."
        assert told["tests"][1]["told"] == wrong  # the right one would be copied
        assert told["lines"] == [
            "Line 3 does not count: neither an assert nor an assignment.",
            "Line 4 does not count: never calls 'is_balanced' by its name.",
        ]
        assert told["hint"] == "What if the text ends too early?"
        assert told["solution"] == ""
        answer = visitor.post("/play/try", {"text": FINDS[1]})
        assert answer["try"]["tests"][0]["told"] == "Found it! The solution gives False; the program gives True."
        assert "test 1 found it" in answer["try"]["summary"]
        assert "return not still_open" in answer["try"]["solution"]
        assert (answer["game"]["is_over"], answer["game"]["total"], answer["game"]["won"]) == (True, 2, [1])
        assert told["missed"] == answer["try"]["missed"] == []
        assert visitor.ask("/play/game")[1]["game"] == answer["game"]
        assert visitor.ask("/play/try", {"text": FINDS[1]})[0] == 422


def test_a_wrong_answer_is_corrected_when_the_game_is_over(serving_page: Any) -> None:
    with serving_page() as server:
        visitor = Client(server)
        visitor.post("/play/game", DUEL)
        told = [visitor.post("/play/try", {"text": "assert is_balanced('(') == 3"})["try"] for _ in range(3)]
        assert ["the solution gives" in each["tests"][0]["told"] for each in told] == [False, False, True]
        assert [each["missed"] for each in told[:2]] == [[], []]
        (missed,) = told[2]["missed"]
        assert missed["test"] == "assert is_balanced('(') == False"
        assert missed["told"] == "The solution gives False; the program gives True."
        assert visitor.ask("/play/game")[1]["game"]["won"] == []


def test_a_program_that_no_test_is_known_to_fail_is_said_to_be_perhaps_right(serving_page: Any) -> None:
    with serving_page(TOYS, coders=[lambda _: ADD.solution, lambda _: WRONG]) as server:
        for number, is_said in ((0, True), (1, False)):
            game = Client(server).post("/play/game", {"role": "tester", "opponent": number})["game"]
            assert (DOUBT in game["task"]) == is_said


def test_each_draw_of_each_game_has_a_seed_of_its_own(serving_page: Any) -> None:
    class Coder:
        plays = "coder"

        def reset(self, seed: int) -> None:
            seeds.append(seed)

        def act(self, observation: Any, info: Any) -> str:
            return f"{ADD.solution}  # {len(seeds)}"

    seeds: list[int] = []
    with serving_page(TOYS, coders=[Coder()]) as server:
        for _ in range(2):
            Client(server).post("/play/game", {"role": "tester"})
    assert len(set(seeds)) == len(seeds) == 8


def test_imports_of_the_problem_stand_above_both_programs(serving_page: Any) -> None:
    with serving_page(load_problems("starter")) as server:
        visitor = Client(server)
        game = visitor.post("/play/game", {"role": "coder", "problem": "starter/read_timer"})["game"]
        assert game["imports"] == "import re"
        told = visitor.post("/play/try", {"text": "def read_timer(text):\n    return re.match('', text)"})["try"]
        assert told["program"].startswith("import re\n\ndef read_timer")


def test_the_same_duel_is_told_alike_in_a_terminal(serving_page: Any) -> None:
    from tests.codea1_agents.cli.test_demo_duel import play

    _, shown = play(2, FINDS[2])
    with serving_page() as server:
        visitor = Client(server)
        visitor.post("/play/game", DUEL | {"duel": 2})
        told = visitor.post("/play/try", {"text": FINDS[2]})["try"]["summary"]
    story, _, points = told.partition(" 1 of 1")
    assert " ".join(story.split())[1:] in " ".join(shown.split())
    assert f"1 of 1{points}" in shown


def test_a_coder_is_told_what_failed_and_wins(serving_page: Any) -> None:
    def two(_: Any) -> str:
        return "assert add(0, 3) == 3\nassert add(1, 1) == 7"

    with serving_page(TOYS, testers=[two]) as server:
        visitor = Client(server)
        game = visitor.post("/play/game", {"role": "coder", "opponent": 0, "problem": ADD.id})["game"]
        assert game["title"] == f"{ADD.id}, against two"
        told = visitor.post("/play/try", {"text": "def add(a, b) return a"})["try"]
        assert told["summary"] == "Your program does not run, which costs no point."
        assert told["lines"][0].startswith("SyntaxError: ")
        told = visitor.post("/play/try", {"text": WRONG})["try"]
        assert told["tests"] == [
            {"number": 1, "test": "assert add(0, 3) == 3", "told": "Your program gives 0.", "tone": "bad"},
            {"number": 2, "test": "assert add(1, 1) == 2", "told": "Passed.", "tone": "good"},
        ]
        told = visitor.post("/play/try", {"text": "def add(a, b):\n    return a + b"})["try"]
        assert told["summary"] == "Your program passes 2 of 2 tests; 2 of 3 points."
        game = visitor.ask("/play/game")[1]["game"]
        assert (game["total"], game["won"]) == (2, [])  # it was no duel


def test_a_flood_of_lines_is_answered_shortly(serving_page: Any) -> None:
    with serving_page() as server:
        visitor = Client(server)
        visitor.post("/play/game", DUEL)
        assert visitor.ask("/play/game", b"{" + b" " * (128 << 10) + b"}")[0] == 413
        many = visitor.post("/play/try", {"text": "assert is_balanced('') == 1\n" * 900})["try"]["lines"]
        assert (len(many), many[-1]) == (13, "887 more lines do not count.")
        told = visitor.post("/play/try", {"text": "assert is_balanced('" + "(" * 70_000 + "') == 0"})["try"]["lines"]
        assert [line.partition(" (")[0] for line in told] == ["This does not count: it is too long"]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("import os; os._exit(0)", "Your program fails: ended its own process."),
        ("import os\n    while True: os.fork()", "Your program fails: PermissionError: "),
        ("return open('/etc/passwd').read()", "Your program fails: "),
        ("x = []\n    while True: x.append(bytearray(1 << 26))", "Your program needs too much memory."),
        ("while True:\n        pass", "Your program does not end in time."),
        ("return 'x' * 10**7", "Your program gives too large a value."),
        ("return '<img src=x>\\ud800\\u202e'", r"Your program gives '<img src=x>\ud800\u202e'."),
    ],
    ids=["exit", "fork", "read", "memory", "loop", "value", "markup"],
)
def test_what_a_program_tries_is_told_and_its_visitor_plays_on(serving_page: Any, body: str, told: str) -> None:
    with serving_page(TOYS, testers=[lambda _: "assert add(0, 3) == 3"]) as server:
        visitor = Client(server)
        visitor.post("/play/game", {"role": "coder"})
        (test,) = visitor.post("/play/try", {"text": f"def add(a, b):\n    {body}"})["try"]["tests"]
        assert test["told"].startswith(told)
        assert visitor.post("/play/try", {"text": ADD.solution})["try"]["has_won"]


def test_nobody_sees_the_game_of_another(serving_page: Any) -> None:
    with serving_page() as server:
        one, other = Client(server), Client(server)
        games = [one.post("/play/game", DUEL)["game"], other.post("/play/game", DUEL | {"duel": 2})["game"]]
        assert [each.ask("/play/game")[1]["game"] for each in (one, other)] == games
        one.post("/play/try", {"text": "assert is_balanced('') == True"})
        assert [each.ask("/play/game")[1]["game"]["points"] for each in (one, other)] == [2, 3]
        guessed = Client(server)
        guessed.cookies = dict.fromkeys(one.cookies, "x" * 22)
        assert guessed.ask("/play/game")[1]["game"] is None
        assert guessed.ask("/play/try", {"text": ""})[:2] == (409, {"detail": "you have no game here: begin one"})


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"role": "tester", "opponent": 3}, "there are 1 opponents, and none has the number 3"),
        ({"role": "tester", "opponent": "openai,base_url=http://x"}, "opponent"),
        ({"role": "tester", "opponent": 0, "problem": "/etc/passwd"}, "unknown problem"),
        ({"role": "tester", "opponent": 0, "endpoint": "http://x"}, "endpoint"),
        ({"role": "judge", "opponent": 0}, "role"),
        ({"role": "tester", "duel": 9}, "duel"),
        (b"[" * 10_000, "the request cannot be read"),
    ],
    ids=["place", "name", "problem", "field", "role", "duel", "deep"],
)
def test_a_request_chooses_from_the_lists_only(serving_page: Any, body: object, why: str) -> None:
    with serving_page() as server:
        status, answer, _ = Client(server).ask("/play/game", body)
        assert status == 422
        assert why in answer["detail"]


def test_a_visitor_has_one_try_at_a_time(serving_page: Any, sandbox: Sandbox) -> None:
    gated = Gated(sandbox)
    gated.gate.set()
    with serving_page(sandbox_=gated) as server, ThreadPoolExecutor(1) as threads:
        visitor = Client(server)
        visitor.post("/play/game", DUEL)
        gated.gate.clear()
        while gated.entered.acquire(blocking=False):  # those of the beginning
            pass
        first = threads.submit(visitor.ask, "/play/try", {"text": FINDS[1]})
        try:
            assert gated.entered.acquire(timeout=20)
            assert visitor.ask("/play/try", {"text": "x"})[:2] == (
                409,
                {"detail": "your last try is still being judged"},
            )
        finally:
            gated.gate.set()
        assert first.result()[0] == 200


def test_why_an_opponent_is_silent_is_told_to_the_host_only(serving_page: Any) -> None:
    def down(_: Any) -> str:
        raise AgentUnavailable("http://10.0.0.7:8000 refuses the key")

    def broken(_: Any) -> str:
        raise ValueError("/home/host/agent.py")

    notes: list[str] = []
    with serving_page(coders=[down, broken], note=notes.append) as server:
        for number, name in enumerate(("down", "broken")):
            status, answer, _ = Client(server).ask("/play/game", {"role": "tester", "opponent": number})
            assert status == 503
            assert answer["detail"] == f"{name} cannot reply now: try again, or choose another opponent"
    assert "10.0.0.7" in notes[0]
    assert "agent.py" in notes[1]
