from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codea1_agents.scripted.fuzz_inputs import InputSource, changes_of, values_of
from codea1_agents.scripted.literals import literal
from codea1_agents.scripted.signatures import Interface
from codea1_agents.scripted.value_types import Kind, ValueType, of_value
from tests.codea1_agents.scripted.conftest import interface_of

PAIR = interface_of("def f(a: list[int], b: str): ...", "assert f([1, 2, 3], 'abc') == 0")


def drawn(target: Interface, seed: int, n: int = 30) -> list[str]:
    return [literal(arguments) for arguments in InputSource(target).draw(np.random.default_rng(seed), n)]


def test_one_seed_draws_one_sequence_from_any_source_and_another_seed_another() -> None:
    assert drawn(PAIR, 1) == drawn(PAIR, 1)
    assert drawn(PAIR, 1) != drawn(PAIR, 2)
    source = InputSource(PAIR)
    source.draw(np.random.default_rng(9), 20)
    assert [literal(a) for a in source.draw(np.random.default_rng(1), 30)] == drawn(PAIR, 1)


def test_draws_are_distinct_and_close_to_the_examples_but_none_is_one() -> None:
    texts = drawn(PAIR, 3, 50)
    assert len(set(texts)) == len(texts) == 50
    assert "([1, 2, 3], 'abc')" not in texts
    arguments = InputSource(PAIR).draw(np.random.default_rng(0), 60)
    kept = sum(first == [1, 2, 3] or second == "abc" for first, second in arguments)
    assert kept > 15
    source = InputSource(interface_of("def f(s): ...", "assert f('([])[]') == 0\nassert f('[[') == 0"))
    text = "".join(str(arguments[0]) for arguments in source.draw(np.random.default_rng(0), 60))
    assert sum(character in "([])" for character in text) > len(text) / 2


def test_a_type_with_few_values_or_no_parameters_gives_no_more_than_there_are() -> None:
    source = InputSource(interface_of("def f(a: bool, b: None): ..."))
    assert sorted(source.draw(np.random.default_rng(0), 20)) == [(False, None), (True, None)]
    assert InputSource(interface_of("def f(): ...")).draw(np.random.default_rng(0), 5) == [()]


@pytest.mark.parametrize(
    "statement",
    [
        "def f(a, b): ...",
        "def f(a: Optional[int], b: Union[str, List[float]]): ...",
        "def f(a: Callable[[int], int], b: Any): ...",
        "def f(a: list[dict[str, int]], *, b: Tuple[int, ...]): ...",
        "def f(a: dict[tuple[int, int], set[str]], b: bytes): ...",
        "def f(a: list[list[list[list[int]]]], b: None = None): ...",
        "def f(a: set[list[int]], b: dict[list[int], int]): ...",
    ],
)
def test_every_annotation_gives_inputs(statement: str) -> None:
    arguments = InputSource(interface_of(statement)).draw(np.random.default_rng(0), 24)
    assert len(arguments) >= 20
    assert all(len(values) == 2 for values in arguments)


def test_drawing_leaves_global_generators_and_the_folder_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    before = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]  # a tuple by default
    drawn(PAIR, 4)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # type: ignore[index]
    assert list(tmp_path.iterdir()) == []


OUTSIDE = [drawn(PAIR, seed) for seed in range(4)]


@given(st.integers(0, 3))
@settings(max_examples=4, suppress_health_check=[HealthCheck.nested_given])
def test_inside_of_a_hypothesis_test_the_same_inputs_are_drawn(seed: int) -> None:
    assert drawn(PAIR, seed) == OUTSIDE[seed]


@pytest.mark.slow
def test_several_threads_may_draw_at_once() -> None:
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda seed: drawn(PAIR, seed), [1, 2, 1, 2, 1, 2]))
    assert made == [drawn(PAIR, 1), drawn(PAIR, 2)] * 3


@given(st.data())
def test_a_changed_value_keeps_its_outermost_type(data: st.DataObject) -> None:
    value = data.draw(st.sampled_from(["ab c", [1, 2], (1, 2), {1, 2}, {"a": 1}, [[1], []], (1, "x"), b"ab"]))
    assert type(data.draw(changes_of(value, of_value(value)))) is type(value)


@given(values_of(ValueType(Kind.INT, seen=(3, 9, 20))))
def test_integers_that_were_never_negative_stay_above_minus_two(value: int) -> None:
    assert -1 <= value <= 25
