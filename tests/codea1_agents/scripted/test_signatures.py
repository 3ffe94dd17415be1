from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_agents.scripted.signatures import Parameter, example_calls, mentioned_calls, read_interface, read_signature
from codea1_agents.scripted.value_types import UNKNOWN, Kind, ValueType
from tests.codea1_agents.scripted.conftest import interface_of

INT = ValueType(Kind.INT)


def test_a_signature_is_read_with_types_defaults_and_keyword_only_parameters() -> None:
    signature = read_signature("def f(a: int, /, b=2, *rest, key: 'int', **more) -> int:\n    ...", "f")
    assert signature.parameters == (
        Parameter("a", INT),
        Parameter("b", has_default=True),
        Parameter("key", INT, keyword_only=True),
    )
    assert signature.returns == INT
    assert read_signature("def g(a):\n    return f(a)\ndef ff(b): ...", "f") is None


@pytest.mark.parametrize(
    "text",
    [
        'def f(a, b):\n"""\nnot indented, so this is not Python\n"""\n',
        "Please write `def f(a, b)`\nand nothing else",
        "def f(a, b",
        "import math\n\ndef f(x):\n    pass\n\ndef f(\n    a,\n    b,\n) -> int:\n    pass",
        "class Answer:\n    pass\ndef f(a, b={1: 2}): return [",
    ],
)
def test_a_signature_is_found_in_text_that_need_not_be_python(text: str) -> None:
    signature = read_signature(text, "f")
    expected = None if text == "def f(a, b" else ["a", "b"]
    assert (signature and [parameter.name for parameter in signature.parameters]) == expected


@pytest.mark.parametrize(
    ("examples", "found"),
    [
        (["abs(f(2.5) - 1) < 1e-6", "{f(1)} == {2}", "g(3) == 1"], ((2.5,), (1,))),  # wherever they stand
        (["f(1 == 2", "f(3) == 4"], ((3,),)),  # one broken line does not cost the others
        (["f(1) == 2", "f(1) == 2"], ((1,),)),
    ],
)
def test_example_calls_are_found(examples: list[str], found: object) -> None:
    assert example_calls("\n".join(f"assert {each}" for each in examples), "f", None) == found


@pytest.mark.parametrize(
    "call", ["f(x, 1)", "f(1)", "f(1, 2, 3, 4)", "f(1, 2, d=3)", "f(1, c=3)", "f(*[1, 2])", "f(b=2, a=1)"]
)
def test_calls_that_do_not_fit_or_are_not_literal_are_left_out_and_keywords_put_in_order(call: str) -> None:
    signature = read_signature("def f(a, b, c=0): ...", "f")
    assert example_calls(f"assert {call} == 0\nassert f(1, 2) == 3", "f", signature) == ((1, 2),)


def test_calls_mentioned_in_prose_are_found_with_brackets_inside_strings() -> None:
    text = "def f(s):\n  For example f(')(') gives 0, while f( 'a' , ) is 1; f(x) and f(unclosed are not calls."
    assert mentioned_calls(text, "f", None) == ((")(",), ("a",))


def test_types_come_from_annotation_and_examples_together() -> None:
    interface = interface_of("def f(a: list, b: Any, c: float): ...", "assert f([1], 'x', 2) == 0")
    kinds = [(p.type.kind, p.type.seen) for p in interface.parameters]
    assert kinds == [(Kind.LIST, (1,)), (Kind.STR, ("x",)), (Kind.FLOAT, (2,))]
    assert interface.parameters[0].type.parts == (ValueType(Kind.INT, seen=(1,)),)


def test_without_a_signature_the_arity_comes_from_the_program_or_from_the_examples() -> None:
    assert read_interface("f", "Add numbers.") is None
    from_program = interface_of("Add numbers.", program="def f(a, b):\n    return a + b")
    from_examples = interface_of("Add numbers.", "assert f(1) == 1\nassert f(1, 2) == 3")
    assert [p.has_default for p in from_program.parameters] == [False, False]
    assert [p.has_default for p in from_examples.parameters] == [False, True]


def test_a_parameter_that_nothing_describes_is_guessed_by_name_then_as_other_kinds() -> None:
    interface = interface_of("def f(text, lst, q): ...")
    guesses = [[p.type.kind for p in guess.parameters] for guess in interface.guesses()]
    assert guesses == [
        [Kind.STR, Kind.LIST, Kind.UNKNOWN],
        [Kind.STR, Kind.LIST, Kind.STR],
        [Kind.STR, Kind.LIST, Kind.LIST],
    ]
    typed = interface_of("def f(a: int): ...")
    assert list(typed.guesses()) == [typed]
    assert interface.parameters[1].type.parts == (UNKNOWN,)


@given(
    st.text(alphabet="def f(x:int)=[]{}'\"\\\n, ->", max_size=60), st.text(alphabet="assert f(1)=[]'\\\n", max_size=40)
)
def test_any_text_at_all_is_accepted(statement: str, examples: str) -> None:
    interface = read_interface("f", statement, examples, statement)
    assert interface is None or interface.entry_point == "f"
