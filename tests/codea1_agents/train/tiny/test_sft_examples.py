"""Examples for fine-tuning a tester: the programs in their prompts, and the golden tests in their replies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from codea1_agents.play.named_agent import NamedAgent
from codea1_agents.train.tiny.sft_examples import FailingProgram, failing_programs, sft_examples
from codea1_env.problems import GoldenCase, GoldenHarness, load_problems
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Reading
from tests.support.sft_examples import ADD, FAILING, PROMPTS, WRONG


def test_only_distinct_programs_that_fail_a_golden_test_are_kept(sandbox) -> None:
    texts = [ADD.solution, WRONG[0], "no program", WRONG[0], WRONG[1], "def add(a, b):\n    return (\n"]

    def coder(observation: dict[str, Any], info: dict[str, Any]) -> str:
        return f"```python\n{texts[info['sample']]}\n```" if info["sample"] != 2 else texts[2]

    class Coder:
        act = staticmethod(coder)

    found = failing_programs([ADD, replace(ADD, id="bare", golden=())], NamedAgent(Coder(), "it"), sandbox, samples=6)
    assert [each.program.strip() for each in found[:2]] == [WRONG[0].strip(), WRONG[1].strip()]
    assert {each.problem.id for each in found} == {"toy/add"}
    assert ADD.solution.strip() not in {each.program.strip() for each in found}


@given(st.integers(1, 20), st.integers(0, 3))
def test_an_example_shows_the_program_and_replies_golden_tests_that_are_read_as_such(tests: int, seed: int) -> None:
    golden = {(case.expression, case.expected) for case in ADD.golden}
    found = sft_examples(FAILING, PROMPTS, tests=tests, seed=seed)
    assert len(found) == len(FAILING)
    for example, failing in zip(found, FAILING, strict=True):
        assert failing.program.strip() in example.messages[-1].content
        assert f"Write {tests} assertion tests" in example.messages[-1].content
        suite = read_suite(example.reply, Reading.STRICT, entry_point="add", tests_per_suite=20)
        assert {(case.expression, case.prediction) for case in suite.cases} <= golden
        assert len(suite.cases) == min(tests, len(golden))
        assert suite.rejections == ()


def test_the_programs_of_a_problem_come_with_different_tests_and_the_same_seed_with_the_same() -> None:
    found = sft_examples(FAILING, PROMPTS, tests=3)
    assert len({example.reply for example in found}) > 1
    assert sft_examples(FAILING, PROMPTS, tests=3) == found
    assert sft_examples(FAILING, PROMPTS, tests=3, seed=1) != found


def test_problems_whose_golden_tests_are_programs_teach_nothing() -> None:
    harness = replace(ADD, golden=(GoldenHarness("def check(candidate): ..."),))
    assert sft_examples([FailingProgram(harness, WRONG[0])], PROMPTS) == []


def test_what_a_test_needs_stands_before_it() -> None:
    needy = replace(ADD, golden=(GoldenCase("add(math.inf, 1)", "math.inf", ("import math",)),))
    (example,) = sft_examples([FailingProgram(needy, WRONG[0])], PROMPTS)
    assert example.reply == "import math\nassert add(math.inf, 1) == math.inf"


def test_the_starter_problems_make_examples() -> None:
    problems = load_problems("starter")
    examples = sft_examples([FailingProgram(problem, "def f(): ...") for problem in problems], PROMPTS)
    assert len(examples) == len(problems)
