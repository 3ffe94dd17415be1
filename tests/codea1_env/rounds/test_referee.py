"""Raw replies in, rewards out: what a trainer sees."""

from __future__ import annotations

import asyncio
import json
import pickle
from dataclasses import replace
from types import SimpleNamespace

import pytest

from codea1_env import MistakeBook, judge, score
from codea1_env.errors import AgentUnavailable, SandboxError, UnknownName, UserError
from codea1_env.facts.verdicts import Verdict
from codea1_env.problems import GoldenCase, ProblemSet
from codea1_env.rounds.referee import Referee, reply_text
from codea1_env.rounds.rounds import Tree
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Limits, load_sandbox
from tests.support.toys import LOOKS_RIGHT, RIGHT

LAST = "def last(items):\n    return items[-1]"
SUITE = "```python\nassert add(1, 2) == 3\nassert add(-1, -2) == -3\n```"


ASSISTANT = {"role": "assistant", "content": "a"}


def test_one_call_judges_one_program_as_the_referee_does(sandbox, broken_sandbox, watched, toys):
    problem, rules = toys.by_id("toy/add"), preset("fixed")
    report = judge(problem, LOOKS_RIGHT, SUITE, rules, sandbox=sandbox, golden=True)
    (scored,) = Referee(toys, rules, sandbox=sandbox).rewards([problem.id], [LOOKS_RIGHT], [SUITE])
    assert score(report, rules).coder.value == scored.coder
    assert report.golden_pass_rate is not None
    assert judge(problem, LOOKS_RIGHT, SUITE, sandbox=broken_sandbox).has_internal_error
    watched.error = "no engine"
    with pytest.raises(SandboxError, match="no engine"):
        judge(problem, LOOKS_RIGHT, SUITE, sandbox=watched)


def test_several_suites_are_judged_in_one_call_and_a_report_says_what_one_asks_first(sandbox, toys):
    problem, wrong = toys.by_id("toy/add"), "assert add(1, 2) == 4\nx ="
    report = judge(problem, LOOKS_RIGHT, [SUITE, wrong], sandbox=sandbox)
    assert [[case.answer_right for case in suite.cases] for suite in report.suites] == [[True, True], [False]]
    assert (report.loads, report.passes) == (True, False)
    assert "rejections: not_an_assert (not Python), wrong_prediction (the solution gives 3)" in repr(report.suites[1])
    assert score(report, "fixed") == score(report, preset("fixed"))
    assert judge(problem, RIGHT, [[ASSISTANT | {"content": SUITE}]], sandbox=sandbox).passes
    assert not judge(problem, "def add(", SUITE, sandbox=sandbox).passes


def test_what_did_not_come_is_none_with_a_reason(sandbox, toys):
    gone = AgentUnavailable("the server is down")
    programs, suites = [gone, LOOKS_RIGHT, LOOKS_RIGHT], [SUITE, gone, None]
    first, second, third = Referee(toys, sandbox=sandbox).rewards(["toy/add"] * 3, programs, suites)
    assert (first.coder, first.tester, first.masked_because) == (None, None, "the server is down")
    assert (second.coder, second.tester, second.masked_because) == (None, None, "the server is down")
    assert (third.coder, third.tester, third.masked_because) == (0.5, None, "")  # `no_evidence`
    (invalid,) = Referee(toys, sandbox=sandbox).rewards(["toy/add"], ["no code"], [gone])
    assert (invalid.coder, invalid.tester, invalid.masked_because) == (0.0, None, "the server is down")


def test_our_own_failure_is_none_with_a_reason(broken_sandbox, watched, toys):
    watched.error = "no worker starts"
    for sandbox, reason in ((broken_sandbox, "internal error"), (watched, "no worker starts")):
        (scored,) = Referee(toys, sandbox=sandbox).rewards(["toy/add"], [RIGHT], [SUITE])
        assert (scored.coder, scored.tester, scored.masked_because) == (None, None, reason)
        assert scored.parts == {"coder": {}, "tester": {}}


