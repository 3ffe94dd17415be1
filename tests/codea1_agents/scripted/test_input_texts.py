from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_agents.scripted.input_texts import edge_texts, random_texts
from codea1_agents.scripted.literals import call_text
from codea1_agents.scripted.oracle import Oracle, subject_of
from codea1_agents.scripted.signatures import read_interface
from codea1_agents.scripted.typed_inputs import boundary_calls
from codea1_env.problems import Problem, load_problems
from codea1_env.sandbox import Sandbox

WORDS = st.text("ab-1 23", max_size=6)
TEXTS = st.lists(WORDS, max_size=5).map("\n".join)


def draw(*examples: str, n: int = 40, seed: int = 0) -> list[str]:
    return random_texts(examples, np.random.default_rng(seed), n)


@given(st.lists(TEXTS, max_size=3), st.integers(0, 99))
def test_any_examples_give_new_texts_the_same_for_one_seed(examples: list[str], seed: int) -> None:
    found = draw(*examples, n=5, seed=seed)
    assert found == draw(*examples, n=5, seed=seed)
    assert len(found) == len(set(found)) <= 5
    edges = edge_texts(examples)
    assert len(edges) == len(set(edges))


def test_counts_of_words_and_lines_and_the_letters_and_width_of_a_plan_are_kept() -> None:
    for text in draw("4 10\n3 7 5 5\n"):
        first, second = text.splitlines()
        assert int(first.split()[0]) == len(second.split())
    for text in draw("2\n5 3\n2 10\n"):
        first, *others = text.splitlines()
        assert int(first) == len(others)
        assert all(len(line.split()) == 2 for line in others)
    for text in draw("3 4\n.#..\n#.#.\n.#..\n"):
        first, *plan = text.splitlines()
        assert first.split() == [str(len(plan)), "4"]
        assert {len(row) for row in plan} <= {4}
        assert set("".join(plan)) <= {".", "#"}


def test_numbers_are_as_great_as_in_the_examples_and_negative_if_those_are() -> None:
    numbers = [int(word) for text in draw("5 -3\n") for word in text.split()]
    assert min(numbers) >= -3
    assert max(numbers) <= 12
    assert min(int(word) for text in draw("5 3\n") for word in text.split()) == 0


def test_edges_hold_empty_single_equal_and_large_inputs_and_without_examples_there_is_nothing() -> None:
    assert draw() == edge_texts([]) == []
    assert read_interface("run", "", kind="stdin") is None
    interface = read_interface("run", "", "assert run('1 2') == '3'", kind="stdin")
    assert interface.examples == (("1 2",),)
    edges = edge_texts(["3\n4 5 6\n"])
    assert {"0\n\n", "1\n4\n", "3\n0 0 0\n", "3\n6 6 6\n", "3\n1000000000 1000000000 1000000000\n"} <= {*edges}
    assert "" in edge_texts(["to be\n"])


def test_calls_of_a_command_line_have_as_many_texts_as_words() -> None:
    interface = read_interface("run", "", "assert run('--x', '2') == '3'\nassert run() == ''", kind="command_line")
    drawn = interface.inputs.random(interface.examples, np.random.default_rng(0), 8)
    calls = [*drawn, *boundary_calls(interface)]
    assert interface.examples == (("--x", "2"), ())
    assert {type(text) for call in calls for text in call} == {str}
    assert len({len(call) for call in calls}) > 1


@pytest.mark.parametrize("problem", load_problems("starter:stdin"), ids=lambda problem: problem.id)
def test_most_solutions_read_what_is_drawn(problem: Problem, sandbox: Sandbox) -> None:
    interface = read_interface("run", problem.statement, "\n".join(problem.examples), kind="stdin")
    calls = [call_text("run", (text,)) for text in draw(*(str(text) for (text,) in interface.examples), n=12)]
    outcomes = Oracle(sandbox).outcomes(subject_of(problem, problem.solution), calls)
    assert sum(outcome.value is not None for outcome in outcomes) >= 3
