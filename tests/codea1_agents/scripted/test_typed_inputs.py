from __future__ import annotations

import ast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from codea1_agents.scripted.literals import literal
from codea1_agents.scripted.typed_inputs import boundary_calls, calls_near_tests, edges, edits, typical
from codea1_agents.scripted.value_types import Kind, ValueType, from_annotation, of_value
from codea1_env.facts.call_forms import CallForms
from codea1_env.problems import GoldenCase, GoldenHarness, Problem
from tests.codea1_agents.scripted.conftest import interface_of

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=6,
)


def of(annotation: str) -> ValueType:
    return from_annotation(ast.parse(annotation, mode="eval").body)


def fits(value: object, kind: ValueType) -> bool:
    """Say independently of the generators whether a value has a type."""
    scalars = {Kind.BOOL: bool, Kind.INT: int, Kind.UNKNOWN: int, Kind.FLOAT: float, Kind.STR: str, Kind.BYTES: bytes}
    if kind.kind is Kind.NONE:
        return value is None
    if kind.kind is Kind.EITHER:
        return any(fits(value, part) for part in kind.parts)
    if kind.kind is Kind.RECORD:
        return isinstance(value, tuple) and all(map(fits, value, kind.parts)) and len(value) == len(kind.parts)
    if kind.kind is Kind.DICT:
        key, item = kind.parts
        return isinstance(value, dict) and all(fits(k, key) and fits(v, item) for k, v in value.items())
    collections = {Kind.LIST: list, Kind.TUPLE: tuple, Kind.SET: set}
    if kind.kind in collections:
        return isinstance(value, collections[kind.kind]) and all(fits(item, kind.parts[0]) for item in value)
    return type(value) is scalars[kind.kind]


ANNOTATIONS = (
    "int; float; bool; str; bytes; None; Any; list; list[int]; List[List[float]]; list[dict[str, int]]; "
    "dict[str, list[int]]; Tuple[int, ...]; tuple[int, str, bool]; set[str]; Optional[int]; "
    "Union[int, str, list[int]]; list[list[list[list[int]]]]"
)


@pytest.mark.parametrize("annotation", ANNOTATIONS.split("; "))
def test_edges_and_the_typical_value_have_the_type_and_edges_are_distinct_and_readable(annotation: str) -> None:
    kind = of(annotation)
    assert fits(typical(kind), kind)
    assert all(fits(value, kind) for value in edges(kind))
    texts = [literal(value) for value in edges(kind)]
    assert len(set(texts)) == len(texts)
    assert max(map(len, texts)) < 2000


@pytest.mark.parametrize(
    ("annotation", "wanted"),
    [
        ("int", [0, 1, -1]),
        ("str", ["", " ", "aa"]),
        ("list[int]", [[], [1], [1, 1], [1, 2, 3], [3, 2, 1], [-1]]),
        ("dict[str, int]", [{}]),
        ("Optional[str]", [None, ""]),
        ("tuple[int, ...]", [(), (1, 1)]),
    ],
)
def test_the_classical_edges_are_there(annotation: str, wanted: list[object]) -> None:
    found = [literal(value) for value in edges(of(annotation))]
    assert set(map(literal, wanted)) <= set(found)


def test_seen_scalars_and_their_neighbours_are_edges_and_edits_of_a_list_reach_into_its_elements() -> None:
    assert {41, 42, 43} <= set(edges(ValueType(Kind.INT, seen=(42,))))
    assert {literal(v) for v in edits([[1, 2], [3]])} >= {"[]", "[[3], [1, 2]]", "[[], [3]]", "[[], []]"}


@given(plain)
def test_edits_keep_the_outermost_type_and_change_the_value(value: object) -> None:
    found = edits(value)
    assume(found)
    for edited in found:
        assert type(edited) is type(value)
        assert literal(edited) != literal(value)


@given(st.tuples(st.integers(), st.text(max_size=3)))
def test_edits_of_a_mixed_tuple_keep_its_length(value: tuple[object, ...]) -> None:
    found = edits(value)
    assert found
    assert all(isinstance(edited, tuple) and len(edited) == 2 for edited in found)


def test_boundary_calls_change_single_arguments_of_examples_and_have_every_parameter() -> None:
    calls = boundary_calls(interface_of("def f(a, b): ...", "assert f(5, 'x') == 0\nassert f(9, 'y') == 0"))
    assert {(0, "x"), (5, ""), (0, "y"), (9, "")} <= set(calls)
    assert len({literal(call) for call in calls}) == len(calls)
    calls = boundary_calls(interface_of("def f(a: int, b: list[str] = (), *, c: bool): ..."))
    assert len(calls) > 30
    assert all(len(call) == 3 and fits(call[1], of("list[str]")) and type(call[2]) is bool for call in calls)
    assert boundary_calls(interface_of("def f(): ...")) == [()]


@given(st.lists(st.tuples(plain, plain), min_size=1, max_size=2))
def test_boundary_calls_exist_for_any_example_arguments(examples: list[tuple[object, object]]) -> None:
    text = "\n".join(f"assert f({literal(a)}, {literal(b)}) == 0" for a, b in examples)
    calls = boundary_calls(interface_of("def f(a, b): ...", text))
    assert all(of_value(call).kind in (Kind.RECORD, Kind.TUPLE) and len(call) == 2 for call in calls)


def test_calls_near_tests_repeat_the_calls_of_tests_and_fit_a_solution_that_works_in_place() -> None:
    golden = (GoldenHarness("def check(candidate):\n    assert candidate(41) == 1"), GoldenCase("f(51)", "1"))
    calls = calls_near_tests(Problem("P", "Text.", "f", "def f(x): ...", golden, examples=("assert f(61) == 1",)))
    assert calls[:3] == ["f(61)", "f(41)", "f(51)"]
    calls = calls_near_tests(Problem("P", "Text.", "f", "def f(x): ...", ()))
    assert {"f(0)", "f('')", "f([])"} <= set(calls)
    golden = (GoldenCase("f([1])", "None"),)
    calls = calls_near_tests(Problem("P", "Text.", "f", "def f(x): ...", golden, calls=CallForms(in_place=True)))
    assert all(call.endswith("[1])([1])") for call in calls[:1])
    assert calls_near_tests(Problem("P", "Text.", "f", "f = print", ())) == []
