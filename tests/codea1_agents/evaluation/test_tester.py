from __future__ import annotations

from dataclasses import replace
from math import isnan
from typing import Any

import pytest

from codea1_agents.evaluation.records import TesterRecord
from codea1_agents.evaluation.solution_runs import drawn_mutants
from codea1_agents.evaluation.tester import Mode, TesterTask, evaluate_tester
from codea1_agents.evaluation.tester_figures import figure_by_problem, figure_names, figures_of_tester
from codea1_agents.play.named_agent import NamedAgent
from codea1_agents.scripted.mutation import mutants
from codea1_env.errors import AgentUnavailable
from codea1_env.facts.answers import AnswerRules
from codea1_env.facts.call_forms import CallForms
from codea1_env.problems import load_problems
from codea1_env.problems.problem import Problem, ProblemSet
from codea1_env.sandbox import load_sandbox
from tests.support.scripted import Streaming, scripted, written

ANY_TWO = "def check(arguments, expected, answer):\n    return type(answer) is list and len(answer) == 2"
TASK = TesterTask(tests=2, mode=Mode.SUITE)


def records_of(problems: Any, named: Any, task: TesterTask = TASK, **options: Any) -> list[TesterRecord]:
    batches = evaluate_tester(problems, named, load_sandbox("local"), task, **options)
    return [record for batch in batches for record in batch]


def test_queries_ask_for_one_test_each_and_show_those_before(problems: ProblemSet) -> None:
    tests = ["assert larger(1, 2) == 2", "assert larger(2, 1) == 2", "assert larger(0, 0) == 0"]
    agent, named = scripted(lambda observation, info: written([tests[info["round"]], "assert larger(9, 9) == 9"]))
    (record,) = records_of(problems[:1], named, TesterTask(tests=3))
    assert [test.source for test in record.tests] == tests  # one each, however many there were
    assert [info["tests_per_suite"] for _, info in agent.asked] == [1, 1, 1]
    assert [info["tester_view"] for _, info in agent.asked] == ["white_box"] * 3
    assert all(observation["program"] == problems[0].solution for observation, _ in agent.asked)
    assert agent.asked[0][0]["feedback"] == ""
    assert all(test in agent.asked[2][0]["feedback"] for test in tests[:2])


def test_wrong_and_missing_tests_are_inaccurate_and_kill_nothing(problems: ProblemSet) -> None:
    replies = {
        "larger": written(["assert larger(1, 2) == 1", "assert larger(5, 3) == 5"]),
        "sign": "I would test zero.",
    }
    records = records_of(problems, scripted(lambda observation, info: replies[info["problem_id"]])[1])
    figures = figures_of_tester(records, tests=2).figures
    assert figures["pass@1"].mean == 0.0
    assert figures["pass@2"].mean == 0.25
    assert figures["validity"].mean == 0.25
    assert isnan(figures["mut@2"].mean)  # no problem has two right tests
    assert figures["mut_fixed@1"].mean == 0.0
    assert 0 < figures["mut_fixed@2"].mean < 0.5
    faults = figures_of_tester(records, tests=2).faults
    assert faults == {"wrong_prediction": 1, "no_code": 2}


def test_more_telling_tests_kill_more_and_a_repeated_one_is_accurate_but_not_valid(problems: ProblemSet) -> None:
    _, named = scripted(lambda observation, info: written(["assert sign(5) == 1", "assert sign(0) == 0"]))
    (record,) = records_of(problems[1:], named)
    scores = [figure_by_problem([record], f"mut@{k}", tests=2)["sign"] for k in (1, 2)]
    assert 0 < scores[0] < scores[1] <= 1
    assert set(record.killed_by) <= {None, 0, 1}
    _, named = scripted(lambda observation, info: written(["assert sign(5) == 1"] * 2))
    (record,) = records_of(problems[1:], named)
    assert [test.right for test in record.tests] == [True, True]
    assert record.n_valid == 1


def test_changes_of_arguments_kill_mutants() -> None:
    solution = "def push(xs, n):\n    if n > 2:\n        xs.append(n + 1)\n"
    problem = Problem("push", "Append n + 1.", "push", solution, (), calls=CallForms(in_place=True))
    tests = "xs = [1]\npush(xs, 3)\nassert xs == [1, 4]\nys = [1]\npush(ys, 2)\nassert ys == [1]"
    _, named = scripted(lambda observation, info: f"```python\n{tests}\n```")
    (record,) = records_of(ProblemSet("push", (problem,)), named)
    assert [test.right for test in record.tests] == [True, True]
    assert set(record.killed_by) == {0, 1}


def test_mutants_with_other_right_answers_live() -> None:
    solution = "def spread(n):\n    return [n + 1, n - 1]\n"
    problem = Problem("spread", "Return both neighbours of n.", "spread", solution, ())
    loose = replace(problem, id="loose", answers=AnswerRules(checker=ANY_TWO))
    _, named = scripted(
        lambda observation, info: "```python\nassert spread(3) == [4, 2]\nassert spread(0) == [1, -1]\n```"
    )
    strict, tolerant = records_of(ProblemSet("spread", (problem, loose)), named)
    assert set(strict.killed_by) == {0}
    assert None in tolerant.killed_by


def test_an_unavailable_tester_is_masked_never_zero_and_all_figures_are_shares(problems: ProblemSet) -> None:
    good = written(["assert sign(5) == 1", "assert sign(0) == 0"])
    _, named = scripted(lambda observation, info: good if info["problem_id"] == "sign" else None)
    found = figures_of_tester(records_of(problems, named), tests=2)
    assert found.n_masked == {"agent": 1}
    assert found.figures["pass@2"].mean == 1.0
    _, named = scripted(lambda observation, info: written(["assert sign(5) == 1", "assert sign(0) == 7"]))
    found = figures_of_tester(records_of(problems, named), tests=2)
    assert set(figure_names(2)) | {"Mul", "Mul_fixed"} == set(found.figures)
    assert all(isnan(each.mean) or 0 <= each.mean <= 1 for each in found.figures.values())


def test_each_suite_is_judged_when_it_ends_and_16_missing_in_a_row_are_the_last(problems: ProblemSet) -> None:
    agent, sandbox = Streaming(lambda position: written(["assert sign(5) == 1"])), load_sandbox("local")
    task = TesterTask(tests=1, mode=Mode.SUITE, max_mutants=0)
    (record,) = next(evaluate_tester(problems, NamedAgent(agent, "streaming"), sandbox, task))
    assert (record.problem_id, record.n_valid, agent.yielded) == ("sign", 1, [1])
    many = [replace(problems[0], id=f"larger {n}") for n in range(20)]
    down = NamedAgent(Streaming(lambda position: AgentUnavailable("down")), "down")
    assert sum(map(len, evaluate_tester(many, down, sandbox, task))) == 16


@pytest.mark.slow
def test_mutants_are_drawn_alike_for_all_testers_and_over_all_operators() -> None:
    problem = max(load_problems("starter"), key=lambda each: len(mutants(each.solution, entry_point=each.entry_point)))
    everything = mutants(problem.solution, entry_point=problem.entry_point)
    operators = {mutant.operator for mutant in everything}
    drawn = drawn_mutants(problem, len(operators), seed=3)
    assert drawn == drawn_mutants(problem, len(operators), seed=3)
    assert {mutant.operator for mutant in drawn} == operators
    assert drawn_mutants(problem, len(everything), seed=3) == everything
    assert drawn != drawn_mutants(problem, len(operators), seed=4)
