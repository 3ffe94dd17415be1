from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.facts.answers import OutputForm, in_form

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


@pytest.mark.parametrize("form", OutputForm)
def test_bytes_that_are_no_text_are_refused(form: OutputForm) -> None:
    with pytest.raises(UnicodeDecodeError):
        in_form(b"\xff", form)