def test_a_golden_rate_that_cannot_be_found_out_is_masked(sandbox, toys):
    broken = ProblemSet("broken", (replace(toys[0], golden=(GoldenCase("add(1, 2)", "no_such_name"),)),))
    (scored,) = Referee(broken, "golden", sandbox=sandbox).rewards(["toy/add"], [RIGHT])
    assert (scored.coder, scored.masked_because) == (None, "the rules mask it for lack of evidence")


def test_records_are_plain_json(sandbox, toys):
    referee = Referee(toys, sandbox=sandbox)
    found = referee.rewards(["toy/add"] * 2, [LOOKS_RIGHT, AgentUnavailable("gone")], [SUITE, SUITE])
    records = [scored.record() for scored in found]
    assert json.loads(json.dumps(records, allow_nan=False)) == records
    assert (records[0]["loads"], records[0]["new_tests"], records[0]["passed_tests"]) == ("passed", 2, 1)
    (scored,) = Referee(toys, "golden", sandbox=sandbox).rewards(["toy/add"], ["def add(a, b):\n    return a - b"])
    record = scored.record()
    assert (record["loads"], record["verdict"], record["golden_pass_rate"]) == ("passed", "wrong_answer", scored.coder)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (ASSISTANT, "a"),
        ([{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}], "ab"),
        ([{"content": ["a", {"type": "thinking", "thinking": "no"}, {"type": "output_text", "text": "b"}]}], "ab"),
        ([ASSISTANT, {"role": "tool", "content": "b"}], "a"),
        ([ASSISTANT, {"role": "user", "content": "b"}, {"role": "assistant", "content": "c"}], "c"),
        (SimpleNamespace(role="assistant", content="a"), "a"),
        ([SimpleNamespace(role="assistant", content=[SimpleNamespace(type="text", text="a")])], "a"),
        ([{"role": "assistant", "content": [{"type": "image_url", "image_url": {}}]}], ""),
    ],
)
def test_the_text_of_any_chat_message_is_its_reply(given, text):
    assert reply_text(given) == text


def test_chat_messages_are_replies(sandbox, toys):
    referee = Referee(toys, "golden", sandbox=sandbox)
    chat = [{"role": "user", "content": "Write add."}, {"role": "assistant", "content": RIGHT}]
    assert [scored.coder for scored in referee.rewards(["toy/add"], [chat])] == [1.0]
    refused = [{"role": "assistant", "content": None, "refusal": "I will not."}]
    (scored,) = referee.rewards(["toy/add"], [refused])
    assert (scored.coder, scored.report.verdict, scored.masked_because) == (0.0, Verdict.NO_CODE, "")
    for reply in (5, [], [{"role": "assistant"}], ["text"]):
        with pytest.raises(UserError, match="a reply must be text or chat messages"):
            referee.rewards(["toy/add"], [reply])


def test_replayed_cases_count_and_rewards_can_be_awaited(sandbox, toys):
    referee, asked = Referee(toys, sandbox=sandbox), (["toy/add"], [LOOKS_RIGHT], [SUITE])
    with MistakeBook() as book:
        (scored,) = referee.rewards(*asked)
        rounds = referee.open([Tree(toys[0])])
        rounds.submit_programs([LOOKS_RIGHT])
        rounds.submit_suites([SUITE])
        book.record(rounds.results()[0].book_report, referee.rules.book)
        replayed = {"toy/add": [entry.to_valid_case() for entry in book.retrieve("toy/add", referee.rules.book)]}
    (again,) = referee.rewards(*asked, replayed=replayed)
    assert asyncio.run(referee.arewards(*asked, replayed=replayed)) == [again]
    assert scored.parts["coder"] == {"pass_new": 0.5}
    assert again.parts["coder"] == {"pass_replayed": 0.0, "pass_new": 0.25}


def test_only_a_program_that_loads_is_shown_to_a_tester(sandbox, broken_sandbox, toys):
    referee = Referee(toys, sandbox=sandbox)
    assert referee.loaded_program(toys[0], RIGHT).startswith("def add(a, b):")
    assert referee.loaded_program(toys[0], "def add(a, b:") is None
    assert Referee(toys, sandbox=broken_sandbox).loaded_program(toys[0], RIGHT) is None


