from __future__ import annotations

import itertools
import socket
import threading
import time
from functools import partial
from typing import Any

import pytest

from codea1_agents.checks.conformance import AgentReport, Conformance, check_agent
from codea1_agents.checks.conformance_cases import CONFORMANCE_PROBLEMS, cases
from codea1_agents.play.runner import play
from codea1_env.errors import AgentUnavailable, UserError
from codea1_env.judging.problem_check import CheckStatus, check_problems
from codea1_env.observations import observation_space
from codea1_env.sandbox.remote import RemoteSandbox
from tests.support.players import asserting, good

READ = ("programs load", "test cases are right")


def names_of(result: Conformance, report: AgentReport) -> set[str]:
    """Return the tests with this result, without what a game reads in the replies, which these agents ignore."""
    return {each.name for each in report.findings if each.result is result and each.name not in READ}


failed, noted = partial(names_of, Conformance.FAILED), partial(names_of, Conformance.NOTED)


def skipped(report: AgentReport) -> dict[str, str]:
    return {each.name: each.detail for each in report.findings if each.result is Conformance.SKIPPED}


def checked(spec: Any, sandbox, **options: Any) -> AgentReport:
    return check_agent(spec, sandbox=sandbox, **options)


@pytest.mark.parametrize("name", ["reference", "mutant", "random", "examples", "boundary", "fuzz", "invalid"])
def test_the_scripted_agents_conform(name, sandbox):
    report = checked(name, sandbox)
    assert failed(report) == set()
    assert report.ok
    assert report.agent == name


@pytest.mark.parametrize("role", ["coder", "tester"])
def test_what_is_asked_lies_within_the_environments_space(role):
    space = observation_space(2)
    asked = cases(role)
    assert asked
    for case in asked:
        assert space.contains(dict(case.observation)), case.name


def test_a_plain_function_conforms_in_both_roles_and_an_agent_that_says_what_it_plays_in_one(sandbox):
    report = checked(lambda observation: "x", sandbox)
    assert report.ok
    assert {each.role for each in report.findings} == {"coder", "tester"}
    assert skipped(report)["batch equals single"] == "has no act_batch"
    assert {each.role for each in checked("fuzz", sandbox).findings} == {"tester"}
    with pytest.raises(UserError, match="is a tester"):
        checked("fuzz", sandbox, role="coder")
    found = check_problems(CONFORMANCE_PROBLEMS, sandbox, runs=2)
    assert {each.status for each in found} == {CheckStatus.OK}


SUM = "def add(a, b):\n    return a + b"


def only_for_a_statement(observation):
    return SUM if len(observation["problem"]) > 1 else "No idea."


@pytest.mark.parametrize(
    ("agent", "role", "result", "said"),
    [
        (lambda observation: f"Here:\n```python\n{SUM}\n```", "coder", "passed", "5 of 5 programs load"),
        (only_for_a_statement, "coder", "noted", "4 of 5 programs load; rejected: 1 no code (contains no block"),
        (
            lambda observation: "",
            "coder",
            "noted",
            "0 of 5 programs load; rejected: 5 no code (nothing but white space)",
        ),
        (
            lambda observation: "assert add(1, 2) == 3",
            "tester",
            "passed",
            "5 replies: 5 test cases can be read, 5 of them are right",
        ),
        (
            lambda observation: "assert add(1, 2) == 4\nassert add(2, 2) == 4\nassert len('x') == 1",
            "tester",
            "noted",
            "5 replies: 10 test cases can be read, 5 of them are right; rejected: 5 no entry point call (never calls "
            "'add' by its name), 5 wrong prediction (the solution gives 3)",
        ),
        (lambda observation: "x", "tester", "noted", "0 test cases can be read, 0 of them are right; rejected: 5 "),
    ],
)
def test_replies_are_read_as_a_game_reads_them(agent, role, result, said, sandbox):
    report = checked(agent, sandbox, role=role)
    (finding,) = (each for each in report.findings if each.name in READ)
    assert said in finding.detail
    assert (finding.result, report.ok) == (result, True)


def test_a_sandbox_that_fails_says_nothing_about_replies():
    with socket.create_server(("127.0.0.1", 0)) as gone:
        away = RemoteSandbox(f"http://127.0.0.1:{gone.getsockname()[1]}")
    report = check_agent(lambda observation: SUM, sandbox=away, role="coder")
    finding = next(each for each in report.findings if each.name in READ)
    assert (finding.result, "does not answer" in finding.detail) == (Conformance.SKIPPED, True)


def writes(observation):
    observation["problem"] = "mine"
    return "x"


def leaves(observation):
    raise SystemExit(3)


ORDINARY, SHORT = "answers an ordinary observation with text", "answers a problem of one character with text"
COUNT = itertools.count()


@pytest.mark.parametrize(
    ("agent", "failing", "noticed", "said"),
    [
        (lambda observation: str(next(COUNT)), set(), {"same seed, same reply"}, "no reset(seed)"),
        (writes, set(), {"leaves the observation alone"}, ""),
        (lambda observation: observation["problem"].splitlines()[1], {SHORT}, set(), "IndexError"),
    ],
    ids=["changes its reply", "writes into what it sees", "needs a long problem"],
)
def test_what_is_wrong_with_an_agent_is_found(agent, failing, noticed, said, sandbox):
    report = checked(agent, sandbox, role="coder")
    assert (failed(report), noted(report)) == (failing, noticed)
    assert report.ok is (not failing)
    assert said in str(report.findings)


