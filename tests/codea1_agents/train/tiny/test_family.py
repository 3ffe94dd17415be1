from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from itertools import chain
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_agents.train.tiny.components import SLOTS, TRIGGERS, Shape
from codea1_agents.train.tiny.family import (
    Composition,
    Split,
    Variant,
    answer_of,
    compositions,
    drawn_inputs,
    drawn_probes,
    drawn_program,
    family,
    mutants,
)
from codea1_agents.train.tiny.inputs import probes
from codea1_agents.train.tiny.problems import load

EVERYTHING = compositions(*Split)
DEEP = compositions(*Split, variant=Variant.DEEP_RARE) + compositions(*Split, variant=Variant.RAREST)
PAIRS = [(each, variant) for variant in Variant for each in compositions(*Split, variant=variant)]


def of(statement: str) -> Composition:
    return next(each for each in EVERYTHING + DEEP if each.statement == statement)


def test_there_are_over_three_hundred_different_problems() -> None:
    statements, solutions = ({getattr(each, of) for each in EVERYTHING} for of in ("statement", "solution"))
    assert len(statements) == len(solutions) == len(EVERYTHING) >= 300


def test_each_split_has_problems_of_all_shapes() -> None:
    for split in (Split.TRAIN, Split.HELD_OUT, Split.UNSEEN):
        shapes = [each.shape for each in family()[split]]
        assert Counter(shapes) == {Shape.LIST: 28, Shape.STRING: 10, Shape.PAIR: 10}
        assert {each.shape for each in family(Variant.DEEP_RARE)[split]} == {Shape.STEPS}
        assert {each.shape for each in family(Variant.RAREST)[split]} == {Shape.RAREST_STEPS}
        assert len(family(Variant.DEEP_RARE)[split]) == len(family(Variant.RAREST)[split]) == 48
    assert family(Variant.RARE) is family()


@pytest.mark.parametrize("shape", Shape)
def test_no_two_problems_behave_alike(shape: Shape) -> None:
    """On inputs other than those that make the splits."""
    inputs = probes(shape, 300, Random(f"others/{shape.value}"))
    solutions = [each.solution for each in EVERYTHING + DEEP if each.shape is shape]
    values = [tuple(answer_of(each, one) for one in inputs) for each in solutions]
    assert len(set(values)) == len(values) > 30


@pytest.mark.parametrize("variant", [Variant.PLAIN, Variant.DEEP_RARE])
def test_unseen_problems_are_made_of_components_that_the_corpus_holds(variant: Variant) -> None:
    corpus = compositions(Split.TRAIN, Split.HELD_OUT, Split.REST, variant=variant)
    known = {part for each in corpus for part in each.parts}
    assert known == {part for shape in variant.shapes for slot in SLOTS[shape] for part in slot}


def test_a_solution_does_what_its_statement_says_and_a_failing_program_has_no_answer() -> None:
    assert answer_of(of("sum of squared odd items").solution, ([1, 2, -3],)) == "10"
    assert answer_of(of("largest of negative items").solution, ([4],)) == "0"
    assert answer_of(of("reversed capital vowel chars").solution, ("abide",)) == "'EIA'"
    assert answer_of(of("clipped difference of a and b").solution, (2, 5)) == "0"
    assert answer_of(of("absolute larger of next a and next b").solution, (5, -1)) == "6"
    assert answer_of("def f(xs):\n    return max(xs)", ([],)) is None


@pytest.mark.slow
def test_solutions_answer_everything() -> None:
    for each in EVERYTHING:
        assert None not in [answer_of(each.solution, probe) for probe in drawn_inputs(each, 40, "test")]


@pytest.mark.parametrize("variant", Variant)
def test_about_a_third_of_the_drawn_programs_are_right(variant: Variant) -> None:
    shares = []
    for each in family(variant)[Split.TRAIN]:
        draws = Random(each.statement)
        inputs = drawn_probes(each, 160, "test")
        right = [answer_of(each.solution, one) for one in inputs]
        drawn = [drawn_program(each, draws, variant) for _ in range(40)]
        shares.append(sum([answer_of(program, one) for one in inputs] == right for program in drawn) / 40)
    assert 0.22 < sum(shares) / len(shares) < 0.38


def test_naive_inputs_find_most_plain_mistakes_and_hardly_a_rare_one() -> None:
    found = {}
    for variant in Variant:
        pairs = [(each, program) for each in family(variant)[Split.TRAIN] for program in mutants(each, variant)]
        found[variant] = sum(_is_found(*pair, is_narrow=variant.is_rare) for pair in pairs) / len(pairs)
    assert found[Variant.PLAIN] > 0.7
    assert found[Variant.RARE] < 0.05
    assert found[Variant.RAREST] < found[Variant.DEEP_RARE] < 0.1


def _is_found(composition: Composition, program: str, *, is_narrow: bool) -> bool:
    naive = drawn_inputs(composition, 32, "test", is_narrow=is_narrow)[::2]
    return any(answer_of(program, each) != answer_of(composition.solution, each) for each in naive)


@pytest.mark.parametrize(("shape", "n_triggers"), [(Shape.STEPS, 8), (Shape.RAREST_STEPS, 32)])
def test_three_quarters_of_the_deep_components_are_wrong_at_one_trigger(shape: Shape, n_triggers: int) -> None:
    parts = [part for slot in SLOTS[shape] for part in slot]
    n_sources = [len(form.sources) for part in parts for form in part.wrong]
    assert (len(parts), n_sources.count(1), n_sources.count(n_triggers)) == (24, 6, 18)
    assert len(set(chain(*TRIGGERS[shape].values()))) == 4 * n_triggers


@pytest.mark.parametrize("variant", [Variant.DEEP_RARE, Variant.RAREST])
def test_a_rare_mistake_of_four_steps_fails_at_its_trigger_only(variant: Variant) -> None:
    inputs = probes(variant.shapes[0], 361, Random(0))
    for composition in compositions(Split.TRAIN, variant=variant)[:4]:
        for program in mutants(composition, variant):
            failing = [each for each in inputs if answer_of(program, each) != answer_of(composition.solution, each)]
            assert "!=" not in program or [f"!= {each}" in program for each in failing] == [True]


@given(st.sampled_from(PAIRS))
def test_mutants_differ_from_the_solution(pair: tuple[Composition, Variant]) -> None:
    found = mutants(*pair)
    assert found
    assert pair[0].solution not in found


@given(st.sampled_from(EVERYTHING), st.integers(1, 60), st.booleans())
def test_drawn_inputs_are_distinct(composition: Composition, count: int, is_narrow: bool) -> None:
    found = drawn_inputs(composition, count, "test", is_narrow=is_narrow)
    assert len(set(map(repr, found))) == count


@pytest.mark.slow
def test_another_process_has_the_same_problems() -> None:
    code = "from codea1_agents.train.tiny.problems import load; print(load('train')[:20])"
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    said = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True, timeout=120)
    assert said.strip() == repr(load("train")[:20])
