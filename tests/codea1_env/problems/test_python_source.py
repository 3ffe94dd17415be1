"""What the source of a row may cost before it is parsed."""

from __future__ import annotations

import time

import pytest

from codea1_env.errors import BrokenInput
from codea1_env.problems.python_source import parse

MANY = "{1}" * 90_000


@pytest.mark.parametrize(
    "source",
    [f"f'{MANY}'", f'x = "it\'s"  # don\'t\ny = rF"{MANY}"', f"f'''{MANY}\n'''", f"assert f(1) == f'\\'{MANY}'"],
)
def test_an_f_string_of_many_fields_is_refused_before_it_is_parsed(source: str) -> None:
    before = time.process_time()
    with pytest.raises(BrokenInput, match="too many fields"):
        parse(source, "it")
    assert time.process_time() - before < 1.0  # each field took as long as the whole text


@pytest.mark.parametrize(
    "source",
    [f"x = '{MANY}'\ny = f'{{x}}'", f"# f'{MANY}\nx = 1", f"x = [{'{1: 2}, ' * 20_000}]\ny = f'{{x}}'"],
    ids=["text", "comment", "dicts"],
)
def test_braces_elsewhere_are_no_fields(source: str) -> None:
    assert parse(source, "it").body


@pytest.mark.parametrize("text", ["'''\\'", '"\\', "\\\"'''", "'''\"\"\"", "f'{", '"""\\"'])
def test_no_text_of_quotes_takes_long_to_look_through(text: str) -> None:
    before = time.process_time()
    with pytest.raises(BrokenInput):
        parse("{" * 3000 + text * 100_000, "it")
    assert time.process_time() - before < 3.0
