from __future__ import annotations

from itertools import chain
from typing import get_args

import pytest

from codea1_agents.train.tiny.components import TRIGGERS
from codea1_agents.train.tiny.family import Split, Variant
from codea1_agents.train.tiny.problems import (
    N_EVALUATION_CASES,
    N_NAIVE_CASES,
    N_TRAINING_CASES,
    OPTIONS,
    Golden,
    Part,
    load,
)
from codea1_env.errors import UnknownName, UserError
from codea1_env.judging.golden import golden_jobs, golden_pass_rate, golden_results
from codea1_env.judging.problem_check import CheckStatus, check_problems
from codea1_env.problems import GoldenCase, Problem, ProblemSet, load_problems
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Sandbox


def expressions(problem: Problem) -> set[str]:
    return {test.expression for test in problem.golden if isinstance(test, GoldenCase)}


def test_the_source_is_registered_and_takes_known_options() -> None:
    assert load_problems("tiny") == load_problems("tiny:train") == load("train")
    assert [problem.id for problem in load_problems("tiny:held-out-eval")] == [p.id for p in load("held-out")]
    with pytest.raises(UnknownName, match="did you mean 'held-out'"):
        load_problems("tiny:heldout")
    with pytest.raises(UserError, match="unknown part of starter 'hard': known are functions, methods, stdin"):
        load_problems("starter:hard")


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(Part(variant, split, golden), marks=[pytest.mark.slow] * (split is Split.REST))
        for variant in Variant
        for split in Split
        for golden in get_args(Golden)
    ],
)
def test_every_split_has_problems_with_golden_tests(part: Part) -> None:
    assert part.name in OPTIONS
    problems = load(part.name)
    n_rest = 608 if part.variant.is_deep else 233
    assert len(problems) == (n_rest if part.split is Split.REST else 48)
    n_cases = {"mixed": N_TRAINING_CASES, "naive3": N_NAIVE_CASES, "eval": N_EVALUATION_CASES[part.variant]}
    assert {len(expressions(problem)) for problem in problems} == {n_cases[part.golden]}


@pytest.mark.parametrize("variant", [Variant.DEEP_RARE, Variant.RAREST])
def test_the_evaluation_of_four_steps_has_all_triggers_and_three_naive_tests_have_none(variant: Variant) -> None:
    triggers = {f"f{trigger}" for trigger in chain(*TRIGGERS[variant.shapes[0]].values())}
    found = [load(f"{variant.value}-train{golden}") for golden in ("-naive3", "", "-eval")]
    for naive, mixed, evaluation in zip(*found, strict=True):
        assert not expressions(naive) & triggers
        assert expressions(naive) < expressions(mixed)
        assert len(expressions(mixed) & triggers) == N_TRAINING_CASES // 2
        assert triggers < expressions(evaluation)
        assert {wrong.subtlety for wrong in evaluation.wrong_programs} >= {4}


def test_training_evaluation_and_examples_share_no_input() -> None:
    for training, evaluation in zip(load("train"), load("train-eval"), strict=True):
        examples = {line.removeprefix("assert ").partition(" == ")[0] for line in training.examples}
        assert not expressions(training) & expressions(evaluation)
        assert not examples & (expressions(training) | expressions(evaluation))
        assert training.solution == evaluation.solution


def test_solutions_are_right_in_the_sandbox(sandbox: Sandbox) -> None:
    problems = ProblemSet("some", load("train-eval")[:6] + load("rare-unseen")[:6] + load("deep-rare-unseen-eval")[:2])
    assert {found.status for found in check_problems(problems, sandbox)} == {CheckStatus.OK}


def test_known_wrong_programs_fail_a_golden_test(sandbox: Sandbox) -> None:
    for problem in load("rare-train")[:4] + load("deep-rare-train-eval")[:2] + load("held-out")[4:8]:
        assert problem.wrong_programs
        jobs = [job for wrong in problem.wrong_programs for job in golden_jobs(problem, wrong.program)]
        for report in sandbox.run(jobs):
            rate = golden_pass_rate(golden_results(problem, [report], {}, preset("fixed").comparison))
            assert rate < 1
