"""Every text that somebody else wrote is parsed in one place, for less than its budget."""

from __future__ import annotations

import ast
import inspect
import re
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import codea1_env
from codea1_env.facts.call_forms import PLAIN_CALLS
from codea1_env.facts.submissions import RejectionReason, TestCase
from codea1_env.judging import golden, jobs, right_answers
from codea1_env.python_text import MAX_BRACKETS, TextBudget, UnreadableError, parse, remembered_up_to
from codea1_env.rounds import rounds
from codea1_env.rules.canonical_calls import CanonicalCalls, passed_arguments
from codea1_env.rules.reading.function_calls import with_source_calls
from codea1_env.rules.reading.imports import known_names
from codea1_env.rules.reading.statements import read_statements
from codea1_env.rules.replies import is_readable
from codea1_env.rules.ruleset import Reading
from codea1_env.rules.validation import stated_answers
from codea1_env.sandbox.local.reach import may_see_calls

ROOT = Path(codea1_env.__file__).parent
PIECES = [
    *("x", "1+", "(", ")", "[", "]", "{", "}", "'", '"', "f'", 'f"""', "{x}", "{", "#", "\n", "\\", " ", ",", "'''"),
    *("é", "\0"),
]
TEXTS = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from([1, 3, 400])), max_size=6).map(
    lambda parts: "".join(part * n for part, n in parts)
)


def test_nothing_else_in_the_trusted_processes_parses_python() -> None:
    parses = re.compile(r"\bast\.parse\(|(?<![.\w])compile\(")
    found = {
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if parses.search(path.read_text()) and "inside" not in path.parts
    }
    compiles_a_tree = "problems/python_source.py"
    assert found == {"python_text.py", compiles_a_tree}


@given(TEXTS)
def test_any_text_is_a_tree_or_has_a_reason_and_is_paid_for(text: str) -> None:
    budget = TextBudget()
    try:
        tree = parse(text, budget)
    except UnreadableError:
        pass
    else:
        with warnings.catch_warnings(action="ignore"):  # of an escape that Python does not know
            assert ast.dump(tree) == ast.dump(ast.parse(text))
    assert 0 <= budget.left_us <= TextBudget().left_us
    assert len(text.split()) == 0 or budget.left_us < TextBudget().left_us


@given(TEXTS)
def test_whoever_has_nothing_left_gets_no_tree(text: str) -> None:
    with pytest.raises(UnreadableError) as found:
        parse(f"{text}\nxxxx", TextBudget(0))
    assert found.value.reason is RejectionReason.TOO_LONG


@pytest.mark.parametrize("line", [";", ")", "a b", "'"])
def test_many_short_parses_cost_as_much_as_they_take(line: str) -> None:
    read_statements(f"{line}\n" * 1000, 1, budget := TextBudget())
    assert TextBudget().left_us - budget.left_us > 40_000  # a parse of nothing takes some 40 microseconds


def test_refusals_are_paid_for_as_well() -> None:
    text, budget = "x," * 200_000, TextBudget()
    for _ in range(50):
        with pytest.raises(UnreadableError):
            parse(text, budget)
    before = time.process_time()
    for _ in range(1000):
        with pytest.raises(UnreadableError):
            parse(text, budget)
    assert time.process_time() - before < 1.0  # counting its words again would take 100 s


@pytest.mark.parametrize(("opening", "closing"), ["()", "[]", "{}"])
def test_brackets_within_each_other_are_bounded(opening: str, closing: str) -> None:
    text = opening * (MAX_BRACKETS - 1) + closing * (MAX_BRACKETS - 1)
    parse(text)
    parse(f"x = '{opening * 500}'  # {opening * 500}")
    with pytest.raises(UnreadableError, match="too deeply"):
        parse(f"{opening * 2}{text}{closing * 2}")


@pytest.mark.parametrize(("text", "n_calls"), [("short", 1), ("x" * 5000, 2)])
def test_results_of_long_texts_are_not_remembered(text: str, n_calls: int) -> None:
    called: list[str] = []
    note = remembered_up_to(4096)(called.append)
    note(text)
    note(text)
    assert len(called) == n_calls


def holders(text: str) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Functions that cache their results, with arguments in which somebody else's text is."""
    case = TestCase(f"f('{text}')", None)
    return [
        (may_see_calls, (f"__{text}",)),
        (with_source_calls, (f"f('{text}')", (), "f")),
        (known_names, (f"import {text}",)),
        (CanonicalCalls.of, (f"def f(x='{text}'): pass", "f")),
        (stated_answers, ((f"assert f('{text}') == 1",), "f")),
        (is_readable, (case, Reading.STRICT, "f", PLAIN_CALLS)),
        (is_readable, (replace(case, expression="f(1)"), Reading.STRICT, f"f{text}", PLAIN_CALLS)),
        (passed_arguments, ("f(1)", CanonicalCalls("f", (text,)))),
        (golden._literal, (f"'{text}'",)),
        (rounds._known_imports, ("", f"import math, {text}")),
        (right_answers._checker_program, (text, "def f(x): pass", "f")),
        (right_answers._is_call, (f"f('{text}')", "f")),
        (jobs._is_literal, (f"'{text}'",)),
    ]


@pytest.mark.parametrize("number", range(len(holders("x"))))
def test_no_cache_keeps_a_text_that_somebody_else_has_sent_at_length(number: int) -> None:
    function, arguments = holders("x" * 20_000)[number]
    cache: Any = inspect.getclosurevars(getattr(function, "__func__", function)).nonlocals["remembered"]
    before = cache.cache_info().currsize
    function(*arguments)
    assert cache.cache_info().currsize == before
    assert cache.cache_info().maxsize <= 1 << 16
    function(*holders("xyz")[number][1])
    assert cache.cache_info().misses + cache.cache_info().hits > 0
