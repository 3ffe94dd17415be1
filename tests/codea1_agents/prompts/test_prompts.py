from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_agents.prompts import Message, Prompts, folded_system, load_prompts, merged, plain_text
from codea1_env.errors import BrokenInput, UnknownName, UserError

CODER = {"role": "coder", "tests_per_suite": 5}
TESTER = {"role": "tester", "tests_per_suite": 5}


def seen(**changes: Any) -> dict[str, Any]:
    plain = {"problem": "def f(x): ...", "entry_point": "f", "examples": "", "program": "", "feedback": "", "round": 0}
    return plain | changes


def told(prompts: Prompts, observation: dict[str, Any], info: dict[str, Any]) -> str:
    return "\n".join(each.content for each in prompts.messages(observation, info))


def wording(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["default", "paper"])
@pytest.mark.parametrize("info", [CODER, TESTER, TESTER | {"tester_view": "blind"}])
def test_every_prompt_holds_the_problem_and_ends_with_the_user(name, info):
    messages = load_prompts(name).messages(seen(problem="def odd(x): ..."), info)
    assert "def odd(x): ..." in messages[-1].content
    assert [each.role for each in messages] == ["system", "user"]


SHOWN = {"program": "def f(x): return 'shown'"}
VIEWS = [{}, {"tester_view": "white_box"}, {"tester_view": "black_box"}, {"tester_view": "blind"}]


@pytest.mark.parametrize(
    ("name", "changes", "info", "held", "absent"),
    [
        *((name, SHOWN, TESTER | view, "'shown'", "") for name in ("default", "paper") for view in VIEWS[:2]),
        *((name, SHOWN, TESTER | view, "", "'shown'") for name in ("default", "paper") for view in VIEWS[2:]),
        *((name, SHOWN, TESTER, "Write 5", "") for name in ("default", "paper")),
        *((name, SHOWN, {"role": "tester"}, "Write 8", "") for name in ("default", "paper")),
        ("paper", SHOWN, TESTER, "Buggy Code", ""),
        ("default", SHOWN, TESTER, "", "uggy"),
        ("default", SHOWN | {"feedback": "DUPLICATE: assert"}, TESTER, "DUPLICATE: assert", ""),
        ("default", {"program": "a = '\ud800'"}, TESTER, "a = '?'", ""),
        ("default", {"program": "x"}, TESTER, "", "known already"),
        ("default", {"program": "x", "examples": "f(1)"}, TESTER, "known already:\n```python\nf(1)\n```", ""),
    ],
)
def test_a_testers_prompt_holds_what_it_may_see(name, changes, info, held, absent):
    text = told(load_prompts(name), seen(**changes), info)
    assert held in text
    assert not absent or absent not in text


def test_the_three_views_of_a_tester_are_told_differently():
    texts = {told(load_prompts(), seen(), TESTER | {"tester_view": view}) for view in ("black_box", "blind")}
    texts.add(told(load_prompts(), seen(program="x = 1"), TESTER))
    assert len(texts) == 3


def test_a_repair_round_shows_the_coder_what_failed_and_its_program_if_there_is_one_as_its_own_words():
    messages = load_prompts().messages(
        seen(program="def f(x): return 1", feedback="1 of 2 tests failed.", round=1), CODER
    )
    assert [each.role for each in messages] == ["system", "user", "assistant", "user"]
    assert "return 1" in messages[2].content
    assert "1 of 2 tests failed." in messages[3].content
    messages = load_prompts().messages(seen(feedback="The program is invalid."), CODER)
    assert [each.role for each in messages] == ["system", "user"]
    assert "The program is invalid." in messages[-1].content


def test_feedback_keeps_to_its_budget_and_loses_the_oldest_lines_first(tmp_path):
    lines = [f"f({n}) should be {n}; it gave 0" for n in range(200)]
    shown = seen(program="def f(x): return 0", feedback="\n".join(["200 of 200 tests failed.", *lines]), round=1)
    prompts = load_prompts(wording(tmp_path, 'feedback_chars = 100\n[coder_repair]\nuser = "$feedback"\n'))
    (_, last) = prompts.messages(shown, CODER)[-1].content.split("\n\n")[-2:]
    assert last == "\n".join(["200 of 200 tests failed.", "(...)", *lines[-2:]])
    assert len(last) <= 100
    assert lines[0] not in told(load_prompts(), shown, CODER)
    assert lines[-1] in told(load_prompts(), shown, CODER)
    assert len(told(prompts, seen(feedback="x" * 500), CODER)) < len(told(prompts, seen(), CODER)) + 103


def test_a_wording_may_say_nothing_in_later_rounds():
    tiny = load_prompts("tiny")
    later = seen(program="def f(x): return 1", feedback="1 of 2 tests failed.", round=1)
    assert tiny.messages(later, TESTER) == tiny.messages(later | {"feedback": ""}, TESTER)
    (only,) = tiny.messages(later, CODER)
    assert only.content.endswith("fix def f(x): return 1\n1 of 2 tests failed.")


def test_what_is_put_in_is_never_read_as_a_template_or_ends_its_block():
    program = "def f(x):\n    return '$problem ${tests} $$ {x} ```'"
    text = told(load_prompts(), seen(program=program), TESTER)
    assert program in text
    assert f"````python\n{program}\n````" in text


@given(st.fixed_dictionaries(dict.fromkeys(("problem", "entry_point", "examples", "program", "feedback"), st.text())))
def test_any_text_at_all_becomes_messages_that_alternate_and_can_be_encoded(texts):
    for info in (CODER, TESTER):
        messages = load_prompts().messages(texts | {"round": 0}, info)
        roles = [each.role for each in messages]
        assert roles[-1] == "user"
        assert all(one != other for one, other in pairwise(roles))
        "".join(each.content for each in messages).encode()


