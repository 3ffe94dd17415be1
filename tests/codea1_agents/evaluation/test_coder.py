from __future__ import annotations

from dataclasses import replace
from math import isnan
from typing import Any

from codea1_agents.evaluation.coder import evaluate_coder, figures_of_coder
from codea1_agents.evaluation.records import CoderSample
from codea1_agents.play.named_agent import NamedAgent
from codea1_env.errors import AgentUnavailable
from codea1_env.problems.problem import GoldenCase, ProblemSet
from codea1_env.sandbox import Sandbox
from tests.support.scripted import Streaming, scripted

RIGHT = {
    "larger": "def larger(a, b):\n    return max(a, b)",
    "sign": "def sign(n):\n    return 0 if n == 0 else 1 if n > 0 else -1",
}


def right(observation: Any, info: Any) -> str:
    return RIGHT[info["problem_id"]]


def samples_of(problems: Any, named: Any, sandbox: Any, **options: Any) -> list[CoderSample]:
    return [each for batch in evaluate_coder(problems, named, sandbox, **options) for each in batch]


def test_right_programs_pass_and_no_others(problems: ProblemSet, sandbox: Sandbox) -> None:
    wrong = {"larger": "def larger(a, b):\n    return a", "sign": "no program at all"}
    _, named = scripted(lambda observation, info: (RIGHT if info["sample"] else wrong)[info["problem_id"]])
    found = samples_of(problems, named, sandbox, samples=2)
    assert [each.passed for each in found] == [False, True, False, True]
    assert found[0].pass_rate == 0.5
    assert found[0].verdict == "wrong_answer"
    assert "larger(1, 2)" in found[0].detail
    figures = figures_of_coder(found)
    assert figures.average.mean == 0.5
    assert {k: each.mean for k, each in figures.pass_at.items()} == {1: 0.5, 2: 1.0}
    _, named = scripted(lambda observation, info: "def larger(a, b):\n    __import__('os')._exit(0)")
    (found,) = samples_of(problems[:1], named, sandbox)
    assert (found.passed, found.pass_rate) == (False, 0.0)


def test_wrong_tests_of_a_right_program_do_not_run_and_are_counted(problems: ProblemSet, sandbox: Sandbox) -> None:
    _, named = scripted(lambda observation, info: f"{RIGHT['larger']}\nprint(larger(1, 2))\nassert larger(1, 2) == 1")
    (found,) = samples_of(problems[:1], named, sandbox)
    assert (found.passed, found.n_own_tests) == (True, 2)
    figures = figures_of_coder([found, found.model_copy(update={"n_own_tests": 0})])
    assert (figures.n_with_own_tests, figures.n_samples) == (1, 2)


def test_what_is_left_out_is_masked_never_zero(problems: ProblemSet, sandbox: Sandbox, broken_sandbox: Sandbox) -> None:
    figures = figures_of_coder(samples_of(problems, scripted(right)[1], broken_sandbox))
    assert figures.n_masked == {"sandbox": 2}
    assert isnan(figures.average.mean)
    _, named = scripted(lambda observation, info: None if info["sample"] == 1 else right(observation, info))
    figures = figures_of_coder(samples_of(problems, named, sandbox, samples=2))
    assert figures.average.mean == 1.0
    assert figures.n_masked == {"agent": 2}
    assert (figures.pass_at[1].mean, figures.n_samples) == (1.0, 2)

    def sample(problem: str, number: int, passed: bool | None) -> CoderSample:
        return CoderSample(problem_id=problem, sample=number, reply="", passed=passed, masked="" if passed else "agent")

    figures = figures_of_coder([sample("a", 0, True), sample("a", 1, True), sample("b", 0, True), sample("b", 1, None)])
    assert (figures.pass_at[2].n_problems, figures.pass_at[2].n_masked) == (1, 1)


def test_a_broken_golden_test_masks_unless_another_one_fails(problems: ProblemSet, sandbox: Sandbox) -> None:
    broken = replace(problems[0], golden=(GoldenCase("larger(1, 2)", "undefined"), GoldenCase("larger(3, 2)", "3")))
    programs = [RIGHT["larger"], "def larger(a, b):\n    return b"]
    _, named = scripted(lambda observation, info: programs[info["sample"]])
    found = samples_of([broken], named, sandbox, samples=2)
    assert [(each.passed, each.masked) for each in found] == [(None, "test"), (False, "")]


def test_neither_what_is_known_nor_a_coder_that_is_gone_is_asked_for(problems: ProblemSet, sandbox: Sandbox) -> None:
    agent, named = scripted(right)
    found = samples_of(problems, named, sandbox, samples=2, known={("larger", 0), ("sign", 1)})
    assert [(each.problem_id, each.sample) for each in found] == [("larger", 1), ("sign", 0)]
    assert len(agent.asked) == 2
    agent, named = scripted(lambda observation, info: None)
    found = samples_of(problems, named, sandbox, samples=100)
    assert len(agent.asked) == len(found) < 200


def test_each_reply_is_judged_when_it_ends_and_64_missing_ones_are_the_last(problems: Any, sandbox: Sandbox) -> None:
    agent = Streaming(lambda position: RIGHT["sign" if position else "larger"])
    samples = evaluate_coder(problems, NamedAgent(agent, "streaming"), sandbox)
    assert [(each.problem_id, each.passed) for each in next(samples)] == [("sign", True)]
    assert agent.yielded == [1]
    assert [(each.problem_id, each.passed) for each in next(samples)] == [("larger", True)]
    down = Streaming(lambda position: AgentUnavailable("down"))
    assert len(samples_of(problems, NamedAgent(down, "down"), sandbox, samples=50)) == 64
    rarely = Streaming(lambda position: RIGHT["larger"] if position == 50 else AgentUnavailable("down"))
    assert len(samples_of(problems, NamedAgent(rarely, "rarely"), sandbox, samples=50)) == 100
