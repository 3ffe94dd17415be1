from __future__ import annotations

import pytest

from codea1_env.facts.entry_points import EntryPoint, is_method, placeholder_program, read_entry_point


@pytest.mark.parametrize(
    ("text", "parts"),
    [("f", EntryPoint("f")), ("Solution().two_sum", EntryPoint("Solution", "two_sum")), ("", EntryPoint(""))],
)
def test_an_entry_point_has_a_name_and_perhaps_a_method(text: str, parts: EntryPoint) -> None:
    assert read_entry_point(text) == parts
    assert is_method(text) is bool(parts.method)


@pytest.mark.parametrize(
    "text", ["Solution.f", "Solution().f()", "Solution(1).f", "().f", "a.B().f", "1().f", "S() .f"]
)
def test_other_texts_are_no_methods(text: str) -> None:
    assert not is_method(text)


def test_a_placeholder_defines_the_entry_point_and_returns_nothing() -> None:
    for text in ("f", "Solution().f"):
        namespace: dict[str, object] = {}
        exec(placeholder_program(text), namespace)
        assert eval(f"{text}(1, key=2)", namespace) is None
