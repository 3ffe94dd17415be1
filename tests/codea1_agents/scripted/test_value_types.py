from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_agents.scripted.value_types import (
    UNKNOWN,
    Kind,
    ValueType,
    from_annotation,
    join,
    join_all,
    of_value,
    refine,
    with_unknown_as,
)

INT, FLOAT, STR, NONE = (ValueType(kind) for kind in (Kind.INT, Kind.FLOAT, Kind.STR, Kind.NONE))


def list_of(item: ValueType) -> ValueType:
    return ValueType(Kind.LIST, (item,))


def read(annotation: str) -> ValueType:
    return from_annotation(ast.parse(annotation, mode="eval").body)


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("int", INT),
        ("None", NONE),
        ("'list[int]'", list_of(INT)),
        ("'not an annotation('", UNKNOWN),
        ("List[str]", list_of(STR)),
        ("typing.Sequence[float]", list_of(FLOAT)),
        ("list", list_of(UNKNOWN)),
        ("list[dict[str, int]]", list_of(ValueType(Kind.DICT, (STR, INT)))),
        ("Counter[str]", ValueType(Kind.DICT, (STR, INT))),
        ("Tuple[int, ...]", ValueType(Kind.TUPLE, (INT,))),
        ("tuple[int, str]", ValueType(Kind.RECORD, (INT, STR))),
        ("tuple[()]", ValueType(Kind.RECORD)),
        ("set[int]", ValueType(Kind.SET, (INT,))),
        ("Optional[int]", ValueType(Kind.EITHER, (INT, NONE))),
        ("int | None", ValueType(Kind.EITHER, (INT, NONE))),
        ("Union[int, str, int]", ValueType(Kind.EITHER, (INT, STR))),
        ("Optional[Any]", NONE),
        ("Annotated[int, 'positive']", INT),
        ("Literal['up', 'down']", ValueType(Kind.STR, seen=("up", "down"))),
        ("Any", UNKNOWN),
        ("Callable[[int], int]", UNKNOWN),
        ("Node", UNKNOWN),
        ("List[int][0]", UNKNOWN),
        ("f()", UNKNOWN),
    ],
)
def test_an_annotation_is_read_as_the_type_it_promises(annotation: str, expected: ValueType) -> None:
    assert read(annotation) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([1, 2, 1], ValueType(Kind.LIST, (ValueType(Kind.INT, seen=(1, 2)),), (3,))),
        ((1, "a"), ValueType(Kind.RECORD, (ValueType(Kind.INT, seen=(1,)), ValueType(Kind.STR, seen=("a",))))),
        ((1, 2), ValueType(Kind.TUPLE, (ValueType(Kind.INT, seen=(1, 2)),), (2,))),
        ([], ValueType(Kind.LIST, (UNKNOWN,), (0,))),
        ([1, 2.5], ValueType(Kind.LIST, (ValueType(Kind.FLOAT, seen=(1, 2.5)),), (2,))),
        (True, ValueType(Kind.BOOL, seen=(True,))),
    ],
)
def test_a_value_shows_its_type_and_its_scalars(value: object, expected: ValueType) -> None:
    assert of_value(value) == expected


def test_examples_of_different_kinds_join_into_a_choice_and_unknown_parts_are_replaced_at_any_depth() -> None:
    joined = join_all(map(of_value, [1, "a", None, 2]))
    assert joined.kind is Kind.EITHER
    assert [part.kind for part in joined.parts] == [Kind.INT, Kind.STR, Kind.NONE]
    assert joined.parts[0].seen == (1, 2)
    assert join(of_value((1, "a")), of_value((1, "a", "b"))).kind is Kind.TUPLE
    assert with_unknown_as(list_of(list_of(UNKNOWN)), STR) == list_of(list_of(STR))


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        ("list", ["x"], ValueType(Kind.LIST, (ValueType(Kind.STR, seen=("x",)),), (1,))),  # a gap is filled
        ("Optional[int]", 4, ValueType(Kind.EITHER, (ValueType(Kind.INT, seen=(4,)), NONE))),
        ("float", 3, ValueType(Kind.FLOAT, seen=(3,))),
        ("int", "x", ValueType(Kind.STR, seen=("x",))),  # examples win
    ],
)
def test_examples_refine_an_annotation(annotation: str, value: object, expected: ValueType) -> None:
    assert refine(read(annotation), of_value(value)) == expected


shown = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(0, 1) | st.sampled_from(["", "a"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.tuples(inner, inner) | st.dictionaries(st.integers(), inner, max_size=2)
    ),
    max_leaves=4,
).map(of_value)


@given(shown, shown)
def test_joining_and_refining_any_two_types_gives_a_type(a: ValueType, b: ValueType) -> None:
    for made in (join(a, b), refine(a, b)):
        assert made.kind in {a.kind, b.kind, Kind.EITHER, Kind.FLOAT, Kind.TUPLE}


@given(shown)
def test_joining_a_type_with_itself_or_with_nothing_changes_nothing(a: ValueType) -> None:
    assert join(a, a) == join(a, UNKNOWN) == join(UNKNOWN, a) == a