@pytest.mark.parametrize(("agent", "said"), [(lambda observation: None, "NoneType"), (leaves, "SystemExit: 3")])
def test_an_agent_that_replies_no_text_at_all_is_found(agent, said, sandbox):
    report = checked(agent, sandbox, role="coder")
    assert ORDINARY in failed(report)
    assert said in str(report.findings)


@pytest.mark.parametrize(("word", "test"), [("zurück", "answers a Unicode observation with text"), ("again", ORDINARY)])
def test_an_agent_that_raises_is_found_where_it_does(word, test, sandbox):
    def fails(observation):
        if word == "zurück":
            observation["problem"].encode("latin-1")
        elif not observation["feedback"] and observation["examples"]:
            raise KeyError("again")
        return "x"

    report = checked(fails, sandbox, role="coder")
    assert test in failed(report)
    assert SHORT not in failed(report)


class Batched:
    def __init__(self, batch) -> None:
        self.batch = batch

    def act(self, observation, info) -> str:
        return observation["problem"][:40]

    def act_batch(self, observations, infos):
        return self.batch([self.act(*each) for each in zip(observations, infos, strict=True)])


SAME, ANY_ORDER = "batch equals single", "a batch's order does not matter"


@pytest.mark.parametrize(
    ("batch", "failing", "noticed"),
    [
        (lambda replies: replies, set(), set()),
        (lambda replies: tuple(replies) if replies else 1 / 0, set(), set()),
        (lambda replies: replies[:1], {SAME, ANY_ORDER}, set()),
        (iter, {SAME, ANY_ORDER}, set()),
        (lambda replies: replies[::-1], set(), {SAME}),
        (lambda replies: [f"{at} {reply}" for at, reply in enumerate(replies)], set(), {SAME, ANY_ORDER}),
    ],
    ids=["equal", "a tuple and not empty", "too few", "no list", "turned round", "numbered"],
)
def test_batches_are_compared_with_single_replies(batch, failing, noticed, sandbox):
    report = checked(Batched(batch), sandbox, role="tester")
    assert (failed(report), noted(report), skipped(report)) == (failing, noticed, {})
    assert report.ok is (not failing)


def test_an_agent_that_cannot_be_asked_is_not_blamed_a_slow_one_is_found_and_an_async_one_conforms(sandbox):
    def down(observation):
        raise AgentUnavailable("the endpoint is down")

    report = checked(down, sandbox, role="coder")
    assert report.ok
    assert "the endpoint is down" in skipped(report)["same seed, same reply"]
    report = checked(lambda observation: "x", sandbox, role="coder", slow_s=0.0)
    assert failed(report) == {"answers within 0 s"}
    assert report.slowest_s > 0

    class Awaited:
        async def aact(self, observation, info) -> str:
            return "x"

    assert checked(Awaited, sandbox, role="coder").ok


class ReadsEverything:
    """Reads what the environment promises."""

    def act(self, observation, info) -> str:
        int(info["episode_id"], 16)
        if info["round"]:
            assert info["verdict"]
            assert info["validity"] >= 0
        if info["role"] == "tester":
            assert info["tester_view"] == "white_box"
            observation["program"].encode()
        return observation["problem"].splitlines()[0]


@pytest.mark.parametrize("role", ["coder", "tester"])
def test_an_agent_finds_the_infos_that_games_have(sandbox, toys, role):
    spies: list[dict] = []

    def spy(observation, info):
        spies.append(dict(info))
        return asserting(observation) if info["role"] == "tester" else good(observation)

    play(toys, spy, spy, sandbox=sandbox, episodes=1, rounds=2)
    seen = {(info["role"], info["round"]): set(info) for info in spies}
    for case in cases(role):
        assert set(case.info) == seen[role, case.info["round"]], case.name
    assert failed(checked(ReadsEverything, sandbox, role=role)) == set()


@pytest.mark.parametrize("hang", [lambda: threading.Event().wait(), lambda: time.sleep(1000)])
def test_an_agent_that_never_returns_fails_once(sandbox, hang):
    def hangs(observation):
        hang()

    report = checked(hangs, sandbox, role="coder", reply_timeout_s=0.1)
    assert failed(report) == {ORDINARY}
    assert "did not return within 0.1 s" in str(report.findings)
    assert set(skipped(report).values()) == {"an earlier call did not return"}


class Closing:
    closed = 0

    def act(self, observation, info) -> str:
        return "x"

    def close(self) -> None:
        self.closed += 1
        raise RuntimeError("cannot close")


def test_an_agent_that_cannot_close_is_found_and_one_that_is_shared_is_not_closed(sandbox):
    assert failed(checked(Closing, sandbox, role="coder")) == {"closes"}
    mine = Closing()
    assert checked(mine, sandbox, role="coder").ok
    assert mine.closed == 0
