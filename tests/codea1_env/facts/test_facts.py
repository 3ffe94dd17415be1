from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_agents.prompts import load_prompts
from codea1_agents.scripted.input_texts import TEXT_INPUTS
from codea1_env import values
from codea1_env.errors import UserError
from codea1_env.facts.answers import OutputForm, in_form, nearly_equal_texts
from codea1_env.facts.entry_points import EntryPoint, is_method, placeholder_program, read_entry_point
from codea1_env.facts.judge_version import JUDGE_VERSION, judge_version_in, require_this_judge
from codea1_env.facts.problem_kinds import PROGRAMS, RUN, ProblemKind, kind_of
from codea1_env.sandbox.inside import script

WORDS = st.lists(st.text("abc123é", min_size=1), max_size=6)
BLANKS = st.text(" \t\n\r", min_size=1, max_size=3)


@given(WORDS, st.data())
def test_white_space_does_not_count_among_words(words: list[str], data: st.DataObject) -> None:
    text = "".join(data.draw(BLANKS) + word for word in words) + data.draw(BLANKS)
    assert in_form(text.encode(), OutputForm.WORDS) == " ".join(words)


@pytest.mark.parametrize(
    ("output", "text"),
    [("7\n", "7"), ("7", "7"), ("7\n\n", "7"), ("a  b \r\n c\r\n", "a  b \n c"), ("\n7", "\n7"), ("", "")],
)
def test_an_exact_output_keeps_all_but_the_last_line_breaks(output: str, text: str) -> None:
    assert in_form(output.encode(), OutputForm.EXACT) == text
    for form in OutputForm:
        with pytest.raises(UnicodeDecodeError):
            in_form(output.encode() + b"\xff", form)


NEAR = [("2.5", "2.500000"), ("1.0", "1.0000009"), ("a 1e3 b", "a 1000.0001 b"), ("-0.5\n2", "-.5\n2"), ("2", "2.0")]
FAR = [
    ("2.5", "2.6"), ("2.5", "2.5 2.5"), ("a", "b"), ("1.5 x", "1.5\nx"), ("7", "8"), ("1000000000", "1000000001"),
    ("2.5", "nan"), ("inf", "1e999"), ("1.5", "0x1.8p0"), ("1.5", "1_.5"), ("2.5", ""), (2.5, 2.5000001),  # no texts
]  # fmt: skip


@pytest.mark.parametrize(("expected", "found", "is_near"), [(*p, True) for p in NEAR] + [(*p, False) for p in FAR])
def test_numbers_within_the_tolerance_are_equal_and_nothing_else(expected: Any, found: Any, is_near: bool) -> None:
    assert nearly_equal_texts(values.encode(expected), values.encode(found), 1e-6) is is_near


@pytest.mark.parametrize(
    ("text", "parts"),
    [("f", EntryPoint("f")), ("Solution().two_sum", EntryPoint("Solution", "two_sum")), ("", EntryPoint(""))],
)
def test_an_entry_point_has_a_name_and_perhaps_a_method(text: str, parts: EntryPoint) -> None:
    assert read_entry_point(text) == parts
    assert is_method(text) is bool(parts.method)
    for other in ("Solution.f", "Solution().f()", "Solution(1).f", "().f", "a.B().f", "1().f", "S() .f"):
        assert not is_method(other)


def test_an_entry_point_fits_its_kind_and_its_placeholder_defines_it_and_returns_nothing() -> None:
    for text in ("f", "Solution().f"):
        assert PROGRAMS[kind_of(text)].fits(text)
        assert not PROGRAMS[ProblemKind.STDIN].fits(text)
        namespace: dict[str, object] = {}
        exec(placeholder_program(text), namespace)
        assert eval(f"{text}(1, key=2)", namespace) is None


@pytest.mark.parametrize(
    ("stored", "version"),
    [({"judge_version": 7}, 7), ({}, 1), ({"judge_version": "2"}, 1), ({"judge_version": True}, 1), (None, 1), ([], 1)],
)
def test_what_does_not_say_is_of_version_1(stored: Any, version: int) -> None:
    assert judge_version_in(stored) == version


def test_other_verdicts_are_refused_in_one_sentence_with_what_to_do() -> None:
    require_this_judge(JUDGE_VERSION, "runs/a", "begin a new run")
    for version in (JUDGE_VERSION - 1, JUDGE_VERSION + 1):
        with pytest.raises(UserError, match=f"^runs/a was judged by version {version} .*; begin a new run$"):
            require_this_judge(version, "runs/a", "begin a new run")


@pytest.mark.parametrize("kind", ProblemKind)
def test_each_kind_is_known_wherever_kinds_have_tables(kind: ProblemKind) -> None:
    programs = PROGRAMS[kind]
    assert load_prompts().forms[kind].keys() == {"program_form", "unit", "test_form"}
    assert {each.kind for each in programs.scripts} <= {kind}
    assert [each.output for each in programs.scripts] == (list(OutputForm) if programs.scripts else [])
    prints = bool(programs.scripts)
    assert (kind in script._ENTRY_POINTS) is (kind in TEXT_INPUTS) is bool(programs.receives) is prints
    assert (programs.given_as is not None) is prints
    assert programs.fits(RUN) or kind is ProblemKind.METHOD