def test_numbers_and_names_must_fit(sandbox, toys):
    referee = Referee(toys, sandbox=sandbox)
    with pytest.raises(UnknownName, match="toy/lost"):
        referee.rewards(["toy/lost"], [RIGHT])
    for wrong, said in (
        (lambda: referee.rewards(["toy/add"], [RIGHT, RIGHT]), "expected equal numbers"),
        (lambda: referee.rewards(["toy/add"], [RIGHT], [SUITE, SUITE]), "expected equal numbers"),
        (lambda: referee.golden(["toy/add"], []), "expected equal numbers"),
        (lambda: referee.rewards(5, [RIGHT]), "problem_ids must be a list, got int"),
        (lambda: referee.rewards(["toy/add"], RIGHT), "programs must be a list, got str"),
        (lambda: referee.rewards([5], [RIGHT]), "problem_id must be of type str"),
        (lambda: referee.rewards([[]], [RIGHT]), "problem_id must be of type str"),
        (lambda: referee.rewards(["toy/add"], [RIGHT], replayed=[5]), "replayed must be of type Mapping"),
        (lambda: referee.golden(None, []), "problem_ids must be a list"),
        (lambda: referee.open([toys[0]]), "trees must be of type Tree"),
        (lambda: referee.open(5), "trees must be a list"),
    ):
        with pytest.raises(UserError, match=said):
            wrong()
    assert referee.rewards([], []) == []


def test_rules_that_pay_for_golden_tests_need_them(sandbox, toys):
    bare = replace(toys[0], id="toy/bare", golden=())
    with pytest.raises(UserError, match="toy/bare"):
        Referee([bare], "golden", sandbox=sandbox)
    with pytest.raises(UserError, match="toy/bare"):
        Referee(toys, "golden", sandbox=sandbox).open([Tree(bare)])


def test_golden_tests_say_what_is_right_and_what_was_not_given(sandbox, toys):
    programs = [RIGHT, "def add(a, b): return 3", "no code here", AgentUnavailable("gone")]
    found = Referee(toys, sandbox=sandbox).golden(["toy/add"] * 4, programs)
    expected = [(True, 1.0, ""), (False, 0.5, ""), (False, 0.0, ""), (None, None, "agent")]
    assert [(each.passed, each.pass_rate, each.masked) for each in found] == expected
    assert found[0].program == "def add(a, b):\n    return a + b"
    detail = "contains no block of code and does not define what the problem asks for"
    assert (found[2].verdict, found[2].detail, found[3].detail) == (Verdict.NO_CODE, detail, "gone")


def test_a_referee_travels_and_opens_its_sandbox_again_by_name(sandbox, toys):
    referee = Referee(toys, preset("paper"), sandbox=sandbox, limits=Limits(cpu_s=3.0))
    referee.rewards(["toy/add"], [LOOKS_RIGHT], [SUITE])
    referee.start(referee.open([Tree(toys[0])]).give_up, "started its thread")
    arrived = pickle.loads(pickle.dumps(referee))
    assert arrived.sandbox is load_sandbox("local")
    assert (arrived.rules, arrived.judge.limits, arrived.problems) == (referee.rules, referee.judge.limits, toys)
    assert arrived.rewards(["toy/add"], [LOOKS_RIGHT], [SUITE]) == referee.rewards(["toy/add"], [LOOKS_RIGHT], [SUITE])


def test_a_sandbox_without_a_registered_name_keeps_a_referee_at_home(broken_sandbox, toys):
    with pytest.raises(UserError, match="'broken' is not registered"):
        pickle.dumps(Referee(toys, sandbox=broken_sandbox))


@pytest.mark.parametrize("wrong", [{"rules": None}, {"rules": 3}, {"limits": 3}])
def test_rules_and_limits_of_another_type_are_refused(toys, wrong):
    (name,) = wrong
    with pytest.raises(UserError, match=f"{name} must be of type"):
        Referee(toys, **wrong)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda problem: judge("starter/add", RIGHT, SUITE), "problem must be one, such as .*, got 'starter/add'"),
        (lambda problem: judge(problem, RIGHT, []), "at least one, got an empty list"),
        (lambda problem: score(5), "report must be what judge returns, got 5"),
    ],
)
def test_what_cannot_be_judged_or_scored_is_said_at_once(toys, wrong, told):
    with pytest.raises(UserError, match=told):
        wrong(toys.by_id("toy/add"))