def test_a_file_replaces_what_it_names_and_a_wording_that_is_not_there_says_which_are(tmp_path):
    prompts = load_prompts(wording(tmp_path, '[coder]\nuser = "Solve $problem for $$5"\n'))
    assert prompts.messages(seen(), CODER) == (Message("user", "Solve def f(x): ... for $5"),)
    assert prompts.messages(seen(), TESTER) == load_prompts().messages(seen(), TESTER)
    with pytest.raises(UnknownName, match="default, paper"):
        load_prompts("papr")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[coder", "not TOML"),
        ('[codr]\nuser = "x"', "did you mean 'coder'"),
        ('[coder]\nusr = "x"', "did you mean 'user'"),
        ('[coder]\nuser = "$probem"', "did you mean 'problem'"),
        ('[coder]\nuser = "costs 5$ a piece"', "a single $"),
        ("[coder]\nuser = 5", "expected text"),
        ('coder = "x"', "expected a table"),
        ('[coder]\nsystem = "x"', "user is missing"),
        ('[coder_repair]\nsystem = "x"\nuser = ""', "user is missing or empty"),
        ("feedback_chars = 0", "feedback_chars must be a whole number of at least 1, got 0"),
    ],
)
def test_a_broken_file_is_one_sentence_that_names_the_place(tmp_path, text, told):
    with pytest.raises(BrokenInput, match=r"mine\.toml") as caught:
        load_prompts(wording(tmp_path, text))
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("info", "said"),
    [
        ({}, "role"),
        ({"role": "judge"}, "role"),
        (TESTER | {"tester_view": "blnd"}, "blnd"),
        (CODER | {"kind": "stdn"}, "did you mean 'stdin'"),
    ],
)
def test_a_role_is_needed_and_the_view_and_the_kind_must_exist(info, said):
    with pytest.raises(UserError, match=said):
        load_prompts().messages(seen(), info)


def test_the_system_can_be_folded_into_the_user_and_plain_text_ends_where_the_assistant_begins():
    chat = (Message("system", "S"), Message("user", "U"), Message("assistant", "A"), Message("user", "V"))
    assert folded_system(chat) == (Message("user", "S\n\nU"), *chat[2:])
    assert merged([Message("user", "a"), Message("user", "b")]) == (Message("user", "a\n\nb"),)
    assert plain_text([Message("user", "U")]) == "### User\nU\n\n### Assistant\n"


@pytest.mark.parametrize("view", ["white_box", "black_box"])
def test_testers_without_answers_are_asked_for_inputs_in_a_form_that_is_read(view):
    text = told(load_prompts("call_only"), seen(program="x = 1"), TESTER | {"tester_view": view})
    assert "Write 5 inputs" in text
    assert "assert f(arguments) == None" in text
    assert "expected" not in text


def test_inputs_are_added_for_testers_on_request_only_also_to_a_file(tmp_path):
    statement = "def f(xs: list[int], limit: int = 3) -> int: ..."
    plain, more = load_prompts("default"), load_prompts("default+inputs")
    added = told(more, seen(problem=statement), TESTER).removeprefix(told(plain, seen(problem=statement), TESTER))
    assert "suitable types" in added
    assert "\nf([], " in added
    assert "==" not in added
    assert told(more, seen(problem=statement), CODER) == told(plain, seen(problem=statement), CODER)
    assert told(more, seen(problem="Add."), TESTER) == told(plain, seen(problem="Add."), TESTER)
    assert more.messages(seen(problem=statement), TESTER)[-1].role == "user"
    assert (more.name, more.tables) == ("default+inputs", plain.tables)
    path = wording(tmp_path, '[tester_white_box]\nuser = "Test $problem"\n')
    shown = told(load_prompts(f"{path}+inputs"), seen(problem="def f(x: str): ...", program="def f(x): ..."), TESTER)
    assert shown.startswith("Test def f(x: str): ...")
    assert "f('')" in shown
    with pytest.raises(UnknownName):
        load_prompts("defualt+inputs")


ENTRY_POINTS = {"function": "f", "method": "Solution().f", "stdin": "run", "command_line": "run"}


@pytest.mark.parametrize("name", ["default", "paper", "call_only", "simple"])
@pytest.mark.parametrize("kind", ENTRY_POINTS)
def test_a_prompt_says_what_to_write_for_each_kind_of_problem(name, kind):
    observation = seen(entry_point=ENTRY_POINTS[kind], program="x = 1")
    texts = [told(load_prompts(name), observation, info | {"kind": kind}) for info in (CODER, TESTER)]
    assert ("standard input" in texts[0]) is (kind == "stdin")
    assert ("`sys.argv[1:]`" in texts[0]) is (kind == "command_line")
    assert ("class `Solution` with the method `f`" in texts[0]) is (kind == "method")
    if (name, kind) not in {("simple", "function"), ("paper", "function")}:
        arguments = {"function": "", "command_line": "(argument, ...)"}.get(kind, "(")
        assert f"assert {ENTRY_POINTS[kind]}{arguments}" in texts[1]
    assert "$" not in "".join(texts)


def test_a_wording_may_change_the_form_of_tests(tmp_path):
    path = wording(tmp_path, '[stdin]\ntest_form = "`$entry_point`: $name"\n')
    assert "of the form `run`: run." in told(load_prompts(path), seen(entry_point="run"), TESTER | {"kind": "stdin"})
    for text in ('[stdin]\nform = "x"\n', '[stdin]\ntest_form = "$problem"\n', "stdin = 3\n"):
        with pytest.raises(BrokenInput):
            load_prompts(wording(tmp_path, text))
