"""Examples for fine-tuning a tester: the programs in their prompts, and the golden tests in their replies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_agents.play.named_agent import NamedAgent
from codea1_agents.prompts import load_prompts
from codea1_agents.train.sft.examples import examples_for_coder, examples_for_tester, failing_programs, sampled_programs
from codea1_env.problems import GoldenCase, GoldenHarness, load_problems
from codea1_env.rules.replies import read_candidate, read_suite
from codea1_env.rules.ruleset import Reading
from tests.support.sft_examples import ADD, FAILING, PROMPTS, WRONG


def coder_of(*programs: str) -> NamedAgent:
    """One that replies these programs by the number of the sample, and no program for an empty one."""

    class Coder:
        def act(self, observation: dict[str, Any], info: dict[str, Any]) -> str:
            program = programs[info["sample"]]
            return f"```python\n{program}\n```" if program else "no program"

    return NamedAgent(Coder(), "it")


def test_only_distinct_programs_that_fail_a_golden_test_are_kept(sandbox) -> None:
    """What is sampled is distinct and readable, whether it fails or not."""
    coder = coder_of(ADD.solution, WRONG[0], "", WRONG[0], WRONG[1], "def add(a, b):\n    return (\n")
    found = failing_programs([ADD, replace(ADD, id="bare", golden=())], coder, sandbox, samples=6)
    assert set(found) == {"toy/add"}
    first, second, *others = [each.strip() for each in found["toy/add"]]
    assert [first, second] == [WRONG[0].strip(), WRONG[1].strip()]
    assert not {first, second, ADD.solution.strip()} & {*others}
    sampled = sampled_programs([ADD], coder_of(WRONG[0], ADD.solution, "", WRONG[0]), samples=4)
    assert [each.strip() for each in sampled[ADD.id]] == [WRONG[0].strip(), ADD.solution.strip()]


@given(st.integers(1, 20), st.integers(0, 3))
def test_an_example_shows_the_program_and_replies_golden_tests_that_are_read_as_such(tests: int, seed: int) -> None:
    golden = {(case.expression, case.expected) for case in ADD.golden}
    found = examples_for_tester([ADD], FAILING, PROMPTS, tests=tests, seed=seed)
    assert len(found) == len(WRONG)
    for example, program in zip(found, WRONG, strict=True):
        assert program.strip() in example.messages[-1].content
        assert f"Write {tests} assertion tests" in example.messages[-1].content
        suite = read_suite(example.reply, Reading.STRICT, entry_point="add", tests_per_suite=20)
        assert {(case.expression, case.prediction) for case in suite.cases} <= golden
        assert len(suite.cases) == min(tests, len(golden))
        assert suite.rejections == ()


def test_only_the_shortest_tests_of_a_problem_are_learnt_where_that_is_wanted() -> None:
    lengths = sorted(len(f"assert {case.expression} == {case.expected}") for case in ADD.golden)
    for example in examples_for_tester([ADD], FAILING, PROMPTS, tests=99, shortest=2):
        suite = read_suite(example.reply, Reading.STRICT, entry_point="add", tests_per_suite=20)
        assert sorted(len(case.to_assert()) for case in suite.cases) == lengths[:2] < lengths


def test_the_programs_of_a_problem_come_with_different_tests_and_the_same_seed_with_the_same() -> None:
    found = examples_for_tester([ADD], FAILING, PROMPTS, tests=3)
    assert len({example.reply for example in found}) > 1
    assert examples_for_tester([ADD], FAILING, PROMPTS, tests=3) == found
    assert examples_for_tester([ADD], FAILING, PROMPTS, tests=3, seed=1) != found


def test_problems_whose_golden_tests_are_programs_give_the_examples_of_their_statement_or_nothing() -> None:
    harness = replace(ADD, golden=(GoldenHarness("def check(candidate): ..."),))
    assert examples_for_tester([harness], FAILING, PROMPTS) == []
    stated = replace(harness, examples=("assert add(1, 2) == 3",))
    (example,) = examples_for_tester([stated], {ADD.id: WRONG[:1]}, PROMPTS)
    assert example.reply == "assert add(1, 2) == 3"
    (golden,) = examples_for_tester([replace(ADD, examples=stated.examples)], {ADD.id: WRONG[:1]}, PROMPTS, tests=99)
    assert len(golden.reply.splitlines()) == len(ADD.golden)


def test_what_a_test_needs_stands_before_it() -> None:
    needy = replace(ADD, golden=(GoldenCase("add(math.inf, 1)", "math.inf", ("import math",)),))
    (example,) = examples_for_tester([needy], {ADD.id: WRONG[:1]}, PROMPTS)
    assert example.reply == "import math\nassert add(math.inf, 1) == math.inf"


def test_the_starter_problems_make_examples() -> None:
    problems = load_problems("starter")
    examples = examples_for_tester(problems, {problem.id: ["def f(): ..."] for problem in problems}, PROMPTS)
    assert len(examples) == len(problems)


def test_a_coder_learns_the_solution_in_the_form_that_its_prompt_requests() -> None:
    for wording, is_fenced in (("default", True), ("tiny", False)):
        (example,) = examples_for_coder([ADD], load_prompts(wording))
        assert example.reply == (f"```python\n{ADD.solution.strip()}\n```" if is_fenced else ADD.solution.strip())
        assert (example.role, example.problem_id) == ("coder", ADD.id)
        candidate = read_candidate(example.reply, Reading.STRICT, entry_point="add", max_program_bytes=1000)
        assert candidate.program.strip() == ADD.solution.strip()


@pytest.mark.parametrize(("wording", "is_fenced"), [("default", True), ("paper", True), ("simple", False)])
def test_a_testers_suite_is_a_block_iff_its_prompt_requests_one(wording: str, is_fenced: bool) -> None:
    (example,) = examples_for_tester([ADD], {ADD.id: WRONG[:1]}, load_prompts(wording), tests=3)
    assert example.reply.startswith("```python") is is_fenced
    suite = read_suite(example.reply, Reading.STRICT, entry_point="add", tests_per_suite=20)
    assert (len(suite.cases), suite.rejections) == (3, ())
