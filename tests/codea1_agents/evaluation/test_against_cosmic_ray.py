"""Our mutants against cosmic-ray's, which UnLeakedTestBench uses: the same functions, the same tests, our sandbox.

Skipped where cosmic-ray is not installed. What a run over all of `starter` gave: docs/evaluation.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean

import pytest

from codea1_agents.evaluation.metrics import fixed_mutation_score, spearman
from codea1_agents.evaluation.solution_runs import CheckedTest, MutantRuns, check_tests, drawn_mutants, run_mutants
from codea1_agents.scripted.mutation import Mutant
from codea1_agents.scripted.mutation_operators import Operator
from codea1_agents.scripted.testers import BoundaryTester
from codea1_env.agent import AgentContext
from codea1_env.observations import observation_of
from codea1_env.problems import load_problems
from codea1_env.problems.problem import Problem, ProblemSet
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Reading, preset
from codea1_env.sandbox import Limits, Sandbox

N_PROBLEMS = 12
TESTS = 5


@pytest.fixture
def problems() -> ProblemSet:
    return ProblemSet("some", load_problems("starter")[:N_PROBLEMS])


def theirs(problem: Problem) -> Iterator[Mutant]:
    """Yield what cosmic-ray's operators make of a solution."""
    plugins = pytest.importorskip("cosmic_ray.plugins", reason="cosmic-ray is not installed")
    mutating = pytest.importorskip("cosmic_ray.mutating", reason="cosmic-ray is not installed")
    for name in plugins.operator_names():
        operator = plugins.get_operator(name)
        if operator.arguments():  # cosmic-ray leaves these out too unless it is told what to insert
            continue
        for occurrence in range(10_000):
            program = mutating.mutate_code(problem.solution, operator(), occurrence)
            if program is None:
                break
            yield Mutant(program, Operator.STATEMENT, 0, name)


def right_tests(problems: ProblemSet, sandbox: Sandbox) -> list[tuple[CheckedTest, ...]]:
    """Return tests of edge cases for each problem."""
    tester = BoundaryTester(AgentContext(problems, sandbox))
    suites = [
        read_suite(
            tester.act(observation_of(problem, 0), {"problem_id": problem.id, "tests_per_suite": TESTS}),
            Reading.STRICT,
            entry_point=problem.entry_point,
        )
        for problem in problems
    ]
    asked = [(problem, suite, suite.cases) for problem, suite in zip(problems, suites, strict=True)]
    return [found[1] for found in check_tests(asked, sandbox, preset("fixed"), Limits()) if found is not None]


def scores(first: Sequence[MutantRuns], second: Sequence[MutantRuns], k: int) -> tuple[list[float], list[float]]:
    """Return the scores of both, of the problems that have mutants of both kinds."""
    both = [(a.killed_by, b.killed_by) for a, b in zip(first, second, strict=True) if a.killed_by and b.killed_by]
    return [fixed_mutation_score(a, k) for a, _ in both], [fixed_mutation_score(b, k) for _, b in both]


@pytest.mark.slow
def test_scores_agree_with_those_of_cosmic_rays_mutants(problems: ProblemSet, sandbox: Sandbox) -> None:
    pytest.importorskip("cosmic_ray", reason="cosmic-ray is not installed")
    tests = right_tests(problems, sandbox)
    comparison = preset("fixed").comparison
    entries = list(zip(problems, tests, strict=True))
    ours = run_mutants([(problem, of, drawn_mutants(problem, 40, 0)) for problem, of in entries], sandbox, comparison)
    cosmic = run_mutants([(problem, of, tuple(theirs(problem))) for problem, of in entries], sandbox, comparison)
    one, all_of_them = scores(ours, cosmic, 1), scores(ours, cosmic, TESTS)
    for first, second in (one, all_of_them):
        assert abs(mean(first) - mean(second)) < 0.15
        assert spearman(first, second) > 0.5
    # Both see that five tests tell more than one.
    assert mean(all_of_them[0]) > mean(one[0])
    assert mean(all_of_them[1]) > mean(one[1])
